"""acl.util: between addresses, bytes and NumPy arrays."""

import ctypes

import numpy as np

# NumPy's type numbers, as pyACL's programs pass them (11 is float32).
_NUMPY_TYPES = {t.num: t for t in (np.dtype(x) for x in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32",
                                                         "int64", "uint64", "float16", "float32", "float64",
                                                         "complex64", "complex128"))}


def numpy_to_ptr(array):
    """The address of a dense array, which must stay alive while it is used."""
    if not array.flags.c_contiguous:
        raise ValueError("the array is not contiguous: pass numpy.ascontiguousarray(array) and keep it")
    return array.ctypes.data


numpy_contiguous_to_ptr = vector_to_ptr = numpy_to_ptr


def bytes_to_ptr(data):
    """The address of the bytes, which must stay alive while it is used."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value


def ptr_to_bytes(ptr, size):
    return ctypes.string_at(ptr, size)


def ptr_to_numpy(ptr, shape, npy_type):
    """An array over the memory at ptr, not a copy; npy_type is NumPy's type number or a type."""
    if isinstance(npy_type, int) and npy_type not in _NUMPY_TYPES:
        raise ValueError(f"{npy_type} is no number of a NumPy type")
    dtype = _NUMPY_TYPES[npy_type] if isinstance(npy_type, int) else np.dtype(npy_type)
    return view(ptr, shape, dtype)


def view(ptr, shape, dtype):
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if count == 0:
        return np.zeros(shape, dtype)
    return np.frombuffer((ctypes.c_uint8 * count).from_address(ptr), np.uint8).view(dtype).reshape(shape)
