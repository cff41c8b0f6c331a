"""The modules that programs import from inside of ONNX Runtime, or reach as attributes."""

from . import _pybind_state, build_and_package_info, onnxruntime_inference_collection, onnxruntime_pybind11_state  # noqa: F401
