"""Operators that optimisers, quantisers and old converters write and ONNX has not, most of them com.microsoft's: against ONNX Runtime where it has them on the CPU, else
against what they mean."""

import ge
import numpy as np
import pytest
from conftest import difference, reference
from onnx import TensorProto, helper, numpy_helper

F, B = np.float32, np.uint8


def floats(r, *dims):
    return r.standard_normal(dims).astype(F)


def model_of(op, arrays, outputs, attrs, constants=(), fixed=True, domain="com.microsoft"):
    """The operator alone: inputs that are None are absent, those of `constants` initializers; unless fixed, sizes are open."""
    names = ["" if a is None else f"i{k}" for k, a in enumerate(arrays)]
    given = [(n, a) for k, (n, a) in enumerate(zip(names, arrays)) if a is not None and k not in constants]
    info = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), [d if fixed else f"{n}_{j}" for j, d in enumerate(a.shape)]) for n, a in given]
    out = [helper.make_tensor_value_info(f"y{k}", helper.np_dtype_to_tensor_dtype(np.dtype(t)), None) for k, t in enumerate(outputs) if t]
    node = helper.make_node(op, names, [f"y{k}" if t else "" for k, t in enumerate(outputs)], domain=domain, **attrs)
    graph = helper.make_graph([node], "g", info, out, [numpy_helper.from_array(arrays[k], names[k]) for k in constants])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]), dict(given)


def agrees(op, arrays, outputs=(F,), want=None, eps=1e-5, constants=(), open_sizes=True, unequal=0, domain="com.microsoft", **attrs):
    """GE, with sizes known and open, against `want` or ONNX Runtime."""
    model, feeds = model_of(op, arrays, outputs, attrs, constants, domain=domain)
    want = reference(model.SerializeToString(), feeds) if want is None else want
    for fixed in (True, False) if open_sizes else (True,):
        model, feeds = model_of(op, arrays, outputs, attrs, constants, fixed, domain)
        for options in ({}, {"disable_fusion": "all"}):
            got = ge.compile(model, **options).run(feeds)
            assert difference(got, want, unequal) <= eps, (fixed, options)


def gelu(x):
    from math import erf
    return x * (1 + np.vectorize(erf)(x / 2**0.5)) / 2


def sigmoid(x):
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def test_products_with_an_activation():
    r = np.random.default_rng(1)
    x, w, b = floats(r, 2, 5, 8), floats(r, 8, 6), floats(r, 6)
    y = x.astype(np.float64) @ w + b
    agrees("GemmFastGelu", [x, w, b], want=[(y * (1 + np.tanh((2 / np.pi)**0.5 * (y + 0.044715 * y**3))) / 2).astype(F)])
    agrees("FusedMatMulActivation", [x, w], want=[np.maximum(0.5 * x @ w, 0).astype(F)], alpha=0.5, activation="Relu")
    agrees("FusedMatMulActivation", [x, np.ascontiguousarray(w.T)], want=[np.where(x @ w > 0, x @ w, 0.2 * (x @ w))], transB=1, activation="LeakyRelu", activation_alpha=0.2)


