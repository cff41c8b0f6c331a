"""What holds for the whole process. Most of it is kept for programs that set it."""

import logging

from ._device import OrtEpDevice
from ._options import wrong_type
from ._version import __version__

_LEVELS = [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL]


def get_version_string():
    return __version__


def get_build_info():
    import ge
    return f"ORT Build Info: GE {ge.__version__} in place of ONNX Runtime {__version__}"


def get_device():
    return "CPU"


def get_ep_devices():
    return [OrtEpDevice(__version__)]


def has_collective_ops():
    return False


def set_default_logger_severity(severity):
    """GE's messages go to the logger "ge"; this is from which level on."""
    if not isinstance(severity, int):
        raise wrong_type("set_default_logger_severity", severity)
    if not 0 <= severity <= 4:
        raise RuntimeError("Invalid logging severity. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal")
    logging.getLogger("ge").setLevel(_LEVELS[severity])


def set_default_logger_verbosity(level):
    pass


def set_default_logger_callback(callback):
    pass


def set_seed(seed):
    pass


def set_global_thread_pool_sizes(intra_op, inter_op):
    pass


def create_and_register_allocator(memory_info, arena_config):
    pass


def create_and_register_allocator_v2(provider, memory_info, options, arena_config):
    pass


def enable_telemetry_events():
    pass


def disable_telemetry_events():
    pass


def register_execution_provider_library(name, path):
    raise RuntimeError(f"{name} cannot be registered: GE runs on the CPU only.")


def unregister_execution_provider_library(name):
    raise RuntimeError(f"{name} is not registered.")


def preload_dlls(cuda=True, cudnn=True, msvc=True, directory=None):
    pass


def print_debug_info():
    print(get_build_info())
