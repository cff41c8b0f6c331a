"""Between Python's arrays and what the native module takes: dense, native byte order, exact types."""

import numpy as np

from ._error import Error

_NUMPY = {"f32": "float32", "f64": "float64", "f16": "float16", "bool": "bool", "c64": "complex64",
          "c128": "complex128", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
          "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64"}
_ML_DTYPES = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz",
              "f8e5m2": "float8_e5m2", "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu",
              "f4e2m1": "float4_e2m1fn", "u4": "uint4", "i4": "int4", "u2": "uint2", "i2": "int2"}

_ML_NAMES = frozenset(_ML_DTYPES.values())


def numpy_type(name):
    """NumPy's type for one of GE's names; types that NumPy lacks come from ml_dtypes."""
    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    if name in _ML_DTYPES:
        import ml_dtypes
        return np.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))
    return np.dtype(object)


def is_torch(value):
    return type(value).__module__.partition(".")[0] == "torch"


def to_native(value, port):
    """What the native module takes for a port: an array, a list of arrays for a sequence, None for an absent optional."""
    if port.kind == "tensor":
        return _dense(value, port)
    if port.kind == "map":
        return _map(value, port)
    if value is None and port.kind != "sequence":
        return None
    if port.kind == "optional":
        return _dense(value, port)
    if not isinstance(value, (list, tuple)):
        raise Error(f"Input '{port.name}' is {type(value).__name__}, the model takes a list of arrays.", "E40001")
    return [_dense(v, port) for v in value]


def _dense(value, port):
    """`value` as a dense array of the port's type; never a copy where it is one already."""
    if value.__class__ is np.ndarray and value.dtype is port.plain and value.flags.carray:
        return value  # the rule, and the fast way
    if is_torch(value):
        value = _from_torch(value, port)
    if port.dtype == object:
        return _strings(value, port)
    if not hasattr(value, "dtype"):
        value = _typed(value, port)
    array = np.asarray(value)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype != port.dtype:
        raise Error(f"Input '{port.name}' is {array.dtype}, the model takes {port.dtype}.", "E40001",
                    cause="types are not converted silently", fix=f"pass array.astype('{port.dtype}')")
    if array.dtype == object:
        raise Error(f"Input '{port.name}' has a type that arrays do not hold.", "E40001", cause="texts and sequences are not fed",
                    fix="cut the model behind it")
    if array.dtype.name in _ML_NAMES:
        array = _as_integers(array)
    # np.ascontiguousarray would give a 0-d array one dimension.
    return array if array.flags.c_contiguous and array.flags.aligned else array.copy(order="C")


def _map(value, port):
    """(keys, values) of a dict."""
    if not isinstance(value, dict):
        raise Error(f"Input '{port.name}' is {type(value).__name__}, the model takes a dict.", "E40001")
    return tuple(_column(port, what, list(items), dtype)
                 for what, items, dtype in (("keys", value.keys(), port.key), ("values", value.values(), port.dtype)))


def _column(port, what, items, dtype):
    kinds = str if dtype == object else (int, np.integer) if dtype.kind == "i" else (int, float, np.number)
    if not all(isinstance(i, kinds) and not isinstance(i, bool) for i in items):
        raise Error(f"Input '{port.name}' has {what} that are not {dtype if dtype != object else 'strings'}.", "E40001",
                    cause="types are not converted silently")
    array = np.array(items, dtype).reshape(len(items))
    return _strings(array, port) if dtype == object else array


def _from_torch(tensor, port):
    """A tensor's elements where they lie, as far as NumPy can see them."""
    try:
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
        if str(tensor.dtype) != "torch.bfloat16":
            return tensor.numpy()
        # NumPy has no bfloat16 of torch's: the same bits as integers.
        return tensor.contiguous().view(_torch("int16")).numpy().view(numpy_type("bf16"))
    except (TypeError, RuntimeError) as e:
        raise Error(f"Input '{port.name}' is a tensor whose elements cannot be read.", "E40001", cause=str(e).splitlines()[0],
                    fix="pass a dense tensor, as tensor.to_dense() gives") from e


def shape_of(native):
    """The sizes of what to_native gave; none of what is no tensor."""
    return list(native[0] if isinstance(native, tuple) else getattr(native, "shape", ()))


def _strings(value, port):
    """(shape, bytes of each string): text travels as UTF-8."""
    array = np.asarray(value)
    if array.dtype.kind not in "USO" or not all(isinstance(s, (str, bytes)) for s in array.flat):
        raise Error(f"Input '{port.name}' is {array.dtype}, the model takes strings.", "E40001",
                    cause="types are not converted silently", fix="pass an array of str")
    return array.shape, [s if isinstance(s, bytes) else s.encode("utf-8", "surrogateescape") for s in array.flat]


def _as_integers(array):
    """ml_dtypes' types travel as integers of their size. It leaves the high bits of narrow ones open: here they are
    the sign, or 0."""
    name = array.dtype.name
    if name in ("uint4", "uint2"):
        return np.asarray(array.view(np.uint8) & (15 if name == "uint4" else 3))
    if name not in ("int4", "int2"):
        return array.view(f"u{array.dtype.itemsize}")
    shift = 8 - int(name[3:])
    return np.asarray((array.view(np.int8) << shift) >> shift).view(np.uint8)


def _typed(value, port):
    """A number or a list, which has no type of its own."""
    try:
        if value is None:
            raise TypeError("there is no value")
        return np.asarray(value, port.dtype)
    except (TypeError, ValueError, OverflowError) as e:
        raise Error(f"Input '{port.name}' is {type(value).__name__}, the model takes {port.dtype}.", "E40001",
                    cause=str(e), fix="pass an array or a tensor of that type") from e


def from_native(array, port):
    if array is None:
        return None
    if isinstance(array, list):
        return [from_native(a, port) for a in array]
    if port.kind.startswith("map"):
        keys, values = (_from_memory(a, dtype) for a, dtype in zip(array, (port.key, port.dtype)))
        keys = keys.tolist()
        return dict(zip(keys, values.tolist())) if port.kind == "map" else [dict(zip(keys, row)) for row in values.tolist()]
    return _from_memory(array, port.dtype)


def _from_memory(array, dtype):
    if dtype == object:
        shape, strings = array
        out = np.empty(len(strings), object)
        out[:] = [s.decode("utf-8", "surrogateescape") for s in strings]
        return out.reshape(shape)
    return array if array.dtype == dtype else array.view(dtype)


def _torch(name):
    import torch
    return getattr(torch, name)


def to_torch(array):
    import torch
    if array is None:
        return None
    if isinstance(array, list):
        return [to_torch(a) for a in array]
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
