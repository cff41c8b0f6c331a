"""ONNX Runtime's interface on top of GE.

    import ge.compat.onnxruntime as ort                    # in a program of your own
    python -m ge.compat.onnxruntime program.py arguments   # a program that imports onnxruntime, unchanged
    ge.compat.onnxruntime.install()                        # the same from inside, before onnxruntime is imported

Compiled models are kept in the compile cache (`ge cache`), so that a program's second start is fast.
"""

# ruff: noqa: F401
from . import capi
from ._binding import IOBinding, SessionIOBinding
from ._device import OrtArenaCfg, OrtDevice, OrtDeviceVendorId, OrtEpDevice, OrtHardwareDevice, OrtMemoryInfo
from ._enums import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, OrtAllocatorType, OrtDeviceMemoryType,
                     OrtExecutionProviderDevicePolicy, OrtHardwareDeviceType, OrtMemoryInfoDeviceType, OrtMemType,
                     OrtSparseFormat)
from ._environment import (create_and_register_allocator, create_and_register_allocator_v2, disable_telemetry_events,
                           enable_telemetry_events, get_build_info, get_device, get_ep_devices, get_version_string,
                           has_collective_ops, preload_dlls, print_debug_info, register_execution_provider_library,
                           set_default_logger_callback, set_default_logger_severity, set_default_logger_verbosity,
                           set_global_thread_pool_sizes, set_seed, unregister_execution_provider_library)
from ._install import install, uninstall
from ._options import RunOptions, SessionOptions
from ._providers import get_all_providers, get_available_providers
from ._session import InferenceSession
from ._types import ModelMetadata, NodeArg
from ._values import OrtValue, copy_tensors
from ._version import __version__
from .capi import onnxruntime_validation

package_name, version, cuda_version = "onnxruntime", __version__, ""
