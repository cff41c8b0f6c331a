"""For the tests of ge.compat.onnxruntime: the same question to it and to ONNX Runtime itself."""

import warnings

import ge.compat.onnxruntime as ours
import numpy as np
import onnxruntime as theirs
from onnx import TensorProto, helper, numpy_helper

theirs.set_default_logger_severity(4)
F = np.float32
X = np.arange(6, dtype=F).reshape(2, 3)
FEED = {"x": X, "y": -X}
W = np.arange(12, dtype=F).reshape(3, 4) - 5


def info(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "a_graph", inputs, outputs, list(initializers), doc_string="about the graph")
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9, producer_name="somebody",
                          domain="a.domain", model_version=7, doc_string="about the model")
    helper.set_model_props(m, {"names": "cat,dog", "b": "x=y"})
    return m.SerializeToString()


TWO = model([helper.make_node("Add", ["x", "y"], ["s"], name="adder"), helper.make_node("Relu", ["s"], ["r"]),
             helper.make_node("MatMul", ["x", "w"], ["m"])],
            [info("x", ["N", 3]), info("y", [None, 3])], [info("r", ["N", 3]), info("m", None)],
            [numpy_helper.from_array(W, "w")])


def relu(shape, dtype=TensorProto.FLOAT, out=None):
    return model([helper.make_node("Relu", ["x"], ["y"])], [info("x", shape, dtype)], [info("y", out, dtype)])


def outcome(call, *args):
    """What a call gives: its value, or its exception's type and text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "value", call(*args)
    except Exception as e:
        return type(e).__name__, str(e)


def both(call, source=TWO, **options):
    """call(module, session) of both."""
    return [outcome(lambda m=m: call(m, m.InferenceSession(source, **options))) for m in (ours, theirs)]


def same(got, want):
    """Equal all the way down; arrays with the types of their elements."""
    assert type(got).__name__ == type(want).__name__, (got, want)
    if isinstance(got, np.ndarray):
        assert got.dtype == want.dtype and got.shape == want.shape
        if got.dtype == object:
            assert got.tolist() == want.tolist()
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    elif isinstance(got, (list, tuple)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
    else:
        assert got == want, (got, want)


def agree(call, source=TWO, **options):
    got, want = both(call, source, **options)
    assert got[0] == want[0] == "value", (got, want)
    same(got[1], want[1])
    return got[1]


def described(module, session):
    del module
    return [[(a.name, a.type, a.shape, str(a)) for a in args]
            for args in (session.get_inputs(), session.get_outputs(), session.get_overridable_initializers())]
