"""Element types by ONNX's number, ONNX's name and NumPy's type; what a model says of its ports and itself."""

import numpy as np

from ... import _arrays
from ._bound import Bound

# ONNX's numbers count from 1. NumPy lacks some types: ml_dtypes has them.
_NAMES = ("float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "double",
          "uint32", "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
          "float8e5m2fnuz", "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2")
_GE_NAMES = ("f32", "u8", "i8", "u16", "i16", "i32", "i64", "string", "bool", "f16", "f64", "u32", "u64", "c64", "c128",
             "bf16", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "u4", "i4", "f4e2m1", "f8e8m0", "u2", "i2")


def numpy_type(number):
    """NumPy's type of ONNX's element type `number`."""
    if not 1 <= number <= len(_GE_NAMES):
        raise RuntimeError(f"Not a valid ONNX element type: {number}")
    return _arrays.numpy_type(_GE_NAMES[number - 1])


def number_of(dtype):
    """ONNX's number of NumPy's type; strings are object, str or bytes there."""
    if dtype.kind in "OUS":
        return 8
    for number in range(1, len(_GE_NAMES) + 1):
        if numpy_type(number) == dtype:
            return number
    raise RuntimeError(f"Numpy_type {dtype.num} can't be converted to MLDataType.")


def name_of(dtype):
    """"tensor(float)" for float32."""
    return f"tensor({_NAMES[number_of(dtype) - 1]})"


def element_type(given):
    """NumPy's type for what a caller may write: NumPy's, its name, or ONNX's number."""
    if isinstance(given, int):
        return numpy_type(given)
    try:
        return np.dtype(given)
    except TypeError:
        raise RuntimeError("Not a valid numpy type") from None


# NumPy's own types, but for strings.
PLAIN = {name_of(np.dtype(t)): np.dtype(t) for t in (
    "float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")}


class NodeArg(Bound):
    """One input or output: name, type ("tensor(float)"), shape (numbers, names, None)."""

    __slots__ = ("_name", "_type", "_shape", "_plain", "_fixed")
    name = property(lambda self: self._name)
    type = property(lambda self: self._type)
    shape = property(lambda self: list(self._shape))

    def __init__(self, name, type, shape):  # the field's own word
        self._name, self._type, self._shape = name, type, tuple(shape)
        self._plain = PLAIN.get(type)  # NumPy's type, if that is enough to know a feed by
        self._fixed = [(i, size) for i, size in enumerate(self._shape) if isinstance(size, int)]

    def __str__(self):
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata(Bound):
    """What the model's file says of itself."""

    def __init__(self, about):
        self.producer_name = about.get("producer", "")
        self.graph_name = about.get("graph", "")
        self.domain = about.get("domain", "")
        self.description = about.get("doc", "")
        self.graph_description = about.get("graph_doc", "")
        self.version = about.get("version", 0)
        self.custom_metadata_map = dict(about.get("metadata", {}))


def ports(ports_of_ge, declared, names):
    """NodeArgs: sizes as the model's author wrote them, what is left open there as the compiler inferred it. `names`:
    what the inputs' sizes are called, by GE's symbols."""
    out = []
    for p in ports_of_ge:
        d = declared.get(p.name, {})
        inferred = p.shape or ()  # None: a sequence, or of any rank
        written = d.get("shape") or [None] * len(inferred)
        shape = [size if isinstance(size, int) else mine or names.get(size) for size, mine in zip(inferred, written)]
        out.append(NodeArg(p.name, d.get("type") or name_of(p.dtype), shape))
    return out
