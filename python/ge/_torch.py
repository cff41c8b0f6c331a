"""PyTorch modules to ONNX files: traced, scripted, exported or plain ones.

Traces and scripts go through torch.onnx's TorchScript exporter, everything else through torch.export's.
Neither prints: their warnings and log lines are held back while they work.
"""

import contextlib
import logging
import os
import re
import tempfile
import warnings

from ._error import Error

_KINDS = ("Module", "ExportedProgram", "ScriptFunction")


def is_module(model):
    """A torch module, scripted or traced function, or exported program; does not import torch."""
    return any(c.__module__.partition(".")[0] == "torch" and c.__name__.rpartition(".")[2] in _KINDS
               for c in type(model).__mro__)


@contextlib.contextmanager
def onnx_file(model, example_inputs=None, dynamic_shapes=None, input_shape=None):
    """(path, shapes): a temporary .onnx file that holds the model, weights beside it where they are large, and
    what ONNX cannot say: {input: sizes} where PyTorch found, or was told, that a size has limits.

    example_inputs: a tensor, a tuple of tensors, or a dict by parameter name; a trace carries its own.
    dynamic_shapes: as torch.export takes it. input_shape ({name: sizes} or atc's text) stands in for
    example inputs, with zeros of the type that a trace tells, or float32.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        program = export(model, path, example_inputs, dynamic_shapes, input_shape)
        yield path, _limits(program, parsed(input_shape), dynamic_shapes)


def export(model, path, example_inputs=None, dynamic_shapes=None, input_shape=None, external_data=True):
    """Writes the model to `path`; gives torch's ONNXProgram, or None for traces and scripts."""
    import torch
    exported = isinstance(model, torch.export.ExportedProgram)
    scripted = isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction))
    names = _script_names(model) if scripted else None
    if not exported:
        carried = _trace_inputs(model, names) if scripted else {}
        if example_inputs is None:
            example_inputs, dynamic = _inputs_of_shape(parsed(input_shape), carried)
            dynamic_shapes = dynamic_shapes or dynamic
        if example_inputs is None:
            raise Error(f"The shapes of {type(model).__name__}'s inputs are not known.", "E10002",
                        cause="only a trace (torch.jit.trace) carries the shapes that it was made with",
                        fix="pass example_inputs=, set input_shape, or trace the module with torch.jit.trace")
    positional, keywords = _arguments(example_inputs, names)
    with _quiet(), _evaluating(model):
        try:
            if scripted:
                torch.onnx.export(model, positional, path, dynamo=False, verbose=False, input_names=names,
                                  dynamic_axes=_axes(dynamic_shapes, names))
                return None
            how = {} if exported else {"kwargs": keywords, "dynamic_shapes": dynamic_shapes}
            program = torch.onnx.export(model, () if exported else positional, dynamo=True, verbose=False, **how)
            _name_outputs(program)
            program.save(path, external_data=external_data)
            return program
        except ModuleNotFoundError as e:
            raise Error(f"PyTorch cannot export to ONNX: {e}.", "E13005", cause=f"the Python package {e.name} is missing",
                        fix=f"pip install {e.name}") from e
        except Exception as e:
            raise Error(f"PyTorch cannot export {type(model).__name__} to ONNX: {_first_cause(e)}", "E13005",
                        cause="torch.onnx.export failed",
                        fix="change the module as PyTorch says, or export it by hand and compile the .onnx file") from e


def _name_outputs(program):
    """Outputs that the module gives by keys bear them: "logits", "past.0.key"; others stay as PyTorch calls them."""
    from torch.utils import _pytree
    graph, spec = program.model.graph, program.exported_program.call_spec.out_spec
    if spec is None or spec.num_leaves != len(graph.outputs):
        return
    tree = _pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
    paths = [[getattr(k, "key", getattr(k, "name", getattr(k, "idx", None))) for k in path]
             for path, _ in _pytree.tree_flatten_with_path(tree)[0]]
    names = [".".join(map(str, path)) for path in paths]
    taken = {v.name for v in graph.inputs} | set(graph.initializers) | {v.name for node in graph for v in node.outputs}
    values = list(graph.outputs)
    if not all(path and isinstance(path[0], str) for path in paths) or taken & set(names):
        return
    if len(set(names)) < len(names) or len({id(v) for v in values}) < len(values) or any(v.is_graph_input() for v in values):
        return
    for value, name in zip(values, names):
        value.name = name


