"""GE: compiles a neural network ahead of time into one .om file and runs it on the CPU at hand.

    model = ge.compile("model.onnx")            # or bytes, or an onnx ModelProto
    model.save("model.om")
    model = ge.load("model.om")
    outputs = model.run({"x": array})           # a list, in output order
    y = model(array)                            # one value, or a tuple

Everything is done by the native module; this file turns Python's spellings into its own.
"""

import json
import logging
import os

import numpy as np

from . import _ge
from ._error import Error

__all__ = ["compile", "load", "Model", "Port", "Error", "__version__"]
__version__ = _ge.__version__

_log = logging.getLogger("ge")
_log.addHandler(logging.NullHandler())
_LEVELS = [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR]
_ge.set_log(lambda level, line: _log.log(_LEVELS[level], line), 1)

_NUMPY = {"f32": "float32", "f64": "float64", "f16": "float16", "i8": "int8", "i16": "int16", "i32": "int32",
          "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool",
          "c64": "complex64", "c128": "complex128"}
_ML_DTYPES = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz",
              "f8e5m2": "float8_e5m2", "f8e5m2fnuz": "float8_e5m2fnuz", "u4": "uint4", "i4": "int4",
              "f4e2m1": "float4_e2m1fn", "f8e8m0": "float8_e8m0fnu", "u2": "uint2", "i2": "int2"}
_STORAGE = {1: np.uint8, 2: np.uint16}


def _dtype(name):
    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    if name in _ML_DTYPES:
        import ml_dtypes
        return np.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))
    return np.dtype(object)


class Port:
    """One input or output: name, dtype (NumPy's), shape (numbers, and names where it may change)."""

    __slots__ = ("name", "dtype", "shape")

    def __init__(self, name, dtype, shape):
        self.name, self.dtype, self.shape = name, _dtype(dtype), tuple(shape)

    def __repr__(self):
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


def _array(port, value):
    """The value as a C-contiguous array of the port's type; refused by name where that would change it."""
    if type(value) is not np.ndarray:
        if hasattr(value, "detach"):            # a torch tensor
            value = value.detach().cpu()
            value = value.float().numpy().astype(port.dtype) if str(value.dtype) == "torch.bfloat16" else value.numpy()
        value = np.asarray(value)
    if value.dtype != port.dtype:
        if value.dtype.newbyteorder("=") != port.dtype:
            raise Error(f"Input '{port.name}' is {value.dtype}, the model takes {port.dtype}.", "E40001",
                        fix=f"convert it: array.astype('{port.dtype}')")
        value = value.astype(port.dtype)
    if not value.flags.c_contiguous:
        value = np.ascontiguousarray(value).reshape(value.shape)
    if not value.flags.aligned:
        value = value.copy()
    return value if port.dtype.name in _PLAIN else value.view(_STORAGE[port.dtype.itemsize])


_PLAIN = frozenset(_NUMPY.values())


class Model:
    """A compiled model. Any number of threads may call it at a time; each call has memory of its own."""

    def __init__(self, native):
        self._native = native
        self.inputs = [Port(*t) for t in native.inputs()]
        self.outputs = [Port(*t) for t in native.outputs()]
        self._views = [None if p.dtype.name in _PLAIN else p.dtype for p in self.outputs]
        self._viewed = any(v is not None for v in self._views)
        self._seen = None

    def _arrays(self, inputs):
        if isinstance(inputs, dict):
            names = [p.name for p in self.inputs]
            missing = [n for n in names if n not in inputs]
            unknown = [n for n in inputs if n not in names]
            if missing or unknown:
                said = [f"missing: {', '.join(missing)}"] if missing else []
                said += [f"not the model's: {', '.join(map(str, unknown))}"] if unknown else []
                raise Error(f"The inputs do not fit the model ({'; '.join(said)}).", "E40001",
                            cause=f"its inputs are {', '.join(names)}")
            inputs = [inputs[n] for n in names]
        if len(inputs) != len(self.inputs):
            raise Error(f"The model takes {len(self.inputs)} inputs, got {len(inputs)}.", "E40001",
                        cause=f"its inputs are {', '.join(p.name for p in self.inputs)}")
        return [_array(p, v) for p, v in zip(self.inputs, inputs)]

    def run(self, inputs):
        """Takes {name: array} or a list in input order; returns a list of fresh arrays in output order."""
        arrays = self._arrays(inputs)
        outputs = self._native.run(arrays)
        self._seen = [a.shape for a in arrays]
        if self._viewed:
            outputs = [o if v is None else o.view(v) for o, v in zip(outputs, self._views)]
        return outputs

    def __call__(self, *inputs):
        """Outputs of the inputs' kind: torch tensors for torch tensors, else arrays; one value or a tuple."""
        outputs = self.run(list(inputs))
        if inputs and hasattr(inputs[0], "detach"):
            import torch
            outputs = [torch.from_numpy(o) for o in outputs]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def save(self, path):
        """Writes the .om file (aside, then renamed)."""
        self._native.save(os.fspath(path))

    def to_bytes(self):
        return self._native.to_bytes()

    def report(self):
        """What compiling did: fused, near_misses, switched_off, memory {arena, lower_bound, proved, weights,
        state}, times. Where sizes may change, the arena is that of the last run's sizes."""
        report = json.loads(self._native.notes())
        if "arena" not in report["memory"] and self._seen is not None:
            report["memory"].update(self._native.plan([list(s) for s in self._seen]))
        report["times"] = {"compile_ms": self._compile_ms} if hasattr(self, "_compile_ms") else {}
        return report

    def memory(self):
        """Bytes held now: weights, arena (of all contexts), state, pool."""
        return self._native.memory()

    def trim(self):
        """Gives the memory of idle contexts back."""
        self._native.trim()

    def explain(self):
        """What was fused, and why the rest was not, as text."""
        return self._native.explain()

    def profile(self, inputs):
        """[(task, kernel, start in us, duration in us)] of one run."""
        return self._native.profile(self._arrays(inputs))

    def __repr__(self):
        return f"ge.Model({', '.join(map(repr, self.inputs))} -> {', '.join(map(repr, self.outputs))})"


def compile(model, threads=None, **options):
    """Compiles a path, bytes or ModelProto into a Model. `options` are atc's, under the same names."""
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    given = {name: _text(value) for name, value in options.items() if value is not None}
    if isinstance(model, (bytes, bytearray, memoryview)):
        package = _ge.compile_bytes(bytes(model), given)
    else:
        package = _ge.compile_file(os.fspath(model), given)
    made = Model(_ge.model_of(package, threads or 0))
    made._compile_ms = package.milliseconds()
    return made


def load(om, threads=None, weights="map", check="meta"):
    """Opens an .om file (a path, or bytes).

    threads caps this model's runs. weights: "map" shares the file's pages, "huge" copies them into huge
    pages. check: "meta", or "all" to verify the checksums of the weights too.
    """
    if weights not in ("map", "huge") or check not in ("meta", "all"):
        raise Error(f"weights={weights!r}, check={check!r}: weights is 'map' or 'huge', check is 'meta' or 'all'.",
                    "E10001")
    arguments = (threads or 0, check == "all", weights == "huge")
    if isinstance(om, (bytes, bytearray, memoryview)):
        return Model(_ge.load_bytes(bytes(om), *arguments))
    return Model(_ge.load_file(os.fspath(om), *arguments))


def _text(value):
    """An option as it would stand on the command line."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, dict):
        return ";".join(f"{k}:{','.join(map(str, v))}" for k, v in value.items())
    if isinstance(value, (list, tuple, set)):
        return ",".join(map(str, value))
    return str(value)
