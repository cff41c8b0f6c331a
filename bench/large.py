"""A model of 4 GB with external data, one tensor over 2 GiB: compiled, checked, and run under a limit of memory.

    ./dev bench large [--gigabytes 4.2] [--folder DIR] [--keep]

Random weights, written here: a stack of products and one wide one. Compiling must stay in 24 GiB; running, in 1.5 times
the weights (a cgroup where one can be made, else RLIMIT_DATA). Outputs are compared with NumPy's on the same weights.
Needs three times the model's size of disk; all of it is removed again.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

WIDTH, ROWS = 8192, 4
WIDE = (1 << 29) // WIDTH + 96     # columns of a tensor of more than 2 GiB
GIB = 1 << 30


def write_weights(path, shapes):
    """Tensors one after another, 4 bytes apart from any page: offsets by name."""
    block = np.random.RandomState(0).standard_normal(1 << 22).astype(np.float32)
    offsets = {}
    with open(path, "wb") as f:
        f.write(bytes(12))
        for i, (name, shape) in enumerate(shapes.items()):
            offsets[name] = f.tell()
            left, scale = int(np.prod(shape)), np.float32(1.4 / np.sqrt(shape[0]))
            turn = 0
            while left:
                part = np.roll(block, 7919 * i + 104729 * turn)[:left] * scale
                part.tofile(f)
                left, turn = left - len(part), turn + 1
            f.write(bytes(4))
    return offsets


def make(folder, gigabytes):
    """The model's path, and its weights as (name, shape, offset)."""
    layers = max(1, round((gigabytes * 1e9 / 4 - WIDTH * WIDE) / WIDTH**2))
    shapes = {f"w{i}": (WIDTH, WIDTH) for i in range(layers)} | {"wide": (WIDTH, WIDE)}
    offsets = write_weights(os.path.join(folder, "weights.bin"), shapes)
    nodes, x, tensors = [], "x", []
    for name, shape in shapes.items():
        t = onnx.TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "weights.bin"), ("offset", offsets[name]), ("length", 4 * int(np.prod(shape)))):
            t.external_data.add(key=key, value=str(value))
        tensors.append(t)
        nodes += [helper.make_node("MatMul", [x, name], [f"m_{name}"]), helper.make_node("Relu", [f"m_{name}"], [f"y_{name}"])]
        x = f"y_{name}"
    graph = helper.make_graph(nodes, "large", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, WIDTH])],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, None)], tensors)
    path = os.path.join(folder, "large.onnx")
    with open(path, "wb") as f:
        f.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    return path, [(n, s, offsets[n]) for n, s in shapes.items()]


def expected(folder, weights, x):
    for _, shape, offset in weights:
        w = np.memmap(os.path.join(folder, "weights.bin"), np.float32, "r", offset, shape)
        x = np.maximum(x @ w, 0)
    return x


# ---- limits


def cgroup(limit):
    """A new memory cgroup with that limit, or None where none can be made."""
    for root, name in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        group = os.path.join(root, f"ge_large_{os.getpid()}")
        try:
            os.mkdir(group)
            with open(os.path.join(group, name), "r+") as f:   # there from the start where this is a cgroup
                f.write(str(limit))
            return group
        except OSError:
            if os.path.isdir(group):
                os.rmdir(group)
    return None


def limited(command, limit):
    """Runs it with at most `limit` bytes; (how, seconds, peak RSS, output)."""
    group = cgroup(limit)

    def enter():
        if group:
            with open(os.path.join(group, "cgroup.procs"), "w") as f:
                f.write(str(os.getpid()))
        else:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        os.nice(5)

    start = time.time()
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=enter)
    output = p.stdout.read()
    _, status, used = os.wait4(p.pid, 0)
    if group:
        os.rmdir(group)
    if status:
        raise SystemExit(f"{command[:3]} failed ({status}):\n{output}")
    return "cgroup" if group else "RLIMIT_DATA", time.time() - start, used.ru_maxrss * 1024, output


RUN = """
import sys, time, json, numpy as np, ge
start = time.time()
model = ge.load(sys.argv[1], check=sys.argv[4])
opened = time.time() - start
y = model.run([np.load(sys.argv[2])])[0]
first = time.time() - start - opened
model.run([np.load(sys.argv[2])])
np.save(sys.argv[3], y)
print(json.dumps({"open": opened, "first": first, "warm": time.time() - start - opened - first, "memory": model.memory()}))
"""
COMPILE = "import sys, ge; from ge import _ge; _ge.compile_file(sys.argv[1], {}).save(sys.argv[2])"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gigabytes", type=float, default=4.2)
    parser.add_argument("--folder", default=None, help="where the files lie (default: the folder for temporary files)")
    parser.add_argument("--keep", action="store_true", help="leave the files there")
    a = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="ge_large_", dir=a.folder)
    try:
        path, weights = make(folder, a.gigabytes)
        total = sum(4 * int(np.prod(s)) for _, s, _ in weights)
        print(f"weights {total / 1e9:.2f} GB in {len(weights)} tensors, the largest {max(4 * int(np.prod(s)) for _, s, _ in weights) / GIB:.2f} GiB", flush=True)
        om = os.path.join(folder, "large.om")
        how, seconds, rss, _ = limited([sys.executable, "-c", COMPILE, path, om], 24 * GIB)
        print(f"compiled under 24 GiB ({how}): {seconds:.0f} s, peak RSS {rss / 1e9:.2f} GB = {rss / total:.2f} of the weights; .om {os.path.getsize(om) / 1e9:.2f} GB", flush=True)
        x = np.random.RandomState(1).standard_normal((ROWS, WIDTH)).astype(np.float32)
        np.save(os.path.join(folder, "x.npy"), x)
        want = expected(folder, weights, x)
        for check in ("meta", "all"):
            how, seconds, rss, output = limited([sys.executable, "-c", RUN, om, os.path.join(folder, "x.npy"), os.path.join(folder, "y.npy"), check], int(1.5 * total))
            got = np.load(os.path.join(folder, "y.npy"))
            off = float(np.abs(got - want).max() / np.abs(want).max())
            times = json.loads(output.splitlines()[-1])
            print(f"run under 1.5 of the weights ({how}, check={check}): opened in {times['open']:.2f} s, first run {times['first']:.2f} s, warm {times['warm']:.2f} s, "
                  f"peak RSS {rss / total:.2f} of the weights, off by {off:.1e}", flush=True)
            if got.shape != want.shape or not off < 1e-4:
                raise SystemExit("the outputs differ from NumPy's")
    finally:
        if not a.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
