"""Kinds of operators beside ONNX Runtime's: `./dev bench kernels [NAME ...]`.

For each model and kind of operator that takes over 2 % of GE's time: GE's time, ONNX Runtime's for the same kind, their
ratio; marked where it is over 1.5, or where the kernel is a reference one. Both profile themselves, one thread, the least
of some runs. What one engine fuses and the other does not moves time between kinds, so a mark is a place to look at.
"""

import argparse
import collections
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "models")]
import engines  # noqa: E402
import fetch  # noqa: E402

SHARE, MARK, RUNS = 0.02, 1.5, 10
PRODUCT = ("Gemm", "FusedMatMul", "FusedGemm", "MatMulInteger", "QLinearMatMul", "DynamicQuantizeMatMul", "MatMulIntegerToFloat",
           "MatMulNBits", "QGemm", "ge.MatMul", "ge.IntegerMatMul")
CONV = ("FusedConv", "QLinearConv", "ConvInteger", "NhwcFusedConv", "ge.Conv", "ge.IntegerConv")
KINDS = {**dict.fromkeys(PRODUCT, "MatMul"), **dict.fromkeys(CONV, "Conv"), "ge.ConvTranspose": "ConvTranspose",
         "MultiHeadAttention": "Attention", "ge.Attention": "Attention", "DynamicQuantizeLSTM": "LSTM", "ge.DynamicLSTM": "LSTM"}


def kind(op):
    return KINDS.get(op, op)


def ours(path, feeds):
    """{kind: us} and {kind: names of its kernels}."""
    import ge
    from ge import _arrays
    model = ge.compile(path, threads=1)
    arrays = [_arrays.to_native(feeds[port.name], port) for port in model.inputs]
    runs = [model._native.profile(arrays) for _ in range(RUNS + 1)][1:]
    times, kernels = collections.Counter(), collections.defaultdict(set)
    for tasks in zip(*runs):
        _, kernel, _, _, op = tasks[0]
        times[kind(op)] += min(t[3] for t in tasks)
        kernels[kind(op)].add(kernel)
    return times, kernels


def theirs(path, feeds, folder):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.enable_profiling, options.profile_file_prefix = True, os.path.join(folder, "p")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    for _ in range(RUNS + 1):
        session.run(None, feeds)
    with open(session.end_profiling(), encoding="utf-8") as f:
        events = json.load(f)
    nodes = collections.defaultdict(list)
    for e in events:
        if e.get("cat") == "Node" and e["name"].endswith("_kernel_time"):
            nodes[e["name"], e["args"]["op_name"]].append(e["dur"])
    times = collections.Counter()
    for (_, op), runs in nodes.items():
        times[kind(op)] += min(runs) * max(1, len(runs) // (RUNS + 1))   # a node of a body runs several times
    return times


def rows(name, folder):
    path, feeds = fetch.fetch(name), fetch.feeds(name)
    mine, kernels = ours(path, feeds)
    peer, total = theirs(path, feeds, folder), sum(mine.values())
    for op, us in mine.most_common():
        if us < SHARE * total or op == "ge.Vector":   # a region of several kinds
            continue
        ratio = us / peer[op] if peer[op] else None
        slow = any(k.startswith("ref.") for k in kernels[op]) or (ratio is not None and ratio > MARK)
        yield name, op, us, us / total, peer[op], ratio, slow


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="./dev bench kernels", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--marked", action="store_true", help="only what is marked")
    a = parser.parse_args(arguments)
    engines.pin(1)
    print(f"{'model':<28}{'kind':<24}{'us':>10}{'share':>7}{'ORT us':>10}{'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for name in a.names or fetch.catalogue():
            try:
                for model, op, us, share, peer, ratio, slow in rows(name, folder):
                    if slow or not a.marked:
                        print(f"{model:<28}{op:<24}{us:>10.0f}{share:>7.0%}{peer:>10.0f}{ratio or float('nan'):>7.2f}{' *' if slow else ''}", flush=True)
            except (ValueError, RuntimeError) as e:
                print(f"{name:<28}{f'{e}'.splitlines()[0][:100]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
