"""Compiling in parts: --split=N and --split=name=node, each part cached, all linked into one .om."""

import glob
import os
import subprocess

import ge
import numpy as np
import pytest
from conftest import difference, reference
from onnx import TensorProto, helper, numpy_helper

F, I64 = TensorProto.FLOAT, TensorProto.INT64


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GE_CACHE_DIR", str(tmp_path / "cache"))


class Build:
    """A small ONNX model, node by node."""

    def __init__(self, seed=0):
        self.nodes, self.weights, self.random = [], {}, np.random.RandomState(seed)

    def weight(self, *shape, scale=0.1):
        return self.const(self.random.standard_normal(shape).astype(np.float32) * np.float32(scale))

    def const(self, array, name=None):
        name = name or f"w{len(self.weights)}"
        self.weights[name] = np.asarray(array)
        return name

    def op(self, kind, *inputs, outputs=None, name=None, **attrs):
        name = name or f"{kind}_{len(self.nodes)}"
        outputs = outputs or [name + ":out"]
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, name=name, **attrs))
        return outputs[0] if len(outputs) == 1 else outputs

    def model(self, inputs, outputs, opset=17):
        info = [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs]
        outs = [helper.make_tensor_value_info(o, F, None) if isinstance(o, str) else o for o in outputs]
        graph = helper.make_graph(self.nodes, "g", info, outs, [numpy_helper.from_array(w, n) for n, w in self.weights.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def dense(b, x, n, m):
    return b.op("Add", b.op("MatMul", x, b.weight(n, m)), b.weight(m))


def chain(layers=8, width=32, batch=4, seed=0):
    b, x = Build(seed), "x"
    for _ in range(layers):
        x = b.op("Relu", dense(b, x, width, width))
    return b.model([("x", F, [batch, width])], [x]), {"x": (batch, width)}


def residual(layers=6, width=24, batch="batch"):
    b, x = Build(), "x"
    for i in range(layers):
        y = b.op("LayerNormalization", x, b.weight(width, scale=1), b.weight(width), axis=-1)
        y = b.op("Relu", dense(b, y, width, 2 * width))
        x = b.op("Add", x, dense(b, y, 2 * width, width), name=f"block{i}")
    return b.model([("x", F, [batch, 5, width])], [x]), {"x": (3, 5, width)}


def unet(sizes=("n", 3, "h", "w")):
    """Skips over every cut; sizes inside are floordiv(h, 2) and so on, of which nothing but the input has h bare."""
    b = Build()

    def conv(x, n, m, name=None, **attrs):
        return b.op("Relu", b.op("Conv", x, b.weight(m, n, 3, 3), b.weight(m), pads=[1] * 4, **attrs), name=name)

    a0 = conv("x", 3, 8, "enc0")
    a1 = conv(b.op("MaxPool", a0, kernel_shape=[2, 2], strides=[2, 2]), 8, 12, "enc1")
    a2 = conv(b.op("MaxPool", a1, kernel_shape=[2, 2], strides=[2, 2]), 12, 16, "enc2")
    up = b.const(np.array([1, 1, 2, 2], np.float32), "scales")
    d1 = conv(b.op("Concat", b.op("Resize", a2, "", up, mode="nearest"), a1, axis=1), 28, 12, "dec1")
    d0 = conv(b.op("Concat", b.op("Resize", d1, "", up, mode="nearest"), a0, axis=1), 20, 4, "dec0")
    return b.model([("x", F, list(sizes))], [d0]), {"x": (2, 3, 16, 24)}


def encoder_decoder():
    """Reads the encoder's result in every decoder layer; the embedding is the decoder's last product as well."""
    b = Build()
    table = b.const(b.random.standard_normal((64, 32)).astype(np.float32) * np.float32(0.2), "table")
    x = b.op("Gather", table, "ids")
    for _ in range(3):
        x = b.op("Add", x, b.op("Relu", dense(b, x, 32, 32)))
    memory = b.op("Identity", x, name="encoder_end")
    y = b.op("Gather", table, "targets")
    for _ in range(3):
        scores = b.op("Softmax", b.op("MatMul", dense(b, y, 32, 32), b.op("Transpose", memory, perm=[0, 2, 1])), axis=-1)
        y = b.op("Add", y, b.op("MatMul", scores, memory))
    logits = b.op("MatMul", y, b.op("Transpose", table, perm=[1, 0]), name="logits")
    return b.model([("ids", I64, ["batch", "s"]), ("targets", I64, ["batch", "t"])], [logits]), {"ids": (2, 7), "targets": (2, 3)}


def shapes_cross():
    """A shape is computed at the start and used by a Reshape in each layer: it must stay an expression."""
    b = Build()
    shape = b.op("Shape", "x")
    first = b.op("Slice", shape, b.const(np.array([0], np.int64)), b.const(np.array([2], np.int64)))
    target = b.op("Concat", first, b.const(np.array([4, 8], np.int64)), axis=0)
    count = b.op("Cast", b.op("ReduceProd", shape, keepdims=0), to=F)
    x = "x"
    for _ in range(4):
        y = b.op("Transpose", b.op("Reshape", x, target), perm=[0, 2, 1, 3])
        y = b.op("Softmax", y, axis=-1)
        x = b.op("Add", x, b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 1, 3]), shape))
        x = dense(b, x, 32, 32)
    return b.model([("x", F, ["batch", "s", 32])], [b.op("Div", x, count)]), {"x": (2, 5, 32)}


