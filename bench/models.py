"""GE beside ONNX Runtime on real models: `./dev bench models [NAME ...]`.

Each engine runs in its own process, in turns: five rounds, a ratio for each, the median is printed
(above 1: GE is faster). GE runs the .om that compiling with the defaults gives. The outputs of both
are compared in the same run. The table and all numbers go to build/bench_models.json.
"""

import argparse
import json
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "models")]
import fetch  # noqa: E402
import interleave  # noqa: E402
import simple_attention  # noqa: E402

TOLERANCE, FLOOR, MEAN_FLOOR = 1e-4, 0.5, 0.7


def cases():
    """name -> (path of the .onnx, feeds), both made when asked for."""
    found = {}
    for name, model in fetch.catalogue().items():
        for case in model["feeds"]:
            label = name if case == "default" else f"{name}/{case}"
            found[label] = (lambda n=name: fetch.fetch(n), lambda n=name, c=case: fetch.feeds(n, c))
    for sequence in simple_attention.SEQUENCES:
        found[f"simple_attention/{sequence}"] = (simple_attention.export, lambda s=sequence: simple_attention.feeds(s))
    return found


def compiled(path, folder, cache):
    """The .om of a model and how long compiling took, with the defaults."""
    if path not in cache:
        import ge
        start = time.perf_counter()
        om = os.path.join(folder, f"{len(cache)}.om")
        ge.compile(path).save(om)
        cache[path] = om, time.perf_counter() - start
    return cache[path]


def row(name, threads, result, others):
    ours = result["ge"]
    cells = [f"{name:<28}{threads:>2}", f"{ours['ms']:>10.3f}"]
    for other in others:
        theirs = result[other]
        cells.append(f"{theirs['ms']:>10.3f}{theirs['ratio']:>7.2f} {min(theirs['ratios']):>5.2f}-{max(theirs['ratios']):<5.2f}"
                     f"{theirs['difference']:>9.1e}")
    first = result[others[0]] if others else ours
    cells.append(f"{ours['create_ms'] + ours['first_ms']:>8.1f}{first['create_ms'] + first['first_ms']:>8.1f}"
                 f"{ours['peak_mb']:>8.1f}{first['peak_mb']:>8.1f}")
    return "".join(cells)


def header(others):
    text = f"{'model':<28}{'t':>2}{'GE ms':>10}"
    for other in others:
        text += f"{other[:9] + ' ms':>10}{'ratio':>7} {'(rounds)':<11}{'differs':>9}"
    return text + f"{'GE':>8}{'peer':>8}{'GE':>8}{'peer':>8}   create + first run ms, peak MB added"


def summarise(results, others, failures):
    for other in others:
        for threads in sorted({t for _, t, _ in results}):
            ratios = [r[other]["ratio"] for _, t, r in results if t == threads]
            if ratios:
                print(f"{threads} thread{'s' if threads > 1 else ' '}: geomean of the ratios to {other} "
                      f"{interleave.geomean(ratios):.2f}, least {min(ratios):.2f}, over {len(ratios)} cases")
    ratios = [r[others[0]]["ratio"] for _, _, r in results]
    slow = [f"{n} with {t}: {r[others[0]]['ratio']:.2f}" for n, t, r in results if r[others[0]]["ratio"] < FLOOR]
    mean = interleave.geomean(ratios)
    print(f"floors: each at least {FLOOR}: {'yes' if not slow else 'NO (' + ', '.join(slow) + ')'}; "
          f"geomean at least {MEAN_FLOOR}: {'yes' if mean >= MEAN_FLOOR else 'NO'} ({mean:.2f})")
    for failure in failures:
        print("FAILED:", failure)
    return not slow and mean >= MEAN_FLOOR and not failures


def main():
    parser = argparse.ArgumentParser(prog="./dev bench models", description=__doc__)
    parser.add_argument("names", nargs="*", help="cases to run, all without; a name takes all of its cases")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="the least length of one turn")
    parser.add_argument("--with", dest="others", default="onnxruntime", help="engines to compare with, e.g. onnxruntime,openvino")
    parser.add_argument("--floors", action="store_true", help="exit with 1 below the floors")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    known, others = cases(), arguments.others.split(",")
    names = [n for n in known if not arguments.names or n in arguments.names or n.split("/")[0] in arguments.names]
    if arguments.list or not names:
        print("\n".join(known))
        return 0 if arguments.list else 1
    results, failures, oms = [], [], {}
    print(header(others))
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path, feeds = (make() for make in known[name])
            for threads in map(int, arguments.threads.split(",")):
                try:
                    om, _ = compiled(path, folder, oms)
                    result = interleave.compare({"ge": om, **{o: path for o in others}}, threads, feeds, folder,
                                                arguments.rounds, arguments.seconds)
                except Exception as e:  # one model's failure must not hide the others' figures
                    failures.append(f"{name} with {threads}: {e}")
                    continue
                results.append((name, threads, result))
                print(row(name, threads, result, others), flush=True)
                if result[others[0]]["difference"] > TOLERANCE:
                    failures.append(f"{name} with {threads}: differs by {result[others[0]]['difference']:.1e}")
    if oms:
        slowest = max(oms, key=lambda p: oms[p][1])
        print(f"compile: {sum(s for _, s in oms.values()):.2f} s for {len(oms)} models, at most {oms[slowest][1]:.2f} s "
              f"({os.path.basename(os.path.dirname(slowest))})")
    good = summarise(results, others, failures) if results else False
    for failure in failures if not results else []:
        print("FAILED:", failure)
    os.makedirs(os.path.join(ROOT, "build"), exist_ok=True)
    with open(os.path.join(ROOT, "build", "bench_models.json"), "w", encoding="utf-8") as f:
        json.dump({"compile_s": {p: s for p, (_, s) in oms.items()},
                   "results": [{"model": n, "threads": t, **r} for n, t, r in results]}, f, indent=1)
    return 0 if (good or not arguments.floors) and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
