"""The article's programs and listings, as their author wrote them (tests/python/article), and the API they use."""

import os
import re
import subprocess
import sys
import textwrap
import time

import ge
import numpy as np
import pytest
import simple_attention
import torch
from conftest import reference
from ge import export as ge_export
from ge import session

ARTICLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "article")


def listing(name):
    with open(os.path.join(ARTICLE, name), encoding="utf-8") as f:
        return f.read()


def python(folder, program, timeout=600, **environment):
    """Runs the program text in `folder`; what it printed."""
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], cwd=folder, capture_output=True, text=True, encoding="utf-8",
                          env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment}, timeout=timeout, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def command(name, *arguments, cwd):
    """`atc` and `ge` as the package installs them."""
    return subprocess.run([sys.executable, "-c", f"from ge import _cli; _cli.{name}()", *arguments], cwd=cwd,
                          capture_output=True, text=True, timeout=300, check=False)


class Small(torch.nn.Module):
    def __init__(self, wide=8):
        super().__init__()
        torch.manual_seed(1)
        self.one, self.two = torch.nn.Linear(4, wide), torch.nn.Linear(wide, 3)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.two(self.drop(torch.relu(self.one(x))))


X = torch.linspace(-1, 1, 8).reshape(2, 4)


def close(got, want):
    got, want = np.asarray(got), want.detach().numpy()
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


# --- listings

CHECK = """
assert om_model == "simple_attention.om"
assert torch.allclose(output, model(input_data), atol=1e-5)
"""


def test_minimal_program(tmp_path):
    start = time.perf_counter()
    out = python(tmp_path, listing("minimal.py") + CHECK)
    elapsed = time.perf_counter() - start
    lines = out.strip().split("\n")
    assert lines[0] == "[GE] No NPU here: .npu() leaves tensors and modules on the CPU"
    assert lines[1:3] == ["[GE] Graph build started...", "[GE] Memory reuse enabled, planning..."]
    # Four Linear layers of two operators each; MatMul, Div, Softmax, MatMul.
    assert lines[3] == "[GE] Planning completed, fusion 12 operators"
    seconds = float(re.fullmatch(r"\[GE\] Graph compile completed in (\d+\.\d\d)s", lines[4])[1])
    assert 0 < seconds < elapsed
    assert lines[5:] == ["输出 shape: torch.Size([1, 512, 768])", "输出设备: cpu"]
    model = ge.load(tmp_path / "simple_attention.om")
    assert sorted(f["rule"] for f in model.report()["fused"])[0] == "attention"
    assert "simple_attention" in command_output("inspect", tmp_path / "simple_attention.om")


def command_output(*arguments):
    done = command("ge", *map(str, arguments), cwd=ARTICLE)
    assert done.returncode == 0, done.stderr
    return done.stdout


SHARDS = """
import ge
import torch
torch.manual_seed(3)
encoder, decoder = torch.nn.Linear(6, 5), torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU())
x = torch.randn(2, 6)
encoder_model = torch.jit.trace(encoder, x)
decoder_model = torch.jit.trace(decoder, encoder(x).detach())
"""
SHARDS_AGAIN = """
compiled = ge.compile
ge.compile = None  # the files are enough
one, two = ge.session.load_om_model("encoder.om"), ge.session.load_om_model("decoder.om")
assert torch.allclose(two.run(one.run(x)), decoder(encoder(x)), atol=1e-6)
"""


def test_sharded_listing(tmp_path):
    out = python(tmp_path, SHARDS + listing("sharded.py") + SHARDS_AGAIN)
    assert out.count("[GE] Graph build started...") == 2
    assert re.findall(r"fusion (\d+) operators", out) == [str(ge.load(tmp_path / f"{name}.om").fused_operators())
                                                          for name in ("encoder", "decoder")]
    assert {p.name for p in tmp_path.glob("*.om")} == {"encoder.om", "decoder.om"}


