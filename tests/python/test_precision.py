"""Precision: ATC's modes and what refines them, what the report says of them, and two real models in bf16."""

import json

import fetch
import ge
import numpy as np
import pytest
import simple_attention
from conftest import difference, reference
from onnx import TensorProto, helper, numpy_helper

BF16 = {"precision_mode_v2": "mixed_bfloat16"}


@pytest.fixture(scope="module")
def mlp():
    """Gemm, Relu, MatMul: names first, relu, second."""
    rng = np.random.default_rng(1)
    weights = {"w": rng.standard_normal((96, 128)) / 8, "b": rng.standard_normal(128), "v": rng.standard_normal((128, 64)) / 8}
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["t"], name="first"), helper.make_node("Relu", ["t"], ["r"], name="relu"),
             helper.make_node("MatMul", ["r", "v"], ["y"], name="second")]
    graph = helper.make_graph(nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [40, 96])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [40, 64])],
                              [numpy_helper.from_array(a.astype(np.float32), k) for k, a in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def write(tmp_path, text):
    path = tmp_path / "precision.cfg"
    path.write_text(text)
    return str(path)


def bf16_nodes(model):
    """The nodes on bf16 by the name of the model's product in them."""
    return sorted(n.split(".")[0] for n in model.report()["precision"]["bf16"])


def rounded(x):
    """To the nearest bf16."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)


def test_operands_are_rounded_and_sums_are_not(mlp):
    model = ge.compile(mlp, **BF16)
    assert len(model.report()["precision"]["bf16"]) == 2
    x = np.random.default_rng(2).standard_normal((40, 96)).astype(np.float32)
    import onnx
    weights = {i.name: numpy_helper.to_array(i) for i in onnx.load_from_string(mlp).graph.initializer}
    hidden = np.maximum(rounded(x).astype(np.float64) @ rounded(weights["w"]) + weights["b"], 0).astype(np.float32)
    want = rounded(hidden).astype(np.float64) @ rounded(weights["v"])
    # A sum that falls on the other side of a tie moves a hidden value by 2^-8 of itself.
    assert difference([model(x)], [want.astype(np.float32)]) < 2e-4
    plain = ge.compile(mlp)(x)
    assert 1e-4 < difference([model(x)], [plain]) < 1e-2


@pytest.mark.parametrize("option,value,bf16", [
    ("precision_mode", "force_fp32", False), ("precision_mode", "must_keep_origin_dtype", False),
    ("precision_mode", "allow_mix_precision_bf16", True), ("precision_mode", "allow_fp32_to_bf16", True),
    ("precision_mode_v2", "origin", False), ("precision_mode_v2", "mixed_bfloat16", True)])
def test_modes(mlp, option, value, bf16):
    report = ge.compile(mlp, **{option: value}).report()["precision"]
    assert report["mode"] == value and "notes" not in report
    assert len(report["bf16"]) == (2 if bf16 else 0)
    assert [f["why"] for f in report["f32"]] == ([] if bf16 else ["bf16 is not allowed"] * 2)
    if bf16:
        assert report["gain"]["model"] > 1 and "bf16_would" not in report
    else:
        assert report["bf16_would"]["nodes"] == 2 and report["bf16_would"]["model"] > 1


@pytest.mark.parametrize("option,value", [
    ("precision_mode", "force_fp16"), ("precision_mode", "allow_fp32_to_fp16"), ("precision_mode", "allow_mix_precision"),
    ("precision_mode", "allow_mix_precision_fp16"), ("precision_mode", "cube_fp16in_fp32out"),
    ("precision_mode_v2", "fp16"), ("precision_mode_v2", "mixed_float16"), ("precision_mode_v2", "cube_fp16in_fp32out")])
def test_modes_of_f16_keep_f32_and_say_so(mlp, option, value, caplog):
    with caplog.at_level("WARNING", "ge"):
        model = ge.compile(mlp, **{option: value})
    (note,) = model.report()["precision"]["notes"]
    assert value in note and "f32 is kept" in note and note in caplog.text
    assert not model.report()["precision"]["bf16"] and note in model.explain()


@pytest.mark.parametrize("options,code,words", [
    ({"precision_mode": "mixed_bfloat16"}, "E10001", ["it must be one of force_fp32", "a value of precision_mode_v2"]),
    ({"precision_mode_v2": "force_fp32"}, "E10001", ["it must be one of origin", "a value of precision_mode"]),
    ({"precision_mode_v2": "mixed_bfloat"}, "E10001", ["did you mean mixed_bfloat16?"]),
    ({"precision_mode_v2": "cube_hif8"}, "E10001", ["hif8", "mixed_bfloat16"]),
    ({"precision_mode": "force_fp32", "precision_mode_v2": "origin"}, "E10001", ["exclude one another"]),
    ({"input_fp16_nodes": "z"}, "E40002", ["names 'z'", "its inputs are x"])])
def test_wrong_values(mlp, options, code, words):
    with pytest.raises(ge.Error) as caught:
        ge.compile(mlp, **options)
    assert caught.value.code == code or code == "E40002"
    for word in words:
        assert word in str(caught.value)


def test_op_precision_mode(mlp, tmp_path):
    by_type = write(tmp_path, "[ByOpType]\nMatMul=high_precision  # keeps f32\n")
    assert bf16_nodes(ge.compile(mlp, op_precision_mode=by_type, **BF16)) == ["relu"]  # the Gemm, fused
    by_name = write(tmp_path, "[ByNodeName]\nfirst=enable_float_32_execution\n")
    assert bf16_nodes(ge.compile(mlp, op_precision_mode=by_name, **BF16)) == ["second"]
    lower = write(tmp_path, "[ByNodeName]\nsecond=high_performance\n")
    assert bf16_nodes(ge.compile(mlp, op_precision_mode=lower)) == ["second"]
    means_nothing = write(tmp_path, "[ByOpType]\nMatMul=keep_fp16\nRelu=high_performance\n")
    notes = ge.compile(mlp, op_precision_mode=means_nothing).report()["precision"]["notes"]
    assert len(notes) == 2 and "MatMul=keep_fp16 means nothing on a CPU" in notes[0] and "Relu has no bf16 kernel" in notes[1]


@pytest.mark.parametrize("text,words", [
    ("MatMul=high_precision\n", "line 1 is not NAME=VALUE in a section"), ("[ByType]\n", "[ByOpType] and [ByNodeName]"),
    ("[ByOpType]\nMatMul=fast\n", "it must be high_precision"), ("[ByOpType]\nMatMul\n", "line 2")])
def test_op_precision_mode_wrong(mlp, tmp_path, text, words):
    with pytest.raises(ge.Error) as caught:
        ge.compile(mlp, op_precision_mode=write(tmp_path, text))
    assert words in str(caught.value) and "op_precision_mode" in str(caught.value)


@pytest.mark.parametrize("lists,left", [
    ({"black-list": {"to-add": ["MatMul"]}}, ["relu"]), ({"black-list": {"to-add": ["MatMulV2"]}}, []),
    ({"white-list": {"to-remove": ["Gemm"]}}, ["second"]), ({"gray-list": {"to-add": ["Gemm", "MatMul"]}}, []),
    ({"white-list": {"to-add": ["MatMul"]}}, ["relu", "second"]), ({"black-list": {"to-add": ["Relu", "Add"]}}, ["relu", "second"])])
def test_modify_mixlist(mlp, tmp_path, lists, left):
    assert bf16_nodes(ge.compile(mlp, modify_mixlist=write(tmp_path, json.dumps(lists)), **BF16)) == left


@pytest.mark.parametrize("text,words", [
    ("{", "it is no JSON object"), ('{"red-list": {}}', "the lists are black-list"), ('{"black-list": []}', "to-add and to-remove"),
    ('{"black-list": {"add": []}}', "to-add and to-remove"), ('{"black-list": {"to-add": [1]}}', "an array of operator types"),
    ('{"black-list": {"to-add": ["MatMul"]}, "white-list": {"to-add": ["MatMul"]}}', "added to black-list and to white-list")])
def test_modify_mixlist_wrong(mlp, tmp_path, text, words):
    with pytest.raises(ge.Error) as caught:
        ge.compile(mlp, modify_mixlist=write(tmp_path, text), **BF16)
    assert words in str(caught.value)


def test_modify_mixlist_without_a_mixed_mode(mlp, tmp_path, caplog):
    with caplog.at_level("WARNING", "ge"):
        ge.compile(mlp, modify_mixlist=write(tmp_path, '{"black-list": {"to-add": ["MatMul"]}}'))
    assert "modify_mixlist changes nothing" in caplog.text


def test_keep_dtype(mlp, tmp_path, caplog):
    assert bf16_nodes(ge.compile(mlp, keep_dtype=write(tmp_path, "first\n"), **BF16)) == ["second"]
    model = ge.compile(mlp, keep_dtype=write(tmp_path, "OpType::Gemm\nOpType::BatchMatMul\n"), **BF16)
    assert bf16_nodes(model) == []
    assert {f["why"] for f in model.report()["precision"]["f32"]} == {"options keep it in f32"}
    with caplog.at_level("WARNING", "ge"):
        ge.compile(mlp, keep_dtype=write(tmp_path, "secnd\n"), **BF16)
    assert "'secnd'" in caplog.text and "did you mean 'second'?" in caplog.text


def test_input_fp16_nodes(mlp):
    model = ge.compile(mlp, input_fp16_nodes="x")
    assert model.inputs[0].dtype == np.float16
    x = np.random.default_rng(3).standard_normal((40, 96)).astype(np.float16)
    assert difference([model(x)], [ge.compile(mlp)(x.astype(np.float32))]) < 1e-6


def test_raw_options(mlp):
    raw = json.dumps({"compile options": {"graph": {"ge.exec.precision_mode_v2": "mixed_bfloat16"}}})
    assert ge.compile(mlp, raw_ge_options=raw).report()["precision"]["mode"] == "mixed_bfloat16"


def test_precision_check_measures_both_ways(mlp):
    plain, low = ge.compile(mlp, precision_check=True), ge.compile(mlp, precision_check=True, **BF16)
    moved = plain.report()["precision"]["difference"]
    assert moved == low.report()["precision"]["difference"] and 1e-4 < moved < 1e-2
    assert "outputs would move by" in plain.explain() and "outputs moved by" in low.explain()
    assert "difference" not in ge.compile(mlp).report()["precision"]
    assert "--precision_mode_v2=mixed_bfloat16" in ge.compile(mlp).explain()


def test_small_products_stay(tmp_path):
    """Eight columns would be slower on bf16."""
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], name="narrow")], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [100, 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [100, 8])],
                              [numpy_helper.from_array(np.ones((64, 8), np.float32), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (left,) = ge.compile(model, **BF16).report()["precision"]["f32"]
    assert left["node"].startswith("narrow") and "of f32's time" in left["why"]


def test_weights_are_half_as_large(mlp):
    def weights(**options):
        return ge.compile(mlp, **options).memory()["weights"]
    assert weights(**BF16) < 0.6 * weights()


@pytest.mark.parametrize("isa", ["portable", "avx2"])
def test_runs_on_every_cpu(mlp, tmp_path, isa):
    """The file knows no instruction set: where pairs cannot be multiplied they are widened."""
    import os
    import subprocess
    import sys
    om, out = str(tmp_path / "m.om"), str(tmp_path / "y.npy")
    model = ge.compile(mlp, output=om, **BF16)
    x = np.random.default_rng(4).standard_normal((40, 96)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    code = "import ge, numpy, sys; numpy.save(sys.argv[3], ge.load(sys.argv[1])(numpy.load(sys.argv[2])))"
    subprocess.run([sys.executable, "-c", code, om, str(tmp_path / "x.npy"), out], env={**os.environ, "GE_ISA": isa}, check=True)
    assert difference([np.load(out)], [model(x)]) < 1e-3


@pytest.mark.parametrize("name", ["nudenet_yolov8n", "oww_embedding", pytest.param("paraphrase_minilm_l3", marks=pytest.mark.models)])
def test_real_models(name, compiled):
    path, feeds = fetch.fetch(name), fetch.feeds(name)
    model = ge.load(compiled(path, **BF16))
    want = reference(path, feeds)
    assert len(model.report()["precision"]["bf16"]) >= 5
    assert 1e-5 < difference(model.run(feeds), want) <= 3e-2


def test_simple_attention_off_algebra():
    """Attention itself computes on bf16."""
    options = {"disable_fusion": "attention_keys,attention_values"}
    plain, low = ge.compile(simple_attention.export(), **options), ge.compile(simple_attention.export(), **options, **BF16)
    assert len(low.report()["precision"]["bf16"]) == 5
    feeds = {p.name: np.random.default_rng(5).standard_normal([d if isinstance(d, int) else 512 for d in p.shape]).astype(np.float32)
             for p in plain.inputs}
    assert 1e-5 < difference(low.run(feeds), plain.run(feeds)) <= 3e-2
