"""Sessions of models whose values are strings, sequences and optionals, or that branch, beside ONNX Runtime's."""

import ge.compat.onnxruntime as ours
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from side_by_side import F, X, agree, both, described, info, model

pytestmark = pytest.mark.usefixtures("compile_cache")
STRING, I64, BOOL = TensorProto.STRING, TensorProto.INT64, TensorProto.BOOL
WORDS = np.array([["a", "é"], ["", "two words"]], object)


def sequence(name, dtype=TensorProto.FLOAT):
    return helper.make_tensor_sequence_value_info(name, dtype, None)


def newer(source, opset):
    m = onnx.load_from_string(source)
    m.opset_import[0].version = opset
    return m.SerializeToString()


def optional(name, of):
    return helper.make_value_info(name, helper.make_optional_type_proto(of))


BOTH = model([helper.make_node("SequenceConstruct", ["x", "y"], ["s"]), helper.make_node("SequenceAt", ["s", "i"], ["a"])],
             [info("x", ["N", 3]), info("y", ["M", 3]), info("i", [], I64)], [sequence("s"), info("a", ["K", 3])])
TAKES = model([helper.make_node("SequenceLength", ["s"], ["n"]), helper.make_node("SequenceErase", ["s"], ["r"])], [sequence("s")], [info("n", [], I64), sequence("r")])
TEXT = newer(model([helper.make_node("Equal", ["x", "w"], ["e"]), helper.make_node("Transpose", ["x"], ["t"])],
             [info("x", ["N", 2], STRING)], [info("e", ["N", 2], BOOL), info("t", [2, "N"], STRING)], [numpy_helper.from_array(np.array(["a", "b"], object), "w")]), 19)
BRANCH = model([helper.make_node("If", ["c"], ["y"],
                                 then_branch=helper.make_graph([helper.make_node("Neg", ["x"], ["t"])], "t", [], [info("t", None)]),
                                 else_branch=helper.make_graph([helper.make_node("Concat", ["x", "x"], ["e"], axis=0)], "e", [], [info("e", None)]))],
               [info("c", [], BOOL), info("x", ["N", 3])], [info("y", ["K", 3])])
MAYBE = model([helper.make_node("OptionalHasElement", ["o"], ["h"])], [optional("o", helper.make_tensor_type_proto(TensorProto.FLOAT, None))], [info("h", [], BOOL)])


@pytest.mark.parametrize("source", [BOTH, TAKES, TEXT, BRANCH, MAYBE], ids=["sequence", "takes", "strings", "branch", "optional"])
def test_inputs_and_outputs(source):
    agree(described, source)


def test_sequences():
    for i in (0, 1, -1):
        agree(lambda _, s, i=i: s.run(None, {"x": X, "y": X[:1], "i": np.array(i)}), BOTH)
    agree(lambda _, s: s.run(["n"], {"s": [X, X[:1]]}), TAKES)
    agree(lambda _, s: s.run(None, {"s": [X, X + 1]}), TAKES)
    got, want = both(lambda _, s: s.run(None, {"s": X}), TAKES)
    assert got[0] == want[0] != "value"
    got, want = both(lambda _, s: s.run(None, {"x": X, "y": X, "i": np.array(5)}), BOTH)
    assert got[0] != "value" and want[0] != "value"


def test_sequences_as_ortvalues():
    def call(m, s):
        outputs = s.run_with_ort_values(None, {n: m.OrtValue.ortvalue_from_numpy(a) for n, a in (("x", X), ("y", X[:1]), ("i", np.array(0)))})
        return [(v.is_tensor(), v.is_tensor_sequence(), v.data_type()) for v in outputs]
    agree(call, BOTH)


def test_strings():
    agree(lambda _, s: s.run(None, {"x": WORDS}), TEXT)
    agree(lambda _, s: s.run(None, {"x": WORDS.astype(str)}), TEXT)
    agree(lambda _, s: s.run(None, {"x": WORDS.tolist()}), TEXT)
    agree(lambda _, s: s.run(["e"], {"x": np.empty((0, 2), object)}), TEXT)
    for told in ([["a", 1], [None, b"c"]], [[2.5, "a\0"], [True, ("b",)]]):
        x = np.empty((2, 2), object)
        x[0, 0], x[0, 1], x[1, 0], x[1, 1] = *told[0], *told[1]
        agree(lambda _, s, x=x: s.run(None, {"x": x}), TEXT)
    for wrong in (np.ones((2, 2), F), np.array([["a"] * 3])):
        got, want = both(lambda _, s, wrong=wrong: s.run(None, {"x": wrong}), TEXT)
        assert got[0] == want[0] == "InvalidArgument"


def test_branches():
    for c in (True, False):
        agree(lambda _, s, c=c: s.run(None, {"c": np.array(c), "x": X}), BRANCH)


def test_optionals():
    agree(lambda _, s: s.run(None, {"o": X}), MAYBE)
    session = ours.InferenceSession(MAYBE)
    assert not session.run(None, {"o": None})[0] and not session.run(None, {})[0]


def test_profiles(tmp_path):
    options = ours.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "p")
    for source, feed in ((BOTH, {"x": X, "y": X, "i": np.array(0)}), (TEXT, {"x": WORDS}), (BRANCH, {"c": np.array(True), "x": X})):
        session = ours.InferenceSession(source, options)
        session.run(None, feed)
        assert session.end_profiling()
