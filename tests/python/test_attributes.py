"""Attributes of a wrong type are errors that name the node, the attribute and what is needed."""

import ge
import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper

WRONG = [
    ("Concat", ["x", "x"], {"axis": 1.0}, "axis", "an integer"),
    ("Softmax", ["x"], {"axis": "last"}, "axis", "an integer"),
    ("Transpose", ["x"], {"perm": 1}, "perm", "a list of integers"),
    ("Transpose", ["x"], {"perm": [1.0, 0.0]}, "perm", "a list of integers"),
    ("LeakyRelu", ["x"], {"alpha": 1}, "alpha", "a float"),
    ("LeakyRelu", ["x"], {"alpha": "0.1"}, "alpha", "a float"),
    ("Elu", ["x"], {"alpha": [1.0]}, "alpha", "a float"),
    ("Gelu", ["x"], {"approximate": 1}, "approximate", "a string"),
    ("MatMul", ["x", "x"], {}, None, None),
    ("Gemm", ["x", "x"], {"transA": 1.0}, "transA", "an integer"),
    ("Gemm", ["x", "x"], {"alpha": 2}, "alpha", "a float"),
    ("ReduceSum", ["x"], {"keepdims": "yes"}, "keepdims", "an integer"),
    ("CumSum", ["x", "i"], {"exclusive": 1.0}, "exclusive", "an integer"),
    ("ArgMax", ["x"], {"axis": [0]}, "axis", "an integer"),
    ("LayerNormalization", ["x", "x"], {"epsilon": 1}, "epsilon", "a float"),
    ("Cast", ["x"], {"to": 1.0}, "to", "an integer"),
    ("Flatten", ["x"], {"axis": 1.5}, "axis", "an integer"),
]


@pytest.mark.parametrize("op,inputs,attributes,wrong,needed", WRONG)
def test_wrong_type(op, inputs, attributes, wrong, needed):
    node = helper.make_node(op, inputs, ["y"], name="the_node", **attributes)
    model = helper.make_model(helper.make_graph([node], "g", [helper.make_tensor_value_info("x", T.FLOAT, [2, 2])],
                                                [onnx.ValueInfoProto(name="y")],
                                                [onnx.numpy_helper.from_array(np.array(0), "i")]), opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    model.graph.output[0].type.tensor_type.elem_type = T.FLOAT
    if wrong is None:
        ge.compile(model)
        return
    with pytest.raises(ge.Error) as caught:
        ge.compile(model)
    assert caught.value.code and "the_node" in str(caught.value) and f"'{wrong}'" in str(caught.value) and needed in str(caught.value)
