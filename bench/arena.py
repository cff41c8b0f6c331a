"""Memory, model by model: `./dev bench arena [NAME ...]`.

The arena of one thread that a model's .om needs for its test input: every tensor with memory of its own, memory reused,
reused with aliases (views, parts of a Concat, what a Pad surrounds, in place), and in the order of nodes that keeps the
peak low, which is the default. Beside it the peak of resident memory over what the process had before the model was made:
a fresh process for GE (`ge.load` of the .om, one run), ONNX Runtime and OpenVINO (the .onnx, one run), one thread each.
"""

import argparse
import json
import math
import os
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "models")]
import fetch  # noqa: E402
import interleave  # noqa: E402
import models as bench_models  # noqa: E402

WAYS = {"none": {"enable_mem_reuse": 0}, "reuse": {"disable_fusion": "aliases,order"}, "aliases": {"disable_fusion": "order"}, "order": {}}
PEERS, BAR, STARTS = ("onnxruntime", "openvino"), 0.6, 3


def arenas(path, feeds):
    """{way: bytes}, and whether the last is proved least."""
    import ge
    shapes = {name: list(v.shape) for name, v in feeds.items()}
    found = {way: ge.compile(path, input_shape=shapes, threads=1, **options).report()["memory"] for way, options in WAYS.items()}
    return {way: m.get("arena") for way, m in found.items()}, found["order"].get("proved", False)


def peak(engine, path, feeds_file, folder):
    """MB, the middle one of fresh processes; None if the engine cannot run the model."""
    peaks = []
    for _ in range(STARTS):
        try:
            worker = interleave.Worker(engine, 1, path, feeds_file, folder)
        except RuntimeError:
            return None
        peaks.append(worker.start["peak_mb"])
        worker.close()
    return sorted(peaks)[STARTS // 2]


def measure(case, folder, a):
    import ge
    path, feeds = case[0](), case[1]()
    row = {}
    if not a.no_arenas:
        row["arena"], row["proved"] = arenas(path, feeds)
    feeds_file, om = os.path.join(folder, "feeds.npz"), os.path.join(folder, "m.om")
    np.savez(feeds_file, **feeds)
    ge.compile(path, output=om)
    row["peak"] = {engine: peak(engine, om if engine == "ge" else path, feeds_file, folder) for engine in ("ge", *PEERS)}
    return row


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def better(row):
    peaks = [row["peak"][p] for p in PEERS if row["peak"][p]]
    return min(peaks) if peaks else None


def said(name, row):
    arena, peaks = row.get("arena", {}), row["peak"]
    text = f"{name:<28}" + "".join(f"{arena[w] / 1e6:>10.2f}" if arena.get(w) is not None else f"{'-':>10}" for w in WAYS)
    text += f"{'yes' if row.get('proved') else '-':>8}" + "".join(f"{peaks[e]:>10.1f}" if peaks[e] else f"{'-':>10}" for e in ("ge", *PEERS))
    least = better(row)
    return text + (f"{peaks['ge'] / least:>8.2f}" if least and peaks["ge"] else "")


def summary(results):
    ways = list(WAYS)
    for before, after in zip(ways, ways[1:]):
        both = [(r["arena"][before], r["arena"][after]) for r in results.values() if r.get("arena") and r["arena"][before] and r["arena"][after]]
        print(f"{after} of {before}: geomean {geomean([b / a for a, b in both]):.3f} of {len(both)} models")
    ratios = {n: r["peak"]["ge"] / better(r) for n, r in results.items() if better(r) and r["peak"]["ge"]}
    if ratios:
        mean, worst = geomean(list(ratios.values())), max(ratios, key=ratios.get)
        print(f"peak of the better peer's: geomean {mean:.3f} of {len(ratios)} models, most {ratios[worst]:.2f} ({worst}); the bar is {BAR}: "
              + ("held" if mean <= BAR else "missed"))


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="./dev bench arena", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--no-arenas", action="store_true", help="peaks alone")
    parser.add_argument("--output", default=os.path.join(ROOT, "build", "bench_arena.json"))
    a, known, results = parser.parse_args(arguments), bench_models.cases(), {}
    print(f"{'arena MB':<28}{'none':>10}{'reuse':>10}{'+ aliases':>10}{'+ order':>10}{'proved':>8}{'peak GE':>10}{'ORT':>10}{'OpenVINO':>10}{'of best':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name in bench_models.chosen(known, a.names):
            try:
                results[name] = measure(known[name], folder, a)
            except (ValueError, RuntimeError) as e:  # one model's failure must not hide the others' figures
                print(f"{name:<28}FAILS: {str(e).splitlines()[0][:120]}", flush=True)
                continue
            print(said(name, results[name]), flush=True)
    summary(results)
    os.makedirs(os.path.dirname(a.output), exist_ok=True)
    with open(a.output, "w", encoding="utf-8") as f:
        json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
