"""ONNX Runtime's exceptions, and which of them stands for an error of GE."""

import re


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
# Codes of ge.Error (base/result.h), a pattern in its message, and what ONNX Runtime raises there; the first that fits.
_LOADING = (
    ("E10410", "external data", Fail), ("E10410", "", NoSuchFile), ("E13001", "", NoSuchFile),
    ("E13005", "holds no graph", InvalidArgument), ("E13005", "file is empty", InvalidArgument),
    ("E13005", "Tensor ", Fail), ("E13005", "external data", Fail), ("E13005", "", InvalidProtobuf),
    ("E14001", "is missing", InvalidGraph), ("E14001", "is not a type of", InvalidGraph), ("E14001", " takes ", InvalidGraph),
    ("E16001", "which nothing defines", InvalidArgument),
    ("E19010", r"not supported: com\.microsoft\..*operator is not known", Fail), ("E19010", "operator is not known", InvalidGraph),
    ("E19010", "The model uses opset", Fail), ("E19010", "imports no version", Fail),
    ("E19010", "", NotImplemented), ("E40003", "", RuntimeException))
_RUNNING = {"E40002": InvalidArgument, "E40003": RuntimeException}


def failure(kind, text):
    """An exception with ONNX Runtime's prefix; `text` is it without."""
    number, word = _STATUS[kind]
    error = kind(f"[ONNXRuntimeError] : {number} : {word} : {text}")
    error.text = text
    return error


def of_loading(error, path):
    """What a ge.Error while loading is; `path` is None for a model in memory."""
    kind = next((kind for code, words, kind in _LOADING if code == error.code and re.search(words, error.message)), Fail)
    if kind is NoSuchFile:
        text = f"Load model {path} failed. File doesn't exist"
    elif kind is InvalidProtobuf:
        text = "Protobuf parsing failed." if path else "Failed to load model because protobuf parsing failed."
    else:
        text = "No graph was found in the protobuf." if error.code == "E13005" and kind is InvalidArgument else ""
    where = f"Load model from {path} failed:" if path else ""
    return failure(kind, f"{where}{text}{' ' if text else ''}{error}")


def of_running(error):
    return failure(_RUNNING.get(error.code, Fail), f"Non-zero status code returned while running. {error}")