def data_sizes():
    """NonZero decides sizes that later parts work with, also inside an expression and without a size of its own."""
    b = Build()
    h = b.op("Relu", dense(b, "x", 8, 8))
    where = b.op("NonZero", b.op("Greater", h, b.const(np.float32(0.05))), name="found")
    values = b.op("GatherND", h, b.op("Transpose", where, perm=[1, 0]), name="picked")
    twice = b.op("Concat", values, values, axis=0, name="twice")
    y = b.op("Mul", twice, b.const(np.float32(3)), name="scaled")
    z = b.op("ReduceSum", b.op("Relu", y), keepdims=1)
    out = b.op("Add", z, b.op("Exp", b.op("Neg", y)), name="mixed")
    return b.model([("x", F, ["n", 8])], [out, z]), {"x": (6, 8)}


def loop():
    """A Loop in a part of its own, what it captures made in the part before."""
    b = Build()
    h = b.op("Relu", dense(b, "x", 8, 8), name="before")
    body = Build()
    body.op("Add", "c", h, outputs=["c_next"], name="inner")
    body.op("Identity", "keep", outputs=["keep_next"])
    info = helper.make_tensor_value_info
    graph = helper.make_graph(body.nodes, "body", [info("i", I64, []), info("keep", TensorProto.BOOL, []), info("c", F, None)],
                              [info("keep_next", TensorProto.BOOL, []), info("c_next", F, None)])
    y = b.op("Loop", b.const(np.array(3, np.int64)), b.const(np.array(True)), h, name="loop", body=graph)
    return b.model([("x", F, ["n", 8])], [b.op("Tanh", dense(b, y, 8, 8))]), {"x": (4, 8)}


MODELS = {f.__name__: f for f in (chain, residual, unet, encoder_decoder, shapes_cross, data_sizes, loop)}


def feeds(shapes, proto, seed=1):
    random = np.random.RandomState(seed)
    types = {i.name: i.type.tensor_type.elem_type for i in proto.graph.input}
    return {n: random.randint(0, 50, s) if types[n] == I64 else random.standard_normal(s).astype(np.float32) for n, s in shapes.items()}


