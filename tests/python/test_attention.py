"""Attention and RotaryEmbedding: ONNX's own cases and random ones against ONNX Runtime, fast and by their meaning."""

import warnings

import ge
import numpy as np
import onnx
import pytest
from conftest import difference, reference
from ge import _arrays
from onnx import TensorProto, helper
from onnx.backend.test.loader import load_model_tests

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # numpy's, where ONNX makes the cases
    CASES = {c.name: c for c in load_model_tests(kind="node")
             if c.name.startswith(("test_attention_", "test_rotary_embedding"))}
PATHS = pytest.mark.parametrize("options", [{}, {"reference": True}], ids=["fast", "reference"])
# Two steps of the 16-bit types: the expected values were rounded after every operator.
STEPS = {"float16": 2.0**-9, "bfloat16": 2.0**-6}
TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "float64": TensorProto.DOUBLE,
         "bool": TensorProto.BOOL, "uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "int64": TensorProto.INT64, "int32": TensorProto.INT32}


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
                                       rtol=max(case.rtol, STEPS.get(str(w.dtype), 0)))


def model_of(op, arrays, outputs, attrs, domain="", fixed=True, sized=None, types=None):
    """The operator alone. Inputs that are None are absent; unless fixed, the first and last but one size of each are open.
    Of input `sized` the operator gets the second size, as an i32. types: of the outputs; the first input's if not given."""
    names = ["" if a is None else f"i{k}" for k, a in enumerate(arrays)]

    def sizes(name, a):
        return [d if fixed or (j == a.ndim - 1 and name != "i6") or (a.ndim == 4 and j == 1) else f"{name}_{j}" for j, d in enumerate(a.shape)]
    inputs = [helper.make_tensor_value_info(n, TYPES[str(a.dtype)], sizes(n, a)) for n, a in zip(names, arrays) if n]
    nodes = []
    if sized is not None:
        nodes = [helper.make_node("Shape", [names[sized]], ["size"], start=1, end=2), helper.make_node("Cast", ["size"], ["size_i32"], to=TensorProto.INT32)]
        names[sized] = "size_i32"
    types = types or [str(arrays[0].dtype)] * len(outputs)
    results = [helper.make_tensor_value_info(o, TYPES[t], None) for o, t in zip(outputs, types)]
    graph = helper.make_graph([*nodes, helper.make_node(op, names, outputs, domain=domain, **attrs)], "g", inputs, results)
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, ir_version=10, opset_imports=opsets)


def agrees(op, arrays, outputs, attrs, domain="", eps=2e-5, compared=None, sized=None, types=None):
    given = [a for a in arrays if a is not None]
    proto = model_of(op, arrays, outputs, attrs, domain, sized=sized, types=types)
    want = reference(proto.SerializeToString(), {f"i{k}": a for k, a in enumerate(arrays) if a is not None})
    for fixed in (True, False):
        for options in ({}, {"reference": True}):
            model = ge.compile(model_of(op, arrays, outputs, attrs, domain, fixed, sized, types), **options)
            assert difference(model.run(given)[:compared], want[:compared]) <= eps, (fixed, options)


def floats(r, *dims, dtype=np.float32):
    return r.standard_normal(dims).astype(dtype)


