"""The version of ONNX Runtime whose interface this is."""

__version__ = "1.32.0"
