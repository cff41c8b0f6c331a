"""Fusion under control: the switch file in its three forms, guards, eps, scope, graph options."""

import os

import ge
import numpy as np
import pytest
import simple_attention
from onnx import TensorProto, helper, numpy_helper
from test_cli import run


@pytest.fixture(scope="module")
def attention():
    return simple_attention.export()


@pytest.fixture(scope="module")
def mlp(tmp_path_factory):
    """MatMul, Add, Relu, MatMul, Add."""
    rng = np.random.default_rng(1)
    weights = {"w": rng.standard_normal((8, 16)), "b": rng.standard_normal(16), "v": rng.standard_normal((16, 4)),
               "c": rng.standard_normal(4)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"], name="first"), helper.make_node("Add", ["t", "b"], ["u"], name="bias"),
             helper.make_node("Relu", ["u"], ["r"], name="relu"), helper.make_node("MatMul", ["r", "v"], ["s"], name="second"),
             helper.make_node("Add", ["s", "c"], ["y"], name="last")]
    graph = helper.make_graph(nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
                              [numpy_helper.from_array(a.astype(np.float32), k) for k, a in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return model.SerializeToString()


def rules(model):
    return sorted({f["rule"] for f in model.report()["fused"]})


def write(tmp_path, text):
    path = tmp_path / "fusion.cfg"
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)


ARTICLE = """[matmul_add_fusion]
enable = 1
eps = 1e-5

[conv_bn_relu_fusion]
enable = 1
eps = 1e-4

[flash_attention_fusion]
enable = 1
head_num = 32,64
scale = 0.125
"""


def test_guards_of_the_articles_file(attention, tmp_path):
    assert "attention" in rules(ge.compile(attention))
    model = ge.compile(attention, fusion_switch_file=write(tmp_path, ARTICLE))
    assert "attention" not in rules(model) and "matmul_bias" in rules(model)
    (miss,) = [m for m in model.report()["near_misses"] if m["rule"] == "attention"]
    assert "head_num=32,64: 1 found" in miss["why"] and "scale=0.125: 0.036" in miss["why"]
    allowed = ARTICLE.replace("32,64", "1,32").replace("0.125", "0.0360844")
    assert "attention" in rules(ge.compile(attention, fusion_switch_file=write(tmp_path, allowed)))


@pytest.mark.parametrize("text", [
    "[matmul_add_fusion]\nenable = 0\n",
    '{"Switch": {"GraphFusion": {"MatMulBiasAddFusionPass": "off"}}}',
    "MatMulBiasAddFusionPass:off\n",
    "matmul_bias : off # by its own name",
], ids=["ini", "json", "lines", "own name"])
def test_every_form_switches_the_rule_off(mlp, tmp_path, text):
    assert "matmul_bias" in rules(ge.compile(mlp))
    model = ge.compile(mlp, fusion_switch_file=write(tmp_path, text))
    assert "matmul_bias" not in rules(model)
    assert "matmul_bias" in model.report()["switched_off"]


README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "README.md")


def test_the_readmes_file(attention, tmp_path):
    """As it stands there: indented, with comments behind the values."""
    with open(README, encoding="utf-8") as f:
        text = f.read().split("`--fusion_switch_file=FILE` with INI sections, JSON or lines:")[1].split("`--enable_op_scope_list")[0]
    assert "# guards" in text and "    [matmul_add_fusion]" in text
    model = ge.compile(attention, fusion_switch_file=write(tmp_path, text))
    assert "attention" not in rules(model)
    assert [v["eps"] for v in model.report()["verified"] if v["rule"] == "matmul_bias"] == [1e-5]


@pytest.mark.parametrize("text", [
    "\ufeff[matmul_add_fusion]\r\nenable = 0\r\n", "# of ours\n; and theirs\n\t[ matmul_add_fusion ]\n\tenable:0 ; off\n",
    "[matmul_add_fusion]\nenable = 0" + " " * 1000 + "# " + "x" * 10000 + "\n", "; comment\nMatMulBiasAddFusionPass:OFF\n",
], ids=["mark and carriage returns", "comments", "a long line", "upper case"])
def test_files_of_other_editors(mlp, tmp_path, text):
    assert "matmul_bias" not in rules(ge.compile(mlp, fusion_switch_file=write(tmp_path, text)))


