"""Where ONNX Runtime defines its sessions and values."""

# ruff: noqa: F401
from .._binding import IOBinding
from .._device import OrtDevice, OrtDeviceVendorId, get_ort_device_type
from .._providers import check_and_normalize_provider_args
from .._session import InferenceSession, Session
from .._values import OrtValue, copy_tensors
from . import _pybind_state as C