def same_as_whole(proto, shapes, split, tmp_path, **options):
    """Split, saved and loaded: what the whole model gives, and ONNX Runtime."""
    whole, parts = ge.compile(proto, **options), ge.compile(proto, split=split, **options)
    parts.save(str(tmp_path / "split.om"))
    x = feeds(shapes, proto)
    want = whole.run(x)
    for model in (parts, ge.load(str(tmp_path / "split.om"), check="all")):
        got = model.run(x)
        assert [p.shape for p in model.inputs] == [p.shape for p in whole.inputs]
        assert [p.name for p in model.outputs] == [p.name for p in whole.outputs]
        assert difference(got, want) < 1e-6
    assert difference(want, reference(proto.SerializeToString(), x)) < 1e-5
    return parts, whole


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("name", MODELS)
def test_outputs(name, count, tmp_path):
    proto, shapes = MODELS[name]()
    parts, _ = same_as_whole(proto, shapes, count, tmp_path)
    assert len(parts.report()["split"]["parts"]) == count


def every_cut(proto):
    return [n.name for n in proto.graph.node[:-1] if n.name]


@pytest.mark.parametrize("name", MODELS)
def test_a_cut_after_every_node(name, tmp_path):
    proto, shapes = MODELS[name]()
    x = feeds(shapes, proto)
    want = ge.compile(proto).run(x)
    for node in every_cut(proto):
        model = ge.compile(proto, split={"head": node})
        assert difference(model.run(x), want) < 1e-6, node


@pytest.mark.parametrize("name,other", [("residual", {"x": (7, 5, 24)}), ("unet", {"x": (1, 3, 32, 20)}), ("shapes_cross", {"x": (1, 9, 32)}),
                                        ("encoder_decoder", {"ids": (3, 5), "targets": (3, 11)})])
def test_open_sizes_run_as_one_task_list(name, other, tmp_path):
    """Sizes keep their names over a cut: one symbol each, nothing read back from data, any size runs."""
    proto, shapes = MODELS[name]()
    parts, whole = same_as_whole(proto, shapes, 3, tmp_path)
    assert parts._native.symbols() == whole._native.symbols()
    x = feeds(other, proto)
    assert difference(parts.run(x), whole.run(x)) < 1e-6


@pytest.mark.parametrize("split", [None, 2, 3, {"head": "enc1"}])
def test_what_a_concat_asks_for_is_asked_for_in_parts(split):
    proto, _ = unet()
    model = ge.compile(proto, **({"split": split} if split else {}))
    for sizes in ((2, 3, 8, 12), (1, 3, 4, 4)):
        x = feeds({"x": sizes}, proto)
        assert difference(model.run(x), reference(proto.SerializeToString(), x)) < 1e-5
    for h, w in ((18, 12), (12, 18), (13, 12), (12, 11)):
        with pytest.raises(ge.Error) as e:
            model.run({"x": np.zeros((1, 3, h, w), np.float32)})
        assert e.value.code == "E40001" and all(word in str(e.value) for word in ("Concat", "must be equal", f"h={h}", f"w={w}")), str(e.value)


def test_one_arena():
    """What is alive within a part, and what crosses; not the sum of the parts."""
    proto, shapes = chain(layers=12, width=64, batch=256)
    whole, parts = ge.compile(proto), ge.compile(proto, split=4)
    one = 256 * 64 * 4
    assert parts.report()["memory"]["arena"] <= whole.report()["memory"]["arena"] + 2 * one
    parts.run(feeds(shapes, proto))
    assert parts.memory()["arena"] <= whole.report()["memory"]["arena"] + 2 * one + (1 << 20)


def cached(folder):
    return {os.path.basename(p) for p in glob.glob(str(folder / "cache" / "*.om"))}