@pytest.mark.parametrize("text", ["", " \n\n", "# nothing\n"], ids=["empty", "blank", "comment"])
def test_files_that_say_nothing(mlp, tmp_path, text):
    assert rules(ge.compile(mlp, fusion_switch_file=write(tmp_path, text))) == rules(ge.compile(mlp))


def test_all_of_one_kind(mlp, tmp_path):
    """Real GE's two kinds: of ours, vector regions and what joins a product in registers are UB fusions."""
    ub = {"vector_region", "cube_epilogue"}
    graph_off = rules(ge.compile(mlp, fusion_switch_file=write(tmp_path, '{"Switch": {"GraphFusion": {"ALL": "off"}}}')))
    assert graph_off and set(graph_off) <= ub
    both = '{"Switch": {"UBFusion": {"ALL": "on"}, "GraphFusion": {"ALL": "off"}}}'
    assert rules(ge.compile(mlp, fusion_switch_file=write(tmp_path, both))) == graph_off
    ub_off = rules(ge.compile(mlp, fusion_switch_file=write(tmp_path, '{"Switch": {"UBFusion": {"ALL": "off"}}}')))
    assert "matmul_bias" in ub_off and not ub & set(ub_off)


def test_all_and_what_beats_it(mlp, tmp_path):
    off = '{"Switch": {"GraphFusion": {"ALL": "off"%s}, "UBFusion": {"ALL": "off"}}}'
    assert rules(ge.compile(mlp, fusion_switch_file=write(tmp_path, off % ""))) == []
    named = ge.compile(mlp, fusion_switch_file=write(tmp_path, off % ', "MatMulBiasAddFusionPass": "on"'))
    assert rules(named) == ["matmul_bias"]
    beaten = ge.compile(mlp, fusion_switch_file=write(tmp_path, off % ""), optimization_switch="matmul_bias:on")
    assert rules(beaten) == ["matmul_bias"]


def test_results_do_not_depend_on_switches(mlp):
    x = np.random.default_rng(2).standard_normal((5, 8)).astype(np.float32)
    want = ge.compile(mlp)(x)
    for options in ({"disable_fusion": "all"}, {"disable_reuse_memory": 1}, {"oo_level": "O1"}, {"topo_sorting_mode": 0},
                    {"topo_sorting_mode": 1}, {"topo_sorting_mode": 2}, {"oo_constant_folding": "false"}):
        np.testing.assert_allclose(ge.compile(mlp, **options)(x), want, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def conv_relu():
    w = numpy_helper.from_array(np.random.default_rng(3).standard_normal((4, 3, 3, 3)).astype(np.float32), "w")
    nodes = [helper.make_node("Conv", ["x", "w"], ["t"], name="conv"), helper.make_node("Relu", ["t"], ["y"], name="relu")]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [1, 3, 8, 8]), ("y", [1, 4, 6, 6]))]
    return helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:], [w]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


@pytest.mark.parametrize("name", ["conv_activation", "conv_bn_relu_fusion"])
def test_an_activation_that_is_switched_off_is_fused_by_no_other_rule(conv_relu, name):
    assert rules(ge.compile(conv_relu)) == ["conv_activation"]
    off = ge.compile(conv_relu, disable_fusion=name)
    assert rules(off) == [] and "conv_activation" in off.report()["switched_off"]
    x = np.random.default_rng(4).standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(off(x), ge.compile(conv_relu)(x), rtol=1e-5, atol=1e-5)


def test_every_name_of_the_list_is_a_switch(mlp):
    """`ge rules` prints rules, passes and the other names of rules; the article's sections are among them."""
    listed = [line.split()[0] for line in run("ge", "rules").stdout.splitlines() if line.startswith("  ")]
    assert {"matmul_bias", "fold", "aliases", "all", "matmul_add_fusion", "flash_attention_fusion", "conv_bn_relu_fusion", "MatMulBiasAddFusionPass"} <= set(listed)
    assert len(set(listed)) == len(listed)
    for name in listed:
        ge.compile(mlp, disable_fusion=name)
    off = ge.compile(mlp, disable_fusion="matmul_add_fusion").report()
    assert not any({"first", "bias"} <= set(f["origins"]) or {"second", "last"} <= set(f["origins"]) for f in off["fused"])


@pytest.mark.parametrize("wrong,near", [("matmul_ad_fusion", "matmul_add_fusion"), ("flash_atention_fusion", "flash_attention_fusion"), ("conv_activaton", "conv_activation")])
def test_a_name_that_is_no_switch(mlp, wrong, near):
    with pytest.raises(ge.Error) as e:
        ge.compile(mlp, disable_fusion=wrong)
    assert e.value.code == "E10001" and wrong in e.value.message and near in e.value.fix and "ge rules" in e.value.fix


