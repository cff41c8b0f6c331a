"""Bad input: every failure is a ge.Error whose message a reader can act on; nothing is left half-written."""

import os
import resource
import struct
import subprocess
import sys

import fetch
import ge
import numpy as np
import pytest
import torch
from conftest import equal
from onnx import TensorProto, helper, numpy_helper


@pytest.fixture(scope="module")
def mlp():
    return fetch.fetch("surfaces_mlp")


@pytest.fixture(scope="module")
def fixed(mlp):
    return ge.compile(mlp, input_shape="input:3,4")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def error_of(call, *arguments, **options):
    with pytest.raises(ge.Error) as e:
        call(*arguments, **options)
    assert e.value.code, str(e.value)
    return e.value


def atc(folder, *arguments):
    return subprocess.run([sys.executable, "-c", "from ge import _cli; _cli.atc()", *arguments], cwd=folder,
                          capture_output=True, text=True, timeout=120, check=False)


# --- files that are not there or not whole

def test_missing_files(tmp_path):
    for call, name in ((ge.compile, "nothing.onnx"), (ge.load, "nothing.om")):
        e = error_of(call, tmp_path / name)
        assert e.code == "E10410" and name in e.message and "does not exist" in e.message and e.fix
    e = error_of(ge.compile, tmp_path)  # a folder
    assert str(tmp_path) in e.message and "not a regular file" in e.message
    done = atc(tmp_path, "--model=nothing.onnx", "--framework=5", "--output=x", "--soc_version=cpu")
    assert done.returncode != 0 and "E10410" in done.stderr and "nothing.onnx" in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_onnx_file_cut_anywhere(mlp, tmp_path):
    """As a file and as bytes; the file's name stands in the message."""
    whole = read(mlp)
    path = tmp_path / "cut.onnx"
    for i in range(50):
        part = whole[:len(whole) * i // 50]
        path.write_bytes(part)
        e = error_of(ge.compile, path)
        assert "cut.onnx" in str(e), str(e)
        assert error_of(ge.compile, part).code == e.code
    path.write_bytes(whole[:-1])
    assert "cut.onnx" in str(error_of(ge.compile, path))
    assert [p.name for p in tmp_path.iterdir()] == ["cut.onnx"]


def test_other_bytes_than_onnx(tmp_path):
    for data in (b"", b"\0" * 100, b"no model", bytes(range(256)) * 20, b"\x08" * 1000, b"\xff" * 64):
        (tmp_path / "x.onnx").write_bytes(data)
        e = error_of(ge.compile, tmp_path / "x.onnx")
        assert "x.onnx" in str(e), str(e)
        assert error_of(ge.load, data).code == "E13005"


def test_an_om_file_cut_or_changed_anywhere(fixed, tmp_path):
    fixed.save(tmp_path / "whole.om")
    whole = read(tmp_path / "whole.om")
    path = tmp_path / "bad.om"
    for i in range(50):
        path.write_bytes(whole[:len(whole) * i // 50])
        e = error_of(ge.load, path)
        assert e.code == "E13005" and "bad.om" in str(e), str(e)
        changed = bytearray(whole)
        changed[len(whole) * i // 50] ^= 0x10
        path.write_bytes(changed)
        assert "bad.om" in str(error_of(ge.load, path, check="all"))


def test_an_om_file_of_a_newer_format(fixed, tmp_path):
    fixed.save(tmp_path / "new.om")
    data = bytearray(read(tmp_path / "new.om"))
    (version,) = struct.unpack_from("<I", data, 8)
    struct.pack_into("<I", data, 8, version + 1)
    (tmp_path / "new.om").write_bytes(data)
    for call in (lambda: ge.load(tmp_path / "new.om"), lambda: ge.load(bytes(data))):
        e = error_of(call)
        assert f"format {version + 1}" in e.message and f"up to {version}" in e.message
        assert "newer version" in e.cause and "update GE" in e.fix


# --- inputs that do not fit

@pytest.mark.parametrize("value,words", [
    (np.zeros((3, 4), np.float64), ["'input'", "float64", "float32"]),
    (np.zeros((3, 4), np.int64), ["'input'", "int64", "float32"]),
    (np.zeros((3, 5), np.float32), ["'input'", "[3,5]", "[3,4]"]),
    (np.zeros((3, 4, 1), np.float32), ["'input'", "[3,4,1]", "[3,4]", "3 axes instead of 2"]),
    (np.float32(1), ["'input'", "[]", "[3,4]"]),
    (["a", "b"], ["'input'", "float32"]),
    (object(), ["'input'", "float32"]),
    (None, ["'input'", "float32"]),
    (torch.zeros(3, 4, dtype=torch.bfloat16), ["'input'", "bfloat16", "float32"]),
    (torch.zeros(3, 4).to_sparse(), ["'input'", "cannot be read"]),
    (torch.zeros(3, 4, device="meta"), ["'input'", "cannot be read"]),
], ids=["float64", "int64", "size", "rank", "scalar", "texts", "object", "none", "bfloat16", "sparse", "meta"])
def test_name_got_expected(fixed, value, words):
    e = error_of(fixed.run, [value])
    for word in words:
        assert word in e.message, str(e)
    assert e.code == "E40001" and e.cause and e.fix


def test_what_stands_for_the_list_of_inputs(fixed):
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    want = fixed.run([x])
    for inputs in ((x,), x, torch.from_numpy(x), {"input": x}, (v for v in [x]), [torch.complex(torch.zeros(3, 4), -torch.from_numpy(x)).conj().imag]):
        assert equal(fixed.run(inputs), want)
    assert "takes 1 inputs (input)" in error_of(fixed.run, []).message


@pytest.mark.parametrize("threads", [-1, 1.5, "2", True, 2**40])
def test_threads_that_cannot_be(mlp, fixed, tmp_path, threads):
    fixed.save(tmp_path / "m.om")
    for call in (lambda: ge.compile(mlp, threads=threads), lambda: ge.load(tmp_path / "m.om", threads=threads)):
        assert "threads" in error_of(call).message


def test_a_static_model_fed_another_shape(fixed):
    e = error_of(fixed.run, {"input": np.zeros((4, 4), np.float32)})
    assert "Input 'input' has shape [4,4], the model takes [3,4]" in e.message
    assert "Input shape is not supported: dynamic shape detected" in str(e)
    assert "feed 3 there" in e.fix and "--input_shape" in e.fix
    assert fixed.run([np.zeros((3, 4), np.float32)])[0].shape == (3, 1), "the model still works"


def test_a_dynamic_model_fed_what_it_does_not_allow(mlp):
    model = ge.compile(mlp, input_shape="input:2~8,4")
    for rows in (1, 9):
        e = error_of(model.run, [np.zeros((rows, 4), np.float32)])
        assert f"is {rows}, allowed are 2 to 8" in e.message and "dynamic shape detected" not in str(e)


def test_names_and_numbers_of_inputs(fixed):
    x = np.zeros((3, 4), np.float32)
    e = error_of(fixed.run, {"inptu": x})
    assert "'inptu'" in e.message and "'input'" in e.message
    for inputs in ([], [x, x]):
        assert "takes 1 inputs (input)" in error_of(fixed.run, inputs).message
        assert "takes 1 inputs (input)" in error_of(fixed, *inputs).message


# --- outputs that cannot be written

def test_an_output_path_that_cannot_be_written(mlp, fixed, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder.om").mkdir()
    places = [tmp_path / "no folder" / "x.om", tmp_path / "file" / "x.om", tmp_path / "folder.om"]
    for path in places:
        for call in (lambda: fixed.save(path), lambda: ge.compile(mlp, output=path)):
            e = error_of(call)
            assert e.code == "E13004" and str(path) in e.message and "folder exists" in e.fix
        done = atc(tmp_path, f"--model={mlp}", "--framework=5", f"--output={path}", "--soc_version=cpu")
        assert done.returncode != 0 and "E13004" in done.stderr and str(path) in done.stderr
    assert {p.name for p in tmp_path.rglob("*")} <= {"file", "folder.om", "fusion_result.json"}


LIMITED = """
import resource, sys
import ge
model = ge.compile(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
try:
    model.save("x.om")
except ge.Error as e:
    print(e.code, e.message)
"""


def test_a_full_disk_leaves_nothing(mlp, tmp_path):
    done = subprocess.run([sys.executable, "-c", LIMITED, mlp], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.stdout.startswith("E13004 File x.om cannot be written"), done.stdout + done.stderr
    assert not list(tmp_path.iterdir())
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4000


# --- the cache

CACHED = """
import sys, time
import ge, numpy as np
while time.time() < float(sys.argv[3]): pass   # all start together
model = ge.compile(sys.argv[1], op_compiler_cache_mode="enable", op_compiler_cache_dir=sys.argv[2])
sys.stdout.buffer.write(model.run([np.ones((2, 4), np.float32)])[0].tobytes())
"""


def test_processes_that_fill_the_cache_together(mlp, tmp_path):
    import time
    folder = tmp_path / "cache"
    start = str(time.time() + 1.5)
    many = [subprocess.Popen([sys.executable, "-c", CACHED, mlp, str(folder), start], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE) for _ in range(3)]
    results = [p.communicate(timeout=120) for p in many]
    assert [p.returncode for p in many] == [0, 0, 0], results
    assert len({out for out, _ in results}) == 1 and {err for _, err in results} == {b""}
    (entry,) = folder.iterdir()
    again = ge.compile(mlp, op_compiler_cache_mode="enable", op_compiler_cache_dir=str(folder))
    assert again.report()["times"]["from_cache"] is True
    assert again.run([np.ones((2, 4), np.float32)])[0].tobytes() == results[0][0]
    fresh = ge.compile(mlp)
    assert fresh.report()["times"]["from_cache"] is False
    assert equal(fresh.run([np.ones((2, 4), np.float32)]), again.run([np.ones((2, 4), np.float32)]))
    assert fresh.fused_operators() == again.fused_operators()
    assert entry.exists()


def test_atc_says_when_the_cache_was_used(mlp, tmp_path):
    command = [f"--model={mlp}", "--framework=5", "--output=x", "--soc_version=cpu", "--op_compiler_cache_mode=enable",
               f"--op_compiler_cache_dir={tmp_path / 'cache'}"]
    first, second = atc(tmp_path, *command), atc(tmp_path, *command)
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    said = "[GE] Compiled before: taken from the cache"
    assert said not in first.stdout and said in second.stdout
    fused = [line for line in first.stdout.split("\n") if "Planning completed" in line]
    assert fused and fused == [line for line in second.stdout.split("\n") if "Planning completed" in line]


def test_a_damaged_cache_entry_is_made_again(mlp, tmp_path):
    options = {"op_compiler_cache_mode": "enable", "op_compiler_cache_dir": str(tmp_path)}
    ge.compile(mlp, **options)
    (entry,) = tmp_path.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(whole[:len(whole) // 2])
    assert ge.compile(mlp, **options).report()["times"]["from_cache"] is False
    assert entry.read_bytes() == whole
    assert ge.compile(mlp, **options).report()["times"]["from_cache"] is True


def test_the_cache_touches_only_its_own(mlp, tmp_path):
    """A folder with the user's models may be given; old leftovers of ended processes go."""
    (tmp_path / "mine.om").write_bytes(b"mine")
    leftover, fresh = (tmp_path / f"{c * 64}.om.17.0.tmp" for c in "ab")
    leftover.write_bytes(b"x")
    fresh.write_bytes(b"x")
    os.utime(leftover, (1e9, 1e9))
    environment = {**os.environ, "GE_CACHE_SIZE": "0"}
    program = "import sys, ge; ge.compile(sys.argv[1], op_compiler_cache_mode='enable', op_compiler_cache_dir=sys.argv[2])"
    subprocess.run([sys.executable, "-c", program, mlp, str(tmp_path)], check=True, timeout=60, env=environment)
    assert {p.name for p in tmp_path.iterdir()} == {"mine.om", fresh.name}
    done = subprocess.run([sys.executable, "-c", "from ge import _cli; _cli.ge()", "cache", "clear", "--dir", str(tmp_path)],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.startswith("0 models removed")
    assert (tmp_path / "mine.om").exists()


def test_a_hit_bears_the_command_that_asked(mlp, tmp_path):
    options = ["--framework=5", "--soc_version=cpu", "--op_compiler_cache_mode=enable", "--op_compiler_cache_dir=cache"]
    for name in ("one", "two"):
        assert atc(tmp_path, f"--model={mlp}", f"--output={name}", *options).returncode == 0
    shown = atc(tmp_path, "--mode=6", "--om=two.om").stdout
    assert "--output=two" in shown and "--output=one" not in shown
    fresh = atc(tmp_path, f"--model={mlp}", "--output=two", *[o.replace("enable", "force") for o in options])
    assert fresh.returncode == 0
    assert shown.replace("enable", "force").split("\n")[2:4] == atc(tmp_path, "--mode=6", "--om=two.om").stdout.split("\n")[2:4]
    dumped = atc(tmp_path, f"--model={mlp}", "--output=two", *options, "--debug_dir=dump")
    assert dumped.returncode == 0 and "taken from the cache" not in dumped.stdout and list((tmp_path / "dump").iterdir())


def test_graphs_as_text_have_entries_of_their_own(tmp_path):
    """Two graphs with the same constants (none)."""
    ge_program = [sys.executable, "-c", "from ge import _cli; _cli.ge()"]
    for op in ("Neg", "Abs"):
        (tmp_path / f"{op}.ir").write_text(f"graph g(%x: f32[2]) -> (%y) {{\n  %y = {op}(%x)\n}}\n")
        done = subprocess.run(ge_program + ["compile", f"{op}.ir", "--op_compiler_cache_mode=enable", "--op_compiler_cache_dir=cache"],
                              cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    x = np.array([-1, 2], np.float32)
    assert ge.load(tmp_path / "Neg.om")(x).tolist() == [1, -2] and ge.load(tmp_path / "Abs.om")(x).tolist() == [1, 2]


def test_a_cache_that_cannot_be_used_is_no_failure(mlp, tmp_path):
    (tmp_path / "file").write_text("")
    model = ge.compile(mlp, op_compiler_cache_mode="enable", op_compiler_cache_dir=str(tmp_path / "file" / "cache"))
    assert model.run([np.ones((2, 4), np.float32)])[0].shape == (2, 1)


# --- options

@pytest.mark.parametrize("options,words", [
    ({"input_shape": "input:x y"}, ["E10002", "input_shape"]),
    ({"input_shape": "nothing:1,4"}, ["E10016", "nothing", "input"]),
    ({"input_shape": "input:1,5"}, ["E10002", "axis 1", "4"]),
    ({"mem_allocator_strategy": 9}, ["E10001", "mem_allocator_strategy", "0 to 2"]),
    ({"disable_fusion": "attentoin"}, ["E10001", "attention"]),
    ({"fusion_switch_file": "nothing.cfg"}, ["E10410", "nothing.cfg"]),
    ({"framework": 3}, ["E10001", "framework"]),
    ({"op_compiler_cache_mode": "maybe"}, ["E10001", "enable"]),
    ({"out_nodes": "nothing"}, ["nothing"]),
    ({"insert_op_conf": "aipp.cfg"}, ["E10001", "AIPP", "model takes"]),
    ({"log": "debug"}, ["E10001", "log belongs to the atc command"]),
], ids=lambda v: next(iter(v)) if isinstance(v, dict) else "")
def test_options_that_cannot_be(mlp, options, words):
    e = error_of(ge.compile, mlp, **options)
    for word in words:
        assert word in str(e), str(e)


def test_atcs_other_options_are_keywords_too(mlp, caplog):
    """What means nothing on a CPU is said and ignored."""
    caplog.set_level("WARNING", logger="ge")
    assert ge.compile(mlp, aicore_num=2, jit_compile=True, deterministic_level=1, soc_version="Ascend910").inputs
    assert [r.message.split(":")[0] for r in caplog.records] == ["aicore_num", "jit_compile"]


def test_errors_travel_between_processes(fixed):
    import pickle
    e = error_of(fixed.run, [np.zeros((9, 4), np.float32)])
    same = pickle.loads(pickle.dumps(e))
    assert str(same) == str(e) and same.code == e.code and same.fix == e.fix
    assert isinstance(same, RuntimeError)


def test_sizes_that_do_not_go_together(tmp_path):
    """A Reshape to a fixed number of elements is told only when sizes come; the message speaks of the sizes, not of a damaged file."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3]), helper.make_node("Reshape", ["c", "shape"], ["r"]), helper.make_node("Relu", ["r"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, "n"])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.ones((4, 2, 3), np.float32), "w"), numpy_helper.from_array(np.array([1, 4, 5]), "shape")])
    model = ge.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    assert model.run([np.ones((1, 2, 7), np.float32)])[0].shape == (1, 4, 5)
    with pytest.raises(ge.Error) as e:
        model.run([np.ones((1, 2, 5), np.float32)])
    assert "damaged" not in str(e.value)


HUGE = 1 << 40


def beside_nothing(shape, perm):
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Softmax", ["a"], ["b"]), helper.make_node("Transpose", ["b"], ["c"], perm=perm),
             helper.make_node("Concat", ["c", "c"], ["y"], axis=0), helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "yc"])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("shape", [(0, HUGE, HUGE), (HUGE, 0, HUGE), (HUGE, HUGE, 0)], ids=["first", "middle", "last"])
@pytest.mark.parametrize("options", [{}, {"disable_fusion": "all"}, {"disable_reuse_memory": 1}, {"reference": 1}], ids=["fused", "plain", "apart", "reference"])
def test_no_elements_beside_huge_sizes(shape, options, tmp_path):
    """The other sizes of an empty tensor cost nothing and overflow nothing."""
    from test_cli import run
    ge.compile(beside_nothing(list(shape), [2, 0, 1]), **options).save(str(tmp_path / "m.om"))
    done = run("ge", "run", str(tmp_path / "m.om"))
    assert done.returncode == 0, done.stderr
    turned = [shape[2], shape[0], shape[1]]
    assert f"c f32[{','.join(map(str, turned))}]" in done.stdout
    assert f"y f32[{','.join(map(str, [2 * turned[0], *turned[1:]]))}]" in done.stdout


@pytest.mark.parametrize("shape", [(0, 1 << 29, 1 << 29), (1 << 29, 0, 1 << 29), (1 << 29, 1 << 29, 0)], ids=["first", "middle", "last"])
def test_no_elements_beside_huge_open_sizes(shape):
    """NumPy counts the other sizes too, up to 2^63 bytes."""
    model = ge.compile(beside_nothing(["a", "b", "c"], [1, 2, 0]))
    x = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), shape, (0, 0, 0))
    y, c = model.run([x])
    assert c.shape == (shape[1], shape[2], shape[0]) and y.shape == (2 * shape[1], shape[2], shape[0])
    assert model.run([np.ones((2, 3, 4), np.float32)])[0].shape == (6, 4, 2)


@pytest.mark.parametrize("op,opset,sizes,attributes", [
    ("BatchNormalization", 15, [5, 5, 5, 5], {}), ("BatchNormalization", 15, [4, 4, 1, 4], {}), ("InstanceNormalization", 17, [4, 5], {}),
    ("GroupNormalization", 21, [5, 4], {"num_groups": 2}), ("GroupNormalization", 18, [4, 4], {"num_groups": 2}),
], ids=["batch", "mean", "instance", "group", "each_group"])
@pytest.mark.parametrize("channels", [4, "c"])
@pytest.mark.parametrize("constant", [False, True])
def test_a_number_for_each_channel(op, opset, sizes, attributes, channels, constant):
    """Other numbers of them are refused, by the same words whoever computes it; those that are open when their sizes come."""
    given = [numpy_helper.from_array(np.ones(n, np.float32), f"p{i}") for i, n in enumerate(sizes)]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, channels, 3, 3])]
    if not constant:
        inputs += [helper.make_tensor_value_info(f"p{i}", TensorProto.FLOAT, [n]) for i, n in enumerate(sizes)]
    graph = helper.make_graph([helper.make_node(op, ["x"] + [f"p{i}" for i in range(len(sizes))], ["y"], name="norm", **attributes)], "g", inputs,
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], given if constant else [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)

    def attempt():
        feeds = {"x": np.ones((2, 4, 3, 3), np.float32), **({} if constant else {f"p{i}": np.ones(n, np.float32) for i, n in enumerate(sizes)})}
        ge.compile(model).run(feeds)
    e = error_of(attempt)
    assert e.code in ("E14001", "E40001") and "norm" in str(e) and "damaged" not in str(e), str(e)


def test_words_that_are_no_utf8():
    node = helper.make_node("BitShift", ["x", "x"], ["y"], direction=b"\xff\xfe")
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.UINT8, [2])], [helper.make_tensor_value_info("y", TensorProto.UINT8, [2])])
    e = error_of(ge.compile, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    assert e.code == "E14001" and "direction is '\ufffd\ufffd'" in str(e)


@pytest.mark.parametrize("constant", range(1, 5))
def test_one_parameter_of_a_batch_normalization_is_constant(constant):
    names = ["x", "scale", "bias", "mean", "variance"]
    numbers = {n: np.arange(1, 4, dtype=np.float32) for n in names[1:]}
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3, 4] if n == "x" else [3]) for n in names if n != names[constant]]
    graph = helper.make_graph([helper.make_node("BatchNormalization", names, ["y"])], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(numbers[names[constant]], names[constant])])
    model = ge.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8))
    x, p = np.ones((2, 3, 4), np.float32), np.arange(1, 4, dtype=np.float32).reshape(1, 3, 1)
    y = model.run({"x": x, **{n: v for n, v in numbers.items() if n != names[constant]}})[0]
    np.testing.assert_allclose(y, (x - p) / np.sqrt(p + np.float32(1e-5)) * p + p, rtol=1e-5)
