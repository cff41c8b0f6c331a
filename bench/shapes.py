"""One .om for many shapes: `./dev bench shapes [NAME ...]`.

For models with open sizes and several shapes each: the .om that takes any size beside one compiled for that shape alone,
in turns in one process (the ratio of their times, 1.05 is the bar); and the first run of a shape that a loaded model
has not seen, against later ones: at most 1.2 of a warm run + 1 ms + 0.3 ms for each MB that the arena grows.
The real models are the tests', the generated ones are exported by PyTorch with dynamic shapes. One thread.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
from time import thread_time as clock  # what others do on the machine does not count

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "models")]
import fetch  # noqa: E402
import shape_models  # noqa: E402
import simple_attention  # noqa: E402
import torch_models  # noqa: E402

SLOWER, WARM, FIXED_MS, MS_PER_MB = 1.05, 1.2, 1.0, 0.3
LOADS = 5  # fresh models, of whose first runs the middle one counts


def cases():
    """name -> (model's path, [feeds of each shape]), both made when asked for."""
    found = {}
    for name, model in fetch.catalogue().items():
        if len(model["feeds"]) > 1:
            found[name] = lambda n=name, m=model: (fetch.fetch(n), [fetch.feeds(n, c) for c in m["feeds"]])
    found["simple_attention"] = lambda: (simple_attention.export(), [simple_attention.feeds(s) for s in (64, 384, 1500)])
    lengths = {"gpt2": [(1, 512), (1, 100), (2, 64)], "gpt2_small": [(1, 64), (3, 40)], "llama_small": [(1, 96), (4, 33)]}
    for name, sizes in lengths.items():
        found[name] = lambda n=name, s=sizes: (torch_models.export(n), [torch_models.feeds(n, *x) for x in s])
    for name in ("vit", "vit_small"):
        found[name] = lambda n=name: (torch_models.export(n), [torch_models.feeds(n, b) for b in (1, 3)])
    for name in shape_models.NAMES:
        found[name] = lambda n=name: (shape_models.export(n), shape_models.feeds(n))
    return found


def shapes(feeds):
    return {name: list(value.shape) for name, value in feeds.items()}


def said(feeds):
    return " ".join("x".join(map(str, v.shape)) for v in list(feeds.values())[:3])


def timed(run, feeds, least):
    """Seconds of a run: the middle one of what fits into so much time, three at least."""
    times, end = [], clock() + least
    while len(times) < 3 or clock() < end:
        start = clock()
        run(feeds)
        times.append(clock() - start)
    return statistics.median(times)


def slower(dynamic, static, feeds, rounds, least):
    """(how much longer the dynamic .om takes, seconds of the static one): medians over rounds in turns, each of models that
    were loaded anew: where in a page lies what a run touches is luck, which makes up to 8 % of a run of some us."""
    import ge
    ratios, fixed = [], []
    for k in range(rounds):
        both = {}
        for which in ((dynamic, static), (static, dynamic))[k % 2]:
            model = ge.load(which, threads=1)
            model.run(feeds)
            both[which] = timed(model.run, feeds, least)
            del model
        ratios.append(both[dynamic] / both[static])
        fixed.append(both[static])
    return statistics.median(ratios), statistics.median(fixed)


def first_run(om, before, feeds):
    """Of a loaded model that has run other feeds: (ms of the first run, ms of later ones, MB that the arena grew)."""
    import ge
    firsts, warms, grown = [], [], 0
    for _ in range(LOADS):
        model = ge.load(om, threads=1)
        for _ in range(2):
            model.run(before)
        arena, start = model.memory()["arena"], clock()
        model.run(feeds)
        firsts.append(1e3 * (clock() - start))
        grown = (model.memory()["arena"] - arena) / 1e6
        warms.append(1e3 * timed(model.run, feeds, 0.02))
        del model
    return statistics.median(firsts), statistics.median(warms), max(0.0, grown)


def differs(got, want):
    """The largest difference over the largest value."""
    worst = 0.0
    for g, w in zip(got, want):
        g, w = np.nan_to_num(np.asarray(g, np.float64)), np.nan_to_num(np.asarray(w, np.float64))
        if g.shape != w.shape:
            return float("inf")
        if w.size:
            worst = max(worst, float(np.abs(g - w).max() / (np.abs(w).max() or 1.0)))
    return worst


def ranges(path, all_feeds):
    """{input: sizes} from the least to the largest of all feeds, where the model leaves them open."""
    import ge
    limits = {}
    for port in ge.compile(path, disable_fusion="all").inputs:
        sizes = [{feeds[port.name].shape[axis] for feeds in all_feeds} for axis in range(len(port.shape))]
        limits[port.name] = [axis if isinstance(axis, int) else f"{axis}={min(s)}~{max(s)}" if axis.isidentifier() else f"{min(s)}~{max(s)}"
                             for axis, s in zip(port.shape, sizes)]
    return limits


def measure(name, path, all_feeds, folder, a):
    import ge
    om = os.path.join(folder, f"{name}.om")
    ge.compile(path, output=om, **({"input_shape": ranges(path, all_feeds)} if a.ranges else {}))
    dynamic, rows = ge.load(om, threads=1), []
    for i, feeds in enumerate(all_feeds):
        one = os.path.join(folder, f"{name}.{i}.om")
        ge.compile(path, output=one, input_shape=shapes(feeds))
        static = ge.load(one, threads=1)
        difference = differs(dynamic.run(feeds), static.run(feeds))
        ratio, seconds = slower(om, one, feeds, a.rounds, a.seconds)
        gc.disable()
        first, warm, grown = first_run(om, all_feeds[(i + 1) % len(all_feeds)], feeds)
        gc.enable()
        allowed = WARM * warm + FIXED_MS + MS_PER_MB * grown
        rows.append({"shape": said(feeds), "ms": 1e3 * seconds, "ratio": ratio, "first_ms": first, "warm_ms": warm,
                     "arena_mb": grown, "allowed_ms": allowed, "difference": difference,
                     "arenas": [m._native.plan([list(f.shape) for f in feeds.values()])["arena"] if m._native.plain else 0
                                for m in (dynamic, static)] if a.arenas else []})
        print(row(name, rows[-1]), flush=True)
        os.remove(one)
    return rows


def row(name, r):
    marks = ("slower" if r["ratio"] > SLOWER else "") + (" LATE" if r["first_ms"] > r["allowed_ms"] else "")
    return (f"{name:<26}{r['shape']:<36.36}{r['ms']:>9.3f}{r['ratio']:>7.3f}{r['first_ms']:>10.3f}{r['allowed_ms']:>10.3f}"
            f"{r['arena_mb']:>8.2f}{r['difference']:>9.1e}  {marks}")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="./dev bench shapes", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="the least length of one turn")
    parser.add_argument("--ranges", action="store_true", help="one .om for the range of the measured sizes in place of any size")
    parser.add_argument("--arenas", action="store_true", help="also the arenas of both")
    parser.add_argument("--output", default=os.path.join(ROOT, "build", "bench_shapes.json"))
    parser.add_argument("--list", action="store_true")
    a, known, results = parser.parse_args(arguments), cases(), {}
    if a.list:
        print("\n".join(known))
        return
    print(f"{'model':<26}{'shape':<36}{'own ms':>9}{'ratio':>7}{'first ms':>10}{'allowed':>10}{'+ MB':>8}{'differs':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for name in a.names or known:
            try:
                path, feeds = known[name]()
                results[name] = measure(name, path, feeds, folder, a)
            except (ValueError, RuntimeError) as e:  # one model's failure must not hide the others' figures
                print(f"{name:<26}FAILS: {str(e).splitlines()[0][:160]}", flush=True)
    every = [(n, r) for n, rows in results.items() for r in rows]
    if every:
        within = sum(r["ratio"] <= SLOWER for _, r in every)
        prompt = sum(r["first_ms"] <= r["allowed_ms"] for _, r in every)
        mean = float(np.exp(np.mean([np.log(r["ratio"]) for _, r in every])))
        print(f"{len(every)} shapes of {len(results)} models: geomean {mean:.3f}, {within} within {SLOWER}, first run in time for {prompt}")
    os.makedirs(os.path.dirname(a.output), exist_ok=True)
    with open(a.output, "w", encoding="utf-8") as f:
        json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