def test_scope(mlp):
    model = ge.compile(mlp, enable_op_scope_list="MatMul,Add")
    assert "matmul_bias" in rules(model) and "matmul_activation" not in rules(model)
    assert any("Relu is not in --enable_op_scope_list" in m["why"] for m in model.report()["near_misses"])


def test_regions_that_no_rule_may_enter():
    """Connected nodes outside of the list, and of types that no rule computes, by the reason."""
    info = [helper.make_tensor_value_info(n, t, [4, 4]) for n, t in (("x", TensorProto.FLOAT), ("y", TensorProto.FLOAT), ("z", TensorProto.DOUBLE))]
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="one"), helper.make_node("Tanh", ["a"], ["b"], name="two"),
             helper.make_node("MatMul", ["b", "x"], ["c"], name="product"), helper.make_node("Sigmoid", ["c"], ["y"], name="apart"),
             helper.make_node("Cast", ["x"], ["d"], name="wide", to=TensorProto.DOUBLE), helper.make_node("Tanh", ["d"], ["z"], name="double")]
    model = helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:]), opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    scoped = ge.compile(model, enable_op_scope_list="MatMul,Add")
    closed = {tuple(r["nodes"]): (r["why"], r["help"]) for r in scoped.report()["closed"]}
    assert closed == {("one", "two"): ("not in --enable_op_scope_list", "add Relu to the list, add Tanh to the list"),
                      ("apart",): ("not in --enable_op_scope_list", "add Sigmoid to the list"),
                      ("wide",): ("rules compute no f64", "export the model in float32"),
                      ("double",): ("not in --enable_op_scope_list", "add Tanh to the list")}
    assert "regions no rule may enter: 4" in scoped.explain() and "  one, two: not in --enable_op_scope_list" in scoped.explain()
    assert [(r["nodes"], r["why"]) for r in ge.compile(model).report()["closed"]] == [(["wide", "double"], "rules compute no f64")]


def test_eps_leaves_a_rule_off_where_it_is_exceeded(attention, tmp_path):
    strict = ge.compile(attention, fusion_switch_file=write(tmp_path, "[flash_attention_fusion]\neps = 0\n"))
    (verdict,) = strict.report()["verified"]
    assert verdict["rule"] == "attention" and verdict["difference"] > 0 and verdict["off_at"]
    assert "attention" not in rules(strict)
    lenient = ge.compile(attention, fusion_switch_file=write(tmp_path, "[flash_attention_fusion]\neps = 1e-3\n"))
    assert lenient.report()["verified"][0]["off_at"] == [] and "attention" in rules(lenient)


@pytest.mark.parametrize("text,word", [
    ("[matmul_ad_fusion]\nenable = 1\n", "matmul_add_fusion"),
    ("[matmul_add_fusion]\nenabel = 1\n", "enable"),
    ("[matmul_add_fusion]\nenable = maybe\n", "maybe"),
    ("MatMulBiasAddFusionPas:off\n", "MatMulBiasAddFusionPass"),
    ('{"Switch": {"GraphFusion": {"SoftmaxFusionPas": "off"}}}', "SoftmaxFusionPass"),
    ('{"Switch": ', "JSON"),
    ("[matmul_ad_fusion]\n", "matmul_add_fusion"),
    ("[matmul_add_fusion\nenable = 1\n", "line 1"),
    ("[]\nenable = 1\n", "line 1"),
    ("enable = 1\n[matmul_add_fusion]\n", "enable = 1"),
    ("[matmul_add_fusion]\neps = nan\n", "no number"),
    ("[matmul_add_fusion]\neps = -1\n", "negative"),
    ("[flash_attention_fusion]\nhead_num = 1.5,2\n", "1.5,2"),
    ("[flash_attention_fusion]\nhead_num = 1e300\n", "1e300"),
    ("[flash_attention_fusion]\nhead_num = 32,-4\n", "32,-4"),
    ("[flash_attention_fusion]\nhead_num =\n", "head_num"),
    ('{"Switch": {"GraphFusion": [1]}}', "GraphFusion"),
    ('{"Switch": {"GraphFuson": {"ALL": "off"}}}', "GraphFuson"),
    ('{"Switch": {"GraphFusion": {"ALL": 1}}}', "ALL"),
    ("matmul_bias off\n", "matmul_bias off"),
])
def test_unknown_names(mlp, tmp_path, text, word):
    with pytest.raises(ge.Error) as e:
        ge.compile(mlp, fusion_switch_file=write(tmp_path, text))
    assert word in str(e.value)


