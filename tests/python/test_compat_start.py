"""ge.compat.onnxruntime in place of `onnxruntime`, in programs that are not changed."""

import os
import subprocess
import sys

import pytest
from side_by_side import TWO

pytestmark = pytest.mark.usefixtures("compile_cache")


PROGRAM = """
import sys
import numpy as np
import onnxruntime as ort
import onnxruntime.capi.onnxruntime_pybind11_state as state
from onnxruntime import InferenceSession, GraphOptimizationLevel
from onnxruntime.capi import _pybind_state as C
from onnxruntime.capi.onnxruntime_inference_collection import OrtValue
import importlib.metadata, importlib.util
assert importlib.util.find_spec("onnxruntime") and importlib.metadata.version("onnxruntime") == ort.__version__
assert C.OrtValue is state.OrtValue and OrtValue is ort.OrtValue
session = InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
try:
    session.run(None, {"x": np.zeros((1, 3), np.float32), "y": np.zeros((1, 3), np.float32), "z": np.zeros(1, np.float32)})
except state.InvalidArgument as e:
    print(e)
print(__name__, sys.argv[2:], session.run(["m"], {n: np.ones((2, 3), np.float32) for n in "xy"})[0].tolist())
print("GE" in ort.get_build_info(), file=sys.stderr)
"""


def started(args, folder, **environment):
    environment = {**os.environ, "GE_CACHE_DIR": str(folder / "cache"), **environment}
    return subprocess.run([sys.executable, *args], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "two.onnx").write_bytes(TWO)
    return tmp_path


@pytest.mark.parametrize("how", [["program.py"], ["-m", "program"], ["-c", PROGRAM]], ids=["script", "module", "code"])
def test_an_unchanged_program(how, program):
    plain = started([*how, "two.onnx", "a", "--b"], program)
    assert plain.returncode == 0 and plain.stderr.strip().endswith("False"), plain.stderr
    ge = started(["-m", "ge.compat.onnxruntime", *how, "two.onnx", "a", "--b"], program)
    assert ge.returncode == 0 and ge.stderr.strip().endswith("True"), ge.stderr
    assert ge.stdout == plain.stdout and "__main__ ['a', '--b'] [[" in ge.stdout


def test_the_starter_says_how_it_is_used(tmp_path):
    for args, status in (([], 2), (["-h"], 0), (["-m"], 2)):
        done = started(["-m", "ge.compat.onnxruntime", *args], tmp_path)
        assert done.returncode == status and done.stdout.startswith("usage: ")
    (tmp_path / "exits.py").write_text("import sys; sys.exit(7)")
    assert started(["-m", "ge.compat.onnxruntime", "exits.py"], tmp_path).returncode == 7


def test_install_and_uninstall(program):
    code = """
import sys, ge.compat.onnxruntime as compat
compat.install(); compat.install()
import onnxruntime, onnxruntime.capi.onnxruntime_validation
assert onnxruntime is compat
compat.uninstall(); compat.uninstall()
assert not [n for n in sys.modules if n.partition(".")[0] == "onnxruntime"]
import onnxruntime
assert onnxruntime is not compat and "GE" not in onnxruntime.get_build_info()
try:
    compat.install()
except RuntimeError as e:
    print(e)
"""
    done = started(["-c", code], program)
    assert done.returncode == 0 and "is imported already" in done.stdout and "before anything imports" in done.stdout, done.stderr


def test_without_onnxruntime(program):
    """As where it is not installed: nothing of it is needed, and its metadata are there."""
    (program / "sitecustomize.py").write_text("""
import sys
class Hidden:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "onnxruntime":
            raise ModuleNotFoundError(name)
    def find_distributions(context):
        return []
sys.meta_path.insert(0, Hidden)
""")
    hidden = {"PYTHONPATH": os.pathsep.join([str(program), *sys.path])}
    assert started(["program.py", "two.onnx"], program, **hidden).returncode != 0
    done = started(["-m", "ge.compat.onnxruntime", "program.py", "two.onnx"], program, **hidden)
    assert done.returncode == 0, done.stderr