def test_a_changed_part_is_compiled_alone(tmp_path):
    proto, shapes = chain()
    first = ge.compile(proto, split=4)
    assert set(first.report()["times"]["parts"].values()) == {"compiled"} and len(cached(tmp_path)) == 4
    again = ge.compile(proto, split=4)
    assert set(again.report()["times"]["parts"].values()) == {"cache"} and again.report()["times"]["from_cache"]
    assert again._native.to_bytes() == first._native.to_bytes()
    w = proto.graph.initializer[0]   # of the first layer
    w.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(w) * 2, w.name))
    changed = ge.compile(proto, split=4)
    assert list(changed.report()["times"]["parts"].values()) == ["compiled", "cache", "cache", "cache"]
    assert len(cached(tmp_path)) == 5
    x = feeds(shapes, proto)
    assert difference(changed.run(x), reference(proto.SerializeToString(), x)) < 1e-5
    assert difference(changed.run(x), first.run(x)) > 1e-3
    # Another option is another part.
    assert set(ge.compile(proto, split=4, disable_fusion="all").report()["times"]["parts"].values()) == {"compiled"}


def test_constants_in_bodies_count(tmp_path):
    """The content of a nested graph's large constant is part of the key."""
    def model(value):
        b = Build()
        info = helper.make_tensor_value_info
        branches = []
        for k in (1, 2):
            branch = Build()
            big = branch.const(np.full((40, 8), value * k, np.float32), "big")
            out = branch.op("MatMul", "h", branch.op("Transpose", big, perm=[1, 0]), name=f"branch{k}")
            branches.append(helper.make_graph(branch.nodes, f"b{k}", [], [info(out, F, None)], [numpy_helper.from_array(branch.weights["big"], "big")]))
        b.op("Relu", dense(b, "x", 8, 8), outputs=["h"])
        flag = b.op("Greater", b.op("ReduceSum", "x", keepdims=0), b.const(np.float32(0)))
        y = b.op("If", flag, name="choice", then_branch=branches[0], else_branch=branches[1])
        return b.model([("x", F, [3, 8])], [b.op("Tanh", y)])
    for value in (0.01, 0.02):
        proto = model(value)
        made = ge.compile(proto, split=2)
        x = feeds({"x": (3, 8)}, proto)
        assert difference(made.run(x), reference(proto.SerializeToString(), x)) < 1e-5
    assert "compiled" in made.report()["times"]["parts"].values()


def wide(shared=False):
    """Parts of megabytes, whose weights are joined by whole pages; with a table that two parts read."""
    b = Build()
    table = b.const(b.random.standard_normal((2000, 512)).astype(np.float32) * np.float32(0.2), "table")
    x = b.op("Relu", b.op("MatMul", b.op("Gather", table, "ids"), b.weight(512, 1001)))
    x = b.op("Relu", dense(b, x, 1001, 513), name="middle")
    x = b.op("Relu", dense(b, x, 513, 1100))
    if shared:
        x = b.op("Add", dense(b, x, 1100, 512), b.op("Gather", table, "ids"), name="again")
    return b.model([("ids", I64, ["batch"])], [x]), {"ids": (3,)}


@pytest.mark.parametrize("shared", [False, True])
def test_large_parts(shared, tmp_path):
    """The same bytes however parts come, cached or not; equal weights lie there once."""
    proto, shapes = wide(shared)
    parts, whole = same_as_whole(proto, shapes, "a=middle", tmp_path)
    made = {mode: ge.compile(proto, split="a=middle", op_compiler_cache_mode=mode) for mode in ("disable", "force", "enable")}
    assert made["enable"].report()["times"]["from_cache"] and not made["force"].report()["times"]["from_cache"]
    assert len({m._native.to_bytes() for m in [*made.values(), parts]}) == 1
    extra = parts.report()["memory"]["weights"] - whole.report()["memory"]["weights"]
    assert abs(extra) < 5 * 4096
    assert parts.report()["split"]["shared_weights"] == (2000 * 512 * 4 if shared else 0)


