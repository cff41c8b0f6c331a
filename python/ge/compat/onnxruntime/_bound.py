"""The base of classes that are native in ONNX Runtime: they can be neither pickled nor copied."""


class Bound:
    __slots__ = ()

    def __reduce_ex__(self, protocol):
        raise TypeError(f"cannot pickle 'onnxruntime.capi.onnxruntime_pybind11_state.{type(self).__name__}' object")
