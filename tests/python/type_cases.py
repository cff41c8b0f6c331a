"""One small example or more of each operator, and the same with another element type of its data input: what the types that
`ge ops` names are held against. ONNX's own node cases where there are such."""

import collections
import functools

import ml_dtypes  # noqa: F401  numpy's other types
import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

F, I, B = np.float32, np.int64, np.uint8
TYPES = {"f32": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "i32": 6, "i64": 7, "string": 8, "bool": 9, "f16": 10, "f64": 11,
         "u32": 12, "u64": 13, "c64": 14, "c128": 15, "bf16": 16, "f8e4m3fn": 17, "f8e4m3fnuz": 18, "f8e5m2": 19,
         "f8e5m2fnuz": 20, "u4": 21, "i4": 22, "f4e2m1": 23, "f8e8m0": 24, "u2": 25, "i2": 26}
# What integers and small floats can hold.
RANGES = {"u8": (0, 255), "i8": (-128, 127), "u16": (0, 65535), "u32": (0, 2**32), "u64": (0, 2**32), "u4": (0, 15), "i4": (-8, 7), "u2": (0, 3), "i2": (-2, 1), "f4e2m1": (-6, 6), "f8e8m0": (2**-9, 2**9)}

# A node, its arrays (those under a name in `constants` are initializers), and which of them share the type that varies: those
# of the data input's type if nothing else is said.
Case = collections.namedtuple("Case", "node arrays shared constants imports")


def case(op, *arrays, domain="", shared=None, constants=(), outputs=1, nested=(), **attrs):
    names = ["" if a is None else f"i{k}" for k, a in enumerate(arrays)]
    node = helper.make_node(op, names, [f"y{k}" for k in range(outputs)], domain=domain, **attrs)
    node.attribute.extend(nested)
    return Case(node, {n: a for n, a in zip(names, arrays) if n}, shared, constants, {"": 21, "ai.onnx.ml": 3, "com.microsoft": 1})


def ml(op, *arrays, **options):
    return case(op, *arrays, domain="ai.onnx.ml", **options)


def ms(op, *arrays, **options):
    return case(op, *arrays, domain="com.microsoft", **options)


def ramp(*dims, dtype=F):
    return (np.arange(int(np.prod(dims))).reshape(dims) % 7 + 1).astype(dtype)


def one(dtype=F):
    return np.ones((), dtype)


def body(inputs, outputs, nodes):
    """A nested graph of Identity nodes; a value of any type."""
    empty = helper.make_empty_tensor_value_info
    return helper.make_graph(nodes, "body", [empty(i) for i in inputs], [empty(o) for o in outputs])


def graph_attribute(name, graph):
    return helper.make_attribute(name, graph)


def loop():
    keep = [helper.make_node("Identity", [a], [b]) for a, b in (("c", "c1"), ("v", "v1"))]
    return case("Loop", np.array(2), one(bool), ramp(2), nested=[graph_attribute("body", body(["k", "c", "v"], ["c1", "v1"], keep))])


def scan():
    keep = [helper.make_node("Identity", [a], [b]) for a, b in (("s", "s1"), ("v", "v1"))]
    return case("Scan", ramp(2), ramp(3, 2), num_scan_inputs=1, outputs=2, nested=[graph_attribute("body", body(["s", "v"], ["s1", "v1"], keep))])


