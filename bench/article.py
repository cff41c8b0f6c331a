"""SimpleAttention with fusion and memory reuse on and off: `./dev bench article [SEQUENCE]`.

Warm-up 3, runs 10, average, least and most; batch 1, four Linear of 768, one head. Memory is the
arena with all scratch, which excludes inputs, outputs and weights.
"""

import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "tests", "models")]
import interleave  # noqa: E402
import simple_attention  # noqa: E402

NO_FUSION, NO_REUSE = {"disable_fusion": "all"}, {"disable_reuse_memory": 1}
WAYS = [("neither", {**NO_FUSION, **NO_REUSE}), ("fusion", NO_REUSE), ("memory reuse", NO_FUSION), ("both", {})]


def measure(model, feeds, warm=3, runs=10):
    times = []
    for _ in range(warm + runs):
        start = time.perf_counter()
        model.run(feeds)
        times.append(1e3 * (time.perf_counter() - start))
    return times[warm:]


def main():
    import ge
    sequence = int(sys.argv[1]) if len(sys.argv) > 1 else 2048
    path, feeds = simple_attention.export(sequence), simple_attention.feeds(sequence)
    print(f"SimpleAttention, 1 x {sequence} x {simple_attention.HIDDEN}")
    print(f"{'':<14}{'average ms':>11}{'least':>9}{'most':>9}{'arena MB':>10}{'fused':>7}{'compile s':>11}")
    base = None
    with tempfile.TemporaryDirectory() as folder:
        for name, options in WAYS:
            start = time.perf_counter()
            om = os.path.join(folder, name + ".om")
            ge.compile(path, **options).save(om)
            took, model = time.perf_counter() - start, ge.load(om)
            times = measure(model, feeds)
            average, arena = sum(times) / len(times), model.memory()["arena"]
            base = base or (average, arena)
            print(f"{name:<14}{average:>11.2f}{min(times):>9.2f}{max(times):>9.2f}{arena / 1e6:>10.2f}"
                  f"{len(model.report()['fused']):>7}{took:>11.2f}", end="")
            print(f"   latency {average / base[0] - 1:+.1%}, arena {arena / base[1] - 1:+.1%}")
        threads = len(os.sched_getaffinity(0))
        result = interleave.compare({"ge": om, "onnxruntime": path}, threads, feeds, folder)["onnxruntime"]
    print(f"ONNX Runtime: {result['ms']:.2f} ms; GE with both is {result['ratio']:.2f} times as fast (in turns); "
          f"they differ by {result['difference']:.1e}")


if __name__ == "__main__":
    main()
