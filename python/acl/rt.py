"""acl.rt: devices, contexts, streams and memory. There is one device, the CPU."""

import ctypes
import os
import threading
from concurrent.futures import ThreadPoolExecutor

from . import _state
from ._state import BAD_ALLOC, INVALID_PARAM, SUCCESS

MALLOC_HUGE_FIRST, MALLOC_HUGE_ONLY, MALLOC_NORMAL_ONLY = 0, 1, 2
MEMCPY_HOST_TO_HOST, MEMCPY_HOST_TO_DEVICE, MEMCPY_DEVICE_TO_HOST, MEMCPY_DEVICE_TO_DEVICE = 0, 1, 2, 3

_libc = ctypes.CDLL(None)
_libc.aligned_alloc.restype = ctypes.c_void_p
_libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]
_blocks = {}
_lock = threading.Lock()
_current = threading.local()


class _Context:
    pass


class _Stream:
    """Work handed over with execute_async: done in order by a thread of the stream's own."""

    def __init__(self):
        self._lock = threading.Lock()
        self._worker, self._process, self._pending = None, 0, []

    def put(self, work):
        with self._lock:
            if self._process != os.getpid():  # new, or in a forked child, where the thread is not
                self._worker, self._process, self._pending = ThreadPoolExecutor(1, "acl-stream"), os.getpid(), []
            self._pending.append(self._worker.submit(work))
        return SUCCESS

    def wait(self):
        """Waits for all work so far; the first code that is not 0."""
        with self._lock:
            pending, self._pending = self._pending, []
        if self._process != os.getpid():
            return SUCCESS
        codes = [p.result() for p in pending]
        return next((c for c in codes if c != SUCCESS), SUCCESS)

    def close(self):
        result = self.wait()
        if self._worker is not None and self._process == os.getpid():
            self._worker.shutdown()
        return result


_default_stream = _Stream()


def _stream(handle):
    return _default_stream if handle in (0, None) else _state.find(handle, _Stream)


def set_device(device_id):
    return SUCCESS if device_id == 0 else _state.failed(INVALID_PARAM, f"there is no device {device_id}")


def reset_device(device_id):
    return set_device(device_id)


def get_device():
    return 0, SUCCESS


def get_device_count():
    return 1, SUCCESS


def get_run_mode():
    """0: host and device are the same."""
    return 0, SUCCESS


def create_context(device_id):
    ret = set_device(device_id)
    if ret != SUCCESS:
        return 0, ret
    _current.context = _state.keep(_Context())
    return _current.context, SUCCESS


def destroy_context(context):
    return _state.drop(context, _Context)


def set_context(context):
    if not _state.find(context, _Context):
        return _state.failed(INVALID_PARAM, f"there is no context {context}")
    _current.context = context
    return SUCCESS


def get_context():
    return getattr(_current, "context", 0), SUCCESS


def create_stream():
    return _state.keep(_Stream()), SUCCESS


def destroy_stream(stream):
    """Work that is still waiting is done first."""
    s = _state.find(stream, _Stream)
    if not s:
        return _state.failed(INVALID_PARAM, f"there is no stream {stream}")
    s.close()
    return _state.drop(stream, _Stream)


def synchronize_stream(stream):
    """Waits for the stream's work; the code of the first execution that failed."""
    s = _stream(stream)
    return s.wait() if s else _state.failed(INVALID_PARAM, f"there is no stream {stream}")


def synchronize_device():
    codes = [s.wait() for s in [_default_stream] + _state.every(_Stream)]
    return next((c for c in codes if c != SUCCESS), SUCCESS)


def enqueue(stream, work):
    s = _stream(stream)
    return s.put(work) if s else _state.failed(INVALID_PARAM, f"there is no stream {stream}")


def malloc(size, policy=MALLOC_NORMAL_ONLY):
    if not isinstance(size, int) or size <= 0:
        return 0, _state.failed(INVALID_PARAM, f"malloc of {size} bytes")
    if policy not in range(6):
        return 0, _state.failed(INVALID_PARAM, f"malloc with policy {policy}")
    ptr = _libc.aligned_alloc(64, (size + 63) // 64 * 64) if size < 1 << 62 else None
    if not ptr:
        return 0, _state.failed(BAD_ALLOC, f"{size} bytes cannot be had")
    with _lock:
        _blocks[ptr] = size
    return ptr, SUCCESS


def free(ptr):
    with _lock:
        if _blocks.pop(ptr, None) is None:
            return _state.failed(INVALID_PARAM, "the address was not given out, or freed before")
    _libc.free(ptr)
    return SUCCESS


def malloc_host(size):
    return malloc(size)


def free_host(ptr):
    return free(ptr)


def owns(ptr):
    """Bytes of the block at ptr; 0 for memory that is not from malloc."""
    return _blocks.get(ptr, 0)


def release_all():
    """What finalize does: streams end, memory is freed."""
    for s in [_default_stream] + _state.every(_Stream):
        s.wait()
    for ptr in list(_blocks):
        free(ptr)


def _fits(ptr, size):
    """False only where a known block starts at ptr and is smaller."""
    return size <= _blocks.get(ptr, size)


def memcpy(dst, dst_max, src, size, kind):
    if not dst or not src or size < 0 or size > dst_max or kind not in range(5):
        return _state.failed(INVALID_PARAM, f"memcpy of {size} bytes into {dst_max}")
    if not _fits(dst, size) or not _fits(src, size):
        return _state.failed(INVALID_PARAM, f"memcpy of {size} bytes: a block is smaller")
    ctypes.memmove(dst, src, size)
    return SUCCESS


def memset(dst, dst_max, value, size):
    if not dst or size < 0 or size > dst_max or not _fits(dst, size):
        return _state.failed(INVALID_PARAM, f"memset of {size} bytes in {dst_max}")
    ctypes.memset(dst, value, size)
    return SUCCESS
