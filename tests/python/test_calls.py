"""How a Model is called: kinds of inputs, fresh outputs, errors that name what is wrong."""

import fetch
import ge
import numpy as np
import pytest
from conftest import equal
from onnx import TensorProto, helper


@pytest.fixture(scope="module")
def mlp(compiled):
    return ge.load(compiled(fetch.fetch("surfaces_mlp")))


@pytest.fixture(scope="module")
def segmenter(compiled):
    return ge.load(compiled(fetch.fetch("khmer_segmenter")))


@pytest.fixture(scope="module")
def two_outputs():
    """x and x + 1."""
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 3]) for n in ("x", "same", "more")]
    nodes = [helper.make_node("Identity", ["x"], ["same"]), helper.make_node("Add", ["x", "one"], ["more"])]
    graph = helper.make_graph(nodes, "two", ports[:1], ports[1:], [helper.make_tensor("one", TensorProto.FLOAT, [], [1])])
    return ge.compile(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]))


def test_signature(mlp, segmenter):
    (x,), (y,) = mlp.inputs, mlp.outputs
    assert (x.name, np.dtype(x.dtype), len(x.shape), x.shape[1]) == ("input", np.float32, 2, 4)
    assert (y.name, np.dtype(y.dtype), y.shape[1]) == ("variable", np.float32, 1)
    assert not isinstance(x.shape[0], int), "the batch is a symbol"
    assert [(i.name, np.dtype(i.dtype), i.shape) for i in segmenter.inputs] == [
        ("x", np.int64, ("batch", "seq")), ("mask", np.bool_, ("batch", "seq"))]


def test_dict_list_and_call_agree(mlp, segmenter, two_outputs):
    x = fetch.feeds("surfaces_mlp")["input"]
    (y,) = mlp.run({"input": x})
    assert equal([y], mlp.run([x]))
    assert equal([y], [mlp(x)])
    feeds = fetch.feeds("khmer_segmenter")
    assert equal([segmenter(*feeds.values())], segmenter.run(feeds))
    several = two_outputs(x[:, :3])
    assert isinstance(several, tuple) and equal(list(several), two_outputs.run({"x": x[:, :3]}))


def test_inputs_are_not_written(compiled):
    for name in fetch.every_time():
        feeds = fetch.feeds(name)
        copies = {k: v.copy() for k, v in feeds.items()}
        for v in feeds.values():
            v.flags.writeable = False
        model = ge.load(compiled(fetch.fetch(name)))
        model.run(feeds)
        model.run(feeds)
        assert equal(list(feeds.values()), list(copies.values())), name


def test_outputs_survive_the_next_run(mlp, two_outputs):
    x = fetch.feeds("surfaces_mlp")["input"]
    first = mlp.run([x])
    kept = [a.copy() for a in first]
    mlp.run([x + 1])
    assert equal(first, kept)
    assert all(a.flags.writeable and a.flags.c_contiguous for a in first)
    three = np.ascontiguousarray(x[:, :3])
    passed_through = two_outputs.run([three])[0]
    assert equal([passed_through], [three]) and not np.shares_memory(passed_through, three)


def test_unusual_arrays(mlp):
    x = fetch.feeds("surfaces_mlp")["input"]
    want = mlp.run([x])
    assert equal(want, mlp.run([np.asfortranarray(x)]))
    assert equal(want, mlp.run([np.repeat(x, 2, axis=0)[::2]]))
    assert equal(want, mlp.run([x[::-1].copy()[::-1]]))
    big = x.astype(">f4")
    try:
        assert equal(want, mlp.run([big]))
    except ge.Error as e:
        assert "input" in str(e) and ("endian" in str(e) or "byte order" in str(e))


def test_zero_rows(mlp):
    (y,) = mlp.run([np.zeros((0, 4), np.float32)])
    assert y.shape == (0, 1) and y.dtype == np.float32


@pytest.mark.parametrize("feeds,words", [
    ({"inputs": np.zeros((1, 4), np.float32)}, ["inputs", "input"]),
    ({}, ["input"]),
    ([], ["1", "0"]),
    ({"input": np.zeros((1, 5), np.float32)}, ["input", "5", "4"]),
    ({"input": np.zeros(4, np.float32)}, ["input", "axes"]),
    ({"input": np.zeros((1, 4), np.float64)}, ["input", "float64", "float32"]),
], ids=["name", "none", "short list", "size", "rank", "type"])
def test_wrong_inputs_are_named(mlp, feeds, words):
    with pytest.raises(ge.Error) as e:
        mlp.run(feeds)
    for word in words:
        assert word in str(e.value), str(e.value)
    assert e.value.code.startswith("E4") and e.value.node == ""
    assert e.value.cause or e.value.fix


def test_sizes_that_belong_together_are_checked(segmenter):
    with pytest.raises(ge.Error, match="seq"):
        segmenter.run({"x": np.ones((1, 7), np.int64), "mask": np.ones((1, 8), np.bool_)})


def test_report_and_memory(mlp, compiled):
    model = ge.load(compiled(fetch.fetch("nudenet_yolov8n")))
    model.run(fetch.feeds("nudenet_yolov8n"))
    report = model.report()
    assert len(report["fused"]) >= 57
    memory = report["memory"]
    assert 0 < memory["lower_bound"] <= memory["arena"] <= model.memory()["arena"]
    assert memory["weights"] > 11e6
    fixed = ge.compile(fetch.fetch("nudenet_yolov8n"), input_shape="images:1,3,320,320").report()
    assert 0 < fixed["memory"]["lower_bound"] <= fixed["memory"]["arena"], "known before any run"
    assert fixed["times"]["compile_ms"] > 0
    assert mlp.memory()["weights"] > 0


def test_version():
    assert ge.__version__.count(".") == 2


def test_missing_and_damaged_files(tmp_path, compiled):
    with pytest.raises(ge.Error, match="nothing.om"):
        ge.load(str(tmp_path / "nothing.om"))
    with open(compiled(fetch.fetch("surfaces_mlp")), "rb") as f:
        good = f.read()
    assert equal(ge.load(good).run(fetch.feeds("surfaces_mlp")),
                 ge.load(compiled(fetch.fetch("surfaces_mlp"))).run(fetch.feeds("surfaces_mlp")))
    for n in (0, 3, 64, len(good) // 2, len(good) - 1):
        with pytest.raises(ge.Error):
            ge.load(good[:n])
    flipped = bytearray(good)
    flipped[40] ^= 1
    with pytest.raises(ge.Error):
        ge.load(bytes(flipped))


def test_unused_and_unknown_options():
    with pytest.raises(ge.Error, match="(?s)input_shapes.*did you mean input_shape"):
        ge.compile(fetch.fetch("surfaces_mlp"), input_shapes="input:1,4")


def test_fixed_input_shape(tmp_path):
    model = ge.compile(fetch.fetch("surfaces_mlp"), input_shape="input:3,4")
    assert list(model.inputs[0].shape) == [3, 4]
    x = fetch.feeds("surfaces_mlp")["input"]
    assert model.run([x[:3]])[0].shape == (3, 1)
    with pytest.raises(ge.Error):
        model.run([x])