@pytest.mark.parametrize("seed", range(24))
def test_attention_agrees_with_onnxruntime(seed):
    r = np.random.RandomState(seed)
    batch, groups, times, depth, width = r.randint(1, 4), r.randint(1, 4), r.randint(1, 4), 2 * r.randint(1, 9), r.randint(1, 20)
    heads, queries, fresh, past = groups * times, r.randint(1, 9), r.randint(1, 40), r.choice([0, 5])
    attrs = {"scale": 0.3} if r.randint(2) else {}
    if past:
        fresh = queries
    if r.randint(2):
        q, k, v = floats(r, batch, heads, queries, depth), floats(r, batch, groups, fresh, depth), floats(r, batch, groups, fresh, width)
    else:
        q, k, v = floats(r, batch, queries, heads * depth), floats(r, batch, fresh, groups * depth), floats(r, batch, fresh, groups * width)
        attrs.update(q_num_heads=heads, kv_num_heads=groups)
    mask = None
    if r.randint(2):
        shape = [(queries, fresh + past), (1, queries, fresh + past), (batch, heads, queries, fresh + past)][r.randint(3)]
        mask = floats(r, *shape) if r.randint(2) else r.rand(*shape) < 0.8
        if mask.dtype == bool:
            mask[..., 0] = True  # ONNX Runtime lets a row that sees nothing see everything
    elif past == 0 and queries <= fresh:
        attrs["is_causal"] = r.randint(2)
    if r.randint(2):
        attrs["softcap"] = 1.5
    caches = [floats(r, batch, groups, past, depth), floats(r, batch, groups, past, width)] if past else []
    agrees("Attention", [q, k, v, mask, *caches], ["y", "present_k", "present_v"] if past else ["y"], attrs)


@pytest.mark.parametrize("seed", range(12))
def test_multi_head_attention_agrees_with_onnxruntime(seed):
    r = np.random.RandomState(seed)
    batch, heads, depth, queries, past = r.randint(1, 4), r.randint(1, 5), 4 * r.randint(1, 5), r.randint(1, 9), r.choice([0, 3])
    keys, hidden = queries if past else r.randint(1, 30), heads * depth
    inputs = [floats(r, batch, queries, hidden), floats(r, batch, keys, hidden), floats(r, batch, keys, hidden),
              floats(r, 3 * hidden) if r.randint(2) else None, None, None]
    if r.randint(2):
        inputs[4] = (r.rand(batch, keys + past) < 0.7).astype(np.int32)
    if r.randint(2):
        inputs[5] = floats(r, batch, heads, queries, keys + past)
    if past:
        inputs += [floats(r, batch, heads, past, depth), floats(r, batch, heads, past, depth)]
    attrs = {"num_heads": heads, "scale": [0.0, 0.4][r.randint(2)]}
    if queries == keys:
        attrs["unidirectional"] = r.randint(2)
    agrees("MultiHeadAttention", inputs, ["y", "present_k", "present_v"] if past else ["y"], attrs, "com.microsoft")


def masks(r, batch, keys, queries):
    """No mask, or one of the shapes that com.microsoft's attention takes. The first key is seen: where nothing is, all
    scores are around mask_filter_value and have few digits left."""
    kind = r.randint(5)
    if kind in (1, 2):
        mask = (r.rand(*[(batch, keys), (batch, queries, keys)][kind - 1]) < 0.7).astype(np.int32)
        mask[..., 0] = 1
        return mask
    ends = r.randint(1, keys + 1, batch)
    if kind == 3:
        return ends.astype(np.int32)
    if kind == 4:
        return np.concatenate([ends, np.zeros(batch)]).astype(np.int32)
    return None


@pytest.mark.parametrize("seed", range(24))
def test_packed_attention_agrees_with_onnxruntime(seed):
    r = np.random.RandomState(seed)
    batch, heads, depth, queries, past, width = r.randint(1, 4), r.randint(1, 5), 4 * r.randint(1, 5), r.randint(1, 9), r.choice([0, 3]), r.randint(1, 30)
    value, hidden = (depth if past else 2 * r.randint(1, 9)), heads * depth
    weights = floats(r, width, 2 * hidden + heads * value) * 0.3
    inputs = [floats(r, batch, queries, width), weights, floats(r, weights.shape[1]), masks(r, batch, queries + past, queries)]
    inputs.append(floats(r, 2, batch, heads, past, depth) if past else None)
    if not past and r.randint(2):  # ONNX Runtime takes one of them
        inputs.append(floats(r, *[(batch, heads), (1, heads), (batch, 1)][r.randint(3)], queries, queries))
    attrs = {"num_heads": heads, "scale": [0.0, 0.4][r.randint(2)], "unidirectional": r.randint(2)}
    if inputs[3] is not None and inputs[3].shape == (2 * batch,) and not attrs["unidirectional"]:
        inputs[3][batch:] = r.randint(0, inputs[3][:batch])
    if value != depth or r.randint(2):
        attrs["qkv_hidden_sizes"] = [hidden, hidden, heads * value]
    agrees("Attention", inputs, ["y", "present"] if past else ["y"], attrs, "com.microsoft")