def test_saved_by_a_command(tmp_path):
    """Parts that were laid out on the output's disk become the output; nothing stands beside it."""
    import onnx
    proto, shapes = wide()
    onnx.save(proto, str(tmp_path / "m.onnx"))
    (tmp_path / "out").mkdir()
    binary = os.path.join(os.path.dirname(ge.__file__), "bin", "ge")
    for mode in ("disable", "force", "enable"):
        made = subprocess.run([binary, "compile", "m.onnx", "-o", "out/m.om", "--split=2", f"--op_compiler_cache_mode={mode}"], cwd=tmp_path, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        assert os.listdir(tmp_path / "out") == ["m.om"]
        loaded = ge.load(str(tmp_path / "out" / "m.om"), check="all")
        x = feeds(shapes, proto)
        assert difference(loaded.run(x), ge.compile(proto).run(x)) < 1e-6
    assert len(cached(tmp_path)) == 2


def test_weights_that_nodes_make_count():
    """A weight that ConstantOfShape makes weighs what it will be."""
    b, x = Build(), "x"
    for i in range(6):
        w = b.op("ConstantOfShape", b.const(np.array([600, 600], np.int64)), name=f"fill{i}", value=numpy_helper.from_array(np.array([0.01], np.float32)))
        for _ in range(8 if i == 0 else 0):
            x = b.op("Relu", x)
        x = b.op("MatMul", x, b.op("Mul", w, b.weight(1, 600, scale=i + 1)))
        x = b.op("Relu", x)
    split = ge.compile(b.model([("x", F, [4, 600])], [x]), split=2).report()["split"]
    weights = [p["weights"] for p in split["parts"]]
    assert max(weights) <= 1.5 * min(weights)


@pytest.mark.parametrize("mode,kept", [("disable", 0), ("enable", 3), ("force", 3)])
def test_cache_modes(mode, kept, tmp_path):
    proto, _ = chain()
    for _ in range(2):
        made = ge.compile(proto, split=3, op_compiler_cache_mode=mode)
    assert len(cached(tmp_path)) == kept
    assert set(made.report()["times"]["parts"].values()) == {"cache" if mode == "enable" else "compiled"}


def test_a_damaged_part_is_compiled_anew(tmp_path):
    proto, shapes = chain()
    x = feeds(shapes, proto)
    want = ge.compile(proto, split=3).run(x)
    broken = sorted(glob.glob(str(tmp_path / "cache" / "*.om")))[0]
    with open(broken, "r+b") as f:
        f.seek(os.path.getsize(broken) - 20)
        f.write(b"\xff" * 8)
    again = ge.compile(proto, split=3)
    assert sorted(again.report()["times"]["parts"].values()) == ["cache", "cache", "compiled"]
    assert difference(again.run(x), want) == 0


def test_names(tmp_path):
    proto, shapes = encoder_decoder()
    parts, whole = same_as_whole(proto, shapes, "encoder=encoder_end,decoder=logits", tmp_path)
    split = parts.report()["split"]
    assert [p["name"] for p in split["parts"]] == ["encoder", "decoder"]
    assert [(c["value"], c["from"], c["to"]) for c in split["cuts"]] == [("encoder_end:out", "encoder", ["decoder"])]
    assert "encoder_end:out f32[batch,s,32]: encoder -> decoder" in parts.explain()
    # The table is in both parts.
    assert split["shared_weights"] == 64 * 32 * 4
    assert parts.report()["memory"]["weights"] < whole.report()["memory"]["weights"] + 64 * 32 * 4
    # By the name of a value; what is left makes a part.
    rest = ge.compile(proto, split={"encoder": "encoder_end:out"})
    assert [p["name"] for p in rest.report()["split"]["parts"]] == ["encoder", "rest"]


def test_what_a_cut_parts_is_said():
    proto, _ = chain(layers=2)
    made = ge.compile(proto, split={"a": "MatMul_0"})
    cut = made.report()["split"]["cuts"][0]
    assert cut["apart"] == ["MatMul_0", "Add_1"] and cut["bytes"] == 4 * 32 * 4
    assert "MatMul_0 and Add_1 cannot be fused over the cut" in made.explain()


def test_cuts_by_cost():
    """Few bytes cross: after the narrow layers, not in the wide ones; and parts weigh about the same."""
    b, x = Build(), "x"
    for _ in range(4):
        x = b.op("Relu", dense(b, x, 16, 512))
        x = dense(b, x, 512, 16)
    proto = b.model([("x", F, [64, 16])], [x])
    split = ge.compile(proto, split=4).report()["split"]
    assert [c["bytes"] for c in split["cuts"]] == [64 * 16 * 4] * 3
    weights = [p["weights"] for p in split["parts"]]
    assert max(weights) <= 1.5 * min(weights)


@pytest.mark.parametrize("kind,output", [("pass", "x"), ("constant", "k")])
def test_outputs_that_no_part_makes(kind, output, tmp_path):
    b = Build()
    b.const(np.arange(6, dtype=np.float32).reshape(2, 3), "k")
    y = b.op("Relu", dense(b, "x", 8, 8))
    z = b.op("Add", y, b.op("Exp", y))
    proto = b.model([("x", F, [4, 8]), ("unused", F, ["m"])], [z, output, y])
    x = {"x": np.ones((4, 8), np.float32), "unused": np.ones(3, np.float32)}
    whole, parts = ge.compile(proto), ge.compile(proto, split=2)
    for got, want in zip(parts.run(x), whole.run(x)):
        np.testing.assert_array_equal(got, want)
    assert [p.name for p in parts.inputs] == ["x", "unused"]


def test_constant_nodes_go_where_they_are_read(tmp_path):
    """A product's weight that a Transpose makes stays a constant of its part."""
    proto, _ = encoder_decoder()
    made = ge.compile(proto, split="encoder=encoder_end,decoder=logits")
    assert not [c for c in made.report()["split"]["cuts"] if "Transpose" in c["value"]]


def test_sequences_and_strings_cross(tmp_path):
    b = Build()
    y = b.op("Relu", "x")
    parts = b.op("SplitToSequence", y, axis=0, name="cut_here")
    back = b.op("ConcatFromSequence", parts, axis=1, name="joined")
    labels = b.op("Where", b.op("Greater", back, b.const(np.float32(0.5))), b.const(np.array("yes", object)), b.const(np.array("no", object)), name="labels")
    same = b.op("Equal", b.op("Identity", labels, name="texts"), b.const(np.array(["yes"], object), "word"))
    proto = b.model([("x", F, [3, 4])], [b.op("Cast", same, to=F), helper.make_tensor_value_info(labels, TensorProto.STRING, None)], opset=19)
    x = {"x": np.random.RandomState(0).standard_normal((3, 4)).astype(np.float32)}
    want = ge.compile(proto).run(x)
    for split in ({"a": "cut_here"}, {"a": "joined"}, {"a": "labels"}, {"a": "cut_here", "b": "texts"}, 4):
        got = ge.compile(proto, split=split).run(x)
        for g, w in zip(got, want):
            np.testing.assert_array_equal(g, w)


def test_gears_and_limits(tmp_path):
    proto, _ = residual()
    options = {"input_shape": "x:-1,5,24", "dynamic_batch_size": "1,4"}
    made = ge.compile(proto, split=3, **options)
    for batch in (1, 4):
        x = feeds({"x": (batch, 5, 24)}, proto)
        assert difference(made.run(x), reference(proto.SerializeToString(), x)) < 1e-5
    with pytest.raises(ge.Error, match="gears 1; 4"):
        made.run([np.zeros((2, 5, 24), np.float32)])
    with pytest.raises(ge.Error, match="the limit is") as e:
        ge.compile(chain(batch=64)[0], split=2, mem_workspace_size=100)
    assert e.value.code == "E13023" and e.value.node


@pytest.mark.parametrize("options", [{"output_type": "FP16"}, {"out_nodes": "block3:out"}, {"input_shape": "x:2,5,24"}, {"precision_mode_v2": "mixed_bfloat16"},
                                     {"verify": True}, {"external_weight": 2}, {"disable_reuse_memory": 1}, {"multi_stream_parallel_mode": "MainStream:2"}])
def test_with_other_options(options, tmp_path):
    proto, _ = residual()
    x = feeds({"x": (2, 5, 24)}, proto)
    whole, parts = ge.compile(proto, **options), ge.compile(proto, split=3, **options)
    parts.save(str(tmp_path / "m.om"))
    got = ge.load(str(tmp_path / "m.om")).run(x)
    assert [p.dtype for p in parts.outputs] == [p.dtype for p in whole.outputs]
    assert difference(got, whole.run(x)) < (1e-2 if "precision_mode_v2" in options else 1e-3)


@pytest.mark.parametrize("split,code,words", [
    ("0", "E10001", "from 1 to 1024"),
    ("-3", "E10001", "from 1 to 1024"),
    ("many", "E10001", "name=node"),
    ("a=b,c", "E10001", "'c' is not name=node"),
    ("a/b=loop", "E10001", "is not name=node"),
    ("400", "E10001", "the model has 7 nodes that can be parted"),
    ("a=lop", "E10016", "did you mean 'loop'"),
    ("a=inner", "E10001", "stands inside of node 'loop'"),
    ("a=loop,b=before", "E10001", "belongs to part 'a' already"),
    ("a=before,b=loop,a=Tanh_6", "E10001", "stands twice"),
])
def test_refused(split, code, words):
    with pytest.raises(ge.Error, match=words) as e:
        ge.compile(loop()[0], split=split)
    assert e.value.code == code


def test_errors_say_the_part(tmp_path):
    """An operator that cannot be lowered names the part it is in."""
    proto, _ = chain(layers=3)
    proto.graph.node.append(helper.make_node("Nonsense", [proto.graph.node[-1].output[0]], ["z"], name="odd"))
    with pytest.raises(ge.Error):
        ge.compile(proto, split=2)
    target = tmp_path / "not" / "there"
    with pytest.raises(ge.Error, match="cannot be made"):
        (tmp_path / "not").write_text("")
        ge.compile(chain(layers=3)[0], split=2, debug_dir=str(target))


def test_atc_and_commands(tmp_path):
    import onnx
    proto, shapes = chain(layers=4)
    onnx.save(proto, str(tmp_path / "m.onnx"))
    binary = os.path.join(os.path.dirname(ge.__file__), "bin", "atc")
    made = subprocess.run([binary, f"--model={tmp_path}/m.onnx", "--framework=5", f"--output={tmp_path}/m", "--soc_version=any", "--split=2"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    x = feeds(shapes, proto)
    assert difference(ge.load(str(tmp_path / "m.om")).run(x), ge.compile(proto).run(x)) < 1e-6


def test_whatever_is_alive_in_the_process(tmp_path):
    """Compiling in parts while other threads run models: the children come from a process with threads."""
    import threading
    proto, shapes = residual()
    model, x = ge.compile(proto, threads=2), feeds(shapes, proto)
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            model.run(x)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for _ in range(5):
            assert difference(ge.compile(proto, split=3, op_compiler_cache_mode="force").run(x), model.run(x)) < 1e-6
    finally:
        stop.set()
        for t in threads:
            t.join()


def test_the_articles_listing(tmp_path, monkeypatch, capsys):
    """ge.run for an encoder and a decoder; their files are loaded without compiling."""
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    import ge.ge_tensor as gt  # noqa: F401
    torch.manual_seed(0)
    example = torch.randn(2, 16)
    encoder = torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU()), example)
    decoder = torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(32, 4), torch.nn.Sigmoid()), torch.randn(2, 32))
    for name, model in [("encoder", encoder), ("decoder", decoder)]:
        ge.run(model, output=f"{name}.om")
    assert capsys.readouterr().out.count("[GE] Graph compile completed in") == 2
    x = example
    for name in ("encoder", "decoder"):
        x = ge.load(f"{name}.om")(x)
    with torch.no_grad():
        assert torch.allclose(x, decoder(encoder(example)), atol=1e-5)
