"""LSTM, GRU and RNN: the node tests of ONNX, and random options against ONNX Runtime."""

import warnings

import ge
import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import difference
from onnx import TensorProto, helper, numpy_helper

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ACTIVATIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
WITH_ALPHA = {"Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"}
WITH_BETA = {"Affine", "ScaledTanh", "HardSigmoid"}
NAMES = sorted(WITH_ALPHA | {"Relu", "Softsign", "Softplus", "Tanh", "Sigmoid"})


def node_tests():
    from onnx.backend.test.case.node import collect_testcases
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    return [c for c in cases if c.model and c.model.graph.node[0].op_type in GATES]


CASES = node_tests()


def test_there_are_node_tests():
    assert {c.model.graph.node[0].op_type for c in CASES} == set(GATES)


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_node(case, reference):
    model = ge.compile(case.model, reference=reference)
    names = [i.name for i in case.model.graph.input]
    assert case.data_sets
    for inputs, outputs in case.data_sets:
        got = model.run(dict(zip(names, inputs)))
        for g, w in zip(got, outputs):
            np.testing.assert_allclose(g, w, rtol=case.rtol, atol=case.atol)


class Random:
    """A model with one node of random options, and its inputs."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.op = str(rng.choice(sorted(GATES)))
        self.direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
        self.d = 2 if self.direction == "bidirectional" else 1
        self.s, self.i, self.h = (int(rng.integers(1, n)) for n in (9, 40, 50))
        self.b = int(rng.integers(30, 70) if self.chance(.1) else rng.integers(1, 8))
        self.operands()
        self.outputs = ["y", "yh", "yc"][:3 if self.op == "LSTM" else 2]
        kept = [o if self.chance(.7) else "" for o in self.outputs]
        self.outputs = kept if any(kept) else self.outputs

    def chance(self, p):
        return self.rng.random() < p

    def floats(self, *dims):
        return (self.rng.standard_normal(dims) * .4).astype(np.float32)

    def operands(self):
        s, b, i, h, d = self.s, self.b, self.i, self.h, self.d
        rows = GATES[self.op] * h
        self.values = {"x": self.floats(s, b, i), "w": self.floats(d, rows, i), "r": self.floats(d, rows, h)}
        optional = {"b": self.floats(d, 2 * rows), "lens": self.rng.integers(0, s + 1, b).astype(np.int32),
                    "h0": self.floats(d, b, h)}
        if self.op == "LSTM":
            optional |= {"c0": self.floats(d, b, h), "p": self.floats(d, 3 * h)}
        self.inputs = ["x", "w", "r"]
        for name, value in optional.items():
            used = self.chance(.5)
            self.inputs.append(name if used else "")
            if used:
                self.values[name] = value

    def attributes(self):
        a = {"hidden_size": self.h, "direction": self.direction}
        if self.chance(.5):
            names = [str(n) for n in self.rng.choice(NAMES, self.d * ACTIVATIONS[self.op])]
            # ONNX Runtime takes 0 where a number is left out, not the operator's default.
            numbers = lambda kind: [float(self.rng.uniform(.2, .9)) for n in names if n in kind]
            a |= {"activations": names, "activation_alpha": numbers(WITH_ALPHA), "activation_beta": numbers(WITH_BETA)}
            a = {k: v for k, v in a.items() if v != []}
        if self.chance(.3):
            a["clip"] = float(self.rng.uniform(.2, 2))
        if self.op == "LSTM" and self.chance(.2):
            a["input_forget"] = 1
        if self.op == "GRU" and self.chance(.5):
            a["linear_before_reset"] = 1
        return a

    def model(self):
        constants = [n for n in ("w", "r", "b", "p", "h0") if n in self.values and self.chance(.6)]
        self.feeds = {n: v for n, v in self.values.items() if n not in constants}
        sizes = lambda v: [None if self.chance(.3) else n for n in v.shape]
        kind = lambda n: TensorProto.INT32 if n == "lens" else TensorProto.FLOAT
        graph = helper.make_graph(
            [helper.make_node(self.op, self.inputs, self.outputs, **self.attributes())], "g",
            [helper.make_tensor_value_info(n, kind(n), sizes(v)) for n, v in self.feeds.items()],
            [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in self.outputs if o],
            [numpy_helper.from_array(self.values[n], n) for n in constants])
        opset = int(self.rng.choice([7, 9, 11, 14, 17, 21]))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize("block", range(8))
def test_random_options_as_onnx_runtime(block):
    compared = 0
    for seed in range(block * 25, block * 25 + 25):
        case = Random(seed)
        model = case.model()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        want = session.run(None, case.feeds)
        if not all(np.isfinite(w).all() and np.abs(w).max() < 1e3 for w in want):
            continue  # unbounded activations: the last bits of large numbers decide
        for reference in (False, True):
            got = ge.compile(model, reference=reference).run(case.feeds)
            assert difference(got, want) < 3e-4, (seed, reference, onnx.printer.to_text(model.graph.node[0]))
        compared += 1
    assert compared > 15


def test_bits_do_not_depend_on_threads():
    case = Random(3)
    case.op, case.d, case.direction, case.s, case.b, case.i, case.h = "LSTM", 2, "bidirectional", 20, 70, 33, 40
    case.operands()
    case.outputs = ["y", "yh", "yc"]
    model = case.model()
    one, two = (ge.compile(model, threads=n).run(case.feeds) for n in (1, 2))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one, two))


def test_weights_that_disagree_with_hidden_size_are_refused():
    """R's sizes are known only when it is fed."""
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4)
    info = lambda n, dims: helper.make_tensor_value_info(n, TensorProto.FLOAT, dims)
    graph = helper.make_graph([node], "g", [info("x", [2, 1, 3]), info("w", [1, None, 3]), info("r", [1, None, None])], [info("y", None)])
    model = ge.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8))
    feeds = {"x": np.ones((2, 1, 3), np.float32), "w": np.ones((1, 16, 3), np.float32)}
    assert model.run(feeds | {"r": np.ones((1, 16, 4), np.float32)})[0].shape == (2, 1, 1, 4)
    for rows, columns in ((20, 5), (16, 5), (12, 3)):
        with pytest.raises(ge.Error):
            model.run(feeds | {"r": np.ones((1, rows, columns), np.float32)})
