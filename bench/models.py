"""GE beside ONNX Runtime and OpenVINO on real models: `./dev bench models [NAME ...]`.

Each engine runs in its own process, in turns: five rounds, a ratio for each, the median is printed
(above 1: GE is faster). GE runs the .om that compiling with the defaults gives; all compute in f32.
The outputs are compared in the same run. A model that GE cannot compile or run, or whose outputs
disagree, counts 0.5 and is listed. One thread decides. The table and all numbers go to
build/bench_models.json.
"""

import argparse
import json
import mmap
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "models")]
import bf16  # noqa: E402
import fetch  # noqa: E402
import interleave  # noqa: E402
import score  # noqa: E402
import simple_attention  # noqa: E402
import torch_models  # noqa: E402

# Geomean and least: what --floors demands of the ratios to ONNX Runtime, and the bars against the better peer.
FLOORS, BARS = (0.8, 0.5), (1.15, 0.8)
SEQUENCES = (512, 2048, 4096)
PREFILL = 512


def cases():
    """name -> (path of the .onnx, feeds, both made when asked for, and whether it computes in few bits); "model/case"
    is not run unless it is named."""
    found = {}
    for name, model in fetch.catalogue().items():
        for case in model["feeds"]:
            label = name if case == "default" else f"{name}/{case}"
            found[label] = (lambda n=name: fetch.fetch(n), lambda n=name, c=case: fetch.feeds(n, c), model.get("rounded", False))
    for sequence in SEQUENCES:
        found[f"simple_attention_{sequence}"] = (simple_attention.export, lambda s=sequence: simple_attention.feeds(s), False)
    found[f"gpt2_prefill_{PREFILL}"] = (lambda: torch_models.export("gpt2"),
                                        lambda: torch_models.feeds("gpt2", length=PREFILL), False)
    found["vit"] = (lambda: torch_models.export("vit"), lambda: torch_models.feeds("vit"), False)
    return found


def warm_memory(count):
    """A virtual machine takes memory from its host when it is first touched, several ms for each MB. Which engine's start
    pays for that would be chance."""
    with open("/proc/meminfo", encoding="ascii") as f:
        available = next(int(line.split()[1]) * 1024 for line in f if line.startswith("MemAvailable"))
    count = min(count, available // 4 // mmap.PAGESIZE * mmap.PAGESIZE)
    with mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, count, mmap.PAGESIZE):
            memory[at] = 1


def chosen(known, wanted, first=False):
    """Without names each model's default case; a name takes all cases of its model, with `first` the default."""
    unknown = [w for w in wanted if not any(w in (n, n.split("/")[0]) for n in known)]
    if unknown:
        sys.exit(f"no model {', '.join(unknown)}; --list shows the names")
    return [n for n in known if (n in wanted or n.split("/")[0] in wanted and not (first and "/" in n) if wanted else "/" not in n)]


def compiled(path, folder, cache):
    """The .om of a model and how long compiling took, with the defaults."""
    if path not in cache:
        import ge
        start = time.perf_counter()
        om = os.path.join(folder, f"{len(cache)}.om")
        ge.compile(path).save(om)
        cache[path] = om, time.perf_counter() - start
    return cache[path]


def share_of_limit(om, threads, feeds, milliseconds):
    """What part of the machine's f32 arithmetic, measured now, the model's operations amount to: above 1 where an
    algorithm does with fewer than the operators' definitions count."""
    import ge
    from ge import _ge
    model = ge.load(om, threads=threads)
    gflops, _ = _ge.roofline(threads)
    operations = model._native.operations([list(feeds[port.name].shape) for port in model.inputs])
    return operations / (milliseconds * 1e6) / gflops


def measure(case, threads, folder, oms, a):
    """interleave.compare's result and GE's share of the machine's limit; where GE fails, {"ge": {"error"}}."""
    path, feeds, rounded = case[0](), case[1](), case[2]
    try:
        om, _ = compiled(path, folder, oms)
        paths = {"ge": om, **{o: path for o in a.others}}
        result = interleave.compare(paths, threads, feeds, folder, a.rounds, a.seconds, tolerant=True, starts=a.starts,
                                    unequal=score.ROUNDED["unequal"] if rounded else 0)
        if "error" not in result["ge"]:
            result["ge"]["limit"] = share_of_limit(om, threads, feeds, result["ge"]["ms"])
            result["ge"]["allowed"] = score.ROUNDED["allowed"] if rounded else score.TOLERANCE
            result["ge"]["file_mb"] = os.path.getsize(om) / 1e6
        return result
    except (ValueError, RuntimeError) as e:  # one model's failure must not hide the others' figures
        return {"ge": {"error": f"{e}".splitlines()[0][:200]}}


def header(others):
    text = f"{'model':<28}{'t':>2}{'GE ms':>10}{'limit':>7}"
    for other in others:
        text += f"{other[:9] + ' ms':>14}{'ratio':>7} {'(rounds)':<11}{'differs':>9}"
    return text + f"{'better':>8}{'GE':>9}{'peer':>8}{'GE':>8}{'peer':>8}   create + first run ms, peak MB added"  # limit: share of the f32 peak


