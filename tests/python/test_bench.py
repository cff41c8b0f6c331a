"""The benchmark's arithmetic, on engines made up for it, and one tiny model through all of it."""

import json
import math
import os
import subprocess
import sys

import ge
import numpy as np
import onnx
import pytest
from conftest import ROOT
from onnx import helper, numpy_helper

sys.path.insert(0, os.path.join(ROOT, "bench"))
import f32_form  # noqa: E402
import interleave  # noqa: E402
import models  # noqa: E402
import score  # noqa: E402
import table  # noqa: E402


class Engine:
    """Stands where interleave starts a process: runs take the seconds of its script, one entry for each turn."""

    def __init__(self, times, outputs=((1.0, 2.0),), create=1.0, peak=10.0, cannot=None):
        self.times, self.values, self.create, self.peak, self.cannot = times, outputs, create, peak, cannot

    def __call__(self, engine, turns):
        if self.cannot:
            raise RuntimeError(self.cannot)
        self.engine, self.turns, self.at, self.closed = engine, turns, 0, False
        self.start = {"create_ms": self.create, "first_ms": 1.0, "peak_mb": self.peak}
        return self

    def turn(self, least, seconds):
        del least
        if seconds > 0.2:  # not the warming turn
            self.turns.append(self.engine)
            self.at += 1
        return [self.times[self.at - 1]] * 3

    def cpu_seconds(self):
        return 0.0

    def outputs(self):
        return [np.array(v, np.float32) for v in self.values]

    def close(self):
        self.closed = True


def compare(engines, tmp_path, **options):
    turns = []
    result = interleave.compare(dict.fromkeys(engines, "model"), 1, {}, tmp_path, rounds=3,
                                start=lambda engine, *_: engines[engine](engine, turns), **options)
    return result, turns


def test_the_ratio_is_the_median_of_the_ratios_within_a_round(tmp_path):
    # The machine gets slower from round to round; within each, GE stays 2, 3 and 2 times as fast.
    engines = {"ge": Engine([0.1, 0.2, 0.4]), "onnxruntime": Engine([0.2, 0.6, 0.8])}
    result, turns = compare(engines, tmp_path)
    assert result["onnxruntime"]["ratios"] == pytest.approx([2, 3, 2])
    assert result["onnxruntime"]["ratio"] == pytest.approx(2)
    assert result["ge"]["ratio"] == 1
    assert result["ge"]["ms"] == pytest.approx(200) and result["onnxruntime"]["ms"] == pytest.approx(600)
    assert turns == ["ge", "onnxruntime", "onnxruntime", "ge", "ge", "onnxruntime"], "who starts changes"
    assert all(e.closed for e in engines.values())


def test_a_peer_that_cannot_run_a_model_is_left_out(tmp_path):
    engines = {"ge": Engine([0.1] * 3), "onnxruntime": Engine([0.3] * 3), "openvino": Engine([], cannot="no such operator")}
    result, _ = compare(engines, tmp_path, tolerant=True)
    assert result["openvino"] == {"error": "no such operator"}
    assert score.failure(result) is None and score.better_peer(result) == "onnxruntime"
    assert score.ratio(result, "openvino") is None and score.ratio(result, "better") == pytest.approx(3)
    assert score.summary({"m": result}, "openvino")["count"] == 0
    with pytest.raises(RuntimeError, match="no such operator"):
        compare(engines, tmp_path)


def test_failing_counts_one_half(tmp_path):
    fails, turns = compare({"ge": Engine([], cannot="E19010"), "onnxruntime": Engine([0.1] * 3)}, tmp_path, tolerant=True)
    assert turns == [] and score.failure(fails) == "E19010"
    good, _ = compare({"ge": Engine([0.1] * 3), "onnxruntime": Engine([0.2] * 3)}, tmp_path)
    for peer in ("onnxruntime", "openvino", "better"):
        assert score.ratio(fails, peer) == 0.5
    s = score.summary({"good": good, "fails": fails}, "onnxruntime")
    assert s["geomean"] == pytest.approx(1.0) and (s["least"], s["slowest"], s["count"]) == (0.5, "fails", 2)


