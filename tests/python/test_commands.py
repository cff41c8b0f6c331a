"""The commands that compare and show: verify, diff, report, profile; and what a mistyped name gets."""

import html.parser

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
