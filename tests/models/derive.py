"""Models that are built from a fetched file: other weights, fewer bits, more at the end of the graph."""

import hashlib
import os
import tempfile

import inputs
import numpy as np
from inputs import seeded

# A BatchNormalization's inputs: scale and variance must be positive; a variance of about 3 keeps the sums of
# residual networks from growing until softmax sees one class only.
BATCH_NORM = {1: (0.8, 1.2), 2: (-0.1, 0.1), 3: (-0.1, 0.1), 4: (2.0, 4.0)}


def weights_of(model, name, shape, use):
    """Random weights for an initializer that `use` = (op type, input index) reads."""
    noise = seeded(model["name"], name).uniform(-1, 1, shape)  # exact on every libm
    if use[0] == "BatchNormalization":
        low, high = BATCH_NORM[use[1]]
        return (low + (high - low) * (noise + 1) / 2).astype(np.float32)
    return (noise * (np.sqrt(6.0 / np.prod(shape[1:])) if len(shape) > 1 else 0.1)).astype(np.float32)


def seeded_weights(model, paths):
    """A copy whose constant-filled weights (ConstantOfShape nodes) are random ones.

    Constant weights make every channel equal and would hide errors of layout.
    """
    import onnx
    proto = onnx.load(paths[0])
    graph = proto.graph
    shapes = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    fills = [n for n in graph.node if n.op_type == "ConstantOfShape" and n.input[0] in shapes]
    uses = {name: (n.op_type, i) for n in graph.node for i, name in enumerate(n.input)}
    made, digest = [], hashlib.sha256()
    for node in fills:
        shape = tuple(int(d) for d in shapes[node.input[0]])
        weights = weights_of(model, node.output[0], shape, uses[node.output[0]])
        digest.update(weights.tobytes())
        made.append(onnx.numpy_helper.from_array(weights, node.output[0]))
    if digest.hexdigest() != model["weights_sha256"]:
        raise RuntimeError(f"{model['name']}: the weights' sha256 is {digest.hexdigest()}")
    gone = {n.input[0] for n in fills}
    kept_nodes = [n for n in graph.node if n not in fills]
    kept = [t for t in graph.initializer if t.name not in gone]
    inputs = [i for i in graph.input if i.name not in gone]
    inputs += [onnx.helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in made]  # IR 3
    for field, values in (("node", kept_nodes), ("initializer", kept + made), ("input", inputs)):
        graph.ClearField(field)
        getattr(graph, field).extend(values)
    return proto.SerializeToString(deterministic=True)


def deterministic(proto):
    proto.producer_version = ""  # of the tool that wrote it
    return proto.SerializeToString(deterministic=True)


class Calibration:
    """Rows for the quantiser: the recipes of the default case, each time from other seeds."""

    def __init__(self, model, rows=8):
        recipes = inputs.recipes_of(model["feeds"], "default")
        self.rows = iter([inputs.make(f"{model['name']}/calibration/{i}", recipes) for i in range(rows)])

    def get_next(self):
        return next(self.rows, None)


def quantised(model, path, form):
    """Bytes by calibration: activations uint8, weights int8 by channel; opset 13 for scales by axis."""
    import onnx
    from onnxruntime import quantization
    with tempfile.TemporaryDirectory() as folder:
        plain, out = os.path.join(folder, "plain.onnx"), os.path.join(folder, "bytes.onnx")
        proto = onnx.version_converter.convert_version(onnx.load(path), 13)
        proto.ir_version = 7
        onnx.save(proto, plain)
        quantization.quantize_static(plain, out, Calibration(model), quant_format=form, per_channel=True,
                                     activation_type=quantization.QuantType.QUInt8,
                                     weight_type=quantization.QuantType.QInt8)
        return deterministic(onnx.load(out))


def quantised_operators(model, paths):
    """Operators on bytes: QLinearConv, QLinearMatMul, com.microsoft's QLinearAdd and their kind."""
    from onnxruntime.quantization import QuantFormat
    return quantised(model, paths[0], QuantFormat.QOperator)


def quantised_pairs(model, paths):
    """Operators on floats between QuantizeLinear and DequantizeLinear."""
    from onnxruntime.quantization import QuantFormat
    return quantised(model, paths[0], QuantFormat.QDQ)


def four_bit_products(model, paths):
    """Constant right sides of MatMul in blocks of 32 values of 4 bits: com.microsoft.MatMulNBits, left sides in bytes."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    del model
    quantizer = MatMulNBitsQuantizer(onnx.load(paths[0]), bits=4, block_size=32, is_symmetric=False, accuracy_level=4)
    quantizer.process()
    return deterministic(quantizer.model.model)


# What a detector's users run after it; the counts that come out depend on the picture. The scores of made-up
# pictures are low; below these limits some are so close that rounding decides their order.
KEPT_BOXES = """
<ir_version: 8, opset_import: ["" : OPSET]>
kept (float[batch, channels, places] found)
  => (float[kept, 4] boxes, float[kept] scores, int64[kept] classes, int64[1, confident] confident)
<int64[1] most = {20}, float[1] overlap = {0.45}, float[1] least = {0.0008},
 int64[2] image_and_place = {0, 2}, int64 class = {1}, int64[1] at_most = {100}, float sure = {0.002}> {
  part = Shape <start = 1, end = 2> (found)
  four = Constant <value_ints = [4]> ()
  others = Sub (part, four)
  split = Concat <axis = 0> (four, others)
  places, by_class = Split <axis = 1> (found, split)
  corners = Transpose <perm = [0, 2, 1]> (places)
  chosen = NonMaxSuppression <center_point_box = 1> (corners, by_class, most, overlap, least)
  where = Gather <axis = 1> (chosen, image_and_place)
  all_boxes = GatherND (corners, where)
  all_scores = GatherND (by_class, chosen)
  count = Shape (all_scores)
  best = Min (count, at_most)
  scores, order = TopK <axis = 0> (all_scores, best)
  boxes = Gather <axis = 0> (all_boxes, order)
  all_classes = Gather <axis = 1> (chosen, class)
  classes = Gather <axis = 0> (all_classes, order)
  good = Greater (scores, sure)
  confident = NonZero (good)
}
"""


def kept_boxes(model, paths):
    """A YOLO detector with NonMaxSuppression and the best boxes behind it."""
    import onnx
    del model
    detector = onnx.load(paths[0])
    (opset,) = [o.version for o in detector.opset_import if not o.domain]
    after = onnx.parser.parse_model(KEPT_BOXES.replace("OPSET", str(opset)))
    after.ir_version = detector.ir_version
    found = detector.graph.output[0].name
    return deterministic(onnx.compose.merge_models(detector, after, io_map=[(found, "found")], prefix2="kept/",
                                                   outputs=[found] + ["kept/" + o.name for o in after.graph.output]))