@pytest.mark.parametrize("seed", range(12))
def test_quantized_attention_agrees_with_onnxruntime(seed):
    r = np.random.RandomState(seed)
    batch, heads, depth, queries, past, width = r.randint(1, 4), r.randint(1, 5), 4 * r.randint(1, 5), r.randint(1, 9), r.choice([0, 3]), r.randint(1, 30)
    hidden = heads * depth
    signed = np.int8 if r.randint(2) else np.uint8
    low, high = np.iinfo(signed).min, np.iinfo(signed).max + 1
    inputs = [r.randint(0, 256, (batch, queries, width)).astype(np.uint8), r.randint(low, high, (width, 3 * hidden)).astype(signed), floats(r, 3 * hidden),
              np.array(0.011, np.float32), np.array(0.02, np.float32), masks(r, batch, queries + past, queries), np.array(120, np.uint8), np.array(3, signed) if r.randint(2) else None,
              floats(r, 2, batch, heads, past, depth) if past else None]
    agrees("QAttention", inputs, ["y", "present"] if past else ["y"], {"num_heads": heads, "unidirectional": r.randint(2)},
           "com.microsoft", types=["float32"] * 2)


@pytest.mark.parametrize("seed", range(8))
def test_embed_layer_normalization_agrees_with_onnxruntime(seed):
    r = np.random.RandomState(seed)
    batch, length, width = r.randint(1, 4), r.randint(1, 9), 4 * r.randint(1, 9)
    segments, mask = r.randint(2), r.randint(2)
    inputs = [r.randint(0, 20, (batch, length)).astype(np.int32), r.randint(0, 2, (batch, length)).astype(np.int32) if segments else None,
              floats(r, 20, width), floats(r, 10, width), floats(r, 2, width) if segments else None, floats(r, width), floats(r, width),
              (r.rand(batch, length) < 0.7).astype(np.int32) if mask else None, r.randint(0, 10, (batch, length)).astype(np.int32) if r.randint(2) else None]
    agrees("EmbedLayerNormalization", inputs, ["y", "lengths", "sum"], {"epsilon": 1e-6}, "com.microsoft", types=["float32", "int32", "float32"])


