"""python -m ge.export --model=model.py --input=input.pt --output=model.onnx: a torch model to ONNX.

The file's `model`, else what `get_model()` returns, else its only torch module class, made without
arguments. input.pt holds a tensor, a tuple of tensors or a dict by parameter name (weights_only).
"""

import argparse
import importlib.util
import os
import sys
import tempfile
import traceback

from . import _torch
from ._error import Error

_NAME = "ge_export_model"
_INLINE = 3 << 29  # bytes; an .onnx file of 2 GB or more cannot be read


def find_model(path):
    """The model that the Python file at `path` defines."""
    import torch
    module = _run(path)
    if _torch.is_module(getattr(module, "model", None)):
        return module.model
    if callable(getattr(module, "get_model", None)):
        model = module.get_model()
        if not _torch.is_module(model):
            raise Error(f"get_model() of {path} returns no torch module but {type(model).__name__}.", "E10001")
        return model
    own = [v for v in vars(module).values()
           if isinstance(v, type) and issubclass(v, torch.nn.Module) and v.__module__ == _NAME]
    if len(own) != 1:
        names = ", ".join(c.__name__ for c in own)
        raise Error(f"{path} does not say which model to export.", "E10001",
                    cause=f"its modules are {names}" if own else
                    "it defines neither `model`, nor `get_model()`, nor a torch.nn.Module",
                    fix="define `model = ...` or `def get_model(): ...`")
    try:
        return own[0]()
    except TypeError as e:
        raise Error(f"{own[0].__name__} of {path} cannot be made without arguments: {e}.", "E10001",
                    fix="define `model = ...` or `def get_model(): ...`") from e


def _run(path):
    if not os.path.isfile(path):
        raise Error(f"File {path} does not exist.", "E10410", fix="check --model")
    spec = importlib.util.spec_from_file_location(_NAME, path)
    if spec is None:
        raise Error(f"File {path} is no Python file.", "E10001", fix="--model takes a .py file that defines the model")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = module  # dataclasses and pickling look their module up
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        lines = [f.lineno for f in traceback.extract_tb(e.__traceback__) if f.filename == path]
        raise Error(f"{path} cannot be run: {type(e).__name__}: {e}.", "E13005",
                    cause=f"line {lines[-1]}" if lines else "") from e
    finally:
        sys.path.pop(0)
    return module


def _read_inputs(path):
    import torch
    if not os.path.isfile(path):
        raise Error(f"File {path} does not exist.", "E10410", fix="check --input")
    try:
        inputs = torch.load(path, weights_only=True)
    except Exception as e:
        raise Error(f"File {path} cannot be read: {(str(e) or type(e).__name__).splitlines()[0]}", "E13005",
                    cause="it must hold a tensor, a tuple of tensors or a dict, saved by torch.save") from e
    parts = inputs.values() if isinstance(inputs, dict) else inputs if isinstance(inputs, (list, tuple)) else [inputs]
    strange = [type(v).__name__ for v in parts if not isinstance(v, torch.Tensor)]
    if strange:
        raise Error(f"File {path} holds {strange[0]}.", "E13005",
                    cause="it must hold a tensor, a tuple of tensors or a dict by parameter name")
    return inputs


def export(model, inputs, output):
    """Exports `model` (a path or a module) on `inputs` (a path or tensors) to the file `output`."""
    if isinstance(model, (str, os.PathLike)):
        model = find_model(os.fspath(model))
    if isinstance(inputs, (str, os.PathLike)):
        inputs = _read_inputs(os.fspath(inputs))
    output = os.path.abspath(output)
    state = getattr(model, "state_dict", {})
    state = state() if callable(state) else state
    large = sum(t.numel() * t.element_size() for t in state.values() if hasattr(t, "numel")) > _INLINE
    try:
        # Beside the output, so that whole files can be moved into place.
        with tempfile.TemporaryDirectory(dir=os.path.dirname(output), prefix=".ge-export-") as folder:
            _torch.export(model, os.path.join(folder, os.path.basename(output)), inputs, external_data=large)
            for name in sorted(os.listdir(folder), key=lambda n: n == os.path.basename(output)):
                os.replace(os.path.join(folder, name), os.path.join(os.path.dirname(output), name))
    except OSError as e:
        raise Error(f"File {output} cannot be written: {e.strerror}.", "E13004", fix="check --output") from e
    return output


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="ge export", description="a torch model to ONNX")
    parser.add_argument("--model", required=True, help="Python file that defines the model")
    parser.add_argument("--input", required=True, help="example inputs, saved by torch.save")
    parser.add_argument("--output", required=True, help="the .onnx file")
    a = parser.parse_args(arguments)
    try:
        export(a.model, a.input, a.output)
    except Error as e:
        print(f"[GE] ERROR: {e}", file=sys.stderr)
        return 1
    except ImportError as e:
        print(f"[GE] ERROR: exporting needs PyTorch: {e}", file=sys.stderr)
        return 1
    print(f"[GE] {a.output} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
