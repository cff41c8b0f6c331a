"""Puts this package in place of `onnxruntime`, for imports that come later."""

import importlib
import importlib.machinery
import importlib.metadata
import os
import pkgutil
import sys

from ._version import __version__

HERE = __name__.rpartition(".")[0]
FOLDER = os.path.dirname(os.path.abspath(__file__))
NAME = "onnxruntime"


class _Metadata:
    """Answers importlib.metadata about `onnxruntime` where it is not installed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return None

    @staticmethod
    def find_distributions(context):
        return [_Distribution()] if context.name == NAME else []


class _Distribution(importlib.metadata.Distribution):
    def read_text(self, filename):
        return f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {__version__}\n" if filename == "METADATA" else None

    def locate_file(self, path):
        return path


def _modules():
    """The package's modules by the names under which programs import them."""
    names = [HERE] + [m.name for m in pkgutil.walk_packages([FOLDER], HERE + ".") if not m.name.endswith("__main__")]
    return {NAME + name[len(HERE):]: importlib.import_module(name) for name in names}


def install():
    """From now on `import onnxruntime` and its submodules give GE. Twice is as once."""
    there = sys.modules.get(NAME)
    if there is sys.modules[HERE]:
        return
    if there is not None:
        raise RuntimeError(f"onnxruntime {getattr(there, '__version__', '')} is imported already ({getattr(there, '__file__', '')}), "
                           f"and what holds it would go on using it: call {HERE}.install() before anything imports "
                           f"onnxruntime, or start the program with python -m {HERE}")
    sys.modules.update(_modules())
    real = importlib.machinery.PathFinder.find_spec(NAME)
    if real is not None:  # its tools (quantization, transformers) are Python on top of what is here
        sys.modules[HERE].__path__ = [FOLDER, *real.submodule_search_locations]
    if _Metadata not in sys.meta_path:
        sys.meta_path.append(_Metadata)  # the last: a real package speaks for itself


def uninstall():
    """Later imports find what was there before; objects that are at hand go on working."""
    if sys.modules.get(NAME) is not sys.modules[HERE]:
        return
    for name in [n for n in sys.modules if n == NAME or n.startswith(NAME + ".")]:
        del sys.modules[name]
    sys.modules[HERE].__path__ = [FOLDER]
    if _Metadata in sys.meta_path:
        sys.meta_path.remove(_Metadata)