@pytest.mark.parametrize("seed", range(16))
def test_group_query_attention_agrees_with_onnxruntime(seed):
    r = np.random.RandomState(seed)
    batch, groups, times, depth = r.randint(1, 4), r.randint(1, 4), r.randint(1, 4), 16
    heads, past, queries = groups * times, r.choice([0, 6]), 1
    if past == 0 or batch == 1:
        queries = r.randint(2, 6)
    total = past + queries
    before = np.full(batch, past) if batch == 1 or not past else r.randint(past - 3, past + 1, batch)
    if past:
        before[0] = past
    q, k, v = (floats(r, batch, queries, n * depth) for n in (heads, groups, groups))
    inputs = [q, k, v] if r.randint(2) else [np.concatenate([q, k, v], axis=2), None, None]
    inputs += [floats(r, batch, groups, past, depth) for _ in range(2)] if past else [None, None]
    inputs += [(before + queries - 1).astype(np.int32), np.zeros((batch, total), np.int64)]
    attrs = {"num_heads": heads, "kv_num_heads": groups, "local_window_size": [-1, 3][r.randint(2)], "softcap": [0.0, 2.0][r.randint(2)]}
    if r.randint(2):
        attrs.update(do_rotary=1, rotary_interleaved=r.randint(2))
        inputs += [floats(r, 20, depth // 2), floats(r, 20, depth // 2)]
    # Behind the keys of a shorter entry the caches hold what ONNX Runtime leaves there: only the output is compared.
    outputs = ["y", "present_k", "present_v"]
    agrees("GroupQueryAttention", inputs, outputs, attrs, "com.microsoft", compared=3 if (before == past).all() else 1, sized=6)


@pytest.mark.parametrize("domain", ["", "com.microsoft"])
@pytest.mark.parametrize("seed", range(8))
def test_rotary_embedding_agrees_with_onnxruntime(seed, domain):
    r = np.random.RandomState(seed)
    batch, heads, depth, length, rows = r.randint(1, 4), r.randint(1, 5), 8 * r.randint(1, 5), r.randint(1, 9), 20
    part = [0, depth // 2][seed % 2]
    table = rows, (part or depth) // 2
    x = floats(r, batch, heads, length, depth) if r.randint(2) else floats(r, batch, length, heads * depth)
    attrs = {"interleaved": r.randint(2), "num_heads": heads, "rotary_embedding_dim": part}
    positions = r.randint(0, rows, (batch, length))
    if domain:
        positions = [positions, np.array([5])][r.randint(2)]
        agrees("RotaryEmbedding", [x, positions, floats(r, *table), floats(r, *table)], ["y"], attrs, domain)
    else:
        agrees("RotaryEmbedding", [x, floats(r, *table), floats(r, *table), positions], ["y"], attrs)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_what_runs(dtype):
    r = np.random.RandomState(1)
    q, k, v = (floats(r, 2, 4, 6, 8, dtype=dtype) for _ in range(3))
    model = ge.compile(model_of("Attention", [q, k, v], ["y"], {"is_causal": 1}))
    arrays = [_arrays.to_native(a, p) for a, p in zip([q, k, v], model.inputs)]
    ran = [kernel for _, kernel, *_ in model._native.profile(arrays)]
    assert ("ref.Attention" if dtype == "float64" else "cube.attention") in ran
    if dtype == "float32":
        assert ran == ["cube.attention"]


@PATHS
def test_one_model_takes_empty_sizes(options):
    r = np.random.RandomState(2)
    attrs = {"is_causal": 1, "q_num_heads": 4, "kv_num_heads": 2}

    def inputs(batch, queries, past):
        return [floats(r, batch, queries, 32), floats(r, batch, queries, 16), floats(r, batch, queries, 10), None,
                floats(r, batch, 2, past, 8), floats(r, batch, 2, past, 5)]
    model = ge.compile(model_of("Attention", inputs(1, 2, 3), ["y", "pk", "pv"], attrs, fixed=False), **options)
    for batch, queries, past in [(0, 2, 3), (2, 0, 3), (2, 3, 0), (1, 0, 0), (2, 1, 4)]:
        given = [a for a in inputs(batch, queries, past) if a is not None]
        y, keys, values = model.run(given)
        assert y.shape == (batch, queries, 20) and values.shape == (batch, 2, past + queries, 5)
        heads = given[1].reshape(batch, queries, 2, 8).transpose(0, 2, 1, 3)
        np.testing.assert_array_equal(keys, np.concatenate([given[3], heads], axis=2))
        if queries:  # the first query without a past sees one value
            first = given[2].reshape(batch, queries, 2, 5)[:, 0].repeat(2, axis=1).reshape(batch, 20)
            assert past or np.allclose(y[:, 0], first, atol=1e-6)


@pytest.mark.parametrize("arrays, attrs, why", [
    ([(1, 2, 8)] * 3, {}, "q_num_heads"),
    ([(1, 2, 9)] * 3, {"q_num_heads": 2, "kv_num_heads": 2}, "divide"),
    ([(1, 3, 2, 4), (1, 2, 2, 4), (1, 2, 2, 4)], {}, "share"),
    ([(1, 2, 2, 4)] * 3, {"qk_matmul_output_mode": 4}, "qk_matmul_output_mode"),
    ([(1, 2, 2, 4), (1, 2, 4), (1, 2, 4)], {}, "axes"),
])
def test_errors_say_why(arrays, attrs, why):
    with pytest.raises(ge.Error, match=why):
        ge.compile(model_of("Attention", [np.zeros(a, np.float32) for a in arrays], ["y"], attrs))