def test_graph_options(mlp, tmp_path):
    block = 'ge graph_options {\n op_backend: "aicore" # the one there is\n mem_workspace_size: %d\n enable_mem_reuse: 1\n mem_allocator_strategy: 1\n}\n'
    model = ge.compile(mlp, graph_options=write(tmp_path, block % 8388608), input_shape="x:4,8")
    assert model.report()["op_backend"] == "aicore"
    with pytest.raises(ge.Error) as e:  # KiB in the block, bytes elsewhere
        ge.compile(mlp, mem_workspace_size=16, input_shape="x:400,8")
    assert "arena" in str(e.value) and "mem_workspace_size" in str(e.value)


@pytest.mark.parametrize("text", [
    'ge graph_options { op_backend: "aicore" mem_workspace_size: 8 mem_allocator_strategy: 1 }',
    'graph_options{op_backend:"aicore",mem_workspace_size:8;\n}', "\ufeff# first\nge graph_options\n{ # second\n op_backend: aicore\n mem_workspace_size: 8 } # last",
], ids=["one line", "separators", "comments"])
def test_spellings_of_the_block(mlp, tmp_path, text):
    options = {"graph_options": write(tmp_path, text)}
    assert ge.compile(mlp, input_shape="x:1,8", **options).report()["op_backend"] == "aicore"
    with pytest.raises(ge.Error, match="the limit is 8.0 KiB"):
        ge.compile(mlp, input_shape="x:4000,8", disable_fusion="all", **options)


@pytest.mark.parametrize("text,word", [
    ("", "graph_options {"), ("ge graph_options {", "} is missing"), ("ge graph_options { op_backend }", "op_backend"),
    ('ge graph_options { op_backend: "aicore }', "quote of op_backend"), ("ge graph_options { } op_backend: x", "op_backend: x"),
    ("ge graph_options { mem_workspace_size: 8 GB }", "GB"), ("ge graph_options { mem_workspace_size: -1 }", "-1"),
    ("ge graph_options { enable_mem_resue: 1 }", "did you mean enable_mem_reuse"), ("ge graph_options { op_backend: }", "no value"),
    ('ge graph_options { graph_options: "fusion.cfg" }', "of its own"),
])
def test_blocks_that_cannot_be_read(mlp, tmp_path, monkeypatch, text, word):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ge.Error) as e:
        ge.compile(mlp, graph_options=write(tmp_path, text))
    assert word in str(e.value), str(e.value)


def test_cuts_types_and_formats(mlp):
    x = np.random.default_rng(3).standard_normal((2, 8)).astype(np.float32)
    cut = ge.compile(mlp, out_nodes="relu:0")
    assert cut.outputs[0].shape[1] == 16 and (cut(x) >= 0).all()
    half = ge.compile(mlp, output_type="FP16")
    assert half(x).dtype == np.float16
    np.testing.assert_allclose(half(x), ge.compile(mlp)(x), rtol=2e-3, atol=2e-3)
    with pytest.raises(ge.Error) as e:
        ge.compile(mlp, out_nodes="rel:0")
    assert "relu" in str(e.value)


# --- the limit of the arena

