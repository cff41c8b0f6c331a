"""Sizes with ranges, from atc's words and from PyTorch's Dim: what runs, and what is refused by name, size and range."""

import subprocess
import sys

import ge
import numpy as np
import pytest
from conftest import reference
from onnx import TensorProto, helper, numpy_helper, parser


def doubled(*shape, outputs=("y",)):
    nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))],
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def refused(model, shape, *words):
    with pytest.raises(ge.Error) as e:
        model.run([np.zeros(shape, np.float32)])
    assert e.value.code == "E40001" and all(w in str(e.value) for w in words), str(e.value)


@pytest.mark.parametrize("said", ["x:-1,3,224~640,-1", {"x": [-1, 3, (224, 640), -1]}, {"x": ["-1", "3", "224~640", "-1"]}],
                         ids=["text", "pairs", "words"])
def test_a_range(said):
    model = ge.compile(doubled(None, 3, None, None), input_shape=said)
    for shape in ((2, 3, 224, 5), (1, 3, 640, 1), (0, 3, 300, 7)):
        x = np.random.RandomState(0).standard_normal(shape).astype(np.float32)
        np.testing.assert_array_equal(model.run([x])[0], x + x)
    for size in (223, 641, 0):
        refused(model, (1, 3, size, 8), "Input 'x'", "axis 2", f"is {size},", "224 to 640")
    refused(model, (1, 4, 300, 8), "Input 'x'", "axis 1 is 4 instead of 3")
    refused(model, (1, 3, 300), "3 axes instead of 4")


def test_equal_names_are_equal_sizes():
    model = ge.compile(doubled(None, 3, None, None), input_shape="x:1~8,3,b=4~16,b")
    assert model.run([np.ones((8, 3, 16, 16), np.float32)])[0].sum() == 2 * 8 * 3 * 256
    refused(model, (2, 3, 4, 5), "axis 3 (b) is 5 but was 4 elsewhere")
    refused(model, (2, 3, 17, 17), "axis 2 (b) is 17", "4 to 16")
    refused(model, (9, 3, 4, 4), "is 9", "1 to 8")


@pytest.mark.parametrize("said", ["x:-1,3,640~224,-1", "x:-2,3,8,8", "x:-1,3,8", "x:1,3,a~b,8", "x:-1,3,5~,8", "x:1,3,8,8;x:1,3,8,8"])
def test_words_that_are_no_sizes(said):
    with pytest.raises(ge.Error) as e:
        ge.compile(doubled(None, 3, None, None), input_shape=said)
    assert e.value.code == "E10002" and ("input_shape" in str(e.value))


@pytest.mark.parametrize("said", ["x:-1,3,8,8", "x:1~4,3,8,8", "x:n,3,8,8", {"x": [-1, 3, 8, 8]}])
def test_a_size_that_the_model_fixes_is_not_opened(said):
    with pytest.raises(ge.Error, match="axis 0 of 'x' open, which the model fixes at 2") as e:
        ge.compile(doubled(2, 3, 8, 8), input_shape=said)
    assert e.value.code == "E10002" and "give 2 there" in e.value.fix


def test_what_a_refused_shape_recommends_works():
    """The size is the model's own or --input_shape's; the first needs another model, the second another option."""
    for fixed in (ge.compile(doubled(2, 3)), ge.compile(doubled("n", 3), input_shape="x:2,3")):
        with pytest.raises(ge.Error) as e:
            fixed.run([np.zeros((5, 3), np.float32)])
        assert "axis 0 is 5 instead of 2, which the model fixes" in e.value.message
        assert "exported with axis 0 open" in e.value.fix and "leave it open in --input_shape" in e.value.fix
    assert ge.compile(doubled("n", 3), input_shape="x:-1,3").run([np.zeros((5, 3), np.float32)])[0].shape == (5, 3)


