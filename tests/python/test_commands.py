"""The commands that compare and show: verify, diff, report, profile; and what a mistyped name gets."""

import html.parser
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from test_cli import run


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A product, a sum and an activation over a batch of any size; a name that HTML would read as a tag."""
    random = np.random.default_rng(3)
    weights = [onnx.numpy_helper.from_array(random.standard_normal(shape, np.float32), name) for name, shape in (("w", (300, 40)), ("b", (40,)))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"], name="<product>"), helper.make_node("Add", ["t", "b"], ["s"], name="sum"),
             helper.make_node("Softmax", ["s"], ["y"], name="soft")]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 300])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 40])
    path = tmp_path_factory.mktemp("commands") / "m.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "a & b", [x], [y], weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def test_verify_judges_by_the_tolerance(model):
    good = run("ge", "verify", model)
    assert good.returncode == 0 and good.stdout.startswith("y f32[4,40]: "), good.stdout + good.stderr
    # Sums in another order: 300 products cannot come out the same to the last bit everywhere.
    exact = run("ge", "verify", model, "--tolerance=0")
    assert exact.returncode == 1 and "1 of 1 outputs differ by more than 0" in exact.stderr, exact.stdout + exact.stderr
    rough = run("ge", "verify", model, "--precision_mode_v2=mixed_bfloat16", "--tolerance=1e-5", "--size=batch=64")
    assert rough.returncode == 1 and "y f32[64,40]" in rough.stdout, rough.stdout + rough.stderr


def test_diff_tells_what_differs(model, tmp_path):
    for name, options in (("a", []), ("b", ["--disable_fusion=matmul_bias"])):
        done = run("ge", "compile", model, *options, "-o", tmp_path / f"{name}.om")
        assert done.returncode == 0, done.stderr
    done = run("ge", "diff", tmp_path / "a.om", tmp_path / "b.om")
    assert done.returncode == 0 and "signature: the same (2)" in done.stdout and "\n  - matmul_bias at " in done.stdout, done.stdout + done.stderr
    assert "y f32[4,40]: " in done.stdout
    same = run("ge", "diff", tmp_path / "a.om", model)
    assert same.returncode == 0 and "  -" not in same.stdout and "  +" not in same.stdout and "y f32[4,40]: equal" in same.stdout, same.stdout
    cut = run("ge", "diff", tmp_path / "a.om", tmp_path / "nothing.om")
    assert cut.returncode == 1 and "E10410" in cut.stderr


class Page(html.parser.HTMLParser):
    """Counts what a browser would see, and the tags that are not closed."""

    def __init__(self):
        super().__init__()
        self.tags, self.open, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in ("meta", "html"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "html":
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("more", [[], ["--profile", "--size=batch=9"]], ids=["plain", "profile"])
def test_the_report_is_a_sound_page(model, more, tmp_path):
    done = run("ge", "report", model, "-o", tmp_path / "m.html", *more)
    assert done.returncode == 0, done.stderr
    page = Page()
    page.feed((tmp_path / "m.html").read_text())
    assert not page.open and "a & b" in page.text and "<product>" in page.text
    assert "product" not in page.tags and "script" not in page.tags
    assert page.tags.count("svg") == 1
    assert f"batch = {9 if more else 4}" in page.text and ("share" in page.text) == bool(more)
    assert "http" not in (tmp_path / "m.html").read_text()


def test_profile_lists_every_task(model, tmp_path):
    assert run("ge", "compile", model, "-o", tmp_path / "m.om").returncode == 0
    tasks = int(run("ge", "inspect", tmp_path / "m.om").stdout.split("tasks: ")[1].split("\n")[0])
    done = run("ge", "profile", tmp_path / "m.om", "--duration=0.01")
    assert done.returncode == 0 and done.stdout.count(" chunks  ") == tasks, done.stdout + done.stderr
    kernels = done.stdout.split("kernels:\n")[1].split("tasks, each")[0].splitlines()
    shares = [float(line.split()[2]) for line in kernels]
    assert sum(int(line.split()[5]) for line in kernels) == tasks and shares == sorted(shares, reverse=True) and abs(sum(shares) - 100) < len(shares), kernels


def test_profile_of_sizes_that_data_decide(tmp_path):
    """Tasks of a later segment are bound in the run alone."""
    nodes = [helper.make_node("NonZero", ["x"], ["at"]), helper.make_node("Cast", ["at"], ["f"], to=TensorProto.FLOAT), helper.make_node("Exp", ["f"], ["y"], name="last")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    assert run("ge", "compile", tmp_path / "m.onnx", "-o", tmp_path / "m.om").returncode == 0
    done = run("ge", "profile", tmp_path / "m.om", "--duration=0.01")
    assert done.returncode == 0 and "-  chunks  last" in done.stdout.replace("- chunks", "-  chunks") and "NonZero" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("arguments,near", [
    (["complie", "m.onnx"], "compile"), (["compile", "m.onnx", "--input_shpe=x:3"], "--input_shape"), (["run", "m.om", "--treads=2"], "--threads")])
def test_mistyped_names_get_the_nearest(arguments, near):
    done = run("ge", *arguments)
    assert done.returncode != 0 and f"did you mean {near}?" in done.stderr, done.stderr


def test_ge_atc_is_atc(model, tmp_path):
    done = run("ge", "atc", f"--model={model}", "--framework=5", "--output=m", "--soc_version=cpu", cwd=tmp_path)
    assert done.returncode == 0 and "ATC run success" in done.stdout and (tmp_path / "m.om").exists()
    assert run("ge", "atc", "--help").stdout == run("atc", "--help").stdout


SUBCOMMANDS = ["compile", "run", "explain", "inspect", "dump", "bench", "profile", "verify", "diff", "report", "plan", "roofline", "cache", "ops", "rules"]


@pytest.mark.parametrize("command", SUBCOMMANDS)
def test_every_option_is_described(command):
    text = re.sub(r"(?m)^(  \S.*\S)\n {10,}", r"\1  ", run("ge", command, "--help").stdout)   # behind a long name it stands in the next line
    options = [line for line in text.splitlines() if re.match(r"  -", line)]
    bare = [line for line in options if not re.match(r"  -\S+( [A-Z][\w:.{},]*)*( \.\.\.)? {2,}\S.*\w", line)]
    assert options and not bare, bare


def test_every_subcommand_is_among_those():
    listed = re.findall(r"^  (\w+) ", run("ge", "--help").stdout.split("Subcommands:")[1], re.M)
    assert set(listed) - {"atc"} == set(SUBCOMMANDS)
    described = [line for line in run("atc", "--help").stdout.splitlines()[1:] if line.strip()]
    assert all(re.match(r"  --\w+ +\S.*\w", line) for line in described)


def test_sizes_that_nobody_gives_are_said(model, tmp_path):
    om = tmp_path / "m.om"
    assert run("ge", "compile", model, "-o", om).returncode == 0
    silent = run("ge", "run", om)
    assert "[4,40]" in silent.stdout and "batch=4" in silent.stderr and "--size" in silent.stderr
    given = run("ge", "run", om, "--size=batch=9")
    assert "[9,40]" in given.stdout and given.stderr == ""
    np.save(tmp_path / "x.npy", np.zeros((3, 300), np.float32))
    fed = run("ge", "run", om, f"--input=x={tmp_path / 'x.npy'}")
    assert "[3,40]" in fed.stdout and fed.stderr == ""
    bench = run("ge", "bench", om, "--duration=0.01", "--size=batch=7")
    assert bench.stdout.startswith("sizes batch=7\n") and bench.stderr == ""
    timed = run("ge", "bench", om, "--duration=0.01", "--json")
    assert json.loads(timed.stdout)["sizes"] == {"batch": 4} and "batch=4" in timed.stderr


def test_an_input_says_the_sizes_of_the_others(tmp_path):
    nodes = [helper.make_node("Add", ["x", "y"], ["z"])]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 2]) for n in "xyz"]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", info[:2], info[2:]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    assert run("ge", "compile", tmp_path / "m.onnx").returncode == 0
    np.save(tmp_path / "y.npy", np.zeros((3, 2), np.float32))
    done = run("ge", "run", tmp_path / "m.om", f"--input=y={tmp_path / 'y.npy'}")
    assert done.returncode == 0 and "z f32[3,2]" in done.stdout and done.stderr == "", done.stderr


def test_inspect_says_which_sizes_are_open_and_what_they_cost(tmp_path):
    """Between two products stand 40 numbers a row."""
    weights = [onnx.numpy_helper.from_array(np.ones(s, np.float32), n) for n, s in (("w", (300, 40)), ("v", (40, 8)))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Softmax", ["t"], ["s"]), helper.make_node("Sqrt", ["s"], ["r"]), helper.make_node("MatMul", ["r", "v"], ["y"])]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", k]) for n, k in (("x", 300), ("y", 8))]
    model, om = tmp_path / "m.onnx", tmp_path / "m.om"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:], weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=9), model)
    assert run("ge", "compile", model, "--input_shape=x:batch=2~64,300", "-o", om).returncode == 0
    text = run("ge", "inspect", om).stdout
    assert "size: batch: 2 to 64 (axis 0 of x)\n" in text and "arena: by the sizes (--size batch=4 gives it)" in text
    bytes_of_one = re.search(r"tensors take (\d+)\*batch bytes at the peak", text)
    assert bytes_of_one and int(bytes_of_one[1]) >= 40 * 4, text
    assert run("ge", "compile", model, "--input_hint_shape=0:[8,300]", "-o", om).returncode == 0
    hinted = run("ge", "inspect", om).stdout
    assert "size: batch: 0 and more" in hinted and "arena for batch=8: " in hinted and "arena for others: by the sizes" in hinted
    sized = run("ge", "inspect", om, "--size=batch=8").stdout.splitlines()[-1]
    assert sized.split(": ")[1].split(" for")[0] == hinted.split("arena for batch=8: ")[1].split(" for")[0]


def bytes_of(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_model_is_not_overwritten_by_its_result(model, tmp_path):
    """By its own path, by a link to it, by another name of it; nor are the files of its weights."""
    import ge
    proto = onnx.load(model)
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "link.om").symlink_to("m.onnx")
    os.link(tmp_path / "m.onnx", tmp_path / "other.om")
    os.link(tmp_path / "m.data", tmp_path / "weights.om")
    before = bytes_of(tmp_path)
    path = tmp_path / "m.onnx"
    for output in ("m.onnx", "link.om", "other.om", "m.data", "weights.om"):
        done = run("ge", "compile", path, "-o", tmp_path / output)
        assert done.returncode == 1 and "E13004" in done.stderr and "is not written" in done.stderr, output
        with pytest.raises(ge.Error, match="is not written"):
            ge.compile(path).save(tmp_path / output)
        if output.endswith(".om"):
            done = run("atc", f"--model={path}", "--framework=5", f"--output={tmp_path / output}", "--soc_version=cpu", cwd=tmp_path)
            assert done.returncode == 1 and "is not written" in done.stderr, output
            (tmp_path / "check_result.json").unlink(missing_ok=True)
    page = run("ge", "report", path, "-o", path)
    assert page.returncode == 1 and "is not written" in page.stderr
    json_text = run("atc", "--mode=1", f"--om={path}", f"--json={path}", cwd=tmp_path)
    assert json_text.returncode == 1 and "is not written" in json_text.stderr
    assert bytes_of(tmp_path) == before
    assert run("ge", "compile", path, "-o", tmp_path / "new.om").returncode == 0
    assert run("ge", "compile", path, "-o", tmp_path / "new.om").returncode == 0, "a result of before is replaced"


def test_what_is_killed_leaves_nothing(model, tmp_path):
    """Whenever it is killed, files that are there have their own names and are whole."""
    os.link(model, tmp_path / "m.onnx")
    for k in range(25):
        process = subprocess.Popen([os.path.join(os.path.dirname(sys.executable), "ge"), "compile", tmp_path / "m.onnx"], stdout=subprocess.DEVNULL)
        time.sleep(0.002 * k)
        process.send_signal(signal.SIGKILL)
        process.wait()
        names = {p.name for p in tmp_path.iterdir()}
        assert names <= {"m.onnx", "m.om"}, names
        if "m.om" in names:
            assert run("ge", "inspect", tmp_path / "m.om", "--check").returncode == 0
            (tmp_path / "m.om").unlink()


def test_a_compiled_model_in_place_of_an_onnx_one_and_the_other_way(model, tmp_path):
    om = tmp_path / "m.om"
    assert run("ge", "compile", model, "-o", om).returncode == 0
    assert "compiled already" in run("ge", "compile", om, "-o", tmp_path / "n.om").stderr
    assert "`ge compile`" in run("ge", "run", model).stderr


def test_operators_by_a_part_of_their_name():
    lines = run("ge", "ops", "conv").stdout.splitlines()
    assert {"Conv", "ConvTranspose", "QLinearConv"} <= {line.split()[0] for line in lines} and all("conv" in line.lower() for line in lines[1:])
    assert not any(line.startswith("ge.") for line in run("ge", "ops").stdout.splitlines()), "what the passes make is no model's"
    wrong = run("ge", "ops", "ConvTransposed")
    assert wrong.returncode == 1 and "did you mean Conv" in wrong.stderr


def test_the_cache_names_its_models(model, tmp_path):
    cache = tmp_path / "cache"
    assert run("ge", "compile", model, "-o", tmp_path / "m.om", "--op_compiler_cache_mode=enable", f"--op_compiler_cache_dir={cache}").returncode == 0
    (cache / ("0" * 64 + ".om")).write_bytes(b"cut")
    text = run("ge", "cache", "list", "--dir", cache).stdout
    assert re.search(r"  [0-9a-f]{64} .*iB  a & b\n", text) and "(cannot be read)" in text and "2 models" in text, text
