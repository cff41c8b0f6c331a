"""The native module under the name by which Python code imports it."""

from .onnxruntime_pybind11_state import *  # noqa: F403