def own_cases():
    quantized = [ramp(2, 3, 5, dtype=B), one(), one(B)]
    pooled = [ramp(1, 2, 4, 4, dtype=B), one(), one(B), one(), one(B)]
    tree = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [1, 0, 0], "nodes_values": [2.0, 0.0, 0.0],
            "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0]}
    svm = {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0], "coefficients": [1.0, -1.0], "rho": [0.5],
           "support_vectors": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    heads = {"num_heads": 2}
    yield case("ConcatFromSequence", [ramp(2), ramp(3)], axis=0)
    yield case("SequenceAt", [ramp(2), ramp(3)], np.array(1))
    yield case("SequenceConstruct", ramp(2), ramp(3))
    yield case("SequenceErase", [ramp(2), ramp(3)], np.array(1))
    yield case("SequenceInsert", [ramp(2), ramp(3)], ramp(2), shared=[0, 1])
    yield case("SequenceLength", [ramp(2), ramp(3)])
    yield case("Optional", ramp(2))
    yield case("GlobalLpPool", ramp(1, 2, 3, 4))
    yield case("MaxRoiPool", ramp(1, 2, 6, 6), np.array([[0, 0, 0, 4, 4]], F), pooled_shape=[2, 2])
    yield case("Multinomial", ramp(2, 3), sample_size=2)
    yield case("RandomNormalLike", ramp(2, 3))
    yield case("RandomNormalLike", ramp(2, 3), dtype=1)
    yield case("RandomUniformLike", ramp(2, 3))
    yield case("RandomUniformLike", ramp(2, 3), dtype=1)
    yield case("Scatter", ramp(3, 3), np.zeros((1, 2), I), ramp(1, 2))._replace(imports={"": 10})
    yield case("Upsample", ramp(1, 1, 2, 2), np.array([1, 1, 2, 2], F), shared=[0])._replace(imports={"": 9})
    yield case("TfIdfVectorizer", ramp(4, dtype=I), mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0, ngram_counts=[0], ngram_indexes=[0, 1], pool_int64s=[2, 3])
    yield case("TfIdfVectorizer", np.array(["a", "b"], object), mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0, ngram_counts=[0], ngram_indexes=[0, 1], pool_strings=["a", "b"])
    yield case("SimplifiedLayerNormalization", ramp(2, 4), ramp(4))
    for t in (np.int8, np.int16, np.int32, np.int64, np.complex128):
        yield case("BitCast", ramp(2, dtype=t), to=helper.np_dtype_to_tensor_dtype(np.dtype(t)))._replace(imports={"": 26})
    for t in (TYPES["u4"], TYPES["u2"]):
        yield case("BitCast", ramp(2, dtype=helper.tensor_dtype_to_np_dtype(t)), to=t)._replace(imports={"": 26})
    yield case("BitCast", ramp(2), to=1)._replace(imports={"": 26})
    yield loop()
    yield scan()
    yield ml("CategoryMapper", np.array(["a", "b"], object), cats_strings=["a", "b"], cats_int64s=[0, 1])
    yield ml("FeatureVectorizer", ramp(2, 3), ramp(2, 1), inputdimensions=[3, 1])
    yield ml("Imputer", ramp(2, 3), imputed_value_floats=[1.0], replaced_value_float=2.0)
    yield ml("Imputer", ramp(2, 3, dtype=I), imputed_value_int64s=[1], replaced_value_int64=2)
    yield ml("LinearClassifier", ramp(2, 3), coefficients=[1.0] * 6, intercepts=[0.0, 1.0], classlabels_ints=[0, 1], outputs=2)
    yield ml("LinearRegressor", ramp(2, 3), coefficients=[1.0] * 3, intercepts=[0.0])
    yield ml("Normalizer", ramp(2, 3))
    yield ml("OneHotEncoder", ramp(4), cats_int64s=[1, 2, 3])
    yield ml("OneHotEncoder", np.array(["a", "b"], object), cats_strings=["a"])
    for t, kind in ((np.int64, "int64s"), (np.float32, "floats")):
        yield ml("LabelEncoder", ramp(3, dtype=t), **{f"keys_{kind}": [1, 2, 3], "values_strings": ["a", "b", "c"]})
    yield ml("LabelEncoder", ramp(3, dtype=np.int16), shared=[0], keys_tensor=numpy_helper.from_array(np.array([1, 2], np.int16)), values_tensor=numpy_helper.from_array(np.array([5, 6], np.int16)))
    yield ml("SVMClassifier", ramp(2, 3), classlabels_ints=[0, 1], vectors_per_class=[1, 1], outputs=2, **svm)
    yield ml("SVMRegressor", ramp(2, 3), n_supports=2, **svm)
    yield ml("Scaler", ramp(2, 3), offset=[1.0], scale=[2.0])
    yield ml("TreeEnsembleClassifier", ramp(2, 3), class_treeids=[0, 0], class_nodeids=[1, 2], class_ids=[0, 1], class_weights=[1.0, 2.0], classlabels_int64s=[0, 1], outputs=2, **tree)
    yield ml("TreeEnsembleRegressor", ramp(2, 3), target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[1.0, 2.0], **tree)
    yield ml("ZipMap", ramp(2, 2), classlabels_int64s=[0, 1])
    yield ms("Attention", ramp(1, 3, 4), ramp(4, 12), ramp(12), **heads)
    yield ms("BiasGelu", ramp(2, 4), ramp(4))
    yield ms("QuantizeLinear", ramp(2, 4), one(), one(B), shared=[0, 1])
    yield ms("DequantizeLinear", ramp(2, 4, dtype=B), one(), one(B))
    yield ms("DynamicQuantizeLSTM", ramp(2, 1, 3), ramp(1, 3, 16, dtype=B), ramp(1, 4, 16, dtype=B), None, None, None, None, None, ramp(1), ramp(1, dtype=B), ramp(1), ramp(1, dtype=B), shared=[0], constants=[1, 2, 8, 9, 10, 11], hidden_size=4)
    yield ms("DynamicQuantizeMatMul", ramp(2, 4), ramp(4, 3, dtype=B), one(), shared=[0])
    yield ms("MatMulIntegerToFloat", ramp(2, 4, dtype=B), ramp(4, 3, dtype=np.int8), one(), one())
    yield ms("EmbedLayerNormalization", ramp(1, 3, dtype=np.int32), ramp(1, 3, dtype=np.int32), ramp(8, 4), ramp(8, 4), ramp(8, 4), ramp(4), ramp(4))
    yield ms("FastGelu", ramp(2, 4), ramp(4))
    yield ms("Gelu", ramp(2, 4))
    yield ms("QuickGelu", ramp(2, 4))
    yield ms("FusedConv", ramp(1, 2, 4, 4), ramp(2, 2, 3, 3), activation="Relu")
    yield ms("FusedGemm", ramp(2, 3), ramp(3, 4), ramp(4), activation="Relu")
    yield ms("FusedMatMul", ramp(2, 3), ramp(3, 4), alpha=0.5)
    yield ms("FusedMatMul", ramp(2, 3), ramp(3, 4))
    yield ms("TransposeMatMul", ramp(2, 3), ramp(3, 4), alpha=0.5)
    yield ms("TransposeMatMul", ramp(2, 3), ramp(3, 4))
    yield ms("GroupQueryAttention", ramp(1, 1, 16), ramp(1, 1, 8), ramp(1, 1, 8), ramp(1, 1, 3, 8), ramp(1, 1, 3, 8), np.zeros(1, np.int32), one(np.int32), num_heads=2, kv_num_heads=1, outputs=3)
    yield ms("Inverse", np.eye(3, dtype=F) * 2)
    yield ms("MatMulNBits", ramp(2, 16), ramp(2, 1, 8, dtype=B), ramp(2), K=16, N=2, bits=4, block_size=16)
    yield ms("MultiHeadAttention", ramp(1, 3, 4), ramp(1, 3, 4), ramp(1, 3, 4), **heads)
    yield ms("NhwcConv", ramp(1, 4, 4, 2), ramp(2, 3, 3, 2))
    yield ms("QAttention", ramp(1, 3, 4, dtype=B), ramp(4, 12, dtype=np.int8), ramp(12), one(), one(), shared=[0], **heads)
    yield ms("QGemm", ramp(2, 3, dtype=B), one(), one(B), ramp(3, 4, dtype=np.int8), one(), one(np.int8))
    for op in ("QLinearAdd", "QLinearMul"):
        yield ms(op, *quantized, ramp(5, dtype=B), one(), one(B), one(), one(B))
    yield ms("QLinearWhere", one(bool), *quantized, ramp(5, dtype=B), one(), one(B), one(), one(B))
    yield ms("QLinearConcat", one(), one(B), *quantized, *quantized, axis=1)
    yield ms("QLinearAveragePool", *pooled, kernel_shape=[2, 2])
    yield ms("QLinearGlobalAveragePool", *pooled)
    for op in ("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax"):
        yield ms(op, *pooled)
    yield ms("RotaryEmbedding", ramp(1, 2, 3, 4), np.zeros((1, 3), I), ramp(3, 2), ramp(3, 2))
    yield ms("SkipLayerNormalization", ramp(1, 2, 4), ramp(1, 2, 4), ramp(4))
    yield ms("SkipSimplifiedLayerNormalization", ramp(1, 2, 4), ramp(1, 2, 4), ramp(4))


