"""Small decoders with random weights, as exporters write them, for the tests of states.

decoder(...): rotary embedding, grouped heads and RMS normalisation, keys and values by Concat along the axis of the
entries; inputs tokens [batch, new], past_key_values.N.key and .value [batch, groups, past, depth]; outputs logits and
present.N.key and .value.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


class Builder:
    """Nodes and weights of one graph."""

    def __init__(self, seed):
        self.random, self.nodes, self.weights, self.count = np.random.default_rng(seed), [], {}, 0

    def constant(self, value, kind=None):
        array = np.asarray(value, dtype=kind)
        name = f"c{len(self.weights)}"
        self.weights[name] = numpy_helper.from_array(array, name)
        return name

    def weight(self, *shape, scale=None):
        scale = 1 / np.sqrt(shape[0]) if scale is None else scale
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def ints(self, *values):
        return self.constant(list(values), np.int64)

    def op(self, kind, *inputs, name=None, outputs=1, domain="", **attrs):
        self.count += 1
        names = [name] if name else [f"v{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"{kind}_{self.count}", domain=domain, **attrs))
        return names[0] if len(names) == 1 else names

    def model(self, inputs, outputs, opset=21):
        def info(name, kind, shape):
            return helper.make_tensor_value_info(name, kind, shape)
        graph = helper.make_graph(self.nodes, "decoder", [info(*i) for i in inputs], [info(*o) for o in outputs],
                                  initializer=list(self.weights.values()))
        domains = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=domains, ir_version=10)


def normalised(b, x, width):
    square = b.op("Mul", x, x)
    mean = b.op("ReduceMean", square, b.ints(-1), keepdims=1)
    root = b.op("Sqrt", b.op("Add", mean, b.constant(np.float32(1e-5))))
    return b.op("Mul", b.op("Div", x, root), b.constant(np.ones(width, np.float32)))


def turned(b, x, cosine, sine, depth):
    """Rotary embedding of halves, as transformers has it."""
    half = depth // 2
    first = b.op("Slice", x, b.ints(0), b.ints(half), b.ints(3))
    second = b.op("Slice", x, b.ints(half), b.ints(depth), b.ints(3))
    swapped = b.op("Concat", b.op("Neg", second), first, axis=3)
    return b.op("Add", b.op("Mul", x, cosine), b.op("Mul", swapped, sine))


def angles(b, past_size, new_size, depth):
    """Cosines and sines of the new positions, [1, 1, new, depth]."""
    end = b.op("Add", past_size, new_size)
    positions = b.op("Range", past_size, end, b.constant(np.int64(1)))
    positions = b.op("Cast", positions, to=F32)
    rates = b.constant((10000.0 ** (-np.arange(0, depth, 2) / depth)).astype(np.float32))
    angle = b.op("Mul", b.op("Unsqueeze", positions, b.ints(1)), b.op("Unsqueeze", rates, b.ints(0)))
    angle = b.op("Unsqueeze", b.op("Concat", angle, angle, axis=1), b.ints(0, 1))
    return b.op("Cos", angle), b.op("Sin", angle)


def size_of(b, value, axis):
    return b.op("Squeeze", b.op("Gather", b.op("Shape", value), b.ints(axis), axis=0), b.ints(0))


def repeated(b, x, groups, heads, depth):
    """Each group of keys for several heads, as transformers' repeat_kv."""
    if groups == heads:
        return x
    five = b.op("Unsqueeze", x, b.ints(2))
    shape = b.op("Shape", five)
    target = b.op("Concat", b.op("Slice", shape, b.ints(0), b.ints(2)), b.ints(heads // groups), b.op("Slice", shape, b.ints(3), b.ints(5)), axis=0)
    wide = b.op("Expand", five, target)
    sizes = b.op("Concat", b.op("Slice", shape, b.ints(0), b.ints(1)), b.ints(heads), b.op("Slice", shape, b.ints(3), b.ints(4)), b.ints(depth), axis=0)
    return b.op("Reshape", wide, sizes)


def hidden(b, past_size, new_size):
    """Added to the scores: later keys are hidden. [1, 1, new, past + new]."""
    keys = b.op("Range", b.constant(np.int64(0)), b.op("Add", past_size, new_size), b.constant(np.int64(1)))
    queries = b.op("Range", past_size, b.op("Add", past_size, new_size), b.constant(np.int64(1)))
    later = b.op("Greater", b.op("Unsqueeze", keys, b.ints(0)), b.op("Unsqueeze", queries, b.ints(1)))
    mask = b.op("Where", later, b.constant(np.float32(-3.0e38)), b.constant(np.float32(0)))
    return b.op("Unsqueeze", mask, b.ints(0, 1))


def decoder(layers=2, heads=4, groups=2, depth=8, vocabulary=50, past=True, rotary=True, seed=1):
    """past False: the same weights as a prefill model, without past inputs."""
    b, width = Builder(seed), heads * depth
    x = b.op("Gather", b.weight(vocabulary, width, scale=1), "tokens", axis=0)
    new_size = size_of(b, "tokens", 1)
    past_size = size_of(b, "past_key_values.0.key", 2) if past else b.constant(np.int64(0))
    cosine, sine = angles(b, past_size, new_size, depth)
    mask = hidden(b, past_size, new_size)
    inputs, outputs = [("tokens", I64, ["batch", "new"])], [("logits", F32, ["batch", "new", vocabulary])]
    for n in range(layers):
        h = normalised(b, x, width)

        def split(value, count):
            return b.op("Transpose", b.op("Reshape", value, b.ints(0, 0, count, depth)), perm=[0, 2, 1, 3])
        q = split(b.op("MatMul", h, b.weight(width, heads * depth)), heads)
        k = split(b.op("MatMul", h, b.weight(width, groups * depth)), groups)
        v = split(b.op("MatMul", h, b.weight(width, groups * depth)), groups)
        if rotary:
            q, k = turned(b, q, cosine, sine, depth), turned(b, k, cosine, sine, depth)
        kept = []
        for kind, fresh in (("key", k), ("value", v)):
            name = f"present.{n}.{kind}"
            if past:
                inputs.append((f"past_key_values.{n}.{kind}", F32, ["batch", groups, "past", depth]))
                kept.append(b.op("Concat", f"past_key_values.{n}.{kind}", fresh, axis=2, name=name))
            else:
                kept.append(b.op("Identity", fresh, name=name))
            outputs.append((name, F32, ["batch", groups, "total", depth]))
        k, v = (repeated(b, t, groups, heads, depth) for t in kept)
        scores = b.op("Mul", b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2])), b.constant(np.float32(depth ** -0.5)))
        weights = b.op("Softmax", b.op("Add", scores, mask), axis=-1)
        mixed = b.op("Transpose", b.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        mixed = b.op("Reshape", mixed, b.ints(0, 0, width))
        x = b.op("Add", x, b.op("MatMul", mixed, b.weight(width, width)))
        h = normalised(b, x, width)
        gate = b.op("MatMul", h, b.weight(width, 2 * width))
        gate = b.op("Mul", gate, b.op("Sigmoid", gate))
        x = b.op("Add", x, b.op("MatMul", gate, b.weight(2 * width, width)))
    b.op("MatMul", normalised(b, x, width), b.weight(width, vocabulary), name="logits")
    return b.model(inputs, outputs)


def stacked_decoder(how, layers=2, heads=4, depth=8, vocabulary=50, batch=1, seed=1):
    """GPT-2's old caches: keys and values of a layer in one, past_N [2, batch, heads, past, depth] to present_N. how: they
    are taken apart by gather, split or slice."""
    b, width = Builder(seed), heads * depth
    x = b.op("Gather", b.weight(vocabulary, width, scale=1), "tokens", axis=0)
    mask = hidden(b, size_of(b, "past_0", 3), size_of(b, "tokens", 1))
    inputs, outputs = [("tokens", I64, [batch, "new"])], [("logits", F32, [batch, "new", vocabulary])]
    for n in range(layers):
        h, past = normalised(b, x, width), f"past_{n}"

        def split(value):
            return b.op("Transpose", b.op("Reshape", value, b.ints(0, 0, heads, depth)), perm=[0, 2, 1, 3])
        q, k, v = (split(b.op("MatMul", h, b.weight(width, width))) for _ in range(3))
        if how == "gather":
            before = [b.op("Gather", past, b.constant(np.int64(i)), axis=0) for i in range(2)]
        elif how == "split":
            before = [b.op("Squeeze", s, b.ints(0)) for s in b.op("Split", past, b.ints(1, 1), outputs=2, axis=0)]
        else:
            before = [b.op("Squeeze", b.op("Slice", past, b.ints(i), b.ints(i + 1), b.ints(0)), b.ints(0)) for i in range(2)]
        k, v = (b.op("Concat", old, new, axis=-2) for old, new in zip(before, (k, v)))
        b.op("Concat", b.op("Unsqueeze", k, b.ints(0)), b.op("Unsqueeze", v, b.ints(0)), axis=0, name=f"present_{n}")
        inputs.append((past, F32, [2, batch, heads, "past", depth]))
        outputs.append((f"present_{n}", F32, [2, batch, heads, "total", depth]))
        scores = b.op("Mul", b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2])), b.constant(np.float32(depth ** -0.5)))
        weights = b.op("Softmax", b.op("Add", scores, mask), axis=-1)
        mixed = b.op("Reshape", b.op("Transpose", b.op("MatMul", weights, v), perm=[0, 2, 1, 3]), b.ints(0, 0, width))
        x = b.op("Add", x, b.op("MatMul", mixed, b.weight(width, width)))
    b.op("MatMul", normalised(b, x, width), b.weight(width, vocabulary), name="logits")
    return b.model(inputs, outputs)


