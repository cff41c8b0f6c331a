"""Types and open sizes that ONNX allows and few models use, against ONNX's reference evaluator."""

import ge
import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper
from onnx.reference import ReferenceEvaluator

INFO = helper.make_tensor_value_info


def model_of(node, inputs, output):
    graph = helper.make_graph([node], "g", inputs, [INFO("y", output, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=10)


def test_scale_and_zero_point_of_open_sizes():
    x, s, z = np.array([[1, -2], [3, 0.5], [0, 9]], np.float32), np.array([.1, .2, .3], np.float32), np.array([1, 2, 3], np.uint8)
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], axis=0)
    model = model_of(node, [INFO("x", T.FLOAT, ["a", "b"]), INFO("s", T.FLOAT, ["c"]), INFO("z", T.UINT8, ["d"])], T.UINT8)
    compiled = ge.compile(model)
    np.testing.assert_array_equal(compiled.run([x, s, z])[0], ReferenceEvaluator(model).run(None, {"x": x, "s": s, "z": z})[0])
    with pytest.raises(ge.Error):
        compiled.run([x, s, z[:2]])


def test_features_that_are_strings():
    node = helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain="ai.onnx.ml")
    model = ge.compile(model_of(node, [INFO("x", T.STRING, ["n", 3]), INFO("i", T.INT64, ["m"])], T.STRING))
    x = np.array([["a", "b", "c"], ["d", "e", ""]], object)
    assert model.run([x, np.array([2, 0, 2])])[0].tolist() == [["c", "a", "c"], ["", "d", ""]]
    with pytest.raises(ge.Error):
        model.run([x, np.array([3])])


@pytest.mark.parametrize("elem,dtype", [(T.INT64, np.int64), (T.UINT8, np.uint8), (T.INT32, np.int32)])
@pytest.mark.parametrize("shape", [(4, 5), (2, 1, 4, 5)])
def test_attention_mask_of_integers(elem, dtype, shape):
    rng = np.random.default_rng(2)
    feeds = {n: rng.standard_normal((2, 3, 4 if n == "q" else 5, 8)).astype(np.float32) for n in "qkv"}
    feeds["m"] = rng.integers(0 if dtype == np.uint8 else -3, 4, shape).astype(dtype)
    model = model_of(helper.make_node("Attention", ["q", "k", "v", "m"], ["y"]),
                     [INFO(n, T.FLOAT, list(feeds[n].shape)) for n in "qkv"] + [INFO("m", elem, list(shape))], T.FLOAT)
    np.testing.assert_allclose(ge.compile(model).run(feeds)[0], ReferenceEvaluator(model).run(None, feeds)[0], rtol=1e-5, atol=1e-5)