def test_expected_sizes_are_said_as_expressions():
    nodes = [helper.make_node("Concat", ["x", "x"], ["y"], axis=0)]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", ["n", 3]), ("y", None))]
    model = ge.compile(helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    assert model.outputs[0].shape == ("2*n", 3)
    refused(model, (2, 4), "the model takes [n,3]", "axis 1 is 4 instead of 3")


def torch_model(torch):
    class Joined(torch.nn.Module):
        def forward(self, x, y):
            return torch.cat([x, y], dim=1) * 2
    return Joined().eval()


@pytest.mark.slow
def test_names_of_torch_outputs():
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")

    def names(give, **options):
        class Module(torch.nn.Module):
            def forward(self, x):
                return give(x)
        model = ge.compile(Module(), example_inputs=torch.ones(2, 3), **options)
        return [port.name for port in model.outputs], [y.tolist() for y in model.run([np.full((2, 3), 2, np.float32)])]

    assert names(lambda x: {"twice": 2 * x, "past": [{"key": x + 1}, {"key": x - 1}]}) == (
        ["twice", "past.0.key", "past.1.key"], [[[4.0] * 3] * 2, [[3.0] * 3] * 2, [[1.0] * 3] * 2])
    # Names that are taken, inputs that are given back, values that are given twice, and no keys: as PyTorch calls them.
    plain, _ = names(lambda x: (2 * x, x + 1))
    assert len(set(plain)) == 2
    for give in (lambda x: {"x": 2 * x}, lambda x: {"a": x}, lambda x: (lambda y: {"a": y, "b": y})(2 * x)):
        got, values = names(give)
        assert len(got) == len(values) and values[0] == (np.array(give(np.full((2, 3), 2.0)).popitem()[1])).tolist()


@pytest.mark.slow
def test_dims_of_torch():
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    from torch.export import Dim
    a, b = torch.randn(3, 5), torch.randn(3, 6)

    def run(model, *sizes):
        x, y = (np.random.RandomState(1).standard_normal(s).astype(np.float32) for s in sizes)
        np.testing.assert_array_equal(model.run([x, y])[0], 2 * np.concatenate([x, y], axis=1))

    def out_of_range(model, sizes, *words):
        with pytest.raises(ge.Error) as e:
            model.run([np.zeros(s, np.float32) for s in sizes])
        assert all(w in str(e.value) for w in words), str(e.value)

    rows, x, y = Dim("rows", min=2, max=9), Dim("xs", max=50), Dim("ys", min=4, max=40)
    model = ge.compile(torch_model(torch), example_inputs=(a, b), dynamic_shapes=({0: rows, 1: x}, {0: rows, 1: y}))
    run(model, (2, 50), (2, 4))
    run(model, (9, 0), (9, 40))
    out_of_range(model, [(1, 5), (1, 6)], "'x'", "(rows) is 1", "2 to 9")
    out_of_range(model, [(3, 51), (3, 6)], "'x'", "is 51", "0 to 50")
    out_of_range(model, [(3, 5), (3, 3)], "'y'", "is 3", "4 to 40")
    out_of_range(model, [(3, 5), (4, 6)], "'y'", "(rows) is 4 but was 3")

    half = Dim("half", max=20)  # a size that follows another
    model = ge.compile(torch_model(torch), example_inputs=(torch.randn(3, 4), torch.randn(3, 8)),
                       dynamic_shapes={"x": {0: Dim.AUTO, 1: half}, "y": {0: Dim.AUTO, 1: 2 * half}})
    run(model, (7, 20), (7, 40))
    out_of_range(model, [(3, 21), (3, 42)], "'x'", "is 21", "0 to 20")
    out_of_range(model, [(3, 20), (3, 41)], "'y'", "is 41", "0 to 40")


SIZES_FROM_DATA = """
import random, sys
import ge
import numpy as np

def resident():
    with open("/proc/self/smaps_rollup") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Rss:"))

model, draw = ge.load(sys.argv[1], threads=1), random.Random(0)
feeds = [np.array([[draw.choice((0, 1.5, -2)) for _ in range(draw.randint(1, 60))] for _ in range(1)], np.float32) for _ in range(1000)]
model.run([np.ones((1, 60), np.float32)])
for x in feeds:
    places, values = model.run([x])
    assert np.array_equal(places, np.stack(np.nonzero(x))) and np.array_equal(values, x[x != 0] * 2), x
warm = resident()
for _ in range(3):
    for x in feeds:
        model.run([x])
print(resident() - warm, model.memory()["pool"])
"""


def test_a_thousand_sizes_that_data_decide(tmp_path):
    """Each run binds segments for the number of elements that are not 0."""
    nodes = [helper.make_node("NonZero", ["x"], ["places"]), helper.make_node("Transpose", ["places"], ["at"], perm=[1, 0]),
             helper.make_node("GatherND", ["x", "at"], ["found"]), helper.make_node("Add", ["found", "found"], ["values"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "k"])],
                              [helper.make_tensor_value_info("places", TensorProto.INT64, None),
                               helper.make_tensor_value_info("values", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = np.array([[0, 2, 0], [3, 0, 0]], np.float32)
    for got, want in zip(ge.compile(model).run([x]), reference(model.SerializeToString(), {"x": x})):
        np.testing.assert_array_equal(got, want)
    ge.compile(model).save(str(tmp_path / "m.om"))
    done = subprocess.run([sys.executable, "-c", SIZES_FROM_DATA, str(tmp_path / "m.om")], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    grown, pool = map(int, done.stdout.split())
    assert grown <= 1024 and pool < 1 << 20, done.stdout


def pyramid():
    """Two strides and a pool that cuts off, each met again by the map below it, brought up by 2: a Concat and a Sum of levels, so
    that sizes are equal for the right multiples alone."""
    rng = np.random.RandomState(0)
    weights = {f"k{i}": rng.standard_normal(s).astype(np.float32) / 4 for i, s in enumerate([(4, 3, 3, 3), (8, 4, 3, 3), (8, 12, 3, 3), (3, 8, 1, 1)])}
    node, conv = helper.make_node, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    up = {"coordinate_transformation_mode": "asymmetric", "mode": "nearest", "nearest_mode": "floor"}
    nodes = [
        node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p", "k0"], ["a"], strides=[2, 2], **conv), node("Relu", ["a"], ["ar"]),
        node("Conv", ["ar", "k1"], ["b"], strides=[2, 2], **conv), node("Sigmoid", ["b"], ["bs"]), node("Mul", ["b", "bs"], ["bm"]),
        node("Resize", ["bm", "", "twice"], ["bu"], **up),
        node("Tanh", ["ar"], ["at"]),
        node("Concat", ["at", "bu"], ["ab"], axis=1),
        node("Conv", ["ab", "k2"], ["c"], **conv), node("Mul", ["c", "bu"], ["cm"]), node("Tanh", ["cm"], ["ct"]),
        node("Resize", ["ct", "", "twice"], ["cu"], **up),
        node("Conv", ["cu", "k3"], ["d"], kernel_shape=[1, 1]), node("Exp", ["d"], ["de"]),
        node("Concat", ["p", "de"], ["pd"], axis=1),
        node("Resize", ["pd", "", "twice"], ["pu"], **up), node("Abs", ["x"], ["xa"]), node("Sin", ["pu"], ["ps"]),
        node("Concat", ["xa", "ps"], ["y"], axis=1),
    ]
    shapes = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"]), helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    initial = [helper.make_tensor(k, TensorProto.FLOAT, v.shape, v.ravel()) for k, v in weights.items()]
    graph = helper.make_graph(nodes, "pyramid", [shapes[0]], [shapes[1]], initial + [helper.make_tensor("twice", TensorProto.FLOAT, [4], [1, 1, 2, 2])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_sizes_that_are_equal_as_a_concat_asks_for_it():
    onnxruntime = pytest.importorskip("onnxruntime")
    model, fixed = ge.compile(pyramid()), ge.compile(pyramid(), input_shape="x:1,3,32,48")
    wholes = ge.compile(pyramid(), disable_fusion="open_strips")   # strips are for large maps, which the fixed one has not
    assert sorted(f["node"] for f in wholes.report()["fused"]) == sorted(f["node"] for f in fixed.report()["fused"])
    assert wholes.report()["aliases"] == fixed.report()["aliases"]
    for size in ((1, 32, 48), (3, 8, 16), (2, 72, 40), (0, 32, 48)):
        x = np.random.RandomState(1).standard_normal((size[0], 3, *size[1:])).astype(np.float32)
        want = reference(pyramid().SerializeToString(), {"x": x})[0]
        got = model.run([x])[0]
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    for h, w in ((33, 48), (32, 20), (36, 48), (34, 34), (2, 48)):
        x = np.zeros((1, 3, h, w), np.float32)
        with pytest.raises(Exception):  # noqa: B017: onnxruntime's own classes
            onnxruntime.InferenceSession(pyramid().SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
        with pytest.raises(ge.Error) as e:
            model.run([x])
        assert e.value.code == "E40001" and all(word in str(e.value) for word in ("Concat", "must be equal", f"h={h}", f"w={w}")), str(e.value)
    # What was refused leaves the model as it was.
    x = np.ones((1, 3, 32, 48), np.float32)
    np.testing.assert_allclose(model.run([x])[0], fixed.run([x])[0], rtol=1e-4, atol=1e-5)



def test_sizes_that_are_cut_off_at_a_number_are_the_whole_or_refused():
    """min(n, length) against length broadcasts where both are equal alone: a mask of at most n rows, as exporters slice it."""
    text = """g (float[b, length, 4] x, float[4, 4] w) => (float[b, length, 4] y) {
        zero = Constant <value_ints = [0]> ()
        one = Constant <value_ints = [1]> ()
        shape = Shape <start = 1, end = 2> (x)
        rows = Slice(table, zero, shape, zero)
        made = Add(rows, x)
        m = MatMul(made, w)
        y = Add(m, x)
    }"""
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 17]>' + text)
    model.graph.initializer.append(numpy_helper.from_array(np.arange(24, dtype=np.float32).reshape(6, 4), "table"))
    compiled = ge.compile(model)
    (group,) = [f for f in compiled.report()["fused"] if f["rule"] == "matmul_residual"]
    assert len(group["origins"]) == 2
    w = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    for length in (0, 1, 2, 5, 6):
        x = np.random.default_rng(length).standard_normal((2, length, 4)).astype(np.float32)
        want = (np.arange(24, dtype=np.float32).reshape(6, 4)[:length] + x) @ w + x
        np.testing.assert_allclose(compiled.run([x, w])[0], want, rtol=1e-5, atol=1e-4)
    with pytest.raises(ge.Error, match="sizes .* must be equal, for inputs of .*length=7"):
        compiled.run([np.zeros((2, 7, 4), np.float32), w])


def test_a_sum_of_levels_is_broadcast_at_tiny_sizes():
    """Equal for multiples of 4; for 1 and 2 rows one of them is 1, which a sum takes."""
    nodes = [helper.make_node("MaxPool", ["x"], ["a"], kernel_shape=[1, 1], strides=[2, 2]),
             helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[1, 1], strides=[2, 2]),
             helper.make_node("Mul", ["a", "s"], ["am"]), helper.make_node("Tanh", ["am"], ["at"]),
             helper.make_node("Resize", ["b", "", "twice"], ["u"], coordinate_transformation_mode="asymmetric", mode="nearest", nearest_mode="floor"),
             helper.make_node("Add", ["at", "u"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, "h", "w"]), helper.make_tensor_value_info("s", TensorProto.FLOAT, [3, 1, 1])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [helper.make_tensor("twice", TensorProto.FLOAT, [4], [1, 1, 2, 2])])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model, fixed = ge.compile(proto), ge.compile(proto, input_shape="x:1,3,8,8;s:3,1,1")
    assert ge.compile(proto, disable_fusion="open_strips").report()["tasks"] == fixed.report()["tasks"]
    s = np.array([0.5, -2, 3], np.float32).reshape(3, 1, 1)
    for h, w in ((8, 12), (1, 1), (2, 8), (7, 2), (1, 300)):
        x = np.random.RandomState(2).standard_normal((1, 3, h, w)).astype(np.float32)
        want = reference(proto.SerializeToString(), {"x": x, "s": s})[0]
        got = model.run([x, s])[0]
        assert got.shape == want.shape, (h, w)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    with pytest.raises(ge.Error) as e:
        model.run([np.zeros((1, 3, 10, 8), np.float32), s])
    assert e.value.code == "E40001" and "h=10" in str(e.value)


@pytest.mark.parametrize("scale", [0.7, 1 / 3, 1.1, 0.5, 1.5, 2.0, 2.5, 3.3, 1 / 640, 16.5])
def test_an_open_size_is_scaled_as_a_fixed_one(scale):
    """floor(size * scale) is a product of f32: 10 * 0.7 is 7, though the f32 0.7 lies below it."""
    def resized(size):
        graph = helper.make_graph([helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest")], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, size])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(np.array([1, scale], np.float32), "s")])
        return ge.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    model = resized("n")
    for n in [*range(1, 120), 640, 1000, 1920, 65535]:
        x = np.arange(n, dtype=np.float32).reshape(1, n)
        y = model.run([x])[0]
        assert y.shape[1] == int(np.floor(np.float32(n) * np.float32(scale))), n
        if n % 10 == 0:
            np.testing.assert_array_equal(y, resized(n).run([x])[0])


def test_strips_beside_wholes_in_f16():
    """What is widened stands twice where sizes are open: nodes have names of their own all the same."""
    rng = np.random.default_rng(3)
    weights = [numpy_helper.from_array((rng.standard_normal(s) / 9).astype(np.float16), n) for n, s in (("a", (8, 8, 3, 3)), ("b", (8, 8, 3, 3)))]
    nodes = [helper.make_node("Conv", ["x", "a"], ["c"], pads=[1] * 4), helper.make_node("Relu", ["c"], ["r"]), helper.make_node("Conv", ["r", "b"], ["y"], pads=[1] * 4)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT16, ["n", 8, "h", "w"])],
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT16, None) for n in "yr"], weights)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model, plain = ge.compile(m, verify_ir=1), ge.compile(m, disable_fusion="all")
    for shape in ((1, 8, 5, 7), (2, 8, 300, 301), (0, 8, 4, 4), (1, 8, 1, 1)):
        x = rng.standard_normal(shape).astype(np.float16)
        for got, want in zip(model.run([x]), plain.run([x])):
            np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), atol=2e-2)
