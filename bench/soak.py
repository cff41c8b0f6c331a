"""Memory under changing shapes: `./dev bench soak [NAME ...]`.

10,000 runs over 1,000 random shapes, in a fresh process for each engine, one thread: resident memory over what the process
had before the model was made, after each shape ran once and at the end. GE's memory after trim() beside it.
"""

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "models")]

SHAPES, RUNS, ENGINES = 1000, 10000, ("ge", "onnxruntime", "openvino")


def convolutions(folder):
    """Images of any number and size through two convolutions."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    draw = np.random.RandomState(0)
    weights = [numpy_helper.from_array(draw.randn(*shape).astype(np.float32), name) for name, shape in (("a", (16, 3, 3, 3)), ("b", (8, 16, 3, 3)))]
    nodes = [helper.make_node("Conv", ["x", "a"], ["t"], pads=[1] * 4), helper.make_node("Relu", ["t"], ["u"]),
             helper.make_node("Conv", ["u", "b"], ["y"], pads=[1] * 4)]
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", c, "h", "w"]) for n, c in (("x", 3), ("y", 8))]
    path = os.path.join(folder, "convolutions.onnx")
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", ports[:1], ports[1:], weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path, lambda draw: {"x": np.ones((draw.randint(1, 4), 3, draw.randint(1, 64), draw.randint(1, 64)), np.float32)}


def sentences(_):
    """A real model of text, of any length."""
    import fetch
    one = fetch.feeds("paraphrase_minilm_l3", "default")

    def feeds(draw):
        batch, length = draw.randint(1, 2), draw.randint(1, 48)
        return {k: np.resize(v, (batch, length)) for k, v in one.items()}
    return fetch.fetch("paraphrase_minilm_l3"), feeds


MODELS = {"convolutions": convolutions, "paraphrase_minilm_l3": sentences}


def resident():
    with open("/proc/self/smaps_rollup", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Rss:"))


def worker(engine, name, path, folder):
    """KiB over the start: after each shape ran once, at the end, after trim (GE)."""
    import engines
    make, draw = engines.ENGINES[engine](1), random.Random(0)
    all_feeds = [MODELS[name](folder)[1](draw) for _ in range(SHAPES)]
    largest = max(all_feeds, key=lambda f: sum(v.size for v in f.values()))
    before = resident()
    run = make(path)
    run(largest)
    for feeds in all_feeds:
        run(feeds)
    gc.collect()
    warm = resident()
    for _ in range(RUNS - SHAPES):
        run(draw.choice(all_feeds))
    gc.collect()
    end = resident()
    if engine == "ge":
        run.__self__.trim()
    print(json.dumps([warm - before, end - before, resident() - before]))


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--worker":
        return worker(*sys.argv[2:6])
    parser = argparse.ArgumentParser(prog="./dev bench soak", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--output", default=os.path.join(ROOT, "build", "bench_soak.json"))
    a, results = parser.parse_args(), {}
    print(f"{'model':<22}{'engine':<14}{'MiB when warm':>14}{'grown since KiB':>17}{'after trim MiB':>16}")
    with tempfile.TemporaryDirectory() as folder:
        for name in a.names or MODELS:
            import ge
            path, _ = MODELS[name](folder)
            om = os.path.join(folder, f"{name}.om")
            ge.compile(path, output=om)
            for engine in ENGINES:
                done = subprocess.run([sys.executable, os.path.abspath(__file__), "--worker", engine, name, om if engine == "ge" else path, folder],
                                      capture_output=True, text=True, check=False)
                if done.returncode:
                    print(f"{name:<22}{engine:<14} FAILS: {done.stderr.splitlines()[-1][:100] if done.stderr else ''}")
                    continue
                warm, end, trimmed = results.setdefault(name, {})[engine] = json.loads(done.stdout.splitlines()[-1])
                print(f"{name:<22}{engine:<14}{warm / 1024:>14.1f}{end - warm:>17}" + (f"{trimmed / 1024:>16.1f}" if engine == "ge" else f"{'-':>16}"), flush=True)
    os.makedirs(os.path.dirname(a.output), exist_ok=True)
    with open(a.output, "w", encoding="utf-8") as f:
        json.dump(results, f, indent=1)
    return None


if __name__ == "__main__":
    main()
