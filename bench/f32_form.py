"""The f32 form of a model of bytes or f16: the same net, with its weights dequantised and nothing rounded between.

Quantisation of values in between falls away: what a node of bytes would read is the f32 value itself.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32 = TensorProto.FLOAT


class Form:
    def __init__(self, model):
        self.model, self.graph = model, model.graph
        self.constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        for node in model.graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        self.nodes, self.added, self.same = [], [], {}
        self.producer = {o: node for node in model.graph.node for o in node.output}
        self.rounded_biases = self.find_rounded_biases()

    def find_rounded_biases(self):
        """Outputs of Casts that make integers of what is added to sums of bytes."""
        found = set()
        for node in self.graph.node:
            makers = [self.producer.get(i) for i in node.input]
            if node.op_type != "Add" or not any(m is not None and m.op_type.endswith("Integer") for m in makers):
                continue
            for m in makers:
                while m is not None and m.op_type in ("Reshape", "Cast"):
                    found.update(m.output if m.op_type == "Cast" else ())
                    m = self.producer.get(m.input[0])
        return found

    def clipped(self, value, zero, output):
        """Bytes above a zero point of 0 hold no negative numbers: a Relu hides in the rounding."""
        zero = None if zero is None else self.constants.get(zero)
        if zero is None or zero.dtype != np.uint8 or zero.any():
            self.same[output] = value
        else:
            self.add("Relu", [value], [output])

    def name(self, value):
        while value in self.same:
            value = self.same[value]
        return value

    def constant(self, name, array):
        self.added.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        self.constants[name] = array
        return name

    def dequantised(self, weight, scale, zero, axis):
        """The weight as f32; scale and zero point are one number or one for each index along the axis."""
        w = self.constants[weight].astype(np.float32)
        scale = np.asarray(scale, np.float32)
        zero = np.zeros_like(scale) if zero is None else np.asarray(zero).astype(np.float32).reshape(scale.shape if np.size(zero) != 1 else ())
        if scale.size > 1 and scale.ndim == 1:
            shape = [1] * w.ndim
            shape[axis] = scale.size
            scale, zero = scale.reshape(shape), np.broadcast_to(zero, scale.shape).reshape(shape)
        return (w - zero) * scale

    def optional(self, node, i):
        return node.input[i] if i < len(node.input) and node.input[i] else None

    def value_of(self, name):
        return None if name is None else self.constants[name]

    def add(self, op, inputs, outputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs, **attributes))

    # --- one function for each kind of node ---

    def QuantizeLinear(self, node):
        self.clipped(self.name(node.input[0]), self.optional(node, 2), node.output[0])

    def DequantizeLinear(self, node):
        source, axis = node.input[0], next((a.i for a in node.attribute if a.name == "axis"), 1)
        if source in self.constants:
            zero = self.value_of(self.optional(node, 2))
            self.constant(node.output[0], self.dequantised(source, self.constants[node.input[1]], zero, axis))
            return
        moves = ("Gather", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Slice")
        maker = self.producer.get(source)
        while maker is not None and maker.op_type in moves and maker.input[0] not in self.constants:
            maker = self.producer.get(maker.input[0])
        if maker is not None and maker.op_type in moves:  # a table that is read, or moved, before
            zero = self.value_of(self.optional(node, 2))
            table = self.constant(node.output[0] + ".table", self.dequantised(maker.input[0], self.constants[node.input[1]], zero, axis))
            next(n for n in self.nodes if n.output[0] == maker.output[0]).input[0] = table
        self.same[node.output[0]] = self.name(source)

    def DynamicQuantizeLinear(self, node):
        self.same[node.output[0]] = self.name(node.input[0])
        self.constant(node.output[1], np.float32(1))
        self.constant(node.output[2], np.float32(0))

    def integer_product(self, node, op, axis):
        zero = self.value_of(self.optional(node, 3))
        zero = 0 if zero is None else zero
        scale = np.ones(np.size(zero), np.float32) if np.size(zero) > 1 else np.float32(1)
        weight = self.constant(node.output[0] + ".w", self.dequantised(node.input[1], scale, zero, axis))
        kept = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        self.add(op, [self.name(node.input[0]), weight], node.output, **kept)

    def MatMulInteger(self, node):
        self.integer_product(node, "MatMul", -1)

    def ConvInteger(self, node):
        self.integer_product(node, "Conv", 0)

    def DynamicQuantizeLSTM(self, node):
        weights = [node.output[0] + w for w in (".w", ".r")]
        for at, name in zip((1, 2), weights):  # [directions, inputs, 4 * hidden]
            scale, zero = (self.constants[node.input[7 + 2 * at + k - 1]] for k in (0, 1))
            w = self.constants[node.input[at]].astype(np.float32)
            shape = [w.shape[0], 1, -1]
            self.constant(name, ((w - zero.astype(np.float32).reshape(shape)) * scale.reshape(shape)).transpose(0, 2, 1))
        kept = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        inputs = [self.name(node.input[0]), *weights, *(self.name(i) for i in node.input[3:8])]
        while not inputs[-1]:
            inputs.pop()
        self.add("LSTM", inputs, node.output, **kept)

    def QLinearConv(self, node):
        scale = np.asarray(self.constants[node.input[4]]).reshape(-1)
        weight = self.dequantised(node.input[3], scale if scale.size > 1 else scale[0], self.constants[node.input[5]], 0)
        inputs = [self.name(node.input[0]), self.constant(node.output[0] + ".w", weight)]
        if self.optional(node, 8):
            bias = self.constants[node.input[8]].astype(np.float32) * self.constants[node.input[1]] * scale
            inputs.append(self.constant(node.output[0] + ".b", bias.astype(np.float32)))
        sums = node.output[0] + ".sums"
        self.add("Conv", inputs, [sums], **{a.name: helper.get_attribute_value(a) for a in node.attribute})
        self.clipped(sums, node.input[7], node.output[0])

    def QLinearMatMul(self, node):
        weight = self.dequantised(node.input[3], self.constants[node.input[4]].reshape(-1), self.constants[node.input[5]], -1)
        self.add("MatMul", [self.name(node.input[0]), self.constant(node.output[0] + ".w", weight)], node.output)

    def QLinearAdd(self, node):
        inputs = []
        for at in (0, 3):
            if node.input[at] in self.constants:
                zero = self.value_of(self.optional(node, at + 2))
                inputs.append(self.constant(f"{node.output[0]}.{at}", self.dequantised(node.input[at], self.constants[node.input[at + 1]], zero, 0)))
            else:
                inputs.append(self.name(node.input[at]))
        sums = node.output[0] + ".sums"
        self.add("Add", inputs, [sums])
        self.clipped(sums, self.optional(node, 7), node.output[0])

    def QLinearAveragePool(self, node):
        kept = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.name != "channels_last"}
        self.add("AveragePool", [self.name(node.input[0])], node.output, **kept)

    def QLinearSoftmax(self, node):
        axis = next((a.i for a in node.attribute if a.name == "axis"), -1)
        self.add("Softmax", [self.name(node.input[0])], node.output, axis=axis)

    def Cast(self, node):
        """Of sums that are f32 now, or of f16."""
        if node.output[0] in self.rounded_biases:
            self.same[node.output[0]] = self.name(node.input[0])
            return
        to = next(a.i for a in node.attribute if a.name == "to")
        copy = self.plain(node)
        if to == TensorProto.FLOAT16:
            copy.attribute[0].i = F32

    def plain(self, node):
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(self.name(i) for i in node.input)
        self.nodes.append(copy)
        return copy

    def MatMulNBits(self, node):
        a = {x.name: helper.get_attribute_value(x) for x in node.attribute}
        n, k, bits, block = a["N"], a["K"], a["bits"], a["block_size"]
        raw = self.constants[node.input[1]].reshape(n, -1)
        if bits == 4:
            raw = np.stack([raw & 15, raw >> 4], -1).reshape(n, -1)
        w = raw.astype(np.float32).reshape(n, -1, block)
        zero = self.value_of(self.optional(node, 3))
        if zero is None:
            zero = np.full(w.shape[:2], 2 ** (bits - 1), np.float32)
        elif zero.dtype == np.uint8 and bits == 4:
            zero = zero.reshape(n, -1)
            zero = np.stack([zero & 15, zero >> 4], -1).reshape(n, -1)[:, :w.shape[1]]
        w = (w - zero.astype(np.float32).reshape(n, -1, 1)) * self.constants[node.input[2]].reshape(n, -1, 1)
        weight = self.constant(node.output[0] + ".w", w.reshape(n, -1)[:, :k].T)
        self.add("MatMul", [self.name(node.input[0]), weight], node.output)

    def run(self):
        for node in self.graph.node:
            getattr(self, node.op_type, self.plain)(node)
        for output in self.graph.output:
            if output.name in self.same:
                self.add("Identity", [self.name(output.name)], [output.name])
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)
        names = {t.name for t in self.added}
        kept = [t for t in self.graph.initializer if t.name not in names]
        del self.graph.initializer[:]
        self.graph.initializer.extend(kept + self.added)
        del self.graph.value_info[:]
        self.widen()
        return self.model

    def widen(self):
        """f16 becomes f32: weights, constants, inputs and outputs."""
        def wide(tensor):
            if tensor.data_type == TensorProto.FLOAT16:
                tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))
        for t in self.graph.initializer:
            wide(t)
        for node in self.graph.node:
            for a in node.attribute:
                if a.type == onnx.AttributeProto.TENSOR:
                    wide(a.t)
        for port in (*self.graph.input, *self.graph.output):
            if port.type.tensor_type.elem_type == TensorProto.FLOAT16:
                port.type.tensor_type.elem_type = F32


def is_rounded(model):
    """Whether it computes in bytes or f16 at all."""
    ops = {n.op_type for n in model.graph.node}
    return (any("uantize" in o or "Integer" in o or o.startswith("QLinear") or o == "MatMulNBits" for o in ops)
            or any(t.data_type == TensorProto.FLOAT16 for t in model.graph.initializer))


def f32_form(path):
    return Form(onnx.load(path)).run()