@pytest.mark.parametrize("outputs", [((1.0, 2.1),), ((1.0, math.nan),), ((1.0, 2.0, 3.0),), ((1.0, 2.0), (1.0,))])
def test_disagreeing_counts_one_half(outputs, tmp_path):
    result, _ = compare({"ge": Engine([0.1] * 3, outputs), "onnxruntime": Engine([0.2] * 3)}, tmp_path)
    assert "differ" in score.failure(result) and score.ratio(result, "onnxruntime") == 0.5


def test_models_of_few_bits_may_differ_by_more(tmp_path):
    result, _ = compare({"ge": Engine([0.1] * 3, ((1.0, 2.05),)), "onnxruntime": Engine([0.2] * 3)}, tmp_path)
    assert "differ" in score.failure(result)
    result["ge"]["allowed"] = score.ROUNDED["allowed"]
    assert score.failure(result) is None and score.better_peer(result) == "onnxruntime"


def test_onnx_runtime_judges_and_a_peer_that_is_wrong_is_no_peer(tmp_path):
    engines = {"ge": Engine([0.1] * 3), "onnxruntime": Engine([0.2] * 3), "openvino": Engine([0.05] * 3, ((9.0, 9.0),))}
    result, _ = compare(engines, tmp_path)
    assert score.failure(result) is None
    assert score.better_peer(result) == "onnxruntime" and score.ratio(result, "better") == pytest.approx(2)
    engines["onnxruntime"], engines["openvino"] = Engine([0.2] * 3, ((9.0, 9.0),)), Engine([0.05] * 3)
    result, _ = compare(engines, tmp_path)
    assert score.ratio(result, "openvino") == 0.5, "agreeing with another peer does not help"


def test_the_better_peer_is_the_faster_one(tmp_path):
    engines = {"ge": Engine([0.1] * 3, peak=6.0), "onnxruntime": Engine([0.2] * 3),
               "openvino": Engine([0.05] * 3, create=3.0, peak=12.0)}
    result, _ = compare(engines, tmp_path)
    assert score.better_peer(result) == "openvino" and score.ratio(result, "better") == pytest.approx(0.5)
    assert score.ratio(result, "onnxruntime") == pytest.approx(2)
    assert score.costs({"m": result}) == pytest.approx({"start": 2.0 / 4.0, "peak_mb": 0.5})


def test_late_starts():
    def run(start, ms, megabytes):
        return {"ge": {"create_ms": 1.0, "first_ms": start - 1.0, "ms": ms, "file_mb": megabytes, "ratio": 1.0},
                "onnxruntime": {"ratio": 2.0, "difference": 0.0}}
    results = {"quick": run(20, 10, 50), "late": run(20.5, 10, 50), "fails": {"ge": {"error": "E1"}}}
    assert score.late_starts(results) == pytest.approx({"late": 0.5})


def test_geomean_and_floors():
    assert score.geomean([0.5, 2.0]) == pytest.approx(1.0)
    assert score.geomean([8.0, 1.0, 1.0]) == pytest.approx(2.0)
    assert math.isnan(score.geomean([]))
    fine = {"geomean": 1.0, "ratios": {"a": 0.5, "b": 2.0}}
    assert score.below(fine, 0.8, 0.5) == []
    assert score.below(fine, 1.1, 0.6) == ["geomean: 1.00, under 1.1", "a: 0.50, under 0.6"]
    assert score.below({"geomean": float("nan"), "ratios": {}}, 0.8, 0.5), "nothing measured is not a pass"


