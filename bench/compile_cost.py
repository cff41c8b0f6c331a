"""What compiling costs at size: `./dev bench compile_cost`.

Models of 100 to 100,000 nodes, made here: blocks as in an exported transformer (attention, normalisation, GELU by
parts) and as in a convolutional network (convolution, folded normalisation, Split, Sigmoid, Concat, residual), small
enough that their nodes cost more than their weights; and graphs of odd forms: deep chains, one value with very many
readers, a Concat of very many operands, moves in a row, very many branches. Each is compiled in a process of its own; times are the compiler's
own (log level debug), in ms; memory is the process's peak. Near-linear means that ms a thousand nodes stay the same.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIZES = (100, 1000, 10_000, 100_000)
LIMIT_S = 10    # fusion and planning together at the largest size
WIDTH = 16


class Maker:
    def __init__(self):
        self.draw, self.nodes, self.constants = np.random.RandomState(0), [], []

    def constant(self, values, kind=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, kind), name))
        return name

    def weight(self, *shape):
        return self.constant(self.draw.randn(*shape) * 0.1)

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=f"n{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def save(self, y, shape, path):
        self.nodes.append(helper.make_node("Identity", [y], ["y"]))
        ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in "xy"]
        graph = helper.make_graph(self.nodes, "main", ports[:1], ports[1:], self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def transformer(count, path):
    m, x, width = Maker(), "x", WIDTH
    heads, whole = m.constant([0, 4, 4, width // 4], np.int64), m.constant([0, 4, width], np.int64)
    half, root, one = m.constant(0.5), m.constant(2 ** 0.5), m.constant(1)
    norm = lambda v: m.node("LayerNormalization", v, m.weight(width), m.weight(width), axis=-1)

    def projection(v, order):
        v = m.node("Reshape", m.node("MatMul", v, m.weight(width, width)), heads)
        return m.node("Transpose", v, perm=order)

    while len(m.nodes) < count:
        v = norm(x)
        scores = m.node("MatMul", projection(v, [0, 2, 1, 3]), projection(v, [0, 2, 3, 1]))
        scores = m.node("Softmax", m.node("Mul", scores, half), axis=-1)
        v = m.node("Transpose", m.node("MatMul", scores, projection(v, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        x = m.node("Add", m.node("MatMul", m.node("Reshape", v, whole), m.weight(width, width)), x)
        v = m.node("Add", m.node("MatMul", norm(x), m.weight(width, 2 * width)), m.weight(2 * width))
        erf = m.node("Add", m.node("Erf", m.node("Div", v, root)), one)
        v = m.node("Mul", m.node("Mul", v, erf), half)
        x = m.node("Add", m.node("MatMul", v, m.weight(2 * width, width)), x)
    m.save(x, [1, 4, width], path)


def convolutional(count, path):
    m, x, width = Maker(), "x", WIDTH // 2
    halves, variance = m.constant([width // 2] * 2, np.int64), m.constant(np.ones(width))
    while len(m.nodes) < count:
        v = m.node("Conv", x, m.weight(width, width, 3, 3), pads=[1, 1, 1, 1])
        v = m.node("BatchNormalization", v, m.weight(width), m.weight(width), m.weight(width), variance)
        a, b = m.node("Split", m.node("Relu", v), halves, outputs=2, axis=1)
        v = m.node("Concat", m.node("Mul", m.node("Sigmoid", a), a), b, axis=1)
        x = m.node("Add", m.node("Conv", v, m.weight(width, width, 1, 1)), x)
    m.save(x, [1, width, 8, 8], path)


def deep_chain(count, path):
    """One elementwise node after another: no vector program may hold them all."""
    m, x = Maker(), "x"
    while len(m.nodes) < count:
        x = m.node("Sin" if len(m.nodes) % 2 else "Sigmoid", x)
    m.save(x, [1, 64], path)


def wide_fan_out(count, path):
    """One value with half as many readers as there are nodes, summed up pair by pair."""
    m = Maker()
    level = [m.node("Mul", "x", m.constant(np.full(64, 1 + i))) for i in range(count // 2)]
    while len(level) > 1:
        level = [m.node("Add", *level[i:i + 2]) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
    m.save(level[0], [1, 64], path)


def wide_concat(count, path):
    """A Concat of as many operands as there are nodes."""
    m = Maker()
    parts = [m.node("Relu" if i % 2 else "Sin", "x") for i in range(count - 3)]
    m.save(m.node("ReduceSum", m.node("Concat", *parts, axis=0), m.constant([0], np.int64), keepdims=1), [1, 64], path)


def moves(count, path):
    """Reshapes and transposes in a row, with a product now and then."""
    m, x = Maker(), "x"
    to = [m.constant(s, np.int64) for s in ([4, 4, 4], [8, 8], [1, 64])]
    while len(m.nodes) < count:
        x = m.node("Transpose", m.node("Reshape", x, to[0]), perm=[2, 0, 1])
        x = m.node("Transpose", m.node("Reshape", x, to[1]), perm=[1, 0])
        x = m.node("Reshape", x, to[2])
        if len(m.nodes) % 50 < 5:
            x = m.node("MatMul", x, m.weight(64, 64))
    m.save(x, [1, 64], path)


def branches(count, path):
    """Ifs that data decide, a tenth as many as there are nodes, each with two graphs of four."""
    m, x = Maker(), "x"
    flag = m.node("Greater", m.node("ReduceSum", "x", keepdims=0), m.constant(0))
    while len(m.nodes) * 10 < count:
        graphs = []
        for k, op in enumerate(("Sin", "Exp")):
            inner, v = Maker(), x
            names = [f"b{len(m.nodes)}_{k}_{i}" for i in range(4)]
            for i, name in enumerate(names):
                inner.nodes.append(helper.make_node(op if i % 2 else "Sigmoid", [v], [name], name=name))
                v = name
            graphs.append(helper.make_graph(inner.nodes, f"g{k}", [], [helper.make_tensor_value_info(v, TensorProto.FLOAT, [1, 64])]))
        x = m.node("If", flag, then_branch=graphs[0], else_branch=graphs[1])
    m.save(x, [1, 64], path)


MODELS = (transformer, convolutional, deep_chain, wide_fan_out, wide_concat, moves, branches)
CHILD = """
import logging, re, sys, time
logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.DEBUG)
import ge

