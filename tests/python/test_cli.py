"""The commands `atc` and `ge`, as a user types them."""

import os
import subprocess
import sys

import fetch
import numpy as np
import onnx
import pytest
from conftest import difference, reference
from onnx import TensorProto, helper

BIN = os.path.dirname(sys.executable)


def run(program, *arguments, **options):
    return subprocess.run([os.path.join(BIN, program), *arguments], capture_output=True, text=True,
                          timeout=120, check=False, **options)


@pytest.fixture(scope="module")
def magika(tmp_path_factory):
    """The .om that atc makes, and what it printed."""
    folder = tmp_path_factory.mktemp("atc")
    done = run("atc", f"--model={fetch.fetch('magika')}", "--framework=5", "--output=magika", "--soc_version=cpu",
               cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "magika.om", done


def test_atc_prints_atcs_messages(magika):
    om, done = magika
    assert om.exists()
    lines = done.stdout.split("\n")
    assert lines[0] == "ATC start working now, please wait for a moment."
    assert "ATC run success, welcome to the next use." in lines


@pytest.mark.parametrize("arguments,code,word", [
    (["--model=nothing.onnx", "--framework=5", "--output=x", "--soc_version=cpu"], "E10410", "nothing.onnx"),
    (["--framework=5", "--output=x", "--soc_version=cpu"], "E", "model"),
    (["--model={m}", "--framework=3", "--output=x", "--soc_version=cpu"], "E10001", "framework"),
    (["--model={m}", "--framework=5", "--output=x", "--soc_version=cpu", "--input_shape=bytes:x"], "E10002", "input_shape"),
    (["--model={m}", "--framework=5", "--output=x", "--soc_version=cpu", "--inputshape=bytes:1,2048"], "E", "input_shape"),
], ids=["no file", "no model", "framework", "shape", "unknown option"])
def test_atc_failures(arguments, code, word, tmp_path):
    done = run("atc", *[a.format(m=fetch.fetch("magika")) for a in arguments], cwd=tmp_path)
    text = done.stdout + done.stderr
    assert done.returncode != 0
    assert "ATC run failed" in text and code in text and word in text, text
    assert not list(tmp_path.glob("*.om"))


@pytest.fixture(scope="module")
def near_miss(tmp_path_factory):
    """MatMul, then an Add, and the product is an output too."""
    folder = tmp_path_factory.mktemp("near")
    weights = [onnx.numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in (("w", (4, 3)), ("b", (3,)))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"], name="product"), helper.make_node("Add", ["t", "b"], ["y"], name="sum")]
    x, t, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [2, 4]), ("t", [2, 3]), ("y", [2, 3])))
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y, t], weights), opset_imports=[helper.make_opsetid("", 17)],
                                ir_version=9), folder / "m.onnx")
    (folder / "file").write_text("")
    return folder / "m.onnx"


@pytest.mark.parametrize("level,warns,debugs", [
    (None, True, False), ("debug", True, True), ("info", True, False), ("warning", True, False), ("error", False, False),
    ("null", False, False)])
def test_every_level_of_the_log(level, warns, debugs, near_miss, tmp_path):
    """A near miss, an ignored option and a cache that cannot be used warn; a failure is always told."""
    arguments = [f"--model={near_miss}", "--framework=5", "--output=m", "--soc_version=cpu", "--aicore_num=2",
                 "--op_compiler_cache_mode=enable", f"--op_compiler_cache_dir={near_miss.parent / 'file' / 'cache'}"]
    arguments += [] if level is None else [f"--log={level}"]
    done = run("atc", *arguments, cwd=tmp_path)
    assert done.returncode == 0 and "ATC run success" in done.stdout and (tmp_path / "m.om").exists()
    assert ("[GE] WARN: Fusion pattern MatMul+Add not matched" in done.stdout) == warns
    assert ("[GE] WARN: --aicore_num" in done.stdout) == warns
    assert ("[GE] WARN: " in done.stderr and "cache folder" in done.stderr) == warns
    assert ("[GE] DEBUG: pass fuse" in done.stderr) == debugs
    if not warns:
        assert "WARN" not in done.stdout and done.stderr == ""
    if level not in (None, "debug"):
        assert "DEBUG" not in done.stderr
    failed = run("atc", *[a.replace("m.onnx", "nothing.onnx") for a in arguments], cwd=tmp_path)
    assert failed.returncode != 0 and "E10410" in failed.stderr and "ATC run failed" in failed.stdout
    assert ("WARN" in failed.stdout) == warns


