"""The modules that programs import from inside of ONNX Runtime."""
