"""Models that are built from a fetched file: the same graph with weights that are worth comparing."""

import hashlib

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
