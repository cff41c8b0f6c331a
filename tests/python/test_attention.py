"""Attention and RotaryEmbedding: ONNX's own cases and random ones against ONNX Runtime, fast and by their meaning."""

import warnings

import ge
import numpy as np
import onnx
import pytest
from conftest import difference
from ge import _arrays
from onnx import TensorProto, helper
from onnx.backend.test.loader import load_model_tests

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # numpy's, where ONNX makes the cases
    CASES = {c.name: c for c in load_model_tests(kind="node")
             if c.name.startswith(("test_attention_", "test_rotary_embedding"))}
PATHS = pytest.mark.parametrize("options", [{}, {"reference": True}], ids=["fast", "reference"])
# One step of the 16-bit types: ONNX's expected values round after every operator.
STEP = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "float64": TensorProto.DOUBLE,
         "bool": TensorProto.BOOL, "int64": TensorProto.INT64, "int32": TensorProto.INT32}


def loaded(case):
    def read(path, info):
        tensor = onnx.TensorProto()
        with open(path, "rb") as f:
            tensor.ParseFromString(f.read())
        return onnx.numpy_helper.to_array(tensor), info
    if case.model is not None:
        return case.model, case.data_sets
    folder = f"{case.model_dir}/test_data_set_0"
    model = onnx.load(f"{case.model_dir}/model.onnx")
    return model, [tuple([read(f"{folder}/{kind}_{i}.pb", v)[0] for i, v in enumerate(values)]
                         for kind, values in (("input", model.graph.input), ("output", model.graph.output)))]


@PATHS
@pytest.mark.parametrize("name", CASES)
def test_onnx_case(name, options):
    case = CASES[name]
    model, sets = loaded(case)
    compiled = ge.compile(model, **options)
    assert sets
    for inputs, outputs in sets:
        got = compiled.run(list(inputs))
        assert len(got) == len(outputs)
        for g, w in zip(got, outputs):
            w = np.asarray(w)
            assert g.shape == w.shape and str(g.dtype) == str(w.dtype)
            np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), atol=1e-6,
                                       rtol=max(case.rtol, STEP.get(str(w.dtype), 0)))


def model_of(op, arrays, outputs, attrs, domain="", free=()):
    """The operator alone; inputs that are None are absent; every size of an input is open, or all are fixed."""
    names = ["" if a is None else f"i{k}" for k, a in enumerate(arrays)]
    inputs = [helper.make_tensor_value_info(n, TYPES[str(a.dtype)], [f"{n}_{j}" if (n, j) in free else d for j, d in enumerate(a.shape)])
              for n, a in zip(names, arrays) if n]
    node = helper.make_node(op, names, outputs, domain=domain, **attrs)
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info(o, TypeError and 0, None) for o in outputs if o])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)])