def recent_cases():
    """The operators of test_microsoft.py."""
    images, pool = [ramp(1, 3, 3, 4), ramp(4), ramp(4)], [one(), one(B), one(), one(B)]
    yield ms("BiasAdd", ramp(1, 2, 4), ramp(4), ramp(1, 2, 4))
    yield ms("BiasSplitGelu", ramp(1, 2, 4), ramp(4))
    yield ms("BiasSoftmax", ramp(2, 4), ramp(2, 4), axis=1, is_inner_broadcast=1)
    yield ms("CausalConvWithState", ramp(1, 2, 4), ramp(2, 1, 2), ramp(2), outputs=2)
    yield ms("LinearAttention", ramp(1, 2, 4), ramp(1, 2, 4), ramp(1, 2, 4), q_num_heads=1, kv_num_heads=1, update_rule="linear", outputs=2)
    yield ms("MRotaryEmbedding", ramp(1, 2, 3, 4), np.zeros((3, 1, 3), I), ramp(3, 2), ramp(3, 2), mrope_section=[1, 1, 0])
    for op in ("Affine", "ScaledTanh", "ParametricSoftplus", "ImageScaler"):
        yield case(op, ramp(1, 1, 2, 3))
    yield case("Crop", ramp(1, 1, 3, 3), border=[1, 1, 0, 0])
    yield case("DynamicSlice", ramp(4), np.array([1]), np.array([3]), shared=[0])
    yield ms("CDist", ramp(2, 3), ramp(4, 3), metric="euclidean")
    yield ms("ExpandDims", ramp(2), one(np.int32) * 0, shared=[0])
    yield ms("FusedMatMulActivation", ramp(2, 3), ramp(3, 4), activation="Relu")
    yield ms("FusedMatMulActivation", ramp(2, 3), ramp(3, 4), activation="")
    yield ms("GatedAdd", ramp(2, 4), ramp(2, 4), ramp(2, 1))
    yield ms("GatedRMSNorm", ramp(2, 4), ramp(2), ramp(2, 4))
    yield ms("GatherBlockQuantized", ramp(3, 16, dtype=B), np.zeros(2, I), ramp(3, 1), block_size=16, bits=8)
    yield ms("GatherND", ramp(3, 2), np.zeros((2, 1), I), shared=[0])
    yield ms("GemmFastGelu", ramp(2, 3), ramp(3, 4), ramp(4))
    yield ms("GridSample", ramp(1, 1, 3, 3), np.zeros((1, 2, 2, 2), F), shared=[0])
    yield ms("GroupNorm", *images, groups=2)
    yield ms("SkipGroupNorm", *images, ramp(1, 3, 3, 4), groups=2)
    yield ms("MatMulBnb4", ramp(2, 8), ramp(8, dtype=B), ramp(1), K=8, N=2, block_size=16, quant_type=1)
    yield ms("NhwcFusedConv", ramp(1, 4, 4, 2), ramp(2, 2, 3, 3), activation="Relu")
    yield ms("NhwcMaxPool", ramp(1, 4, 4, 2), kernel_shape=[2, 2])
    yield ms("Pad", ramp(2), np.array([1, 1]), shared=[0])
    yield ms("QEmbedLayerNormalization", ramp(1, 3, dtype=np.int32), None, ramp(8, 4, dtype=B), ramp(8, 4, dtype=B), None, ramp(4, dtype=B), ramp(4, dtype=B), None, one(), one(), None, one(), one(), one(B), one(B), None, one(B), one(B))
    yield ms("QLinearConv", ramp(1, 2, 4, 4, dtype=B), one(), one(B), ramp(2, 2, 3, 3, dtype=np.int8), one(), one(np.int8), one(), one(np.int8))
    yield ms("QLinearReduceMean", ramp(2, 3, dtype=B), *pool, axes=[1])
    yield ms("Range", one(), one() * 4, one())
    yield ms("ReduceSumInteger", ramp(2, 3, dtype=B), axes=[1])
    yield ms("Rfft", ramp(2, 8), signal_ndim=1)
    yield ms("Irfft", ramp(2, 5, 2), signal_ndim=1)
    yield ms("ScaledSiLU", ramp(2, 4))
    yield ms("SwiGLU", ramp(2, 4), ramp(2, 4))
    yield ms("Tokenizer", np.array(["a b"], object), separators=[" "], mark=0, mincharnum=1, pad_value="#")
    yield ms("Trilu", ramp(3, 3))
    yield ms("UnfoldTensor", ramp(2, 6), size=3)
    yield ms("Unique", ramp(5))


