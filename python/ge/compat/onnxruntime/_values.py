"""OrtValue: a tensor on the CPU that shares its memory with a NumPy array, or a sequence of them.

As in ONNX Runtime there are two classes: NativeValue is the native module's (`capi`), OrtValue is what programs use.
"""

import warnings

import numpy as np

from ... import _arrays
from ._bound import Bound
from ._device import NativeDevice, OrtDevice, check_cpu
from ._types import element_type, name_of, number_of, numpy_type

_STRINGS = "Creation of OrtValues is currently only supported from non-string numpy arrays"


class NativeValue(Bound):
    def __init__(self, data):
        self._data = data  # an array of the true type (ml_dtypes where NumPy has none), or a list of arrays

    @staticmethod
    def ortvalue_from_numpy(array, device):
        if not isinstance(array, np.ndarray) or array.dtype.kind in "OUS":
            raise RuntimeError(_STRINGS)
        check_cpu(device)
        number_of(array.dtype)
        return NativeValue(array if array.flags.c_contiguous else np.ascontiguousarray(array))

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(array, number):
        dtype = numpy_type(number)
        if array.dtype.itemsize != dtype.itemsize:
            raise RuntimeError(f"Items size in the incoming array: {array.dtype.itemsize} specified by onnxtype: {dtype.itemsize}")
        return NativeValue((array if array.flags.c_contiguous else np.ascontiguousarray(array)).view(dtype))

    @staticmethod
    def ortvalue_from_shape_and_type(shape, given, device):
        check_cpu(device)
        dtype = element_type(given)
        if dtype.kind in "OUS":
            raise RuntimeError(_STRINGS)
        if any(size < 0 for size in shape):
            raise RuntimeError("Tensor shape.Size() must be >= 0")
        return NativeValue(np.zeros(tuple(shape), dtype))

    ortvalue_from_shape_and_onnx_type = ortvalue_from_shape_and_type

    @staticmethod
    def from_dlpack(data):
        if _arrays.is_torch(data) and str(data.dtype) == "torch.bfloat16":
            return NativeValue(data.view(_arrays._torch("int16")).numpy().view(numpy_type(16)))
        return NativeValue(np.from_dlpack(data if hasattr(data, "__dlpack__") else _Capsule(data)))

    def _is_webgpu_buffer(self):
        return False

    def is_tensor(self):
        return isinstance(self._data, np.ndarray)

    def is_tensor_sequence(self):
        return isinstance(self._data, list)

    def is_sparse_tensor(self):
        return False

    def has_value(self):
        return self._data is not None

    def _tensor(self):
        if not self.is_tensor():
            raise RuntimeError("Only OrtValues that are Tensors are currently supported")
        return self._data

    def shape(self):
        return list(self._tensor().shape)

    def data_type(self):
        if self.is_tensor_sequence():
            return f"seq({name_of(self._data[0].dtype) if self._data else 'tensor(float)'})"
        return name_of(self._data.dtype)

    def element_type(self):
        return number_of(self._tensor().dtype)

    def device_name(self):
        return "cpu"

    def data_ptr(self):
        return self._tensor().ctypes.data

    def tensor_size_in_bytes(self):
        return self._tensor().nbytes

    def numpy(self):
        return self._tensor()[...]  # a view: the caller may set its shape

    def update_inplace(self, source):
        """Copies the elements, in order; the memory stays."""
        array, mine = source._tensor() if isinstance(source, NativeValue) else source, self._tensor()
        if array.size != mine.size:
            raise RuntimeError("The input size of numpy arrays does not match the size of the OrtValue.")
        if array.dtype != mine.dtype:
            raise RuntimeError(f"The type of the numpy array, {array.dtype}, is not that of the OrtValue, {mine.dtype}.")
        mine[...] = array.reshape(mine.shape)

    def __dlpack__(self, *, stream=None):
        return self._tensor().__dlpack__()

    def __dlpack_device__(self):
        return 1, 0


NativeValue.__name__ = NativeValue.__qualname__ = "OrtValue"


class _Capsule:
    """What numpy.from_dlpack wants around a bare capsule."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_):
        return self._capsule

    def __dlpack_device__(self):
        return 1, 0


class OrtValueVector(list):
    """NativeValues."""

    def push_back(self, value):
        self.append(value)

    def reserve(self, size):
        pass

    def shrink_to_fit(self):
        pass

    def element_type_at(self, i):
        return self[i].element_type()

    def dlpack_at(self, i):
        return self[i].__dlpack__()


class OrtValue:
    def __init__(self, ortvalue, numpy_obj=None, session=None):
        if not isinstance(ortvalue, NativeValue):
            raise ValueError("`Provided ortvalue` needs to be of type "
                             "`onnxruntime.capi.onnxruntime_pybind11_state.OrtValue`")
        self._ortvalue, self._numpy_obj, self._session = ortvalue, numpy_obj, session

    def _get_c_value(self):
        return self._ortvalue

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj, /, device_type="cpu", device_id=0, vendor_id=-1):
        """Shares the array's memory if that is dense."""
        device = OrtDevice.make(device_type, device_id, vendor_id)._get_c_device()
        return cls(NativeValue.ortvalue_from_numpy(numpy_obj, device), numpy_obj)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data, /, onnx_element_type):
        """The array's bytes as elements of another type of the same size."""
        return cls(NativeValue.ortvalue_from_numpy_with_onnx_type(data, onnx_element_type), data)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape, element_type, device_type="cpu", device_id=0, vendor_id=-1, memory_info=None):
        if memory_info is not None and (device_type, device_id, vendor_id) != ("cpu", 0, -1):
            warnings.warn("device_type, device_id, and vendor_id are ignored when memory_info is provided.", stacklevel=2)
        device = OrtDevice.make("cpu" if memory_info else device_type, device_id, vendor_id)._get_c_device()
        return cls(NativeValue.ortvalue_from_shape_and_type(shape, element_type, device))

    @classmethod
    def from_dlpack(cls, data, /):
        return cls(NativeValue.from_dlpack(data))

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        return np.array(array, dtype=dtype, copy=copy) if copy is not None else np.asarray(array, dtype=dtype)

    def __dlpack__(self, *, stream=None):
        return self._ortvalue.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self._ortvalue.__dlpack_device__()

    def update_inplace(self, data):
        if isinstance(data, OrtValue):
            data = data._ortvalue
        elif not isinstance(data, np.ndarray):
            raise TypeError("data must be a numpy.ndarray or an OrtValue.")
        self._ortvalue.update_inplace(data)


def _forward(name):
    def method(self):
        return getattr(self._ortvalue, name)()
    method.__name__ = name
    return method


for _name in ("shape", "data_type", "element_type", "device_name", "data_ptr", "tensor_size_in_bytes", "has_value",
              "is_tensor", "is_sparse_tensor", "is_tensor_sequence", "numpy"):
    setattr(OrtValue, _name, _forward(_name))


def copy_tensors(src, dst, stream=None):
    for s, d in zip(src, dst):
        d.update_inplace(s)


def cpu():
    return NativeDevice(0, 0, 0)
