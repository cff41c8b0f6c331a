"""pyACL's functions on the CPU: enough to load an .om file, hand it memory and run it.

Names, arguments and return values are pyACL's: functions that create something return (value, ret) or the
value, others return ret; 0 is success. "Device" memory is host memory; streams and contexts are numbers.
"""

import importlib.util
import sys
import types

from . import _state, mdl, rt, util
from ._state import INVALID_PARAM, NOT_INITIALIZED, REPEAT_INITIALIZE, SUCCESS

__all__ = ["init", "finalize", "rt", "mdl", "util", "create_data_buffer", "get_data_buffer_addr", "get_data_buffer_size",
           "get_data_buffer_size_v2", "update_data_buffer", "destroy_data_buffer", "get_version", "get_recent_err_msg"]


def init(config=None):
    """Readies the library; tensors and modules of torch get `.npu()`, which keeps them on the CPU."""
    if _state.initialized:
        return _state.failed(REPEAT_INITIALIZE, "acl.init() was called before")
    _state.initialized = True
    if "torch" in sys.modules:
        _lend_npu()
    elif not any(isinstance(f, _AfterTorch) for f in sys.meta_path):
        sys.meta_path.insert(0, _AfterTorch())
    return SUCCESS


def finalize():
    if not _state.initialized:
        return _state.failed(NOT_INITIALIZED, "acl.init() was not called")
    _state.reset()
    return SUCCESS


class _AfterTorch:
    """An import hook for programs that import torch after acl.init(); used once."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_lend(module):
                execute(module)
                _lend_npu()
            spec.loader.exec_module = execute_and_lend
        return spec


def _lend_npu():
    """`.npu()` and torch.npu.synchronize() without an NPU. A real torch_npu is left alone."""
    torch = sys.modules["torch"]
    if hasattr(torch, "npu") or "torch_npu" in sys.modules or importlib.util.find_spec("torch_npu"):
        return
    npu = types.ModuleType("torch.npu", "There is no NPU here: everything stays on the CPU.")
    npu.synchronize = lambda device=None: None
    npu.is_available = lambda: False
    npu.device_count = lambda: 0
    torch.npu = sys.modules["torch.npu"] = npu
    for owner in (torch.Tensor, torch.nn.Module):
        if not hasattr(owner, "npu"):
            owner.npu = lambda self, *unused, **ignored: self
    if not _state.told:
        _state.told = True
        print("[GE] No NPU here: .npu() leaves tensors and modules on the CPU", flush=True)


def _valid(ptr, size):
    return isinstance(ptr, int) and isinstance(size, int) and size >= 0 and (ptr > 0 or (ptr == 0 and size == 0))


def create_data_buffer(ptr, size):
    if not _valid(ptr, size):
        _state.failed(INVALID_PARAM, f"a data buffer of {size} bytes at {ptr}")
        return None
    return _state.keep(_state.DataBuffer(ptr, size))


def get_data_buffer_addr(buffer):
    b = _state.find(buffer, _state.DataBuffer)
    return b.ptr if b else None


def get_data_buffer_size(buffer):
    b = _state.find(buffer, _state.DataBuffer)
    return b.size if b else 0


get_data_buffer_size_v2 = get_data_buffer_size


def update_data_buffer(buffer, ptr, size):
    b = _state.find(buffer, _state.DataBuffer)
    if not b or not _valid(ptr, size):
        return _state.failed(INVALID_PARAM, f"a data buffer of {size} bytes at {ptr}")
    b.ptr, b.size, b.allocated = ptr, size, 0
    return SUCCESS


def destroy_data_buffer(buffer):
    return _state.drop(buffer, _state.DataBuffer)


def get_version():
    """(major, minor, patch, ret)."""
    import ge
    major, minor, patch = (int(x) for x in ge.__version__.split(".")[:3])
    return major, minor, patch, SUCCESS


def get_recent_err_msg():
    """What the last failure said, or None."""
    return _state.last_error