def onnx_cases():
    """The node cases of ONNX, up to 8 of an operator that differ in attributes or inputs."""
    def value(a):
        if isinstance(a, list):
            return [np.asarray(x) for x in a]
        return {onnx.TensorProto: numpy_helper.to_array, onnx.SequenceProto: numpy_helper.to_list, onnx.OptionalProto: numpy_helper.to_optional}.get(type(a), np.asarray)(a)
    seen = collections.defaultdict(set)
    for c in load_model_tests(kind="node"):
        nodes, opsets = c.model.graph.node, {o.domain: o.version for o in c.model.opset_import}
        if len(nodes) != 1 or "expanded" in c.name:
            continue
        node = nodes[0]
        kind = (tuple(map(bool, node.input)), tuple(a.name for a in node.attribute))
        if kind in seen[node.op_type] or len(seen[node.op_type]) == 8:
            continue
        seen[node.op_type].add(kind)
        try:
            arrays = {i.name: value(a) for i, a in zip(c.model.graph.input, c.data_sets[0][0])}
            schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
        except (TypeError, ValueError, onnx.defs.SchemaError):
            continue
        yield Case(node, arrays, schema, (), opsets)


@functools.lru_cache(maxsize=None)
def cases():
    """Examples by GE's name of the operator."""
    out = collections.defaultdict(list)
    for c in [*onnx_cases(), *own_cases(), *recent_cases()]:
        out[(c.node.domain + "." if c.node.domain else "") + c.node.op_type].append(c)
    return out


