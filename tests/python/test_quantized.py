"""Quantised operators: ONNX's own node cases as they are, with every parameter constant, and by the
reference kernels; and what com.microsoft's operators mean, against ONNX Runtime."""

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

import ge
from conftest import reference

QUANTIZED = re.compile(r"test_(quantizelinear|dequantizelinear|dynamicquantizelinear|matmulinteger"
                       r"|basic_convinteger|convinteger|qlinearconv|qlinearmatmul)")
# Six-bit floats are not element types of GE; expanded functions are other operators.
CASES = {c.name: c for c in load_model_tests(kind="node")
         if QUANTIZED.match(c.name) and "float6" not in c.name and "expanded" not in c.name}


def read(name):
    case = CASES[name]
    inputs, outputs = ([numpy_helper.to_array(a) if isinstance(a, onnx.TensorProto) else np.asarray(a) for a in side]
                       for side in case.data_sets[0])
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    return model, inputs, outputs


def with_constants(model, values, first):
    """The model with its inputs from `first` on as initializers."""
    names = [i.name for i in model.graph.input]
    for name, value in list(zip(names, values))[first:]:
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    kept = [i for i in model.graph.input if i.name in names[:first]]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model, values[:first]


def test_the_suite_is_there():
    assert len(CASES) > 40


@pytest.mark.parametrize("way", ["inputs", "parameters", "folded", "reference"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_node(name, way):
    model, values, want = read(name)
    if way in ("parameters", "folded"):
        model, values = with_constants(model, values, 1 if way == "parameters" else 0)
    options = {"reference": True} if way == "reference" else {}
    got = ge.compile(model.SerializeToString(), **options).run(values)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.dtype == w.dtype and g.shape == w.shape
        np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), rtol=1e-3, atol=1e-7)


def build(nodes, inputs, outputs, constants):
    info = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.asarray(a).dtype), np.shape(a))
            for n, a in inputs.items()]
    graph = helper.make_graph(nodes, "g", info, [helper.make_tensor_value_info(n, t, None) for n, t in outputs],
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()])
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10)


def compare(model, feeds, tmp_path, steps=1, rtol=1e-5):
    """GE against ONNX Runtime: integers up to `steps` apart, in one element of a hundred."""
    path = str(tmp_path / "m.onnx")
    onnx.save(model, path)
    want = reference(path, feeds)
    for options in ({}, {"disable_fusion": "all"}):
        got = ge.compile(path, **options).run(feeds)
        for g, w in zip(got, want):
            assert g.dtype == w.dtype and g.shape == w.shape
            if g.dtype.kind == "f":
                np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol * np.abs(w).max())
            else:
                apart = np.abs(g.astype(np.int64) - w.astype(np.int64))
                assert apart.max(initial=0) <= steps and (apart > 0).mean() < 0.01


RNG = np.random.default_rng(5)
F = np.float32


def bytes_of(shape, dtype=np.uint8):
    return RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


def ms(op, inputs, outputs=("y",), **attrs):
    return helper.make_node(op, list(inputs), list(outputs), domain="com.microsoft", **attrs)


# Scales without common measure: no ties, which ONNX Runtime breaks in other ways than the operators' meaning.
Q = {"xs": F(0.031415), "xz": np.uint8(120), "bs": F(0.051173), "bz": np.uint8(100), "ys": F(0.040999),
     "yz": np.uint8(128)}


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (3, 1), ()])
def test_binary(op, shape, tmp_path):
    feeds = {"x": bytes_of((2, 3, 5)), "b": bytes_of(shape)}
    scale = dict(Q, ys=F(0.1319)) if op == "QLinearMul" else Q
    nodes = [ms(op, ["x", "xs", "xz", "b", "bs", "bz", "ys", "yz"])]
    compare(build(nodes, feeds, [("y", TensorProto.UINT8)], scale), feeds, tmp_path)


@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax"])
def test_unary(op, tmp_path):
    feeds = {"x": bytes_of((4, 300))}
    scale = dict(Q, ys=F(1 / 256), yz=np.uint8(0)) if op != "QLinearLeakyRelu" else Q
    attrs = {"alpha": 0.2} if op == "QLinearLeakyRelu" else {"axis": -1, "opset": 13} if op == "QLinearSoftmax" else {}
    compare(build([ms(op, ["x", "xs", "xz", "ys", "yz"], **attrs)], feeds, [("y", TensorProto.UINT8)], scale), feeds, tmp_path)


def test_concat(tmp_path):
    feeds = {"x": bytes_of((2, 3)), "b": bytes_of((2, 5))}
    nodes = [ms("QLinearConcat", ["ys", "yz", "x", "xs", "xz", "b", "bs", "bz"], axis=1)]
    compare(build(nodes, feeds, [("y", TensorProto.UINT8)], Q), feeds, tmp_path)