def test_one_warning_for_each_pattern(tmp_path):
    """Of many places of a kind the first is told, with their number."""
    weights = [onnx.numpy_helper.from_array(np.ones(s, np.float32), n) for n, s in (("w", (4, 4)), ("b", (4,)))]
    nodes, outputs, at = [], [], "x"
    for k in range(5):
        nodes += [helper.make_node("MatMul", [at, "w"], [f"t{k}"], name=f"product{k}"), helper.make_node("Add", [f"t{k}", "b"], [f"y{k}"], name=f"sum{k}")]
        outputs += [f"t{k}"]
        at = f"y{k}"
    info = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 4]) for n in ["x", at, *outputs]}
    graph = helper.make_graph(nodes, "g", [info["x"]], [info[n] for n in [at, *outputs]], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    done = run("atc", "--model=m.onnx", "--framework=5", "--output=m", "--soc_version=cpu", cwd=tmp_path)
    warnings = [line for line in done.stdout.splitlines() if "WARN" in line]
    assert len(warnings) == 2 and "MatMul+Add not matched (" in warnings[0] and "ge explain" in warnings[0] and "at node sum0" in warnings[1], done.stdout
    all_of_them = run("ge", "explain", tmp_path / "m.om").stdout
    assert all(f"at sum{k}: t{k} is an output of the graph" in all_of_them for k in range(5)) and all_of_them.count("--out_nodes") == 5


@pytest.mark.parametrize("level", ["none", "warn", "ERROR", ""])
def test_other_levels(level, near_miss, tmp_path):
    done = run("atc", f"--model={near_miss}", "--framework=5", "--output=m", "--soc_version=cpu", f"--log={level}", cwd=tmp_path)
    assert done.returncode != 0 and "E10001" in done.stderr and "debug, info, warning, error or null" in done.stderr
    assert not (tmp_path / "m.om").exists()


@pytest.mark.parametrize("arguments,words", [
    (["--output=."], ["E10001", "--output", "folder"]), (["--output={t}/"], ["E10001", "folder"]), (["--output=a/.."], ["E10001", "folder"]),
    (["--display_model_info=2"], ["E10001", "0 or 1"]), (["--optimization_switch=matmul_bias"], ["E10001", "--optimization_switch", "matmul_bias"]),
    (["--debug_dir={near}/x"], ["E13004", "--debug_dir"]), (["--insert_op_conf=aipp.cfg"], ["E10001", "insert_op_conf", "AIPP"]),
    (["--deterministic_level=4"], ["E10001", "0 to 3"]), (["--enable_single_stream=true", "--multi_stream_parallel_mode=cv"], ["E10056"]),
    (["--precision_mode=force_fp32", "--precision_mode_v2=origin"], ["E10001", "precision_mode_v2"]),
    (["--memory_optimisation_policy=Speed"], ["--memory_optimization_policy"]), (["extra"], ["extra"]),
])
def test_options_that_cannot_be_followed(arguments, words, near_miss, tmp_path):
    """Nothing is written then."""
    done = run("atc", f"--model={near_miss}", "--framework=5", "--output=m", "--soc_version=cpu",
               *[a.format(t=tmp_path, near=near_miss) for a in arguments], cwd=tmp_path)
    assert done.returncode == 1 and "ATC run failed" in done.stdout, done.stdout
    for word in words:
        assert word in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())


def test_options_that_mean_nothing_here(near_miss, tmp_path):
    """One line each; what they would be on a CPU."""
    done = run("atc", f"--model={near_miss}", "--framework=5", "--output=m", "--soc_version=cpu", "--aicore_num=2", "--hccl_timeout=3",
               "--jit_compile=1", cwd=tmp_path)
    assert done.returncode == 0
    for line in ("--aicore_num: means nothing on a CPU", "--hccl_timeout: means nothing on a CPU", "--jit_compile: everything is compiled ahead"):
        assert done.stdout.count(f"[GE] WARN: {line}") == 1, done.stdout


def test_the_recorded_command_names_no_folder(near_miss, tmp_path):
    (tmp_path / "off.cfg").write_text("matmul_bias:off\n")
    done = run("atc", "--model", str(near_miss), "--framework=5", "--soc_version=cpu", f"--output={tmp_path}/m", f"--debug_dir={tmp_path}/dump/",
               f"--fusion_switch_file={tmp_path}/off.cfg", "--out_nodes=product:0", "--display_model_info=1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "atc --model m.onnx --framework=5 --soc_version=cpu --output=m --debug_dir=dump --fusion_switch_file=off.cfg --out_nodes=product:0" in done.stdout
    for folder in (tmp_path, near_miss.parent):
        assert str(folder).encode() not in (tmp_path / "m.om").read_bytes()


def test_the_models_name_is_its_graphs(near_miss, tmp_path):
    """Unless --graph_name gives another."""
    for options, name in (([], "g"), (["--graph_name=other"], "other")):
        assert run("atc", f"--model={near_miss}", "--framework=5", "--output=m", "--soc_version=cpu", *options, cwd=tmp_path).returncode == 0
        assert run("ge", "inspect", "m.om", cwd=tmp_path).stdout.startswith(f"model: {name}\n")


def test_lanes_are_counted(near_miss, tmp_path):
    """Two products that do not wait for one another: one lane or two."""
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [256, 256]) for n in ("x", "a", "b")]
    w = [onnx.numpy_helper.from_array(np.ones((256, 256), np.float32), n) for n in "vw"]
    nodes = [helper.make_node("MatMul", ["x", "v"], ["a"]), helper.make_node("MatMul", ["x", "w"], ["b"])]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:], w), opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "two.onnx")
    for option, lanes in (("--enable_single_stream=true", 1), ("--multi_stream_parallel_mode=LoadBalance:2", 2)):
        done = run("atc", "--model=two.onnx", "--framework=5", "--output=m", "--soc_version=cpu", "--disable_fusion=matmul_siblings",
                   "--display_model_info=1", option, cwd=tmp_path)
        assert f"stream_num[{lanes}]" in done.stdout, done.stdout + done.stderr


