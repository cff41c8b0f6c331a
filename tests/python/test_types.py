"""Which element types the operators take, as `ge ops` says; types and open sizes that ONNX allows and few models use,
against ONNX's reference evaluator."""

import functools
import re
import subprocess
import sys

import ge
import numpy as np
import onnx
import pytest
import type_cases
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


# Words for sets of types, as in docs/operators.md.
FLOAT8 = {"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz"}
FLOAT, INTEGER = {"f16", "bf16", "f32", "f64"}, {f"{s}{b}" for s in "iu" for b in (8, 16, 32, 64)}
SETS = {"float": FLOAT, "integer": INTEGER, "number": FLOAT | INTEGER, "float8": FLOAT8, "complex": {"c64", "c128"}, "all": set(type_cases.TYPES),
        "quantised": FLOAT8 | {"u8", "i8", "u16", "i16", "u4", "i4", "u2", "i2", "f4e2m1"}}


@functools.lru_cache(maxsize=None)
def declared():
    """Of each operator with inputs its data input and the types that it takes."""
    lines = subprocess.run([sys.executable, "-c", "from ge._cli import ge; ge()", "ops"], capture_output=True, text=True, check=True).stdout.splitlines()
    at, end = lines[0].index("types"), lines[0].index("meaning")
    out = {}
    for line in lines[1:]:
        name, text = line.split()[0], line[at:end].strip()
        if name.startswith("ge.") or text == "-":
            continue
        data = int(re.match(r"(?:input (\d+): )?", text)[1] or 0)
        words = re.sub(r"^input \d+: ", "", text)
        named = lambda w: SETS.get(w, {w})
        if words.startswith("all but "):
            types = SETS["all"].difference(*map(named, words[8:].split()))
        else:
            types = set().union(*map(named, words.split()))
        assert types <= SETS["all"], line
        out[name] = data, types
    return out


# Maps are made by ZipMap only; what it takes is tested with it.
UNTESTED = {"ai.onnx.ml.CastMap", "ai.onnx.ml.DictVectorizer"}


def test_every_operator_has_an_example():
    assert set(declared()) - set(type_cases.cases()) == UNTESTED


@pytest.mark.parametrize("op", sorted(set(declared()) - UNTESTED))
def test_declared_types_are_what_runs(op):
    """Of each type one example compiles and runs if `ge ops` names the type, and none does if not."""
    data, types = declared()[op]
    works, errors = set(), {}
    for name in type_cases.TYPES:
        for c in type_cases.cases()[op]:
            made = type_cases.model_of(c, data, name)
            if made is None:
                continue
            try:
                outputs = ge.compile(made[0]).run(made[1])
            except ge.Error as e:
                errors.setdefault(name, str(e).splitlines()[0])
                continue
            assert outputs
            works.add(name)
            break
    assert works == types, {n: errors.get(n) for n in works ^ types}


def one_node(op, feeds, outputs=1, **attrs):
    """GE's outputs of one node, from constants too."""
    element = lambda a: T.STRING if a.dtype == object else helper.np_dtype_to_tensor_dtype(a.dtype)
    node = helper.make_node(op, list(feeds), [f"y{k}" for k in range(outputs)], **attrs)
    out = [helper.make_empty_tensor_value_info(o) for o in node.output]

    def run(inputs, constants):
        graph = helper.make_graph([node], "g", [INFO(n, element(a), a.shape) for n, a in inputs.items()], out, [onnx.numpy_helper.from_array(a, n) for n, a in constants.items()])
        return ge.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)).run(list(inputs.values()))
    got, folded = run(feeds, {}), run({}, feeds)
    for a, b in zip(got, folded, strict=True):
        np.testing.assert_array_equal(a.astype(str) if a.dtype == object else a, b.astype(str) if b.dtype == object else b)
    return got


def complex_of(dtype, *dims):
    r = np.random.default_rng(3)
    return (r.standard_normal(dims) + 1j * r.standard_normal(dims)).astype(dtype)