def row(name, threads, result, others):
    start = f"{name:<28}{threads:>2}"
    ours, reason = result["ge"], score.failure(result)
    if "error" in ours:
        return f"{start}  FAILS, counts {score.COUNTS_AS}: {reason}"
    text = start + f"{ours['ms']:>10.3f}{ours['limit']:>7.0%}"
    for other in others:
        theirs = result[other]
        if "error" in theirs:
            text += f"{'cannot run it':>41}"
            continue
        rounds = f"{min(theirs['ratios']):.2f}-{max(theirs['ratios']):.2f}"
        text += f"{theirs['ms']:>14.3f}{theirs['ratio']:>7.2f} {rounds:<11}{theirs['difference']:>9.1e}"
    if reason:
        return text + f"  DISAGREES, counts {score.COUNTS_AS}: {reason}"
    peer = result[score.better_peer(result)]
    return text + (f"{score.ratio(result, 'better'):>8.2f}{score.start_ms(ours):>9.1f}{score.start_ms(peer):>8.1f}"
                   f"{ours['peak_mb']:>8.1f}{peer['peak_mb']:>8.1f}")


def summarise(results, others):
    """results: {threads: {name: result}}. Prints; True if the floors hold with the fewest threads."""
    deciding = min(results)
    for threads, of_models in sorted(results.items()):
        print(f"{threads} thread{'s' if threads > 1 else ''}:")
        for peer in (*others, "better"):
            s = score.summary(of_models, peer)
            if s["count"]:
                name = "the better peer" if peer == "better" else peer
                print(f"  to {name:<16} geomean {s['geomean']:.2f}, least {s['least']:.2f} ({s['slowest']}), {s['count']} models")
        c = score.costs(of_models)
        print(f"  to the better peer  start {c['start']:.2f}, peak memory {c['peak_mb']:.2f} of its (geomeans, less is better)")
    late = score.late_starts(results[deciding])
    print("starts of at most a steady run + 5 ms + 0.1 ms/MB: "
          + (", ".join(f"{n} {ms:.1f} ms over" for n, ms in late.items()) or "all"))
    held = True
    for peer, (mean, least), decides in ((others[0], FLOORS, True), ("better", BARS, False)):
        lines = score.below(score.summary(results[deciding], peer), mean, least)
        name = "the better peer" if peer == "better" else peer
        print(f"{'floors' if decides else 'bars'} against {name} (geomean {mean}, least {least}): "
              + ("hold" if not lines else "; ".join(lines)))
        held = held and (not lines or not decides)
    failures = [(n, t, score.failure(r)) for t, of in sorted(results.items()) for n, r in of.items() if score.failure(r)]
    for name, threads, reason in failures:
        print(f"counts {score.COUNTS_AS}: {name} with {threads}: {reason}")
    return held


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./dev bench models", description=__doc__)
    parser.add_argument("names", nargs="*", help="models to run, all without; a name takes all of its cases")
    parser.add_argument("--first", action="store_true", help="of the named models the default case alone")
    parser.add_argument("--threads", type=lambda s: [int(t) for t in s.split(",")])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="the least length of one turn")
    parser.add_argument("--starts", type=int, default=3, help="fresh processes, of which the middle one's start counts")
    parser.add_argument("--warm", type=float, default=3, help="GB of memory that are touched first; 0: none")
    parser.add_argument("--with", dest="others", default="onnxruntime,openvino", type=lambda s: s.split(","),
                        help="engines to compare with; the floors are for the first")
    parser.add_argument("--floors", action="store_true", help="exit with 1 below the floors")
    parser.add_argument("--output")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32", help="bf16: bf16.py's table of bf16 builds instead")
    a = parser.parse_args(arguments)
    suffix = "" if a.precision == "f32" else "_bf16"
    a.output = a.output or os.path.join(ROOT, "build", f"bench_models{suffix}.json")
    a.threads = a.threads or ([1] if suffix else [1, 2])
    return a


def main(arguments=None):
    a, known = parse(arguments), cases()
    names = chosen(known, a.names, a.first)
    if a.list:
        print("\n".join(known))
        return 0
    if a.precision == "bf16":
        return bf16.run(known, names, a)
    results, oms = {t: {} for t in a.threads}, {}
    if a.warm:
        warm_memory(int(a.warm * 1e9) // mmap.PAGESIZE * mmap.PAGESIZE)
    print(header(a.others))
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for threads in a.threads:
                result = measure(known[name], threads, folder, oms, a)
                results[threads][name] = result
                print(row(name, threads, result, a.others), flush=True)
    if oms:
        slowest = max(oms, key=lambda p: oms[p][1])
        print(f"compile: {sum(s for _, s in oms.values()):.2f} s for {len(oms)} models, at most {oms[slowest][1]:.2f} s "
              f"({os.path.basename(os.path.dirname(slowest))})")
    good = summarise(results, a.others)
    os.makedirs(os.path.dirname(a.output), exist_ok=True)
    with open(a.output, "w", encoding="utf-8") as f:
        json.dump({"compile_s": {p: s for p, (_, s) in oms.items()},
                   "results": [{"model": n, "threads": t, **r} for t, of in results.items() for n, r in of.items()]}, f, indent=1)
    return 0 if good or not a.floors else 1


if __name__ == "__main__":
    sys.exit(main())
