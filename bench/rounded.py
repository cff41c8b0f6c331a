"""Models of bytes and of f16 beside their own f32 form: `./dev bench rounded [NAME ...]`.

GE on the model, GE on the same net with its weights dequantised and nothing rounded between (f32_form.py), ONNX
Runtime on the model; one thread, in turns. A model of bytes may take 1.05 times the better of the two, a model of f16
1.05 times its f32 form. Exits with 1 if one takes more.
"""

import argparse
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "models")]
import f32_form  # noqa: E402
import fetch  # noqa: E402
import interleave  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import score  # noqa: E402

ALLOWED, PLAIN, PEER = 1.05, "ge:f32", "onnxruntime"


def measure(name, folder, a):
    import ge
    path, feeds = fetch.fetch(name), fetch.feeds(name)
    form = f32_form.f32_form(path)
    if any(v.dtype == np.float16 for v in feeds.values()):
        raise ValueError("inputs of f16: both forms cannot take the same feeds")
    f32_path = os.path.join(folder, "f32.onnx")
    onnx.save(form, f32_path)
    paths = {"ge": os.path.join(folder, "rounded.om"), PLAIN: os.path.join(folder, "f32.om"), PEER: path}
    ge.compile(path).save(paths["ge"])
    ge.compile(f32_path).save(paths[PLAIN])
    return interleave.compare(paths, 1, feeds, folder, a.rounds, a.seconds, tolerant=True,
                              unequal=score.ROUNDED["unequal"])


def share(result, bytes_):
    """What it takes, over what it may be compared with."""
    ratios = [result[PLAIN]["ratio"]] + ([result[PEER]["ratio"]] if bytes_ and "error" not in result[PEER] else [])
    return 1 / min(ratios)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="./dev bench rounded", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--output", default=os.path.join(ROOT, "build", "bench_rounded.json"))
    a = parser.parse_args(arguments)
    print(f"{'model':<28}{'ms':>9}{'f32 ms':>9}{'ratio':>7}{'ORT ms':>9}{'ratio':>7}{'differs':>9}")
    results, late = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for name in a.names or fetch.catalogue():
            model = onnx.load(fetch.fetch(name), load_external_data=False)
            if not f32_form.is_rounded(model):
                continue
            try:
                result = measure(name, folder, a)
            except (ValueError, RuntimeError) as e:
                print(f"{name:<28}  {f'{e}'.splitlines()[0][:120]}", flush=True)
                late.append(name)
                continue
            results[name] = result
            plain, peer = result[PLAIN], result[PEER]
            bytes_ = any("uantize" in n.op_type or "QLinear" in n.op_type or "NBits" in n.op_type for n in model.graph.node)
            if share(result, bytes_) > ALLOWED:
                late.append(name)
            print(f"{name:<28}{result['ge']['ms']:>9.3f}{plain['ms']:>9.3f}{plain['ratio']:>7.2f}{peer.get('ms', float('nan')):>9.3f}"
                  f"{peer.get('ratio', float('nan')):>7.2f}{plain['difference']:>9.1e}", flush=True)
    os.makedirs(os.path.dirname(a.output), exist_ok=True)
    with open(a.output, "w", encoding="utf-8") as f:
        json.dump(results, f, indent=1)
    print(f"slower than allowed ({ALLOWED}): {', '.join(late) or 'none'}")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
