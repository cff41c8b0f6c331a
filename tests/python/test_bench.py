"""The benchmark's arithmetic, on engines made up for it, and one tiny model through all of it."""

import json
import math
import os
import sys

import numpy as np
import pytest
from conftest import ROOT

sys.path.insert(0, os.path.join(ROOT, "bench"))
import interleave  # noqa: E402
import models  # noqa: E402
import score  # noqa: E402


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
    status = models.main(["surfaces_mlp", "--rounds", "2", "--seconds", "0.01", "--threads", "1", "--with", "onnxruntime",
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
