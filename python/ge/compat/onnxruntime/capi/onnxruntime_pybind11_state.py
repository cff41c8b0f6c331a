"""The native module's names."""

# ruff: noqa: F401
from .._binding import SessionIOBinding
from .._device import NativeDevice as OrtDevice
from .._device import OrtArenaCfg, OrtEpDevice, OrtHardwareDevice, OrtMemoryInfo
from .._enums import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, OrtAllocatorType, OrtDeviceMemoryType,
                      OrtExecutionProviderDevicePolicy, OrtHardwareDeviceType, OrtMemoryInfoDeviceType, OrtMemType,
                      OrtSparseFormat)
from .._environment import (create_and_register_allocator, create_and_register_allocator_v2, disable_telemetry_events,
                            enable_telemetry_events, get_build_info, get_device, get_ep_devices, get_version_string,
                            has_collective_ops, register_execution_provider_library, set_default_logger_callback,
                            set_default_logger_severity, set_default_logger_verbosity, set_global_thread_pool_sizes,
                            set_seed, unregister_execution_provider_library)
from .._errors import (DeviceReset, EngineError, EPFail, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf,
                       ModelLoadCanceled, ModelLoaded, ModelRequiresCompilation, NoModel, NoSuchFile, NotFound,
                       NotImplemented, RuntimeException)
from .._native import InferenceSession, get_default_session_options
from .._options import RunOptions, SessionOptions
from .._providers import get_all_providers, get_available_providers
from .._types import ModelMetadata, NodeArg
from .._values import NativeValue as OrtValue
from .._values import OrtValueVector
