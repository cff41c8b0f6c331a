"""GE: compiles a neural network ahead of time into one .om file and runs it on the CPU at hand.

    model = ge.compile("model.onnx")            # or bytes, or an onnx ModelProto
    model.save("model.om")
    model = ge.load("model.om")
    outputs = model.run({"x": array})           # a list, in output order
    y = model(array)                            # one value, or a tuple

The native module does the work; this package turns Python's spellings and arrays into its own.
"""

import json
import os

from . import _arrays, _ge, _torch
from ._error import Error
from ._state import State

__all__ = ["compile", "load", "Model", "Port", "State", "Error", "__version__"]
__version__ = _ge.__version__


class Port:
    """One input or output: name, dtype (NumPy's), shape (numbers, and symbols for what may change; None for any),
    kind ("tensor"; "sequence": a list of arrays; "optional": an array or None; "optional_sequence": a list or None;
    "map": a dict from keys of type `key`; "map_sequence": a list of such dicts).
    """

    __slots__ = ("name", "dtype", "shape", "kind", "key", "plain")

    def __init__(self, name, dtype, shape, kind="tensor", key=None):
        self.name, self.dtype, self.kind = name, _arrays.numpy_type(dtype), kind
        self.key = _arrays.numpy_type(key) if kind.startswith("map") else None
        self.shape = None if shape is None else tuple(shape)
        # NumPy's own, that memory holds
        self.plain = self.dtype if kind == "tensor" and self.dtype.isbuiltin == 1 and self.dtype != object else None

    def __repr__(self):
        if self.shape is None:
            return f"{self.name}: {self.kind}({self.dtype})"
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


class Model:
    """A compiled model. Any number of threads may call it at the same time."""

    def __init__(self, native, times=None):
        self._native, self._times, self._shapes = native, times, None
        self.inputs = [Port(*t) for t in native.inputs()]
        self.outputs = [Port(*t) for t in native.outputs()]

    def run(self, inputs, state=None):
        """Takes {name: array}, a list in input order, or one array; returns a list of fresh arrays.

        state: for a model compiled with state=, what it reads and appends to; without one its own (Model.state).
        """
        arrays = [_arrays.to_native(v, p) for v, p in zip(self.in_order(inputs), self.inputs)]
        outputs = self._native.run(arrays, _native_state(state))
        self._shapes = [_arrays.shape_of(a) for a in arrays]
        return [_arrays.from_native(a, p) for a, p in zip(outputs, self.outputs)]

    def new_state(self):
        """An empty State for this model, and for others that have the same states."""
        return State(self._native.new_state())

    def load_state(self, source):
        """A State with the content of a file or of bytes that State.save() made."""
        state = self.new_state()
        state.load(source)
        return state

    @property
    def state(self):
        """The State of runs that are given none; None where the model has no states."""
        native = self._native.default_state()
        return None if native is None else State(native)

    @property
    def states(self):
        """{name: (dtype, capacity, axis that grows)}; -1 in front of a capacity: as many as the first run brings."""
        return {name: (_arrays.numpy_type(dtype), tuple(dims), None if axis < 0 else axis) for name, dtype, dims, axis in self._native.states()}

    def run_profiled(self, inputs, state=None):
        """The outputs of run(), and (task, kernel, start in us, duration in us, op) for each task."""
        arrays = [_arrays.to_native(v, p) for v, p in zip(self.in_order(inputs), self.inputs)]
        outputs, tasks = self._native.run_profiled(arrays, _native_state(state))
        self._shapes = [_arrays.shape_of(a) for a in arrays]
        return [_arrays.from_native(a, p) for a, p in zip(outputs, self.outputs)], tasks

    def __call__(self, *inputs, state=None):
        """One array for each input; gives one value or a tuple, torch tensors if it was given such."""
        outputs = self.run(list(inputs), state)
        if any(_arrays.is_torch(v) for v in inputs):
            outputs = [_arrays.to_torch(a) for a in outputs]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def in_order(self, inputs):
        """The values of {name: value} or of a list, in input order; wrong names and numbers are errors."""
        names = [p.name for p in self.inputs]
        if not hasattr(inputs, "keys"):
            inputs = [inputs] if inputs is None or hasattr(inputs, "dtype") else list(inputs)
            if len(inputs) != len(names):
                raise Error(f"The model takes {len(names)} inputs ({', '.join(names)}), got {len(inputs)}.", "E40001",
                            cause="the number of inputs differs")
            return inputs
        wrong = [f"no input '{n}'" for n in inputs if n not in names] + \
                [f"'{n}' is missing" for n in names if n not in inputs]
        if wrong:
            raise Error(f"The inputs do not fit the model: {'; '.join(wrong)}.", "E40001",
                        cause="names of inputs differ", fix=f"the inputs are {', '.join(names)}")
        return [inputs[n] for n in names]

    def save(self, path):
        """Writes the .om file."""
        self._native.save(os.fspath(path))

    def report(self):
        """What compiling did: fused, near_misses, memory, times and more.

        Where sizes are known only when running, the arena is that of the shapes of the latest run; with gears
        and before any run that of the gear that needs the most. memory["planned"]: each set of sizes that was
        planned while compiling (gears, input_hint_shape).
        """
        report = json.loads(self._native.notes() or "{}")
        memory = report.setdefault("memory", {})
        if self._shapes is not None:
            memory.update(self._native.plan(self._shapes))
        if self._times is not None:
            report["times"] = dict(self._times)
        return report

    def memory(self):
        """Bytes held now: arena (of all runs in flight or kept), weights, state, pool; contexts."""
        return self._native.memory()

    def fused_operators(self):
        """How many of the model's operators ended up in fused groups."""
        return self._native.fused_operators()

    def warnings(self):
        """The patterns that came close, as lines "[GE] WARN: Fusion pattern ... not matched": how often, and why the first time."""
        return self._native.warnings()

    def trim(self):
        """Gives back the memory that earlier runs left for later ones."""
        self._native.trim()

    def explain(self):
        """The report as `ge explain` prints it."""
        return self._native.explain()

    def __repr__(self):
        return f"ge.Model({', '.join(map(repr, self.inputs))} -> {', '.join(map(repr, self.outputs))})"


