"""Maps: what classifiers of ai.onnx.ml give and take, beside ONNX Runtime."""

import ge
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper

RNG = np.random.default_rng(3)


def model_of(nodes, inputs, outputs):
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 19), helper.make_opsetid("ai.onnx.ml", 3)])


def tensor(name, elem, shape):
    return helper.make_tensor_value_info(name, elem, shape)


def map_info(name, key, value, sequence=False):
    kind = helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))
    return helper.make_value_info(name, helper.make_sequence_type_proto(kind) if sequence else kind)


def both(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return ge.compile(model).run(feeds), session.run(None, feeds)


@pytest.mark.parametrize("labels,key", [({"classlabels_int64s": [3, -1, 70]}, T.INT64), ({"classlabels_strings": ["a", "", "ü"]}, T.STRING)])
@pytest.mark.parametrize("shape", [(4, 3), (1, 3), (0, 3), (3,)])
def test_zip_map(labels, key, shape):
    node = helper.make_node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", **labels)
    model = model_of([node], [tensor("x", T.FLOAT, ["n", 3] if len(shape) == 2 else [3])], [map_info("z", key, T.FLOAT, True)])
    x = RNG.standard_normal(shape).astype(np.float32)
    (got,), (want,) = both(model, {"x": x})
    assert got == want and len(got) == (shape[0] if len(shape) == 2 else 1)
    assert all(isinstance(v, float) for row in got for v in row.values())
    with pytest.raises(ge.Error, match="class labels"):
        ge.compile(model_of([helper.make_node("ZipMap", ["x"], ["z"], name="zip", domain="ai.onnx.ml", **labels)],
                            [tensor("x", T.FLOAT, ["n", 2])], [map_info("z", key, T.FLOAT, True)]))


def test_a_classifier_as_scikit_learn_exports_it():
    """Scaler, trees, labels of their classes, and probabilities as maps."""
    x = RNG.standard_normal((50, 4)).astype(np.float32)
    trees = helper.make_node(
        "TreeEnsembleClassifier", ["s"], ["label", "p"], domain="ai.onnx.ml", post_transform="NONE", classlabels_int64s=[10, 20, 30],
        nodes_treeids=[0, 0, 0, 0, 0], nodes_nodeids=[0, 1, 2, 3, 4], nodes_featureids=[0, 2, 0, 0, 0], nodes_values=[0.1, -0.2, 0.0, 0.0, 0.0],
        nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF"], nodes_truenodeids=[1, 3, 0, 0, 0], nodes_falsenodeids=[2, 4, 0, 0, 0],
        class_treeids=[0] * 9, class_nodeids=[2, 2, 2, 3, 3, 3, 4, 4, 4], class_ids=[0, 1, 2] * 3, class_weights=[.1, .2, .7, .5, .3, .2, 0, 1, 0])
    nodes = [helper.make_node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.1, 0, 0, 0], scale=[2.0, 1, 1, 1]), trees,
             helper.make_node("LabelEncoder", ["label"], ["name"], domain="ai.onnx.ml", keys_int64s=[10, 20, 30], values_strings=["x", "y", "z"]),
             helper.make_node("ZipMap", ["p"], ["zipped"], domain="ai.onnx.ml", classlabels_strings=["x", "y", "z"])]
    model = model_of(nodes, [tensor("x", T.FLOAT, ["n", 4])], [tensor("name", T.STRING, ["n"]), map_info("zipped", T.STRING, T.FLOAT, True)])
    (name, zipped), (want_name, want_zipped) = both(model, {"x": x})
    assert name.tolist() == want_name.tolist() and len(set(want_name.tolist())) == 3
    assert [list(row) for row in zipped] == [list(row) for row in want_zipped]
    np.testing.assert_allclose([list(r.values()) for r in zipped], [list(r.values()) for r in want_zipped], rtol=1e-6)


@pytest.mark.parametrize("value,elem", [(T.FLOAT, np.float32), (T.DOUBLE, np.float64), (T.INT64, np.int64), (T.STRING, object)])
def test_dict_vectorizer(value, elem):
    key = T.INT64 if value == T.STRING else T.STRING
    vocabulary = {"int64_vocabulary": [5, -2, 9]} if key == T.INT64 else {"string_vocabulary": ["b", "a", "c"]}
    node = helper.make_node("DictVectorizer", ["m"], ["y"], domain="ai.onnx.ml", **vocabulary)
    model = ge.compile(model_of([node], [map_info("m", key, value)], [tensor("y", value, [1, 3])]))
    words = list(vocabulary.values())[0]
    for there in ([0, 1, 2], [2], []):
        values = {0: "one", 1: "", 2: "two"} if value == T.STRING else {0: 7, 1: -1, 2: 4} if value == T.INT64 else {0: .5, 1: -2., 2: 1e9}
        fed = {words[i]: values[i] for i in there}
        fed[1000 if key == T.INT64 else "other"] = values[0]
        got, = model.run({"m": fed})
        want = [values[i] if i in there else "" if value == T.STRING else 0 for i in range(3)]
        assert got.shape == (1, 3) and got.dtype == elem and got[0].tolist() == want
    for wrong in (5, [1], {1.5: values[0]}, {words[0]: None}):
        with pytest.raises(ge.Error):
            model.run({"m": wrong})


@pytest.mark.parametrize("form", [{}, {"map_form": "SPARSE", "max_map": 6}])
@pytest.mark.parametrize("value", [T.FLOAT, T.STRING])
@pytest.mark.parametrize("to,elem", [("TO_FLOAT", T.FLOAT), ("TO_INT64", T.INT64), ("TO_STRING", T.STRING)])
def test_cast_map(form, value, to, elem):
    node = helper.make_node("CastMap", ["m"], ["y"], domain="ai.onnx.ml", cast_to=to, **form)
    model = model_of([node], [map_info("m", T.INT64, value)], [tensor("y", elem, [1, "n"])])
    if value == T.STRING:  # which ONNX Runtime's Python does not take
        model = ge.compile(model)
        got, = model.run({"m": {4: "2", 0: "-5", 2: "30"}})
        entries = ["-5", "0.f", "30", "0.f", "2", "0.f"] if form else ["-5", "30", "2"]
        assert got.tolist() == [entries if to == "TO_STRING" else [float(e.rstrip("f")) for e in entries]]
        if to != "TO_STRING":
            with pytest.raises(ge.Error, match="number"):
                model.run({"m": {1: "two"}})
        return
    (got,), (want,) = both(model, {"m": {4: 2.0, 0: -5.0, 2: 30.0}})
    assert got.shape == want.shape == (1, 6 if form else 3) and got.dtype == want.dtype
    if to == "TO_STRING":
        got, want = ([float(s.rstrip("f")) for s in a[0]] for a in (got, want))
        assert got == want
    else:
        assert got.tolist() == want.tolist()


@pytest.mark.parametrize("back", [False, True])
def test_category_mapper(back):
    node = helper.make_node("CategoryMapper", ["x"], ["y"], domain="ai.onnx.ml", cats_strings=["a", "bb", ""], cats_int64s=[4, 0, -7],
                            default_int64=99, default_string="none")
    types = [T.INT64, T.STRING] if back else [T.STRING, T.INT64]
    model = model_of([node], [tensor("x", types[0], ["n", 2])], [tensor("y", types[1], ["n", 2])])
    x = np.array([[4, 0], [-7, 5]]) if back else np.array([["a", "bb"], ["", "A"]], object)
    (got,), (want,) = both(model, {"x": x})
    assert got.tolist() == want.tolist() and got.shape == want.shape