def test_the_check_of_a_damaged_model_names_it(near_miss, tmp_path):
    (tmp_path / "cut.onnx").write_bytes(near_miss.read_bytes()[:100])
    done = run("atc", "--mode=3", "--model=cut.onnx", "--framework=5", cwd=tmp_path)
    assert done.returncode == 1 and "cut.onnx" in done.stderr and "E13005" in done.stderr


def test_ge_run_with_every_kind_of_file(magika, tmp_path):
    om, _ = magika
    feeds = fetch.feeds("magika")
    want = reference(fetch.fetch("magika"), feeds)
    np.save(tmp_path / "in.npy", feeds["bytes"])
    np.savez(tmp_path / "in.npz", **feeds)
    (tmp_path / "in.pb").write_bytes(onnx.numpy_helper.from_array(feeds["bytes"], "bytes").SerializeToString())
    for given in ("bytes=in.npy", "in.npz", "bytes=in.pb"):
        done = run("ge", "run", str(om), "--input", given, "--output", "out", cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert difference([np.load(tmp_path / "out" / "target_label.npy")], want) <= 1e-4
        os.remove(tmp_path / "out" / "target_label.npy")


def test_ge_run_without_inputs_is_seeded(magika, tmp_path):
    om, _ = magika
    outputs = []
    for folder in ("a", "b"):
        done = run("ge", "run", str(om), "--output", folder, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        outputs.append(np.load(tmp_path / folder / "target_label.npy"))
    assert np.array_equal(*outputs)


@pytest.mark.parametrize("size,words", [
    ("n=abc", ["E10001", "n=abc"]), ("n", ["E10001", "NAME=NUMBER"]), ("n=-3", ["E10001"]), ("n=3x", ["E10001"]),
    ("m=3", ["E10016", "'m'", "its sizes are"]),
])
def test_sizes_that_cannot_be(size, words, tmp_path):
    assert run("ge", "compile", fetch.fetch("surfaces_mlp"), "-o", "m.om", "--input_shape=input:n,4", cwd=tmp_path).returncode == 0
    done = run("ge", "run", "m.om", "--size", size, cwd=tmp_path)
    assert done.returncode == 1
    for word in words:
        assert word in done.stderr, done.stderr
    assert "f32[5,1]" in run("ge", "run", "m.om", "--size", "n=5", cwd=tmp_path).stdout


def test_ge_explain_inspect_dump_bench(magika):
    om, _ = magika
    onnx_path = fetch.fetch("magika")
    explained = run("ge", "explain", onnx_path)
    assert explained.returncode == 0 and "attention" not in explained.stdout.split("\n")[0], explained.stderr
    assert "fused" in explained.stdout
    for command in (["inspect", str(om)], ["inspect", "--check", str(om)], ["dump", onnx_path],
                    ["bench", str(om)]):
        done = run("ge", *command)
        assert done.returncode == 0 and done.stdout.strip(), (command, done.stderr)


def test_ge_compile(tmp_path):
    done = run("ge", "compile", fetch.fetch("surfaces_mlp"), "-o", "mlp.om", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "mlp.om").exists()


def test_damaged_files_get_an_error(magika, tmp_path):
    data = magika[0].read_bytes()
    bad = tmp_path / "bad.om"
    for size in (0, 10, len(data) // 3, len(data) - 1):
        bad.write_bytes(data[:size])
        for command in ("run", "inspect"):
            done = run("ge", command, str(bad))
            assert done.returncode in range(1, 128), (size, command, done.returncode)
            assert "bad.om" in done.stdout + done.stderr


def test_all_missing_ops_in_one_message(tmp_path):
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    nodes = [helper.make_node("Nope", ["x"], ["a"]), helper.make_node("Never", ["a"], ["y"])]
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:])), path)
    done = run("atc", f"--model={path}", "--framework=5", "--output=m", "--soc_version=cpu", cwd=tmp_path)
    text = done.stdout + done.stderr
    assert done.returncode != 0 and "Nope" in text and "Never" in text