def compile(model, threads=None, example_inputs=None, dynamic_shapes=None, **options):
    """Compiles a path, bytes, a ModelProto or a torch module; `options` are atc's, under the same names.

    A torch module needs example_inputs (a tensor, a tuple or a dict by parameter name) or input_shape,
    unless it is a trace or an exported program; dynamic_shapes as torch.export takes it.
    split=4, or split={"encoder": "node", "decoder": "node"}, compiles in parts that end there: in parallel, each cached.
    output="m.om" writes the file as well; the model then reads its weights from there, as a loaded one does.
    """
    threads = _threads(threads)
    framework = options.pop("framework", 5)
    if str(framework) != "5":
        raise Error(f"Value {framework} for parameter framework is invalid. Reason: only 5 (ONNX) is supported.", "E10001")
    options.pop("soc_version", None)  # any: the result runs on this CPU and others
    output = os.fspath(options.pop("output", None) or "")
    if output and not output.endswith(".om"):
        output += ".om"
    given = {name: _text(name, value) for name, value in options.items() if value is not None}
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if _torch.is_module(model):
        with _torch.onnx_file(model, example_inputs, dynamic_shapes, options.get("input_shape")) as (path, limits):
            if limits:
                given["input_shape"] = _text("input_shape", {**_torch.parsed(options.get("input_shape")), **limits})
            package = _ge.compile_file(path, given, output)
    elif example_inputs is not None or dynamic_shapes is not None:
        if callable(model):
            raise Error("A function is no torch module.", "E10001", fix="make it the forward of a torch.nn.Module")
        raise Error("example_inputs and dynamic_shapes belong to a torch module.", "E10001",
                    fix="use input_shape= for a model that is ONNX already")
    elif isinstance(model, (bytes, bytearray, memoryview)):
        package = _ge.compile_bytes(bytes(model), given, output)
    else:
        package = _ge.compile_file(os.fspath(model), given, output)
    times = {"compile_ms": package.milliseconds(), "from_cache": package.from_cache()}
    if package.parts():
        times["parts"] = dict(package.parts())
    if output:
        package.save(output)   # first of all: the file that its weights lie in becomes the output
    return Model(_ge.model_of(package, threads), times)


def load(om, threads=None, weights="map", check="meta"):
    """Opens an .om file, by path or as bytes.

    threads caps this model's runs; weights="huge" copies the weights into huge pages; check="all"
    verifies the checksums of the weights too.
    """
    for name, value, known in (("weights", weights, ("map", "huge")), ("check", check, ("meta", "all"))):
        if value not in known:
            raise Error(f"Value {value!r} for parameter {name} is invalid. Reason: it must be one of {known}.", "E10001")
    if isinstance(om, (bytes, bytearray, memoryview)):
        native = _ge.load_bytes(bytes(om), _threads(threads), check == "all", weights == "huge")
    else:
        native = _ge.load_file(os.fspath(om), _threads(threads), check == "all", weights == "huge")
    return Model(native)


def _native_state(state):
    if state is None:
        return None
    if not isinstance(state, State):
        raise Error(f"A state is made by Model.new_state(), not a {type(state).__name__}.", "E10001")
    return state._native


def _threads(threads):
    """0: as many as the process may use."""
    if threads is None:
        return 0
    if isinstance(threads, bool) or not hasattr(threads, "__index__") or not 0 <= threads < 2**31:
        raise Error(f"Value {threads!r} for parameter threads is invalid. Reason: it must be a number of threads.", "E10001",
                    fix="leave it out, or pass 1 or more")
    return int(threads)


def _text(name, value):
    """An option as it would stand on the command line."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, dict) and name == "split":
        return ",".join(f"{part}={node}" for part, nodes in value.items() for node in ([nodes] if isinstance(nodes, str) else nodes))
    if isinstance(value, dict):
        return ";".join(f"{k}:{','.join(map(_torch.size_text, v))}" for k, v in value.items())
    if isinstance(value, (list, tuple, set)):
        return (";" if name in ("out_nodes", "output_type", "optimization_switch", "input_fp16_nodes", "feed") else ",").join(map(str, value))
    return str(value)


def _start_logging():
    """GE's own messages go to Python's logger "ge", from its level on."""
    import atexit
    import logging
    logger = logging.getLogger("ge")
    logger.addHandler(logging.NullHandler())
    levels = [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR]
    _ge.set_log(lambda level, line: logger.log(levels[min(level, 3)], "%s", line), 0)
    atexit.register(_ge.set_log, None, 4)  # no thread may call into Python while it goes down


_start_logging()


# Names of the step-by-step interface, loaded when they are first used.
_LAZY = {"Graph": "graph", "GraphOptions": "graph", "build_graph": "graph", "run": "graph", "init": "graph",
         "finalize": "graph", "InferSession": "infer", "Session": "session", "load_om_model": "session",
         "run_om": "session"}


def __getattr__(name):
    import importlib
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    if name in ("session", "ge_tensor", "graph", "infer"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'ge' has no attribute '{name}'")