@pytest.mark.parametrize("name", sorted(FLOAT8))
def test_floats_of_8_bits_that_are_no_numbers(name):
    dtype = helper.tensor_dtype_to_np_dtype(type_cases.TYPES[name])
    x = np.arange(256, dtype=np.uint8).view(dtype)
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(one_node("IsNaN", {"x": x})[0], np.isnan(wide))
    np.testing.assert_array_equal(one_node("IsInf", {"x": x})[0], np.isinf(wide))
    np.testing.assert_array_equal(one_node("IsInf", {"x": x}, detect_negative=0)[0], np.isposinf(wide))


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("names", [("f8e4m3fn", "f8e5m2", "f8e4m3fn"), ("f8e4m3fnuz",) * 3, ("u8", "f8e5m2fnuz", "i8")])
def test_products_of_floats_of_8_bits(names, rows):
    r = np.random.default_rng(4)
    a, b, y = (helper.tensor_dtype_to_np_dtype(type_cases.TYPES[n]) for n in names)
    number = lambda dtype, *dims: (r.integers(0, 30, dims) if dtype == np.uint8 else r.standard_normal(dims)).astype(dtype)
    x, w = number(a, 2, 5, 8), number(b, 8, 6)
    scales = (r.random(5).astype(np.float32), r.random(6).astype(np.float32)) if rows else (np.float32(.3), np.float32(.7))
    zeros = [np.zeros(np.shape(s), t) for s, t in zip(scales, (a, b))]
    exact = np.matmul(x.astype(np.float32) * (scales[0][:, None] if rows else scales[0]), w.astype(np.float32) * scales[1]) / np.float32(.05 if y == np.int8 else .5)
    want = np.clip(np.rint(exact), -128, 127).astype(y) if y == np.int8 else exact.astype(y)
    got = one_node("QLinearMatMul", {"x": x, "xs": np.asarray(scales[0]), "xz": zeros[0], "w": w, "ws": np.asarray(scales[1]), "wz": zeros[1], "ys": np.asarray(.05 if y == np.int8 else .5, np.float32), "yz": np.zeros((), y)})[0]
    assert got.dtype == y
    # Sums in another order may round to the next of the few numbers that there are.
    np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=0.26 if "e5" in names[2] else 0.13, atol=1.01 if y == np.int8 else 0.01)
    assert (got == want).mean() > 0.9


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers_that_are_not_zero(dtype):
    x = np.array([[0, 1j, 2], [-0.0, 1 - 1j, complex(0, np.nan)]], dtype)
    np.testing.assert_array_equal(one_node("NonZero", {"x": x})[0], np.nonzero(x))


def test_strings_that_are_not_empty():
    x = np.array([["", "a"], ["bc", ""]], object)
    np.testing.assert_array_equal(one_node("NonZero", {"x": x})[0], [[0, 1], [1, 0]])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_different_complex_numbers(dtype):
    x = np.array([2 + 1j, 1 - 1j, 2 + 1j, 1 + 1j, 2 - 3j, 1 - 1j], dtype)
    for got, want in zip(one_node("Unique", {"x": x}, 4), np.unique(x, True, True, True), strict=True):
        np.testing.assert_array_equal(got, want)
    rows = np.stack([x, x[::-1]], 1)[[0, 1, 2, 0, 1]]
    got = one_node("Unique", {"x": rows}, 4, axis=0)
    for g, want in zip(got, np.unique(rows, True, True, True, axis=0), strict=True):
        np.testing.assert_array_equal(g, np.reshape(want, g.shape))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_images(dtype):
    """Their parts one by one say the same."""
    part = np.float32 if dtype == np.complex64 else np.float64
    x, grid = complex_of(dtype, 1, 2, 4, 5), np.random.default_rng(5).standard_normal((1, 3, 3, 2)).astype(np.float32)
    columns, sizes = complex_of(dtype, 1, 12, 12), {"image": np.array([5, 4]), "block": np.array([2, 2])}
    for op, first, rest in (("GridSample", x, {"g": grid}), ("Col2Im", columns, sizes)):
        got = one_node(op, {"x": first, **rest})[0]
        parts = [one_node(op, {"x": np.ascontiguousarray(p, part), **rest})[0] for p in (first.real, first.imag)]
        assert got.dtype == dtype
        np.testing.assert_array_equal(got.real, parts[0])
        np.testing.assert_array_equal(got.imag, parts[1])


@pytest.mark.parametrize("name", sorted(FLOAT8))
def test_dropout_of_floats_of_8_bits(name):
    dtype = helper.tensor_dtype_to_np_dtype(type_cases.TYPES[name])
    x = np.arange(1, 41).astype(dtype)
    y, mask = one_node("Dropout", {"x": x, "ratio": np.float32(.5).reshape(()), "training": np.array(True)}, 2, seed=5)
    assert y.dtype == dtype and 0 < mask.sum() < x.size
    np.testing.assert_array_equal(y.astype(np.float32), np.where(mask, (2 * x.astype(np.float32)).astype(dtype).astype(np.float32), 0))


@pytest.mark.parametrize("noop", [0, 1])
@pytest.mark.parametrize("op,function", [("ReduceSum", np.sum), ("ReduceMax", np.max), ("ReduceMean", np.mean)])
def test_axes_of_unknown_number(op, function, noop):
    node = helper.make_node(op, ["x", "axes"], ["y"], noop_with_empty_axes=noop)
    graph = helper.make_graph([node], "g", [INFO("x", T.FLOAT, ["a", 3, "b"]), INFO("axes", T.INT64, ["n"])], [INFO("y", T.FLOAT, None)])
    model = ge.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    x = np.random.default_rng(6).standard_normal((4, 3, 5)).astype(np.float32)
    for axes in ([1], [0, -1], [], [0, 1, 2], [-2]):
        want = x if noop and not axes else function(x, axis=tuple(axes) or None, keepdims=True)
        np.testing.assert_allclose(model.run([x, np.array(axes, np.int64)])[0], want, rtol=1e-5, atol=1e-6)
    with pytest.raises(ge.Error):
        model.run([x, np.array([3])])


def test_a_type_that_an_operator_does_not_take():
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"], name="the_node")], "g", [INFO("x", T.STRING, [2])], [INFO("y", T.STRING, None)])
    with pytest.raises(ge.Error, match="string") as e:
        ge.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    assert e.value.code == "E14001" and e.value.node == "the_node" and "number" in e.value.fix and "Cast" in e.value.fix
