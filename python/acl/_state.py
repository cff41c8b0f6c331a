"""What the other modules share: handles, codes, the last error."""

import itertools
import threading

SUCCESS = 0
INVALID_PARAM = 100000
NOT_INITIALIZED = 100001
REPEAT_INITIALIZE = 100002
INVALID_FILE = 100003
INVALID_MODEL_ID = 100011
DESERIALIZE_MODEL = 100012
PARSE_MODEL = 100013
INPUT_NOT_MATCH = 100017
OUTPUT_NOT_MATCH = 100018
NOT_DYNAMIC_MODEL = 100019
BAD_ALLOC = 200000
INTERNAL_ERROR = 500000
GE_FAILURE = 500002

initialized = False
told = False
last_error = None
_lock = threading.Lock()
_objects = {}
_numbers = itertools.count(1)


class DataBuffer:
    """Memory somebody handed over, or (0, 0): then execute allocates it, and the caller frees it."""

    def __init__(self, ptr, size):
        self.ptr, self.size = ptr, size
        self.allocated = 0  # the address that execute put in, while it is still the buffer's


def keep(thing):
    """A handle (a number above 0) for the object."""
    with _lock:
        handle = next(_numbers)
        _objects[handle] = thing
    return handle


def find(handle, kind):
    thing = _objects.get(handle) if isinstance(handle, int) else None
    return thing if isinstance(thing, kind) else None


def every(kind):
    with _lock:
        return [o for o in _objects.values() if isinstance(o, kind)]


def drop(handle, kind):
    with _lock:
        if not isinstance(handle, int) or not isinstance(_objects.get(handle), kind):
            return INVALID_PARAM
        del _objects[handle]
    return SUCCESS


def failed(code, message):
    global last_error
    last_error = str(message)
    return code


def reset():
    global initialized
    initialized = False
    from . import rt
    rt.release_all()
    with _lock:
        _objects.clear()
