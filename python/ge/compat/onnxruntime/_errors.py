"""ONNX Runtime's exceptions, and which of them stands for an error of GE."""


class Fail(Exception):
    pass


class InvalidArgument(Exception):
    pass


class NoSuchFile(Exception):
    pass


class NoModel(Exception):
    pass


class EngineError(Exception):
    pass


class RuntimeException(Exception):
    pass


class InvalidProtobuf(Exception):
    pass


class ModelLoaded(Exception):
    pass


class NotImplemented(Exception):
    pass


class InvalidGraph(Exception):
    pass


class EPFail(Exception):
    pass


class ModelLoadCanceled(Exception):
    pass


class ModelRequiresCompilation(Exception):
    pass


class NotFound(Exception):
    pass


class DeviceReset(Exception):
    pass


# The number and the word that stand in the text; programs look for them.
_STATUS = {Fail: (1, "FAIL"), InvalidArgument: (2, "INVALID_ARGUMENT"), NoSuchFile: (3, "NO_SUCHFILE"),
           RuntimeException: (6, "RUNTIME_EXCEPTION"), InvalidProtobuf: (7, "INVALID_PROTOBUF"),
           NotImplemented: (9, "NOT_IMPLEMENTED"), InvalidGraph: (10, "INVALID_GRAPH"),
           ModelLoadCanceled: (12, "MODEL_LOAD_CANCELED")}
# By the codes of ge.Error (base/result.h).
_LOADING = {"E10410": NoSuchFile, "E13001": NoSuchFile, "E13005": InvalidProtobuf, "E16001": InvalidGraph,
            "E19010": NotImplemented, "E40003": RuntimeException}
_RUNNING = {"E40002": InvalidArgument, "E40003": RuntimeException}


def failure(kind, text):
    """An exception with ONNX Runtime's prefix; `text` is it without."""
    number, word = _STATUS[kind]
    error = kind(f"[ONNXRuntimeError] : {number} : {word} : {text}")
    error.text = text
    return error


def of_loading(error, path):
    """What a ge.Error while loading is; `path` is None for a model in memory."""
    kind = _LOADING.get(error.code, Fail)
    if "holds no graph" in error.message or "file is empty" in error.message:
        kind, text = InvalidArgument, "No graph was found in the protobuf."
    elif kind is NoSuchFile:
        text = f"Load model {path} failed. File doesn't exist"
    elif kind is InvalidProtobuf:
        text = "Protobuf parsing failed." if path else "Failed to load model because protobuf parsing failed."
    else:
        text = ""
    where = f"Load model from {path} failed:" if path else ""
    return failure(kind, f"{where}{text}{' ' if text else ''}{error}")


def of_running(error):
    return failure(_RUNNING.get(error.code, Fail), f"Non-zero status code returned while running. {error}")