def stored_in_bytes(model):
    """The model with what it appends to its caches rounded to bytes with a scale a row: what --state_dtype=int8 means."""
    nodes, presents = [], {o.name for o in model.graph.output} - {"logits"}
    for name, value in (("bytes_most", 127), ("bytes_least", -127)):
        model.graph.initializer.append(numpy_helper.from_array(np.float32(value), name))
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1]), "bytes_axis"))

    def rounded(x):
        def op(kind, *inputs, **attrs):
            nodes.append(helper.make_node(kind, list(inputs), [f"{x}_bytes_{len(nodes)}"], **attrs))
            return nodes[-1].output[0]
        scale = op("Div", op("ReduceMax", op("Abs", x), "bytes_axis", keepdims=1), "bytes_most")
        return op("Mul", op("Clip", op("Round", op("Div", x, scale)), "bytes_least", "bytes_most"), scale)
    for n in model.graph.node:
        if n.output[0] in presents:
            n.input[-1] = rounded(n.input[-1])
        nodes.append(n)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def in_f16(model):
    """The model with f16 in place of f32 throughout."""
    for t in model.graph.initializer:
        if t.data_type == F32:
            array = np.clip(numpy_helper.to_array(t), -65504, 65504).astype(np.float16)
            t.CopyFrom(numpy_helper.from_array(array, t.name))
    for v in [*model.graph.input, *model.graph.output]:
        if v.type.tensor_type.elem_type == F32:
            v.type.tensor_type.elem_type = TensorProto.FLOAT16
    for n in model.graph.node:
        for a in n.attribute:
            if n.op_type == "Cast" and a.name == "to" and a.i == F32:
                a.i = TensorProto.FLOAT16
    return model