@pytest.mark.parametrize("last", [0, 1])
def test_average_pool(last, tmp_path):
    feeds = {"x": bytes_of((1, 9, 8, 4) if last else (1, 4, 9, 8))}
    nodes = [ms("QLinearAveragePool", ["x", "xs", "xz", "ys", "yz"], kernel_shape=[3, 2], strides=[2, 2],
                pads=[1, 0, 1, 0], channels_last=last)]
    compare(build(nodes, feeds, [("y", TensorProto.UINT8)], Q), feeds, tmp_path)


def test_global_average_pool(tmp_path):
    feeds = {"x": bytes_of((2, 4, 9, 8))}
    nodes = [ms("QLinearGlobalAveragePool", ["x", "xs", "xz", "ys", "yz"], channels_last=0)]
    compare(build(nodes, feeds, [("y", TensorProto.UINT8)], Q), feeds, tmp_path)


@pytest.mark.parametrize("columns", [False, True])
def test_products_to_float(columns, tmp_path):
    n = 37
    x = RNG.normal(size=(5, 64)).astype(F)
    constants = {"w": bytes_of((64, n), np.int8), "ws": (RNG.random(n) + 0.5).astype(F) if columns else F(0.7),
                 "wz": bytes_of(n, np.int8) if columns else np.int8(3), "bias": RNG.normal(size=n).astype(F), "as": F(0.1), "az": np.uint8(9)}
    nodes = [ms("DynamicQuantizeMatMul", ["x", "w", "ws", "wz", "bias"], ["y"]),
             ms("MatMulIntegerToFloat", ["a", "w", "as", "ws", "az", "wz", "bias"], ["z"])]
    feeds = {"x": x, "a": bytes_of((5, 64))}
    compare(build(nodes, feeds, [("y", TensorProto.FLOAT), ("z", TensorProto.FLOAT)], constants), feeds, tmp_path)


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("a,b", [(0, 0), (0, 1), (1, 0)])
def test_gemm(quantized, a, b, tmp_path):
    feeds = {"x": bytes_of((64, 5) if a else (5, 64))}
    constants = {"w": bytes_of((37, 64) if b else (64, 37), np.int8), "ws": (RNG.random(37) / 50 + 0.002).astype(F), "wz": np.zeros(37, np.int8),
                 "xs": F(0.031415), "xz": np.uint8(9), "bias": RNG.integers(-900, 900, 37).astype(np.int32)}
    if quantized:
        constants |= {"ys": F(1.7713), "yz": np.uint8(128)}
    nodes = [ms("QGemm", ["x", "xs", "xz", "w", "ws", "wz", "bias"] + (["ys", "yz"] if quantized else []),
                transA=a, transB=b, alpha=1.5)]
    compare(build(nodes, feeds, [("y", TensorProto.UINT8 if quantized else TensorProto.FLOAT)], constants), feeds, tmp_path)


def test_where(tmp_path):
    feeds = {"c": RNG.random((2, 1, 5)) < 0.5, "x": bytes_of((2, 3, 5)), "b": bytes_of((3, 1))}
    compare(build([ms("QLinearWhere", ["c", "x", "xs", "xz", "b", "bs", "bz", "ys", "yz"])], feeds, [("y", TensorProto.UINT8)], Q), feeds, tmp_path)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("spatial", [[7], [7, 9], [4, 5, 6]])
