"""Compiling holds weights once: its peak of memory over that of a one-node model, beside the model's size."""

import glob
import json
import os
import subprocess
import sys
import time

import ge
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

BAR = 2.5      # of the model's bytes, external data included
ATC = os.path.join(os.path.dirname(ge.__file__), "bin", "atc")
# From a process that is small itself: what a child had before exec counts as its own.
PEAK = """
import json, os, sys
pid = os.fork()
if pid == 0:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.execv(sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(pid, 0)
print(json.dumps([status, used.ru_maxrss * 1024]))
"""


def peak_of(*command, env=None):
    """Peak RSS of a command."""
    done = subprocess.run([sys.executable, "-S", "-E", "-c", PEAK, *command], capture_output=True, text=True, check=True, env={**os.environ, **(env or {})})
    status, bytes_ = json.loads(done.stdout)
    assert status == 0, done.stderr
    return bytes_


def peak(model, folder, *options, env=None):
    """Of atc."""
    return peak_of(ATC, f"--model={model}", "--framework=5", f"--output={folder}/out", "--soc_version=any", "--export_compile_stat=0", *options, env=env)


def save(nodes, weights, inputs, output, path, external=False):
    random = np.random.RandomState(0)
    tensors = [numpy_helper.from_array(w if isinstance(w, np.ndarray) else random.standard_normal(w).astype(np.float32), n) for n, w in weights.items()]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs], [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, save_as_external_data=external, location="weights.bin" if external else None, size_threshold=1024)
    return sum(os.path.getsize(os.path.join(os.path.dirname(path), f)) for f in os.listdir(os.path.dirname(path)))


def products(transposed=False):
    """Eight products of 18 MB each; Gemm with transB turns its weight first."""
    nodes, weights, x = [], {}, "x"
    for i in range(8):
        weights[f"w{i}"], weights[f"b{i}"] = (2048, 2304) if i % 2 == transposed else (2304, 2048), (2304 if i % 2 == 0 else 2048,)
        if transposed:
            nodes.append(helper.make_node("Gemm", [x, f"w{i}", f"b{i}"], [f"y{i}"], transB=1))
        else:
            nodes += [helper.make_node("MatMul", [x, f"w{i}"], [f"m{i}"]), helper.make_node("Add", [f"m{i}", f"b{i}"], [f"y{i}"])]
        x = f"y{i}"
    return nodes, weights, [("x", TensorProto.FLOAT, [4, 2048])], x


def convolutions():
    nodes, weights, x = [], {"scale": np.ones(1024, np.float32), "zero": np.zeros(1024, np.float32)}, "x"
    for i in range(4):
        weights[f"w{i}"] = (1024, 1024, 3, 3)
        nodes += [helper.make_node("Conv", [x, f"w{i}"], [f"c{i}"], pads=[1] * 4), helper.make_node("BatchNormalization", [f"c{i}", "scale", "zero", "zero", "scale"], [f"n{i}"]),
                  helper.make_node("Relu", [f"n{i}"], [f"y{i}"])]
        x = f"y{i}"
    return nodes, weights, [("x", TensorProto.FLOAT, [1, 1024, 8, 8])], x


def lookup():
    """A table that lies as it is, and a product with it."""
    nodes = [helper.make_node("Gather", ["table", "ids"], ["rows"]), helper.make_node("Transpose", ["table"], ["turned"], perm=[1, 0]),
             helper.make_node("MatMul", ["rows", "turned"], ["y"])]
    return nodes, {"table": (36000, 1024)}, [("ids", TensorProto.INT64, [3])], "y"


def narrow(unpack, dtype):
    """Eight products whose weights lie in fewer bits, and a table: each becomes f32."""
    random = np.random.RandomState(0)
    nodes, weights, x = [], {"scale": np.array(0.01, np.float32), "table": random.randint(-9, 9, (16384, 768)).astype(dtype)}, "rows"
    nodes += unpack("table") + [helper.make_node("Gather", ["table.f", "ids"], ["rows"])]
    for i in range(8):
        weights[f"w{i}"] = random.randint(-9, 9, (768, 3072) if i % 2 == 0 else (3072, 768)).astype(dtype)
        nodes += unpack(f"w{i}") + [helper.make_node("MatMul", [x, f"w{i}.f"], [f"m{i}"]), helper.make_node("Relu", [f"m{i}"], [f"y{i}"])]
        x = f"y{i}"
    return nodes, weights, [("ids", TensorProto.INT64, [3])], x


def halves():
    return narrow(lambda w: [helper.make_node("Cast", [w], [f"{w}.f"], to=TensorProto.FLOAT)], np.float16)


def dequantized():
    return narrow(lambda w: [helper.make_node("DequantizeLinear", [w, "scale"], [f"{w}.f"])], np.int8)


def scaled():
    return narrow(lambda w: [helper.make_node("Cast", [w], [f"{w}.c"], to=TensorProto.FLOAT), helper.make_node("Mul", [f"{w}.c", "scale"], [f"{w}.f"])], np.int8)