def _limits(program, asked, dynamic_shapes):
    """{input: sizes} for inputs with sizes that have limits: those of Dim(min=, max=), and those that a branch on a
    shape led to, within those that input_shape asked for."""
    exported = getattr(program, "exported_program", None)
    if exported is None:
        return {}
    known = {str(symbol): _bounds(r) for symbol, r in exported.range_constraints.items()}
    fed = set(exported.graph_signature.user_inputs)
    values = [n.meta.get("val") for n in exported.graph.nodes if n.op == "placeholder" and n.name in fed]
    inputs = list(program.model.graph.inputs)
    if len(values) != len(inputs):  # some are not fed
        return {}
    limits, least = {}, _least(dynamic_shapes)
    for number, (port, value) in enumerate(zip(inputs, values)):
        words, limited = [], False
        for axis, size in enumerate(getattr(value, "shape", ())):
            given = port.shape[axis]
            name = str(given if isinstance(given, int) else given.value)
            low, high = known.get(str(size), (0, None))
            low = max(low, least.get((port.name, axis), 0), least.get((number, axis), 0))
            if not name.isdigit() and port.name in asked:
                low, high = _both((low, high), asked[port.name][axis])
            name = _word(name)
            if not name.isdigit() and (low > 0 or high is not None):
                limited = True
                name = f"{name}={low}~{-1 if high is None else high}"
            words.append(name)
        if limited:
            limits[port.name] = words
    return limits


def _least(dynamic_shapes):
    """{(input's name or number, axis): min} of what is said to be 2 or more: PyTorch's own ranges begin at 2 anyway."""
    found = {}
    named = dynamic_shapes.items() if isinstance(dynamic_shapes, dict) else enumerate(dynamic_shapes or ())
    for port, axes in named:
        pairs = axes.items() if isinstance(axes, dict) else enumerate(axes) if isinstance(axes, (list, tuple)) else ()
        for axis, dim in pairs:
            least = getattr(dim, "min", None)
            if isinstance(least, int) and least >= 2:
                found[port, axis] = least
    return found


def _word(name):
    """A size's name as the importer has it: "2*d" is one word."""
    word = re.sub(r"[^A-Za-z0-9_.]", "_", name)
    return f"_{word}" if not name.isdigit() and (word[:1].isdigit() or word[:1] == ".") else word


def _bounds(r):
    """(low, high or None). The exporter takes 0 and 1 for special, so that 2 says nothing."""
    low, high = (int(x) if str(x).lstrip("-").isdigit() else None for x in (r.lower, r.upper))
    return (0 if low is None or low <= 2 else low), (None if high is None or high >= 2**62 else high)


def _both(bounds, word):
    """The bounds, and those of "2~8"."""
    low, tilde, high = str(word).partition("~")
    if not tilde or not low.strip().isdigit():
        return bounds
    highs = [h for h in (bounds[1], int(high) if high.strip().isdigit() else None) if h is not None]
    return max(bounds[0], int(low)), min(highs, default=None)


def _first_cause(e):
    """The exporter wraps what went wrong in advice about itself."""
    while e.__cause__ is not None:
        e = e.__cause__
    text = str(e).strip()
    return f"{type(e).__name__}: {text.splitlines()[0]}" if text else type(e).__name__


def _script_names(model):
    """The names of forward's parameters. TorchScript may have put a number behind them."""
    names = [v.debugName() for v in model.graph.inputs()]
    if hasattr(model, "forward"):
        names = names[1:]  # self
    plain = [n.rpartition(".")[0] if n.rpartition(".")[2].isdigit() and "." in n else n for n in names]
    return plain if len(set(plain)) == len(plain) else names