def deep(widths, batch):
    """MatMuls one after another: while one runs, what it reads and what it makes are alive."""
    rng = np.random.default_rng(4)
    nodes, weights, last = [], [], "x"
    for i, (a, b) in enumerate(zip(widths, widths[1:])):
        weights.append(numpy_helper.from_array(rng.standard_normal((a, b)).astype(np.float32), f"w{i}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"t{i}"], name=f"layer{i}"))
        last = f"t{i}"
    graph = helper.make_graph(nodes, "deep", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, widths[0]])],
                              [helper.make_tensor_value_info(last, TensorProto.FLOAT, [batch, widths[-1]])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def many(count, batch):
    """`count` tensors of growing size that are all alive before the first is read."""
    rng = np.random.default_rng(5)
    nodes, weights, info = [], [], []
    for i in range(count):
        weights.append(numpy_helper.from_array(rng.standard_normal((16, 64 * (i + 1))).astype(np.float32), f"w{i}"))
        nodes.append(helper.make_node("MatMul", ["x", f"w{i}"], [f"t{i}"], name=f"make{i}"))
    for i in range(count):
        weights.append(numpy_helper.from_array(rng.standard_normal((64 * (i + 1), 2)).astype(np.float32), f"v{i}"))
        last = [] if i == 0 else [f"s{i - 1}"]
        nodes.append(helper.make_node("Sum" if last else "Identity", [f"p{i}"] + last, [f"s{i}"], name=f"sum{i}"))
        nodes.insert(-1, helper.make_node("MatMul", [f"t{i}", f"v{i}"], [f"p{i}"], name=f"use{i}"))
    info.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 16]))
    graph = helper.make_graph(nodes, "many", info, [helper.make_tensor_value_info(f"s{count - 1}", TensorProto.FLOAT, [batch, 2])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


APART = {"disable_fusion": "matmul_chain"}  # each layer keeps its own tensor


def over(model, **options):
    with pytest.raises(ge.Error) as e:
        ge.compile(model, **{**APART, **options})
    assert e.value.code == "E13023"
    return e.value


def named(error):
    """[(tensor, bytes)] of the message, in its order, and how many more."""
    text = error.message.split("Alive at the peak: ")[1].rstrip(".")
    text, _, more = text.partition(" and ")
    units = {"B": 1, "KiB": 1024, "MiB": 1024**2}
    parts = [part.rsplit("' ", 1) for part in text.split(", ")]
    return [(name[1:], float(size.split()[0]) * units[size.split()[1]]) for name, size in parts], int(more.split()[0]) if more else 0


def test_the_limit_names_what_is_alive_at_the_peak():
    """The second layer reads 256 KiB and makes 512 KiB; the first and the last are far smaller."""
    model = deep([8, 1024, 2048, 8], 64)
    need = ge.compile(model, **APART).report()["memory"]["arena"]
    e = over(model, mem_workspace_size=1000)
    assert "the limit is 1000 B" in e.message and "mem_workspace_size" in e.cause and e.node == "layer1"
    tensors, more = named(e)
    sizes = [s for _, s in tensors]
    assert sizes == sorted(sizes, reverse=True) and more == 0
    assert [t for t in tensors if not t[0].startswith("scratch of ")] == [("t1", 64 * 2048 * 4), ("t0", 64 * 1024 * 4)]
    assert "smaller inputs" in e.fix and f"at least {need} bytes" in e.fix
    assert ge.compile(model, **APART, mem_workspace_size=need).report()["memory"]["arena"] == need
    assert need > 64 * 3072 * 4 - 1 and "Alive at the peak" in over(model, mem_workspace_size=need - 1).message


def test_the_limit_names_a_bounded_number_of_tensors():
    e = over(many(20, 16), mem_workspace_size=1, disable_fusion="all", topo_sorting_mode=0)  # all of them at a time
    tensors, more = named(e)
    sizes = [s for _, s in tensors]
    assert len(tensors) == 8 and more >= 12 and sizes == sorted(sizes, reverse=True)
    assert tensors[0] == ("t19", 16 * 64 * 20 * 4) and tensors[7] == ("t12", 16 * 64 * 13 * 4)
    assert len(str(e)) < 2000


def test_the_limit_says_what_would_help():
    model = deep([8, 512, 512, 512, 512, 8], 64)
    need = ge.compile(model, **APART).report()["memory"]["arena"]
    apart = over(model, mem_workspace_size=need, enable_mem_reuse=0)
    assert "enable_mem_reuse=1" in apart.fix
    assert len(named(apart)[0]) >= 4, "without reuse everything is alive all the time"
    unplanned = over(model, mem_workspace_size=need, mem_allocator_strategy=0)
    assert "mem_allocator_strategy=2" in unplanned.fix
    assert "--input_shape" in over(model, mem_workspace_size=need - 1).fix


def test_the_limit_of_sizes_that_may_change(caplog):
    """It holds for the largest; where there is none a warning says that it was not checked."""
    model = deep([8, 1024, 8], "n")
    e = over(model, mem_workspace_size=100000, input_shape="x:1~64,8")
    assert named(e)[0][0][1] == 64 * 1024 * 4
    assert ge.compile(model, **APART, mem_workspace_size=100000, input_shape="x:1~8,8")
    with caplog.at_level("WARNING", logger="ge"):
        ge.compile(model, **APART, mem_workspace_size=1)
    assert any("mem_workspace_size is not checked" in r.getMessage() and "'n'" in r.getMessage() for r in caplog.records)
