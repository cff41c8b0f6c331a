"""Inputs and outputs bound by name, once for many runs."""

import ctypes
import math

import numpy as np

from ._device import OrtDevice, check_cpu
from ._errors import Fail, InvalidArgument, failure
from ._types import element_type, name_of
from ._values import NativeValue, OrtValue, OrtValueVector


def at_address(dtype, shape, address):
    """The memory there as an array; it is the caller's and must outlive it."""
    size = math.prod(shape) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape) if size else np.zeros(shape, dtype)


class SessionIOBinding:
    """The native module's: `inputs` by name, `outputs` by name (None: memory is made for each run)."""

    def __init__(self, session):
        self._session = session
        self.inputs, self.outputs, self._results = {}, {}, {}

    def bind_input(self, name, *given):
        args = self._session.inputs_meta + self._session.overridable_initializers
        if name not in [a.name for a in args]:
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")
        if len(given) == 1:
            if not isinstance(given[0], np.ndarray):
                raise RuntimeError("Unable to create OrtValue from the given python object")
            self.inputs[name] = NativeValue(given[0])
            return
        device, given_type, shape, address = given
        if device.device_type() != 0:
            raise RuntimeError("Error when binding input: There's no data transfer registered for copying tensors: GE runs on the CPU only.")
        self.inputs[name] = NativeValue(at_address(element_type(given_type), shape, address))

    def bind_ortvalue_input(self, name, value):
        self.inputs[name] = value

    def bind_output(self, name, device, given_type=None, shape=None, address=None):
        if address is not None:
            check_cpu(device)
            self.outputs[name] = NativeValue(at_address(element_type(given_type), shape, address))
        else:
            self.outputs[name] = None

    def bind_ortvalue_output(self, name, value):
        self.outputs[name] = value

    def take(self, arrays):
        """What a run gave, in the order of `outputs`; into the memory that is bound."""
        results = {}
        for (name, bound), array in zip(self.outputs.items(), arrays):
            if bound is not None and bound.data_type() != name_of(array.dtype):
                raise failure(InvalidArgument, f"Unexpected output data type. Actual: ({bound.data_type()}) , expected: ({name_of(array.dtype)})")
            if bound is not None and bound.shape() != list(array.shape):
                raise failure(Fail, f"The output OrtValue provided for output '{name}' has shape {_braces(bound.shape())} but the "
                                    f"computed shape is {_braces(array.shape)}.")
            results[name] = bound if bound is not None else NativeValue(array)
            if bound is not None:
                bound.update_inplace(array)
        self._results = results

    def get_outputs(self):
        return OrtValueVector(self._results.get(name) or bound or NativeValue(None) for name, bound in self.outputs.items())

    def copy_outputs_to_cpu(self):
        return [v._tensor().copy() for v in self.get_outputs()]

    def clear_binding_inputs(self):
        self.inputs.clear()

    def clear_binding_outputs(self):
        self.outputs.clear()
        self._results.clear()

    def synchronize_inputs(self):
        pass

    def synchronize_outputs(self):
        pass


def _braces(shape):
    return "{" + ",".join(map(str, shape)) + "}"


class IOBinding:
    def __init__(self, session):
        self._session = session._sess
        self._iobinding = SessionIOBinding(session._sess)

    def bind_cpu_input(self, name, arr_on_cpu):
        """Binds an array; its memory is read at each run."""
        self._iobinding.bind_input(name, arr_on_cpu)

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr):
        device = OrtDevice.make(device_type, device_id)._get_c_device()
        self._iobinding.bind_input(name, device, element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name, ortvalue):
        self._iobinding.bind_ortvalue_input(name, ortvalue._ortvalue)

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        """Binds an output to memory of its own, or to the caller's at buffer_ptr."""
        device = OrtDevice.make(device_type, device_id)._get_c_device()
        if buffer_ptr is None:
            self._iobinding.bind_output(name, device)
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        self._iobinding.bind_output(name, device, element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name, ortvalue):
        self._iobinding.bind_ortvalue_output(name, ortvalue._ortvalue)

    def synchronize_inputs(self):
        self._iobinding.synchronize_inputs()

    def synchronize_outputs(self):
        self._iobinding.synchronize_outputs()

    def get_outputs(self):
        """The outputs of the latest run as OrtValues."""
        return [OrtValue(v) for v in self._iobinding.get_outputs()]

    def get_outputs_as_ortvaluevector(self):
        return self._iobinding.get_outputs()

    def copy_outputs_to_cpu(self):
        return self._iobinding.copy_outputs_to_cpu()

    def clear_binding_inputs(self):
        self._iobinding.clear_binding_inputs()

    def clear_binding_outputs(self):
        self._iobinding.clear_binding_outputs()