def _trace_inputs(model, names):
    """{name: zeros} in the shapes and types that a trace carries; None when it carries none."""
    import torch
    values = list(model.graph.inputs())
    inputs = {}
    for name, value in zip(names, values[len(values) - len(names):]):
        kind = value.type()
        sizes = kind.sizes() if hasattr(kind, "sizes") else None
        if sizes is None or any(s is None for s in sizes):
            return None
        inputs[name] = torch.zeros(sizes, dtype=kind.dtype() or torch.float32)
    return inputs


def _inputs_of_shape(shape, carried):
    """(inputs by name, what of them may change), from input_shape and what a trace carries."""
    import torch
    inputs, dynamic = dict(carried or {}), {}
    for name, sizes in (shape or {}).items():
        known = inputs.get(name)
        sizes = [str(s) for s in sizes]
        dynamic[name] = {i: s if s.isidentifier() else f"{name}_dim{i}" for i, s in enumerate(sizes) if not s.isdigit()}
        inputs[name] = torch.zeros([_example_size(s) for s in sizes],
                                   dtype=torch.float32 if known is None else known.dtype)
    if not inputs or (carried is None and not shape):
        return None, None
    if not any(dynamic.values()):
        return inputs, None
    return inputs, {name: dynamic.get(name) or None for name in inputs}


def _example_size(size):
    """A number for "8", "2~16", "-1" or "batch". The exporter takes 0 and 1 for sizes that never change."""
    if size.isdigit():
        return int(size)
    low, tilde, _ = size.partition("~")
    return max(2, int(low)) if tilde and low.isdigit() else 2


def parsed(shape):
    """atc's "a:1,3;b:2~8,-1" as a dict; names may contain colons. In a dict a range may be a pair."""
    if shape is None or isinstance(shape, dict):
        return {name: [size_text(s) for s in sizes] for name, sizes in (shape or {}).items()}
    parts = [p.rpartition(":") for p in str(shape).split(";") if p.strip()]
    return {name.strip(): [s.strip() for s in sizes.split(",") if s.strip()] for name, _, sizes in parts}


def size_text(size):
    """8, "2~8" or (2, 8) as atc writes it."""
    return "~".join(map(str, size)) if isinstance(size, (tuple, list)) and len(size) == 2 else str(size)


def _arguments(inputs, names):
    """(positional, keywords). TorchScript modules take only the former."""
    if inputs is None:
        return (), None
    if not isinstance(inputs, dict):
        return (tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)), None
    if names is None:
        return (), dict(inputs)
    unknown = [n for n in inputs if n not in names]
    if unknown:
        raise Error(f"The module has no input '{unknown[0]}'.", "E10016", cause=f"its inputs are {', '.join(names)}")
    return tuple(inputs[n] for n in names if n in inputs), None


def _axes(dynamic_shapes, names):
    """torch.export's dynamic_shapes as the TorchScript exporter's dynamic_axes."""
    if not dynamic_shapes:
        return None
    by_name = dynamic_shapes if isinstance(dynamic_shapes, dict) else dict(zip(names, dynamic_shapes))
    result = {}
    for name, axes in by_name.items():
        pairs = enumerate(axes) if isinstance(axes, (list, tuple)) else (axes or {}).items()
        named = {}
        for axis, dim in pairs:
            if isinstance(dim, str):
                named[axis] = dim
            elif hasattr(dim, "__name__"):  # torch.export.Dim("batch")
                named[axis] = dim.__name__
            elif dim is not None and not isinstance(dim, int) and "STATIC" not in repr(dim):
                named[axis] = f"{name}_dim{axis}"
        if named:
            result[name] = named
    return result or None


@contextlib.contextmanager
def _evaluating(model):
    """Every submodule in evaluation mode, each put back as it was."""
    were = [m for m in model.modules() if m.training] if hasattr(model, "modules") and hasattr(model, "training") else []
    for m in were:
        m.training = False
    try:
        yield
    finally:
        for m in were:
            m.training = True


@contextlib.contextmanager
def _quiet():
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