def test_nhwc_conv(group, spatial):
    """ONNX Runtime has it on other devices only; Conv and transposes say the same."""
    rank = len(spatial)
    feeds = {"x": RNG.normal(size=(2, *spatial, 6)).astype(F)}
    w, b = RNG.normal(size=(8, 6 // group, *[3] * rank)).astype(F), RNG.normal(size=8).astype(F)
    attrs = {"group": group, "pads": [1] * 2 * rank, "strides": [2] + [1] * (rank - 1), "kernel_shape": [3] * rank}
    model = build([ms("NhwcConv", ["x", "w", "b"], **attrs)], feeds, [("y", TensorProto.FLOAT)], {"w": np.moveaxis(w, 1, -1), "b": b})
    plain = build([helper.make_node("Conv", ["x", "w", "b"], ["y"], **attrs)], {"x": np.moveaxis(feeds["x"], -1, 1)}, [("y", TensorProto.FLOAT)], {"w": w, "b": b})
    want = np.moveaxis(reference(plain.SerializeToString(), {"x": np.ascontiguousarray(np.moveaxis(feeds["x"], -1, 1))})[0], 1, -1)
    got = ge.compile(model.SerializeToString()).run(feeds)[0]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("k,block", [(64, 32), (70, 16), (128, 128)])
@pytest.mark.parametrize("zero", [False, True])
def test_matmul_nbits(k, block, zero, tmp_path):
    n, blocks = 24, -(-k // block)
    constants = {"w": bytes_of((n, blocks, block // 2)), "s": (RNG.random((n * blocks)) / 10).astype(F)}
    inputs = ["x", "w", "s"]
    if zero:
        constants["z"] = bytes_of(n * ((blocks + 1) // 2))
        inputs.append("z")
    feeds = {"x": RNG.normal(size=(2, 3, k)).astype(F)}
    nodes = [ms("MatMulNBits", inputs, K=k, N=n, bits=4, block_size=block)]
    compare(build(nodes, feeds, [("y", TensorProto.FLOAT)], constants), feeds, tmp_path, rtol=1e-4)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("hidden,options", [(7, False), (7, True), (80, True), (16, False)])
def test_dynamic_quantize_lstm(direction, columns, kind, hidden, options):
    """As ONNX Runtime rounds inputs and states to bytes, but for one scale of the states a row; near the LSTM of floats."""
    directions, steps, batch, size = 1 + (direction == "bidirectional"), 6, 3, 5
    scales = (directions, 4 * hidden) if columns else (directions,)
    zero = 128 if kind == np.uint8 else 0
    zeros = lambda: np.full(scales, zero, kind) if not options else (zero + RNG.integers(-9, 9, scales)).astype(kind)
    scale = lambda: ((RNG.random(scales) / 99 + 0.002) / hidden**0.5).astype(F)
    c = {"w": bytes_of((directions, size, 4 * hidden), kind), "r": bytes_of((directions, hidden, 4 * hidden), kind),
         "b": RNG.normal(size=(directions, 8 * hidden)).astype(F), "ws": scale(), "wz": zeros(), "rs": scale(), "rz": zeros()}
    outputs = [(n, TensorProto.FLOAT) for n in ("y", "yh", "yc")]
    feeds = {"x": RNG.normal(size=(steps, batch, size)).astype(F)}
    rest = ["", "", "", ""]
    if options:
        feeds |= {"n": np.array([6, 2, 5], np.int32), "h": RNG.normal(size=(directions, batch, hidden)).astype(F), "c0": RNG.normal(size=(directions, batch, hidden)).astype(F)}
        c["p"] = RNG.normal(size=(directions, 3 * hidden)).astype(F)
        rest = ["n", "h", "c0", "p"]
    attrs = {"direction": direction, "hidden_size": hidden}
    quantized = build([ms("DynamicQuantizeLSTM", ["x", "w", "r", "b", *rest, "ws", "wz", "rs", "rz"], ["y", "yh", "yc"], **attrs)],
                      feeds, outputs, c)
    def floats(weight, scale, zero):
        spread = lambda v: v.astype(F).reshape(directions, 1, -1)
        return np.swapaxes((c[weight].astype(F) - spread(c[zero])) * spread(c[scale]), 1, 2)
    plain = build([helper.make_node("LSTM", ["x", "w", "r", "b", *rest], ["y", "yh", "yc"], **attrs)], feeds, outputs,
                  {"w": floats("w", "ws", "wz"), "r": floats("r", "rs", "rz")} | {k: c[k] for k in ("b", "p") if k in c})
    got = ge.compile(quantized).run(feeds)
    wants = reference(plain.SerializeToString(), feeds)
    # ONNX Runtime refuses a zero point for each column.
    nearby = wants if columns and options else reference(quantized.SerializeToString(), feeds)
    for g, exact, near in zip(got, wants, nearby, strict=True):
        assert g.shape == exact.shape
        assert np.abs(g - exact).max() < 0.03
        assert np.abs(g - near).max() < 0.03 and np.abs(g - near).mean() < 0.003


def test_dynamic_quantize_lstm_of_nothing_finite():
    """A state that is no number makes later ones no numbers; another row's stays."""
    hidden = 7
    c = {"w": bytes_of((1, 5, 28), np.int8), "r": bytes_of((1, hidden, 28), np.int8), "ws": np.array([0.01], F), "wz": np.zeros(1, np.int8),
         "rs": np.array([0.01], F), "rz": np.zeros(1, np.int8)}
    h = RNG.normal(size=(1, 2, hidden)).astype(F)
    h[0, 0, 3] = np.nan
    feeds = {"x": RNG.normal(size=(4, 2, 5)).astype(F), "h": h}
    node = ms("DynamicQuantizeLSTM", ["x", "w", "r", "", "", "h", "", "", "ws", "wz", "rs", "rz"], ["y"], hidden_size=hidden)
    (y,) = ge.compile(build([node], feeds, [("y", TensorProto.FLOAT)], c)).run(feeds)
    assert np.isnan(y[:, 0, 0]).all() and np.isfinite(y[:, 0, 1]).all()


def quantized_conv(relu, residual):
    """Conv between QuantizeLinear and DequantizeLinear, as exporters write it."""
    c = {"s0": F(0.02), "z0": np.uint8(128), "s1": F(0.05), "z1": np.uint8(110), "w": bytes_of((20, 6, 3, 3), np.int8),
         "ws": (RNG.random(20) / 50 + 0.002).astype(F), "wz": np.zeros(20, np.int8),
         "b": RNG.integers(-900, 900, 20).astype(np.int32), "bs": F(0.02) * np.full(20, 0.01, F), "bz": np.zeros(20, np.int32)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s0", "z0"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s0", "z0"], ["d"]),
             helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["dw"], axis=0),
             helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["db"], axis=0),
             helper.make_node("Conv", ["d", "dw", "db"], ["c"], pads=[1, 1, 1, 1], strides=[2, 1])]
    last = "c"
    if relu:
        nodes.append(helper.make_node("Relu", [last], ["r"]))
        last = "r"
    nodes += [helper.make_node("QuantizeLinear", [last, "s1", "z1"], ["q1"]),
              helper.make_node("DequantizeLinear", ["q1", "s1", "z1"], ["y1" if residual else "y"])]
    if residual:
        nodes += [helper.make_node("QuantizeLinear", ["o", "s0", "z0"], ["qo"]),
                  helper.make_node("DequantizeLinear", ["qo", "s0", "z0"], ["do"]),
                  helper.make_node("Add", ["y1", "do"], ["t"]),
                  helper.make_node("QuantizeLinear", ["t", "s1", "z1"], ["q2"]),
                  helper.make_node("DequantizeLinear", ["q2", "s1", "z1"], ["y"])]
    return nodes, c


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("residual", [False, True])
def test_fake_quantisation_is_kept(relu, residual):
    """Fused, the steps of the outputs are those of the nodes one by one."""
    nodes, constants = quantized_conv(relu, residual)
    feeds = {"x": RNG.normal(size=(2, 6, 9, 11)).astype(F)}
    if residual:
        feeds["o"] = RNG.normal(size=(2, 20, 5, 11)).astype(F)
    model = build(nodes, feeds, [("y", TensorProto.FLOAT)], constants).SerializeToString()
    (plain,) = ge.compile(model, reference=True).run(feeds)
    fused = ge.compile(model)
    (y,) = fused.run(feeds)
    step = float(constants["s1"])
    apart = np.rint(np.abs(y - plain) / step)
    assert apart.max() <= 1 and (apart > 0).mean() < 0.002
    assert any(f["rule"] == "integer_products" for f in fused.report()["fused"])


@pytest.mark.parametrize("op", ["ConvInteger", "QLinearConv"])
@pytest.mark.parametrize("group", [1, 2, 40])
def test_groups(op, group, tmp_path):
    """Few groups as sums of bytes, many in f32."""
    feeds = {"x": bytes_of((2, 40, 9, 11))}
    constants = {"w": bytes_of((40, 40 // group, 3, 3), np.int8), "xs": F(0.031415), "xz": np.uint8(117), "wz": np.zeros(40, np.int8),
                 "ws": (RNG.random(40) / 50 + 0.002).astype(F), "ys": F(1.7713), "yz": np.uint8(128),
                 "b": RNG.integers(-900, 900, 40).astype(np.int32), "w0": np.int8(0)}
    attrs = {"group": group, "pads": [1, 1, 1, 1]}
    if op == "ConvInteger":
        node, kind = helper.make_node(op, ["x", "w", "xz", "w0"], ["y"], **attrs), TensorProto.INT32
    else:
        node, kind = helper.make_node(op, ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], **attrs), TensorProto.UINT8
    model = build([node], feeds, [("y", kind)], constants)
    compare(model, feeds, tmp_path, steps=0 if op == "ConvInteger" else 1)
    assert ge.compile(model.SerializeToString()).report()["reference_ops"] == []


@pytest.mark.parametrize("op", ["MaxPool", "Transpose", "Reshape"])
@pytest.mark.parametrize("same", [True, False])
def test_moves_of_dequantised_bytes(op, same, tmp_path):
    """They move the bytes where both conversions are the same, and only there."""
    feeds = {"x": bytes_of((2, 5, 8, 6))}
    constants = {"s": F(0.0314), "z": np.uint8(9), "t": F(0.0314 if same else 0.0513), "shape": np.array([2, -1])}
    attrs = {"MaxPool": {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 0]}, "Transpose": {"perm": [0, 2, 3, 1]}}.get(op, {})
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["d"]),
             helper.make_node(op, ["d", "shape"] if op == "Reshape" else ["d"], ["m"], **attrs),
             helper.make_node("QuantizeLinear", ["m", "t", "z"], ["y"])]
    if op != "Reshape":
        del constants["shape"]
    model = build(nodes, feeds, [("y", TensorProto.UINT8)], constants)
    compare(model, feeds, tmp_path, steps=0 if same else 1)