@pytest.mark.parametrize("activation,numbers", [("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("Softplus", {}), ("Softsign", {}), ("Elu", {"alpha": 0.7}), ("LeakyRelu", {"alpha": 0.3}),
                                                ("ThresholdedRelu", {"alpha": 0.2}), ("HardSigmoid", {"alpha": 0.3, "beta": 0.6}), ("Selu", {"alpha": 1.5, "gamma": 1.1})])
def test_gemm_with_an_activation(activation, numbers):
    r = np.random.default_rng(24)
    attrs = {"activation": activation, **{f"activation_{k}": v for k, v in numbers.items()}}
    agrees("FusedGemm", [floats(r, 5, 8), floats(r, 6, 8), floats(r, 6)], transB=1, alpha=0.5, **attrs)


@pytest.mark.parametrize("flags", [{"transBatchA": 1}, {"transBatchB": 1, "transB": 1}, {"transBatchA": 1, "transA": 1, "transBatchB": 1, "alpha": 0.3}])
@pytest.mark.parametrize("rank", [3, 4])
def test_products_of_turned_batches(flags, rank):
    r = np.random.default_rng(2)

    def operand(rows, columns, side):
        batch = [2, 3][:rank - 2]
        shape = [*batch, columns, rows] if flags.get("trans" + side) else [*batch, rows, columns]
        if flags.get("transBatch" + side):
            shape = [shape[-2], *shape[:-2], shape[-1]]
        return floats(r, *shape)
    agrees("FusedMatMul", [operand(5, 7, "A"), operand(7, 4, "B")], **flags)


def test_bias():
    r = np.random.default_rng(3)
    x, b, skip = floats(r, 2, 5, 8), floats(r, 8), floats(r, 2, 5, 8)
    agrees("BiasAdd", [x, b, skip], want=[x + b + skip])
    left, right = np.split((x + b).astype(np.float64), 2, -1)
    agrees("BiasSplitGelu", [x, b], want=[(left * gelu(right)).astype(F)])


@pytest.mark.parametrize("axis,shape", [(3, (2, 1, 1, 5)), (2, (1, 1, 4, 5)), (3, (4, 5))])
def test_bias_softmax(axis, shape):
    r = np.random.default_rng(4)
    x, bias = floats(r, 2, 3, 4, 5), floats(r, *shape)
    e = np.exp((x + bias).astype(np.float64)).reshape(*x.shape[:axis], -1)
    agrees("BiasSoftmax", [x, bias], want=[(e / e.sum(-1, keepdims=True)).reshape(x.shape).astype(F)], axis=axis, is_inner_broadcast=int(shape[0] == 2))


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("act", [0, 1])
@pytest.mark.parametrize("skip", [None, "full", "rows", "flat"])
def test_group_norm(last, act, skip):
    r = np.random.default_rng(5)
    x, scale, shift, bias = floats(r, 2, 4, 3, 8), floats(r, 8), floats(r, 8), floats(r, 8)
    inputs, total = [x, scale, shift], x
    if skip:
        added = {"full": floats(r, 2, 4, 3, 8), "rows": floats(r, 2, 1, 1, 8), "flat": floats(r, 2, 8)}[skip]
        total = x + (added[:, None, None] if skip == "flat" else added) + bias
        inputs += [added, bias]
    groups = total.astype(np.float64).reshape(2, 12, 4, 2)
    normal = (groups - groups.mean((1, 3), keepdims=True)) / np.sqrt(groups.var((1, 3), keepdims=True) + 1e-3)
    y = normal.reshape(2, 4, 3, 8) * scale + shift
    want = [(y * sigmoid(y) if act else y).astype(F)] + ([total] if skip else [])
    if not last:
        inputs, want = ([np.ascontiguousarray(np.moveaxis(a, -1, 1)) if a.ndim == 4 else a for a in arrays] for arrays in (inputs, want))
    agrees("SkipGroupNorm" if skip else "GroupNorm", inputs, [F] * len(want), want, channels_last=last, activation=act, groups=4, epsilon=1e-3)


@pytest.mark.parametrize("act", ["silu", "sigmoid"])
def test_gates(act):
    r = np.random.default_rng(6)
    x, scale, gate = floats(r, 2, 5, 24), floats(r, 8), floats(r, 2, 5, 24)
    heads = x.astype(np.float64).reshape(2, 5, 3, 8)
    normal = (heads / np.sqrt((heads**2).mean(-1, keepdims=True) + 1e-5) * scale).reshape(x.shape)
    factor = sigmoid(gate) * (gate if act == "silu" else 1)
    agrees("GatedRMSNorm", [x, scale, gate], want=[(normal * factor).astype(F)], epsilon=1e-5, activation=act)
    agrees("GatedAdd", [x, gate, floats(r, 2, 5, 1)])
    w = floats(r, 8, 1)
    key = floats(r, 2, 5, 8)
    agrees("GatedAdd", [x, gate, key, w], want=[(x + gate * sigmoid(key @ w)).astype(F)])
    agrees("ScaledSiLU", [x], want=[(0.5 * x * sigmoid(0.5 * x)).astype(F)], alpha=0.5)
    agrees("ScaledSiLU", [x, np.array(2, F)], want=[(2 * x * sigmoid(2 * x)).astype(F)])


@pytest.mark.parametrize("limit", [0.0, 0.7])
@pytest.mark.parametrize("split", [False, True])
def test_swiglu(limit, split):
    r = np.random.default_rng(7)
    gate, up = floats(r, 2, 5, 8), floats(r, 2, 5, 8)
    g, u = (np.minimum(gate, limit), np.clip(up, -limit, limit)) if limit else (gate, up)
    want = [(g * sigmoid(1.3 * g) * (u + 0.25)).astype(F)]
    agrees("SwiGLU", [gate, up] if split else [np.concatenate([gate, up], -1)], want=want, limit=limit, activation_alpha=1.3, activation_beta=0.25)


def test_moves():
    r = np.random.default_rng(8)
    x = floats(r, 3, 4, 5)
    for axis in (0, 2, -1):
        agrees("ExpandDims", [x, np.array(axis, np.int32)], constants=[1])
    agrees("Range", [np.array(2, F), np.array([9.5], F), np.array(1.5, F)])
    agrees("Range", [np.array(2, np.int64), np.array(9, np.int64)], [np.int64])
    for upper in ({}, {"upper": 0}):
        agrees("Trilu", [x, np.array(1, np.int64)], **upper)
    for mode in ("constant", "reflect", "edge"):
        agrees("Pad", [x, np.array([0, 1, 2, 0, 2, 1], np.int64), np.array([0.5], F)], constants=[1], mode=mode)
    agrees("GatherND", [x, np.array([[0, 1], [2, 3]], np.int64)], constants=[1])
    agrees("GatherND", [x, np.array([[0], [2]], np.int32)], open_sizes=False)
    agrees("Unique", [np.array([2, 1, 1, 3, 4, 3], F)], [F, np.int64, np.int64])
    agrees("Unique", [np.array([2, 1, 1, 3, 4, 3], F)], [F, None, np.int64], want=[np.array([2, 1, 3, 4], F), np.array([1, 2, 2, 1])])


@pytest.mark.parametrize("mode", [None, "bilinear", "nearest", "bicubic"])
def test_grid_sample(mode):
    r = np.random.default_rng(9)
    agrees("GridSample", [floats(r, 2, 3, 5, 7), 1.2 * floats(r, 2, 4, 6, 2)], eps=1e-4, padding_mode="border", **({"mode": mode} if mode else {}))


@pytest.mark.parametrize("dim,size,step", [(-1, 3, 1), (1, 2, 3), (0, 5, 2)])
def test_unfold_tensor(dim, size, step):
    x = floats(np.random.default_rng(10), 6, 9, 4)
    agrees("UnfoldTensor", [x], dim=dim, size=size, step=step)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances(metric, dtype):
    r = np.random.default_rng(11)
    agrees("CDist", [r.standard_normal((5, 3)).astype(dtype), r.standard_normal((7, 3)).astype(dtype)], [dtype], metric=metric)


@pytest.mark.parametrize("n", [8, 30])
def test_fourier(n):
    x = floats(np.random.default_rng(12), 2, 3, n)
    spectrum = np.fft.rfft(x.astype(np.float64))
    pairs = np.stack([spectrum.real, spectrum.imag], -1).astype(F)
    agrees("Rfft", [x], want=[pairs], signal_ndim=1, onesided=1, normalized=0, open_sizes=False)
    agrees("Irfft", [pairs], want=[x], signal_ndim=1, onesided=1, normalized=0, open_sizes=False)


@pytest.mark.parametrize("keep", [0, 1])
def test_reductions_of_bytes(keep):
    r = np.random.default_rng(13)
    x = r.integers(0, 256, (3, 4, 5)).astype(B)
    agrees("ReduceSumInteger", [x], [np.int32], want=[x.astype(np.int32).sum((0, 2), np.int32, keepdims=bool(keep))], axes=[0, 2], keepdims=keep)
    mean = ((x.astype(np.float64) - 7) * 0.031).mean(1, keepdims=bool(keep)) / 0.017 + 3
    agrees("QLinearReduceMean", [x, np.array(0.031, F), np.array(7, B), np.array(0.017, F), np.array(3, B)], [B],
           want=[np.clip(np.rint(mean), 0, 255).astype(B)], axes=[1], keepdims=keep, unequal=0.05)


def test_quantized_images_with_channels_last():
    r = np.random.default_rng(14)
    x = r.integers(0, 256, (2, 9, 8, 6)).astype(B)
    s, z = np.array(0.031, F), np.array(120, B)
    agrees("QLinearGlobalAveragePool", [x, s, z, s, z], [B], channels_last=1, unequal=0.05)
    agrees("NhwcMaxPool", [x], [B], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
    w, ws = r.integers(-128, 128, (4, 6, 3, 3)).astype(np.int8), (r.random(4) / 50 + 0.002).astype(F)
    bias = r.integers(-900, 900, 4).astype(np.int32)
    for last in (0, 1):
        image = x if last else np.ascontiguousarray(np.moveaxis(x, -1, 1))
        agrees("QLinearConv", [image, s, z, w, ws, np.zeros(4, np.int8), np.array(1.77, F), z, bias], [B], constants=range(1, 9), unequal=0.01, channels_last=last, pads=[1, 1, 1, 1], strides=[2, 1])


def test_fused_conv_with_channels_last():
    """ONNX Runtime has it of 16-bit floats only; FusedConv and transposes say the same."""
    r = np.random.default_rng(15)
    x, w, b, z = floats(r, 2, 6, 9, 8), floats(r, 4, 6, 3, 3), floats(r, 4), floats(r, 2, 4, 9, 8)
    attrs = {"pads": [1, 1, 1, 1], "activation": "Relu"}
    model, feeds = model_of("FusedConv", [x, w, b, z], [F], attrs)
    last = lambda a: np.ascontiguousarray(np.moveaxis(a, 1, -1))
    agrees("NhwcFusedConv", [last(x), w, b, last(z)], want=[last(reference(model.SerializeToString(), feeds)[0])], **attrs)


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("segments", [False, True])
def test_quantized_embedding(mask, segments):
    r = np.random.default_rng(16)
    batch, length, hidden = 2, 5, 8
    bytes_of = lambda *dims: r.integers(0, 256, dims).astype(B)
    ids = r.integers(0, 11, (batch, length)).astype(np.int32)
    tables = [bytes_of(11, hidden), bytes_of(7, hidden), bytes_of(2, hidden) if segments else None, bytes_of(hidden), bytes_of(hidden)]
    scales = [np.array(v, F) for v in (0.021, 0.013, 0.017, 0.009, 0.011)]
    zeros = [np.array(v, B) for v in (120, 128, 100, 3, 90)]
    if not segments:
        scales[2] = zeros[2] = None
    inputs = [ids, r.integers(0, 2, ids.shape).astype(np.int32) if segments else None, *tables, (r.random(ids.shape) < 0.7).astype(np.int32) if mask else None, *scales, *zeros]
    agrees("QEmbedLayerNormalization", inputs, [F, np.int32], constants=[k for k in range(2, 18) if k != 7 and inputs[k] is not None], eps=1e-4, epsilon=1e-6)


@pytest.mark.parametrize("kind", ["u4", "i4", "bytes", "packed"])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("dims", [(), (3,), (2, 3)])
def test_gather_of_quantised_blocks(kind, zero, dims):
    import ml_dtypes
    r = np.random.default_rng(17)
    rows, width, block = 7, 48, 16
    types = {"u4": ml_dtypes.uint4, "i4": ml_dtypes.int4}
    low = -8 if kind == "i4" else 0
    numbers = r.integers(low, 256 if kind == "bytes" else low + 16, (rows, width))
    points = r.integers(low, low + 16, (rows, width // block))
    attrs = {"block_size": block, "quantize_axis": 1, "gather_axis": 0}
    if kind in types:
        data, points = numbers.astype(types[kind]), points.astype(types[kind])
    elif kind == "bytes":
        data, points = numbers.astype(B), points.astype(B)
        attrs["bits"] = 8
    else:
        pack = lambda a: (a[:, ::2] | a[:, 1::2] << 4).astype(B)
        data, points = pack(numbers), pack(np.concatenate([points, 0 * points[:, :1]], 1))
    scales = (r.random((rows, width // block)) / 9).astype(F)
    index = r.integers(-rows, rows, dims)
    agrees("GatherBlockQuantized", [data, np.asarray(index), scales] + ([points] if zero else []), constants=[0, 2] + ([3] if zero else []), open_sizes=False, **attrs)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("k,n", [(64, 24), (40, 6)])
def test_matmul_of_named_weights(kind, k, n):
    r = np.random.default_rng(18)
    b = r.integers(0, 256, (n * k + 1) // 2).astype(B)
    largest = r.random((n * k + 15) // 16).astype(F)
    agrees("MatMulBnb4", [floats(r, 2, 3, k), b, largest], constants=[1, 2], eps=1e-4, K=k, N=n, block_size=16, quant_type=kind)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("past", [False, True])
def test_causal_conv(last, past):
    r = np.random.default_rng(19)
    x, w, b, state = floats(r, 2, 6, 9), floats(r, 6, 1, 4), floats(r, 6), floats(r, 2, 6, 3) if past else None
    if last:
        x, state = (None if a is None else np.ascontiguousarray(a.swapaxes(1, 2)) for a in (x, state))
    agrees("CausalConvWithState", [x, w, b] + ([state] if past else []), [F, F], channels_last=last, activation="silu", open_sizes=False)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_linear_attention(rule):
    r = np.random.default_rng(20)
    heads, size, times = 2, 4, 5
    q, k, v = (floats(r, 2, times, heads * size) * 0.5 for _ in range(3))
    decay = -np.abs(floats(r, 2, times, heads)) if "gated" in rule else None
    beta = r.random((2, times, heads)).astype(F) if "delta" in rule else None
    inputs = [q, k, v, floats(r, 2, heads, size, size), decay, beta]
    while inputs[-1] is None:
        inputs.pop()
    agrees("LinearAttention", inputs, [F, F], update_rule=rule, q_num_heads=heads, kv_num_heads=heads, open_sizes=False, eps=1e-4)


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("rank", [3, 4])
def test_rotary_embedding_of_three_positions(layout, interleaved, rank):
    r = np.random.default_rng(21)
    batch, heads, times, size = 2, 3, 5, 16
    x = floats(r, batch, heads, times, size) if rank == 4 else floats(r, batch, times, heads * size)
    angles = r.random((30, size // 2)) * 6
    positions = r.integers(0, 30, (3, batch, times))
    attrs = {"num_heads": heads} if rank == 3 else {}
    agrees("MRotaryEmbedding", [x, positions, np.cos(angles).astype(F), np.sin(angles).astype(F)], mrope_section=[3, 3, 2], mrope_layout=layout,
           interleaved=interleaved, open_sizes=False, **attrs)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("mask", [False, True])
def test_attention_to_kept_keys(bias, mask):
    """Keys and values as another node keeps them: cross attention."""
    r = np.random.default_rng(22)
    batch, heads, times, keys, size = 2, 3, 4, 7, 8
    q, k, v = floats(r, batch, times, heads * size), floats(r, batch, heads, keys, size), floats(r, batch, heads, keys, size)
    hidden = (r.random((batch, keys)) < 0.7).astype(np.int32)
    hidden[:, 0] = 1
    inputs = [q, k, v, floats(r, 3 * heads * size) if bias else None] + ([hidden] if mask else [])
    while inputs[-1] is None:
        inputs.pop()
    agrees("MultiHeadAttention", inputs, num_heads=heads, open_sizes=False)


def test_experimental_operators():
    x = floats(np.random.default_rng(23), 2, 3, 6, 7)
    two = {"alpha": 0.5, "beta": 2.0}
    for op, attrs, want in (("Affine", two, 0.5 * x + 2), ("ScaledTanh", two, 0.5 * np.tanh(2 * x)), ("ParametricSoftplus", two, 0.5 * np.log1p(np.exp(2 * x))),
                            ("ImageScaler", {"scale": 0.5, "bias": [1.0, 2.0, 3.0]}, 0.5 * x + np.array([1, 2, 3], F).reshape(3, 1, 1)),
                            ("Crop", {"border": [1, 2, 3, 1]}, x[:, :, 2:-1, 1:-3]), ("Crop", {"border": [1, 2, 0, 0], "scale": [3, 4]}, x[:, :, 2:5, 1:5])):
        agrees(op, [x], want=[want], domain="", **attrs)
    agrees("DynamicSlice", [x, np.array([1, 2]), np.array([3, 6]), np.array([1, 3])], want=[x[:, 1:3, :, 2:6]], domain="", constants=[1, 2, 3])


@pytest.mark.parametrize("op,inputs,attrs", [
    ("GroupNorm", [(1, 3, 3, 4), (4,), (4,)], {"groups": 0}), ("GroupNorm", [(1, 3, 3, 4), (4,), (4,)], {"groups": 2, "activation": 2}),
    ("GroupNorm", [(3, 4), (4,), (4,)], {"groups": 2}), ("UnfoldTensor", [(6,)], {"size": 0}), ("UnfoldTensor", [(6,)], {"size": 7}), ("UnfoldTensor", [(6,)], {"size": 2, "dim": 1}),
    ("UnfoldTensor", [(6,)], {"size": 2**62}), ("CDist", [(2, 3), (4, 3)], {"metric": "cityblock"}), ("Rfft", [(4, 8)], {"signal_ndim": 2}), ("FusedGemm", [(2, 3), (3, 4)], {"activation": "Erf"}),
    ("GatedRMSNorm", [(2, 4), (4,), (2, 4)], {"activation": "tanh"}), ("CausalConvWithState", [(1, 2, 4), (2, 1, 2)], {"ndim": 2}), ("FusedMatMul", [(3,), (3, 4)], {"transBatchA": 1}),
    ("MRotaryEmbedding", [(1, 2, 3, 4), (3, 1, 3), (3, 2), (3, 2)], {"mrope_section": [1, 1]}), ("MatMulBnb4", [(2, 8), (8,), (1,)], {"K": 0, "N": 2, "block_size": 16})])
def test_what_is_wrong_is_refused(op, inputs, attrs):
    integers = {"MRotaryEmbedding": (1, np.int64), "MatMulBnb4": (1, B)}
    arrays = [np.zeros(d, integers[op][1] if integers.get(op, (None,))[0] == k else F) for k, d in enumerate(inputs)]
    model, _ = model_of(op, arrays, [F], attrs)
    with pytest.raises(ge.Error) as e:
        ge.compile(model)
    assert e.value.code and op in str(e.value)
