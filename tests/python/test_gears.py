"""ATC's gears: --dynamic_batch_size, --dynamic_image_size, --dynamic_dims; and --input_hint_shape."""

import ge
import numpy as np
import pytest
from conftest import reference
from onnx import TensorProto, helper, numpy_helper


def conv(shape=("n", 3, "h", "w")):
    w = np.random.RandomState(0).standard_normal((8, 3, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), helper.make_node("Relu", ["c"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(w, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def agrees(model, proto, *shape):
    x = np.random.RandomState(1).standard_normal(shape).astype(np.float32)
    np.testing.assert_allclose(model.run([x])[0], reference(proto.SerializeToString(), {"x": x})[0], rtol=1e-4, atol=1e-5)


GEARS = [({"input_shape": "x:-1,3,8,8", "dynamic_batch_size": "1,2,4"}, [(1, 3, 8, 8), (4, 3, 8, 8)], (3, 3, 8, 8), "gears 1; 2; 4"),
         ({"input_shape": "x:2,3,-1,-1", "dynamic_image_size": "8,16;16,8"}, [(2, 3, 8, 16), (2, 3, 16, 8)], (2, 3, 8, 8), "gears 8,16; 16,8"),
         ({"input_shape": "x:-1,3,-1,12", "dynamic_dims": "1,8;3,5"}, [(1, 3, 8, 12), (3, 3, 5, 12)], (3, 3, 8, 12), "gears 1,8; 3,5")]


@pytest.mark.parametrize("options,allowed,other,named", GEARS, ids=["batch", "image", "dims"])
def test_gears(options, allowed, other, named, tmp_path):
    proto = conv()
    made = ge.compile(proto, **options)
    made.save(str(tmp_path / "m.om"))
    for model in (made, ge.load(str(tmp_path / "m.om"))):
        for shape in allowed:
            agrees(model, proto, *shape)
        with pytest.raises(ge.Error, match=named) as e:
            model.run([np.zeros(other, np.float32)])
        assert e.value.code == "E40001"


@pytest.mark.parametrize("options,code,words", [
    ({"input_shape": "x:-1,3,8,8", "dynamic_batch_size": "1,2", "dynamic_dims": "1;2"}, "E10056", "dynamic_batch_size"),
    ({"input_shape": "x:-1,3,8,8", "dynamic_batch_size": "1,2", "input_hint_shape": "0:[1,3,8,8]"}, "E10056", "input_hint_shape"),
    ({"dynamic_batch_size": "1,2"}, "E10001", "no size in --input_shape is -1"),
    ({"input_shape": "x:-1,3,8,8", "dynamic_batch_size": "0,2"}, "E10001", "a size is 0"),
    ({"input_shape": "x:-1,3,-1,8", "dynamic_batch_size": "1,2"}, "E10001", "elsewhere than in its first size"),
    ({"input_shape": "x:1,3,-1,8", "dynamic_image_size": "1,2"}, "E10001", "two sizes of -1"),
    ({"input_shape": "x:-1,3,-1,8", "dynamic_dims": "1,2;3"}, "E10001", "'3' has 1 sizes for 2"),
    ({"input_shape": "x:-1,3,8,8", "dynamic_batch_size": "1,two"}, "E10001", "'two'"),
    ({"input_hint_shape": "1:[1,3,8,8]"}, "E10001", "there is no 1"),
    ({"input_hint_shape": "0:1,3,8,8"}, "E10001", "format is wrong"),
    ({"input_hint_shape": "0:[1,4,8,8]"}, "E10001", "input_hint_shape.*4 instead of 3"),
    ({"input_hint_shape": "0:[1,3,8,8];0:[2,3,8,8]"}, "E10001", "input 0 stands twice"),
    ({"input_hint_shape": "0:[-1,3,8,8]"}, "E10001", "a size is negative"),
    ({"state_dtype": "bf16"}, "E10001", "no state is asked for"),
    ({"input_shape": "x:1,3,8"}, "E10002", "3 sizes for 'x', which has 4 axes"),
])
def test_refused(options, code, words):
    with pytest.raises(ge.Error, match=words) as e:
        ge.compile(conv(), **options)
    assert e.value.code == code


def test_a_gear_of_a_fixed_size():
    with pytest.raises(ge.Error, match="axis 0 of 'x' open, which the model fixes at 2") as e:
        ge.compile(conv((2, 3, 8, 8)), input_shape="x:-1,3,8,8", dynamic_batch_size="1,2")
    assert e.value.code == "E10002" and "give 2 there" in e.value.fix


def test_the_report_has_the_arena_of_each_gear(tmp_path):
    """The model's own arena is that of the gear that needs the most."""
    proto = conv()
    again = [helper.make_node("Softmax", ["y"], ["s"]), helper.make_node("Conv", ["s", "v"], ["z"])]
    proto.graph.node.extend(again)
    proto.graph.initializer.append(numpy_helper.from_array(np.ones((2, 8, 1, 1), np.float32), "v"))
    proto.graph.output[0].name = "z"
    made = ge.compile(proto, input_shape="x:-1,3,8,8", dynamic_batch_size="1,8,2")
    made.save(str(tmp_path / "m.om"))
    for model in (made, ge.load(str(tmp_path / "m.om"))):
        memory = model.report()["memory"]
        arenas = {p["sizes"]["gear_batch"]: p["arena"] for p in memory["planned"]}
        assert set(arenas) == {1, 2, 8} and 0 < arenas[1] < arenas[2] < arenas[8] == memory["arena"]
    text = made._native.inspect(False)
    assert "gears (gear_batch), no other sizes: 1; 8; 2" in text and "arena for gear_batch=8: " in text
    hinted = ge.compile(conv(), input_hint_shape="0:[2,3,8,8]").report()["memory"]
    assert hinted["planned"][0]["sizes"] == {"n": 2, "h": 8, "w": 8} and "arena" not in hinted


def test_hint():
    proto = conv()
    model = ge.compile(proto, input_hint_shape="0:[2,3,8,8]")
    for shape in ((2, 3, 8, 8), (1, 3, 5, 9)):
        agrees(model, proto, *shape)