def sharing(c, data):
    """Names of the inputs that have the type of input `data` by definition."""
    names = list(c.node.input)
    if isinstance(c.shared, onnx.defs.OpSchema):
        formal = [c.shared.inputs[min(k, len(c.shared.inputs) - 1)].type_str for k in range(len(names))]
        return [n for n, t in zip(names, formal) if n and t == formal[data]]
    if c.shared is not None:
        return [names[k] for k in c.shared]
    kind = dtype_of(c.arrays[names[data]])
    return [n for n in names if n and dtype_of(c.arrays[n]) == kind]


def dtype_of(a):
    return a[0].dtype if isinstance(a, list) else a.dtype


def converted(a, name):
    """The numbers of a as elements of that type, as near as it has them."""
    if isinstance(a, list):
        return [converted(x, name) for x in a]
    if name == "string":
        return np.array([str(x) for x in a.ravel()], object).reshape(a.shape)
    dtype = helper.tensor_dtype_to_np_dtype(TYPES[name])
    if a.dtype == dtype:
        return a
    if a.dtype == object:
        a = np.array([len(str(x)) for x in a.ravel()], F).reshape(a.shape)
    numbers = np.real(a).astype(np.float64)
    if name in RANGES:
        numbers = np.clip(np.abs(numbers) if RANGES[name][0] == 0 else numbers, *RANGES[name])
    with np.errstate(over="ignore", invalid="ignore"):
        return (np.rint(numbers) if name[0] in "ui" else numbers).astype(dtype)


def model_of(c, data, name):
    """The example with that type of input `data` and of what shares it, and its inputs; None where the example has no
    such input."""
    names = list(c.node.input)
    if data >= len(names) or names[data] not in c.arrays:
        return None
    arrays = dict(c.arrays)
    for n in sharing(c, data):
        if n in arrays:
            arrays[n] = converted(arrays[n], name)
    fixed = {f"i{k}" for k in c.constants}

    def info(n):
        a, tensor = arrays[n], helper.make_tensor_type_proto
        element = lambda x: TYPES["string"] if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype)
        if isinstance(a, list):
            return helper.make_value_info(n, helper.make_sequence_type_proto(tensor(element(a[0]), None)))
        return helper.make_value_info(n, tensor(element(a), a.shape))
    given = [n for n in arrays if n not in fixed]
    graph = helper.make_graph([c.node], "g", [info(n) for n in given], [helper.make_empty_tensor_value_info(o) for o in c.node.output if o],
                              [numpy_helper.from_array(arrays[n], n) for n in arrays if n in fixed])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid(d, v) for d, v in c.imports.items()]), [arrays[n] for n in given]