def peak():
    with open("/proc/self/status") as f:
        return int(re.search(r"VmHWM:\\s+(\\d+)", f.read())[1]) / 1024

base, start = peak(), time.perf_counter()
model = ge.compile(sys.argv[1])
print("total: %.2f ms" % ((time.perf_counter() - start) * 1e3))
print("peak: %.2f ms" % (peak() - base))
"""


def measure(path):
    """{stage: ms}, "peak" in MB."""
    done = subprocess.run([sys.executable, "-c", CHILD, path], capture_output=True, text=True, check=True)
    return {m[1]: float(m[2]) for m in re.finditer(r"(?m)^(?:pass )?(\w+): ([\d.]+) ms", done.stdout)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--models", nargs="*", default=[f.__name__ for f in MODELS], choices=[f.__name__ for f in MODELS])
    a = parser.parse_args()
    results, missed = {}, []
    stages = ("fuse", "vector_regions", "lower", "plan", "total", "peak")
    print("| model | nodes | " + " | ".join(f"{s} {'MB' if s == 'peak' else 'ms'}" for s in stages) + " | ms a 1,000 nodes |")
    print("|" + "---|" * (len(stages) + 3))
    with tempfile.TemporaryDirectory() as folder:
        for make in (f for f in MODELS if f.__name__ in a.models):
            for size in a.sizes:
                path = os.path.join(folder, "model.onnx")
                make(size, path)
                r = results[f"{make.__name__}_{size}"] = measure(path)
                print(f"| {make.__name__} | {size} | " + " | ".join(f"{r[s]:.0f}" for s in stages) +
                      f" | {r['total'] / size * 1e3:.1f} |", flush=True)
                work = sum(ms for stage, ms in r.items() if stage not in ("total", "peak")) / 1e3
                if work > LIMIT_S:
                    missed.append(f"{make.__name__} of {size} nodes: passes, lowering and planning take {work:.1f} s")
    with open(os.path.join(ROOT, "build", "bench_compile_cost.json"), "w", encoding="utf-8") as f:
        json.dump(results, f, indent=1)
    for line in missed:
        print(f"above its bar: {line}")


if __name__ == "__main__":
    main()