@pytest.mark.parametrize("external", [False, True], ids=["inside", "external"])
@pytest.mark.parametrize("model", [products(), products(True), convolutions(), lookup(), halves(), dequantized(), scaled()],
                         ids=["products", "transposed", "convolutions", "lookup", "halves", "dequantized", "scaled"])
def test_peak_while_compiling(model, external, tmp_path):
    (tmp_path / "one").mkdir()
    save([helper.make_node("Relu", ["x"], ["y"])], {}, [("x", TensorProto.FLOAT, [4])], "y", str(tmp_path / "one" / "m.onnx"))
    (tmp_path / "big").mkdir()
    size = save(*model, str(tmp_path / "big" / "m.onnx"), external)
    assert size > 30e6
    over = peak(tmp_path / "big" / "m.onnx", tmp_path) - peak(tmp_path / "one" / "m.onnx", tmp_path)
    assert over < BAR * size, f"{over / size:.2f} times the model's {size / 1e6:.0f} MB"


@pytest.mark.parametrize("model", [products(True), dequantized()], ids=["transposed", "dequantized"])
def test_the_call_from_python_holds_what_the_command_holds(model, tmp_path):
    over, written = [], []
    for name, content in (("one", ([helper.make_node("Relu", ["x"], ["y"])], {}, [("x", TensorProto.FLOAT, [4])], "y")), ("big", model)):
        (tmp_path / name).mkdir()
        size = save(*content, str(tmp_path / name / "m.onnx"))
        call = f"import ge; ge.compile('{tmp_path}/{name}/m.onnx', output='{tmp_path}/{name}/python.om')"
        over.append((peak(tmp_path / name / "m.onnx", tmp_path), peak_of(sys.executable, "-c", call)))
        written.append(os.path.getsize(tmp_path / name / "python.om"))
    command, python = (big - one for one, big in zip(*over))
    assert python < BAR * size and python < command + size / 4, f"{python / size:.2f} against {command / size:.2f} times the model's {size / 1e6:.0f} MB"
    # The file that the weights were laid out in is the output, and what the model reads: nothing of it is anonymous memory.
    assert written[1] > 10e6   # equal weights are stored once
    compiled = ge.compile(str(tmp_path / "big" / "m.onnx"), output=str(tmp_path / "again.om"))
    with open("/proc/self/maps") as f:
        assert os.stat(tmp_path / "again.om").st_ino in {int(line.split()[4]) for line in f}
    feeds = {p.name: np.zeros(p.shape, p.dtype) for p in compiled.inputs}
    assert all((a == b).all() for a, b in zip(compiled.run(feeds), ge.load(str(tmp_path / "big" / "python.om")).run(feeds)))


def in_memory(folder):
    return subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True).stdout.strip() in ("tmpfs", "ramfs")


def test_temporary_files_in_memory(tmp_path):
    """Where TMPDIR is memory itself, what is made of narrow weights lies on the output's disk."""
    if not in_memory("/dev/shm") or in_memory(str(tmp_path)):
        pytest.skip("needs a tmpfs and a disk")
    (tmp_path / "one").mkdir()
    save([helper.make_node("Relu", ["x"], ["y"])], {}, [("x", TensorProto.FLOAT, [4])], "y", str(tmp_path / "one" / "m.onnx"))
    (tmp_path / "big").mkdir()
    size = save(*dequantized(), str(tmp_path / "big" / "m.onnx"))
    env = {"TMPDIR": "/dev/shm"}
    over = peak(tmp_path / "big" / "m.onnx", tmp_path, env=env) - peak(tmp_path / "one" / "m.onnx", tmp_path, env=env)
    assert over < BAR * size, f"{over / size:.2f} times the model's {size / 1e6:.0f} MB"


def family(pid):
    """The process and those it started."""
    out = [pid]
    for task in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(task) as f:
                children = f.read().split()
        except OSError:
            continue
        for child in children:
            out += family(int(child))
    return out


def held(pid):
    """Bytes in memory, each page that several hold counted in parts."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            return sum(int(line.split()[1]) * 1024 for line in f if line.startswith("Pss:"))
    except OSError:
        return 0


@pytest.mark.parametrize("cache", ["disable", "force"])
def test_peak_of_all_parts(cache, tmp_path):
    """Over all processes that compile parts of one model, as often as it can be looked at."""
    (tmp_path / "big").mkdir()
    size = save(*convolutions(), str(tmp_path / "big" / "m.onnx"))
    running = subprocess.Popen([ATC, f"--model={tmp_path}/big/m.onnx", "--framework=5", f"--output={tmp_path}/out", "--soc_version=any", "--export_compile_stat=0",
                                "--split=2", f"--op_compiler_cache_mode={cache}", f"--op_compiler_cache_dir={tmp_path}/cache"], stdout=subprocess.DEVNULL)
    most, seen = 0, 0
    while running.poll() is None:
        everyone = family(running.pid)
        seen = max(seen, len(everyone))
        most = max(most, sum(held(pid) for pid in everyone))
        time.sleep(0.002)
    assert running.returncode == 0 and seen == 3 and most > size / 4
    assert most < BAR * size, f"{most / size:.2f} times the model's {size / 1e6:.0f} MB"