def test_difference():
    a = np.array([1.0, -4.0], np.float32)
    assert interleave.difference([a], [a + np.float32([0, 1])]) == pytest.approx(1 / 3)
    assert interleave.difference([np.array([1, 2])], [np.array([1, 3])]) == float("inf")
    assert interleave.difference([np.arange(200)], [np.arange(200) // 199 + np.arange(200)], 0.01) == 0
    assert interleave.difference([np.arange(50)], [np.arange(50) // 49 + np.arange(50)], 0.01) == float("inf")
    assert interleave.difference([a], [a.astype(np.float64)]) == float("inf")
    special = np.array([1.0, np.nan, np.inf], np.float32)
    assert interleave.difference([special], [special]) == 0
    assert interleave.difference([special], [np.array([1.0, np.nan, -np.inf], np.float32)]) == float("inf")
    assert interleave.difference([np.zeros((0, 2))], [np.zeros((0, 2))]) == 0


def test_one_model_runs_through_all_of_it(tmp_path, capfd):
    output = tmp_path / "numbers.json"
    status = models.main(["--warm=0", "surfaces_mlp", "--rounds", "2", "--seconds", "0.01", "--threads", "1", "--with", "onnxruntime",
                          "--output", str(output)])
    text = capfd.readouterr().out
    assert status == 0 and "surfaces_mlp" in text and "counts 0.5" not in text
    results = json.loads(output.read_text())["results"]
    assert [r["model"] for r in results] == ["surfaces_mlp", "surfaces_mlp/one", "surfaces_mlp/many"]
    for result in results:
        assert result["threads"] == 1
        for engine in ("ge", "onnxruntime"):
            assert result[engine]["ms"] > 0 and result[engine]["difference"] <= 1e-6 and len(result[engine]["ratios"]) == 2
    with pytest.raises(SystemExit, match="no model nonsense"):
        models.main(["nonsense"])


def dynamically_quantised(seed=3):
    """x -> bytes -> product with bytes -> f32, as quantisers write it, and its weights as numbers."""
    rng = np.random.default_rng(seed)
    w, zero, scale = rng.integers(-100, 100, (8, 5), dtype=np.int8), np.int8(3), np.float32(0.02)
    nodes = [helper.make_node("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"]),
             helper.make_node("MatMulInteger", ["xq", "w", "xz", "wz"], ["sums"]),
             helper.make_node("Cast", ["sums"], ["f"], to=onnx.TensorProto.FLOAT),
             helper.make_node("Mul", ["xs", "ws"], ["s"]),
             helper.make_node("Mul", ["f", "s"], ["y"])]
    constants = [numpy_helper.from_array(np.asarray(v), n) for n, v in (("w", w), ("wz", zero), ("ws", scale))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4, 8])],
                              [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [4, 5])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, (w.astype(np.float32) - zero) * scale


def test_f32_form_computes_with_the_numbers_that_the_bytes_stand_for(tmp_path):
    model, weights = dynamically_quantised()
    path = str(tmp_path / "q.onnx")
    onnx.save(model, path)
    assert f32_form.is_rounded(model)
    form = f32_form.f32_form(path)
    assert not f32_form.is_rounded(form)
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    exact, rounded = ge.compile(form).run({"x": x})[0], ge.compile(path).run({"x": x})[0]
    np.testing.assert_allclose(exact, x @ weights, rtol=1e-5, atol=1e-5)
    assert 0 < np.abs(exact - rounded).max() < 0.1 * np.abs(exact).max()


def test_a_relu_hides_in_bytes_above_a_zero_point_of_zero(tmp_path):
    constants = [numpy_helper.from_array(np.float32(0.1), "s"), numpy_helper.from_array(np.uint8(0), "z")]
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3])],
                              [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3])], constants)
    path = str(tmp_path / "q.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    got = ge.compile(f32_form.f32_form(path)).run({"x": np.float32([-1, 0.25, 2])})[0]
    np.testing.assert_array_equal(got, np.float32([0, 0.25, 2]))


def test_the_table_says_who_fails_and_who_cannot_run_it():
    good = {"ge": {"ms": 1.0, "allowed": 1e-3}, "onnxruntime": {"ratio": 1.5, "difference": 2e-6}, "openvino": {"error": "no"}}
    lines = list(table.rows({"a": good, "b": {"ge": {"error": "broken"}}}))
    assert "| a | 2e-06 | 1.00 | 1.50 | cannot run it |" in lines
    assert any(line.startswith("| b | fails: broken") for line in lines)


def test_the_tables_of_the_article_that_only_compile_and_plan():
    """Small models, GE alone; sharing one set of buffers between the layers takes less than one for each."""
    run = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "article.py"), "--small", "--tables", "3,4"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    rest = {line.rsplit(None, 2)[0].strip(): float(line.split()[-1]) for line in run.stdout.splitlines() if line.startswith(("  one set a layer", "  planned", "  every tensor"))}
    assert rest["planned"] < rest["one set a layer"] < rest["every tensor its own"]
