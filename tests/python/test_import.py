"""What Python adds to import, and models that must be refused with a reason."""

import os

import fetch
import ge
import numpy as np
import onnx
import pytest
from conftest import equal
from onnx import TensorProto, helper


def model_of(nodes, inputs=("x",), outputs=("y",), initializers=(), opset=20):
    info = lambda names: [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 4]) for n in names]
    graph = helper.make_graph(nodes, "g", info(inputs), info(outputs), list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def test_path_bytes_and_proto_give_the_same(tmp_path):
    path, feeds = fetch.fetch("surfaces_mlp"), fetch.feeds("surfaces_mlp")
    with open(path, "rb") as f:
        data = f.read()
    want = ge.compile(path).run(feeds)
    assert equal(want, ge.compile(data).run(feeds))
    assert equal(want, ge.compile(onnx.load(path)).run(feeds))
    import pathlib
    assert equal(want, ge.compile(pathlib.Path(path)).run(feeds))


def test_every_missing_op_is_listed_at_once():
    nodes = [helper.make_node("Relu", ["x"], ["a"]),
             helper.make_node("NoSuchOp", ["a"], ["b"], name="first"),
             helper.make_node("OtherOp", ["b"], ["c"], name="second", domain="my.domain"),
             helper.make_node("NoSuchOp", ["c"], ["y"], name="third")]
    model = model_of(nodes)
    model.opset_import.append(helper.make_opsetid("my.domain", 1))
    with pytest.raises(ge.Error) as e:
        ge.compile(model)
    for word in ("NoSuchOp", "OtherOp", "my.domain", "first", "second", "third", "20"):
        assert word in str(e.value), str(e.value)


def test_cycles_and_dangling_inputs_are_named():
    with pytest.raises(ge.Error, match="ghost"):
        ge.compile(model_of([helper.make_node("Add", ["x", "ghost"], ["y"], name="adder")]))
    cyclic = model_of([helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
                       helper.make_node("Relu", ["a"], ["y"])])
    with pytest.raises(ge.Error, match="cycl|cycle|before|order"):
        ge.compile(cyclic)


def test_truncated_models_are_refused():
    data = model_of([helper.make_node("Relu", ["x"], ["y"])]).SerializeToString()
    for n in range(len(data)):
        try:
            ge.compile(data[:n])
        except ge.Error:
            pass
    with pytest.raises(ge.Error):
        ge.compile(data[:len(data) // 2])
    with pytest.raises(ge.Error):
        ge.compile(b"")


def external(tmp_path, location, length="16", offset="0"):
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4],
                         data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        weight.external_data.add(key=key, value=value)
    model = model_of([helper.make_node("Add", ["x", "w"], ["y"])], initializers=[weight])
    folder = tmp_path / "model"
    folder.mkdir(exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return str(path)


def test_external_data(tmp_path):
    path = external(tmp_path, "w.bin")
    (tmp_path / "model" / "w.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    (y,) = ge.compile(path).run([np.zeros((2, 4), np.float32)])
    np.testing.assert_array_equal(y, np.tile(np.arange(4, dtype=np.float32), (2, 1)))


def test_external_data_that_leaves_the_folder(tmp_path):
    secret = tmp_path / "secret.bin"
    secret.write_bytes(bytes(16))
    for location in ("../secret.bin", str(secret), "a/../../secret.bin"):
        with pytest.raises(ge.Error, match="w"):
            ge.compile(external(tmp_path, location))
    path = external(tmp_path, "link.bin")
    os.symlink(secret, tmp_path / "model" / "link.bin")
    with pytest.raises(ge.Error, match="link.bin"):
        ge.compile(path)


def test_external_data_past_the_end(tmp_path):
    path = external(tmp_path, "w.bin", offset="4")
    (tmp_path / "model" / "w.bin").write_bytes(bytes(16))
    with pytest.raises(ge.Error, match="w.bin"):
        ge.compile(path)


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 17, 21])
def test_opsets(opset):
    nodes = [helper.make_node("Add", ["x", "x"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Softmax", ["b"], ["y"], axis=1)]
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    (y,) = ge.compile(model_of(nodes, opset=opset)).run([x])
    e = np.exp(np.maximum(2 * x, 0))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)