BENCHMARK = """
import sys
import acl
import ge
from ge.session import load_om_model, run_om
acl.init()                   # before torch is imported
sys.path.insert(0, {models!r})
import simple_attention
SimpleAttention = simple_attention.build
ge.run({onnx!r}, output="simple_attention.om")
"""


@pytest.mark.slow
def test_benchmark_listing(tmp_path):
    prologue = BENCHMARK.format(models=os.path.dirname(simple_attention.__file__), onnx=simple_attention.export(2048))
    # One thread: on a busy machine PyTorch's threads wait for one another for minutes.
    lines = python(tmp_path, prologue + listing("benchmark.py"), OMP_NUM_THREADS="1").strip().split("\n")
    assert sum(line.startswith("[GE] No NPU here") for line in lines) == 1  # said when torch is imported
    numbers = [float(re.search(r": (-?[\d.]+)(ms|%)$", line)[1]) for line in lines[-3:]]
    assert numbers[0] > 0 and numbers[1] > 0
    assert numbers[2] == pytest.approx(100 * (1 - numbers[1] / numbers[0]), abs=0.1)


def test_the_articles_commands(tmp_path):
    """Export, atc, atc with the switch file: as typed, except that torch.onnx is no command."""
    (tmp_path / "model.py").write_text(listing("minimal.py").split("# 第三步")[0].replace("import ge\nimport acl", "")
                                       .replace("acl.init()\nge.init()", ""), encoding="utf-8")
    torch.save(torch.randn(1, 512, 768), tmp_path / "input.pt")
    done = command("ge", "export", "--model=model.py", "--input=input.pt", "--output=model.onnx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    atc = ["--model=model.onnx", "--framework=5", "--output=model_om", "--soc_version=Ascend910"]
    done = command("atc", *atc, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[GE] Planning completed, fusion 12 operators" in done.stdout
    fused = ge.load(tmp_path / "model_om.om")
    (tmp_path / "fusion_config.cfg").write_text(listing("fusion_config.cfg"), encoding="utf-8")
    done = command("atc", *atc, "--enable_op_scope_list=MatMul,Add,Reshape,Softmax",
                   "--fusion_switch_file=fusion_config.cfg", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    guarded = ge.load(tmp_path / "model_om.om")
    assert "attention" in [f["rule"] for f in fused.report()["fused"]]
    assert "attention" not in [f["rule"] for f in guarded.report()["fused"]]
    (miss,) = [m for m in guarded.report()["near_misses"] if m["rule"] == "attention"]
    assert "head_num" in miss["why"] and "1" in miss["why"], miss
    assert "[GE] WARN: Fusion pattern MatMul+Softmax+MatMul not matched" in done.stdout
    x = torch.randn(1, 512, 768).numpy()
    np.testing.assert_allclose(fused(x), guarded(x), rtol=1e-4, atol=1e-5)


def test_the_articles_graph_options(tmp_path):
    (tmp_path / "options.cfg").write_text(listing("graph_options.cfg"), encoding="utf-8")
    model = ge.compile(Small(), example_inputs=X, graph_options=str(tmp_path / "options.cfg"))
    assert model.report()["op_backend"] == "aicore"
    with pytest.raises(ge.Error, match="mem_workspace_size"):
        (tmp_path / "options.cfg").write_text("ge graph_options { mem_workspace_size: 1 # KiB\n}\n")
        ge.compile(Small(wide=400), example_inputs=X, graph_options=str(tmp_path / "options.cfg"))


# --- build_graph and what it takes

def kinds():
    model = Small().eval()
    return {
        "traced": (torch.jit.trace(model, X), {}),
        "traced function": (torch.jit.trace(lambda a: torch.relu(a) @ a.T, X), {}),
        "scripted": (torch.jit.script(model), {"example_inputs": X}),
        "scripted, inputs by name": (torch.jit.script(model), {"example_inputs": {"x": X}}),
        "exported": (torch.export.export(model, (X,)), {}),
        "plain": (model, {"example_inputs": (X,)}),
        "plain, inputs by name": (model, {"example_inputs": {"x": X}}),
        "plain, shape": (model, {"options": ge.GraphOptions(input_shape="x:2,4")}),
    }


@pytest.mark.parametrize("kind", kinds())
def test_build_graph_takes(kind, tmp_path, capfd):
    model, arguments = kinds()[kind]
    graph = ge.Graph("small")
    assert ge.build_graph(graph, model, **arguments) is graph
    captured = capfd.readouterr()
    assert captured.err == "" and all(line.startswith("[GE] ") for line in captured.out.strip().split("\n"))
    path = graph.export(tmp_path / "small")
    assert path == str(tmp_path / "small.om")
    want = model.module()(X) if kind == "exported" else model(X)
    (port,) = graph.model.inputs
    assert port.shape == (2, 4) and (port.name == "x" or kind == "traced function")
    close(session.Session().load_model(path).run(X), want)


def test_shapes_that_are_not_known(tmp_path):
    torch.jit.save(torch.jit.trace(Small().eval(), X), str(tmp_path / "trace.pt"))
    for model in (Small(), torch.jit.script(Small()), torch.jit.load(str(tmp_path / "trace.pt"))):
        with pytest.raises(ge.Error, match="shapes of .* are not known") as e:
            ge.build_graph(ge.Graph("g"), model)
        assert "example_inputs" in e.value.fix and "input_shape" in e.value.fix and "torch.jit.trace" in e.value.fix


def test_two_inputs_of_two_types():
    class Scale(torch.nn.Module):
        def forward(self, x, k):
            return x * k.to(x.dtype), k + 1
    k = torch.tensor(3)
    traced = torch.jit.trace(Scale(), (X, k))
    model = ge.compile(traced)
    assert [(p.name, str(p.dtype), p.shape) for p in model.inputs] == [("x", "float32", (2, 4)), ("k", "int64", ())]
    for given in (model(X, k), session.Session.run(loaded(model), {"k": k, "x": X}), session.Session.run(loaded(model), [X, k])):
        close(given[0], X * 3)
        assert int(given[1]) == 4


def loaded(model):
    s = session.Session()
    s.model = model
    return s


def test_options_by_attribute(capsys):
    options = ge.GraphOptions()
    options.enable_mem_reuse = False
    options.disable_fusion = "all"
    graph = ge.build_graph(ge.Graph("g"), torch.jit.trace(Small().eval(), X), options)
    out = capsys.readouterr().out
    assert "Memory reuse disabled" in out and "fusion 0 operators" in out
    assert not graph.model.report()["fused"]
    options.enable_mem_resue = True
    with pytest.raises(ge.Error, match="did you mean enable_mem_reuse"):
        ge.build_graph(ge.Graph("g"), torch.jit.trace(Small().eval(), X), options)


def test_workspace_limit():
    wide = torch.jit.trace(Small(wide=4000).eval(), torch.ones(100, 4))
    options = ge.GraphOptions(mem_workspace_size=1000)
    with pytest.raises(ge.Error, match="limit is 1000") as e:
        ge.build_graph(ge.Graph("g"), wide, options)
    assert "mem_workspace_size" in e.value.cause


def test_near_misses_are_said(capsys):
    class Blocked(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = torch.nn.Parameter(torch.ones(4, 3)), torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            y = x @ self.w
            return y + self.b, y  # another reader: the sum cannot be part of the product
    graph = ge.build_graph(ge.Graph("g"), torch.jit.trace(Blocked(), X))
    out = capsys.readouterr().out
    assert "[GE] WARN: Fusion pattern MatMul+Add not matched" in out
    (miss,) = [m for m in graph.model.report()["near_misses"] if m["rule"] == "matmul_bias"]
    assert f"rule matmul_bias at node {miss['anchor']}: {miss['why']}" in out


def test_empty_things():
    with pytest.raises(ge.Error, match="'nothing' is empty"):
        ge.Graph("nothing").export("x.om")
    with pytest.raises(ge.Error, match="no model"):
        session.Session().run(X)
    assert ge.init() == 0 and ge.init({"ge.exec.deviceId": "0"}) == 0 and ge.finalize() == 0


def test_ge_tensor():
    import ge.ge_tensor as gt
    t = gt.from_torch(X, "x")
    assert t.shape == (2, 4) and t.dtype == np.float32 and t.name == "x"
    assert torch.equal(t.torch(), X) and np.array_equal(t.numpy(), X.numpy())
    close(session.Session.run(loaded(ge.compile(Small(), example_inputs=X)), t), Small().eval()(X))
    assert gt.from_numpy(np.zeros(3)).dtype == np.float64


def test_a_static_model_fed_another_shape(tmp_path):
    ge.compile(torch.jit.trace(Small().eval(), X), output=tmp_path / "s")
    s = session.Session().load_model(tmp_path / "s.om")
    with pytest.raises(ge.Error) as e:
        s.run(torch.zeros(3, 4))
    assert "Input shape is not supported: dynamic shape detected" in str(e.value)
    assert "Input 'x' has shape [3,4], the model takes [2,4]: axis 0 is 3 instead of 2, which the model fixes" in e.value.message
    assert "--input_shape" in e.value.fix


# --- ge.compile with modules

def test_compile_a_module_leaves_it_as_it_was(capfd):
    model = Small()
    model.one.eval()  # a mixture of modes
    capfd.readouterr()
    compiled = ge.compile(model, example_inputs=X)
    assert capfd.readouterr() == ("", "")
    assert model.training and model.drop.training and not model.one.training
    close(compiled(X), Small().eval()(X))


@pytest.mark.parametrize("script", [False, True], ids=["torch.export", "TorchScript"])
@pytest.mark.parametrize("shapes", [
    ({0: torch.export.Dim("rows")},), {"x": {0: torch.export.Dim("rows")}}, {"x": {0: "rows"}},
    {"x": {0: torch.export.Dim.DYNAMIC}},
], ids=["tuple", "dict", "text", "hint"])
def test_dynamic_shapes(shapes, script):
    model = Small().eval()
    compiled = ge.compile(torch.jit.script(model) if script else model, example_inputs=X, dynamic_shapes=shapes)
    (port,) = compiled.inputs
    assert isinstance(port.shape[0], str) and port.shape[1] == 4
    if "DYNAMIC" not in repr(shapes):
        assert port.shape[0] == "rows"
    for rows in (1, 2, 7, 64):
        x = torch.randn(rows, 4)
        close(compiled(x), model(x))


@pytest.mark.parametrize("shape,symbol,good,bad", [
    ("x:-1,4", None, (1, 9), ()), ("x:3~8,4", None, (3, 8), (2, 9)), ({"x": ["batch", 4]}, "batch", (1, 5), ()),
], ids=["any", "range", "name"])
@pytest.mark.parametrize("traced", [False, True], ids=["plain", "traced"])
def test_input_shape_makes_sizes_dynamic(shape, symbol, good, bad, traced):
    model = Small().eval()
    compiled = ge.compile(torch.jit.trace(model, X) if traced else model, input_shape=shape)
    assert isinstance(compiled.inputs[0].shape[0], str)
    assert symbol in (None, compiled.inputs[0].shape[0])
    for rows in good:
        x = torch.randn(rows, 4)
        close(compiled(x), model(x))
    for rows in bad:
        with pytest.raises(ge.Error, match="allowed are 3 to 8"):
            compiled(torch.randn(rows, 4))


class Branches(torch.nn.Module):
    """The article's DynamicModel: which branch runs hangs on a size."""

    def __init__(self):
        super().__init__()
        self.large_branch, self.small_branch = Small(), Small(wide=5)

    def forward(self, x):
        return self.large_branch(x) if x.shape[0] > 10 else self.small_branch(x)


@pytest.mark.parametrize("given,good,bad", [
    ({"dynamic_shapes": ({0: torch.export.Dim("n")},)}, (11, 50), (10, 1)),
    ({"dynamic_shapes": ({0: torch.export.Dim("n", max=32)},)}, (11, 32), (10, 33)),
    ({"dynamic_shapes": ({0: torch.export.Dim("n", min=3, max=9)},), "example_inputs": torch.randn(5, 4)}, (3, 9), (2, 10, 11)),
    ({"dynamic_shapes": {"x": {0: "n"}}}, (11, 50), (10,)),
    ({"input_shape": "x:-1,4", "example_inputs": None}, (2, 10), (11,)),
    ({"input_shape": "x:4~64,4", "example_inputs": None}, (4, 10), (3, 11)),
    ({"input_shape": "x:12~64,4", "example_inputs": None}, (12, 64), (11, 65)),
], ids=["any", "at most", "between", "text", "input_shape", "input_shape of both", "input_shape of one"])
def test_a_branch_on_a_shape_limits_it(given, good, bad):
    """torch.export takes the branch of the example; other sizes are refused rather than computed by it."""
    model = Branches().eval()
    compiled = ge.compile(model, **{"example_inputs": torch.randn(20, 4), **given})
    assert isinstance(compiled.inputs[0].shape[0], str)
    for n in good:
        x = torch.randn(n, 4)
        close(compiled(x), model(x))
    for n in bad:
        with pytest.raises(ge.Error, match=f"is {n}, allowed are"):
            compiled(torch.randn(n, 4))


# Four ways to say which sizes there will be; the text of the report, and sizes of both sides.
SCRIPTED = {
    "any": ({}, "If node /If: sizes n >= 11 take then_branch, n <= 10 take else_branch", (1, 10, 11, 40)),
    "both": ({"input_shape": "x:4~64,4"}, "If node /If: sizes x_0 >= 11 take then_branch, x_0 <= 10 take else_branch", (4, 10, 11, 64)),
    "large": ({"input_shape": "x:11~64,4"}, "If node /If: all sizes take then_branch", (11, 64)),
    "small": ({"input_shape": "x:1~10,4"}, "If node /If: all sizes take else_branch", (1, 10)),
    "gears": ({"input_shape": "x:-1,4", "dynamic_batch_size": "1,8,32"},
              "If node /If: gears (gear_batch) 32 take then_branch, gears (gear_batch) 1; 8 take else_branch", (1, 8, 32)),
    "small gears": ({"input_shape": "x:-1,4", "dynamic_batch_size": "1,8"}, "If node /If: all sizes take else_branch", (1, 8)),
}


@pytest.mark.parametrize("way", SCRIPTED)
def test_a_scripted_branch_on_a_shape(way, tmp_path):
    """The article's DynamicModel through torch.jit.script: both branches are there, fused, and the report says which
    sizes each serves; where sizes are limited to one of them, that one stands in the If's place."""
    options, said, sizes = SCRIPTED[way]
    model = Branches().eval()
    torch.onnx.export(torch.jit.script(model), (torch.randn(20, 4),), str(tmp_path / "m.onnx"), dynamo=False, input_names=["x"],
                      dynamic_axes={"x": {0: "n"}})
    compiled = ge.compile(tmp_path / "m.onnx", **options)
    assert said.replace("x_0", compiled.inputs[0].shape[0]) in compiled.explain().split("\n")
    report = compiled.report()
    (branch,) = report["branches"]
    both = branch["taken"] == ""
    assert both == ("take then_branch," in said) and branch["by"] == "sizes"
    graphs = {"then_branch of /If", "else_branch of /If"} if both else {None}
    assert {f.get("graph") for f in report["fused"]} == graphs
    assert {(b["graph"], b["fused"] > 0) for b in report["bodies"]} == ({(g, True) for g in graphs} if both else set())
    if both:
        assert all(f["rule"] == "matmul_activation" for f in report["fused"]) and len(report["fused"]) == 2
    compiled.save(str(tmp_path / "m.om"))
    for m in (compiled, ge.load(tmp_path / "m.om")):
        for n in sizes:
            x = torch.randn(n, 4)
            close(m(x), model(x))


def test_scripted_modules_are_compiled_as_they_are():
    model = Branches().eval()
    compiled = ge.compile(torch.jit.script(model), example_inputs=torch.randn(3, 4), dynamic_shapes={"x": {0: "n"}})
    assert "sizes n >= 11 take then_branch, n <= 10 take else_branch" in compiled.explain()
    for n in (1, 10, 11, 30):
        x = torch.randn(n, 4)
        close(compiled(x), model(x))


class WithCache(torch.nn.Module):
    """The article's StaticModel: branches are made when they are first needed, and kept in a plain dict."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def _build_branch(self, batch_size):
        torch.manual_seed(batch_size)
        return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU()).eval()

    def forward(self, x):
        batch_size = x.shape[0] if self.training else 1
        key = f"bs_{batch_size}"
        if key not in self.cache:
            self.cache[key] = self._build_branch(batch_size)
        return self.cache[key](x)


def test_a_static_choice_with_a_cache():
    model, x = WithCache().eval(), torch.randn(2, 3, 8, 8)
    want = model(x)  # fills the cache
    compiled = ge.compile(model, example_inputs=x, dynamic_shapes=({0: torch.export.Dim("n")},))
    (fused,) = compiled.report()["fused"]
    assert fused["rule"] == "conv_activation" and not compiled.report()["branches"]
    assert not [m for m in compiled.report()["near_misses"] if m["rule"].startswith("conv")]
    close(compiled(x), want)
    other = torch.randn(5, 3, 8, 8)
    close(compiled(other), model(other))
    with pytest.raises(ge.Error, match="PyTorch cannot export WithCache") as e:
        ge.compile(WithCache().eval(), example_inputs=x)  # would make its weights while it is exported
    assert e.value.fix


def test_both_exporters_give_the_same_fusions():
    x = torch.randn(1, 512, 768)
    want = simple_attention.build()(x)
    rules = []
    for dynamo in (True, False):
        model = ge.compile(simple_attention.export(512, dynamo))
        assert model.fused_operators() == 12, "each operator counts once"
        rules.append(sorted(f["rule"] for f in model.report()["fused"]))
        close(model(x), want)
    assert rules[0] == rules[1] and "attention" in rules[0]


def test_what_pytorch_cannot_export_is_said():
    class Strange(torch.nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x - 1
    with pytest.raises(ge.Error, match="PyTorch cannot export Strange to ONNX") as e:
        ge.compile(Strange(), example_inputs=X)
    assert e.value.code == "E13005" and e.value.fix
    with pytest.raises(ge.Error, match="no input 'y'"):
        ge.compile(torch.jit.trace(Small().eval(), X), example_inputs={"y": X})
    with pytest.raises(ge.Error, match="belong to a torch module"):
        ge.compile(simple_attention.export(512), example_inputs=X)


# --- ge export

NET = """
import torch
class Net(torch.nn.Module):
    def forward(self, x, y=None):
        return x * 2 if y is None else x * y
"""
TWO = NET + "class Other(Net): pass\n"


@pytest.mark.parametrize("source,inputs,want", [
    (NET, X, X * 2), (NET + "model = Net()", (X,), X * 2), (NET + "model = Net()", [X], X * 2),
    (NET, {"x": X, "y": X}, X * X), (NET, (X, X), X * X),
    (TWO + "def get_model(): return Net()", X, X * 2), (TWO + "model = Net()\ndef get_model(): raise 1", X, X * 2),
    (NET + "model = torch.jit.trace(Net(), torch.zeros(2, 4))", X, X * 2),
    ("import helper\nmodel = helper.make()", X, X * 2),
], ids=["only class", "model", "list", "dict", "tuple", "get_model", "model before get_model", "trace", "imports beside"])
def test_export_finds_the_model(source, inputs, want, tmp_path):
    (tmp_path / "model.py").write_text(source)
    (tmp_path / "helper.py").write_text(NET + "def make(): return Net()\n")
    sys.modules.pop("helper", None)
    torch.save(inputs, tmp_path / "input.pt")
    out = ge_export.export(tmp_path / "model.py", tmp_path / "input.pt", tmp_path / "out.onnx")
    assert out == str(tmp_path / "out.onnx")
    assert sorted(p.name for p in tmp_path.glob("*.onnx*")) == ["out.onnx"]
    tensors = list(inputs.values()) if isinstance(inputs, dict) else list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    model = ge.compile(tmp_path / "out.onnx")
    close(model(*tensors), want)
    (ort,) = reference(out, {p.name: t.numpy() for p, t in zip(model.inputs, tensors)})
    close(ort, want)


@pytest.mark.parametrize("source,words", [
    (None, ["model.py", "does not exist"]),
    ("x = 1\n", ["does not say which", "neither `model`"]),
    (TWO, ["does not say which", "Net, Other", "get_model"]),
    (NET.replace("def forward", "def __init__(self, n): pass\n    def forward"), ["Net", "without arguments"]),
    (NET + "def get_model(): return 3", ["get_model()", "int"]),
    ("import torch\n1/0\n", ["cannot be run", "ZeroDivisionError", "line 2"]),
    ("class (", ["cannot be run", "SyntaxError"]),
], ids=["no file", "no model", "two classes", "arguments", "not a module", "raises", "syntax"])
def test_export_says_what_it_found(source, words, tmp_path):
    if source is not None:
        (tmp_path / "model.py").write_text(source)
    torch.save(X, tmp_path / "input.pt")
    with pytest.raises(ge.Error) as e:
        ge_export.export(tmp_path / "model.py", tmp_path / "input.pt", tmp_path / "out.onnx")
    for word in words:
        assert word in str(e.value), str(e.value)
    assert not list(tmp_path.glob("*.onnx*")) and not list(tmp_path.glob(".ge*"))


def test_export_refuses_other_inputs_and_outputs(tmp_path):
    (tmp_path / "model.py").write_text(NET)
    torch.save(X, tmp_path / "input.pt")
    torch.save({"x": "text"}, tmp_path / "text.pt")
    torch.save(Small(), tmp_path / "pickled.pt")  # weights_only refuses what could run code
    (tmp_path / "broken.pt").write_bytes(b"PK broken")
    for name, word in (("no.pt", "does not exist"), ("text.pt", "holds str"), ("pickled.pt", "cannot be read"),
                       ("broken.pt", "cannot be read")):
        with pytest.raises(ge.Error, match=word) as e:
            ge_export.export(tmp_path / "model.py", tmp_path / name, tmp_path / "out.onnx")
        assert name in str(e.value)
    for output in (tmp_path / "no folder" / "out.onnx", tmp_path):
        with pytest.raises(ge.Error, match="cannot be written"):
            ge_export.export(tmp_path / "model.py", tmp_path / "input.pt", output)


def test_export_commands(tmp_path):
    (tmp_path / "model.py").write_text(NET)
    torch.save(X, tmp_path / "input.pt")
    arguments = ["--model=model.py", "--input=input.pt"]
    ways = {"a": lambda *a: command("ge", "export", *a, cwd=tmp_path),
            "b": lambda *a: subprocess.run([sys.executable, "-m", "ge.export", *a], cwd=tmp_path, capture_output=True,
                                           text=True, check=False)}
    for name, way in ways.items():
        done = way(*arguments, f"--output={name}.onnx")
        assert (done.returncode, done.stdout, done.stderr) == (0, f"[GE] {name}.onnx written\n", "")
        close(ge.compile(tmp_path / f"{name}.onnx")(X), X * 2)
        done = way("--model=nothing.py", "--input=input.pt", "--output=c.onnx")
        assert done.returncode == 1 and done.stderr.startswith("[GE] ERROR: E10410: File nothing.py does not exist.")
    assert "ge export" in command("ge", "--help", cwd=tmp_path).stdout
    assert textwrap.dedent(command("ge", "export", "--help", cwd=tmp_path).stdout).startswith("usage: ge export")
