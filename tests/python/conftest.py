"""Shared by the Python tests: compiled models, ONNX Runtime as the oracle, no skips under GE_CI."""

import functools
import os
import sys

import numpy as np
import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "models"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    del item, call
    report = (yield).get_result()
    fail_if_skipped(report)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    del collector
    report = (yield).get_result()
    fail_if_skipped(report)


def fail_if_skipped(report):
    """In continuous integration a test that did not run has not passed."""
    if os.environ.get("GE_CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which counts as failed under GE_CI: {report.longrepr}"


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """compiled(path, **options): the path of the .om; each is compiled once a session."""
    import ge
    folder = tmp_path_factory.mktemp("om")

    @functools.lru_cache(maxsize=None)
    def compile_once(path, options):
        om = folder / f"{len(list(folder.iterdir()))}.om"
        ge.compile(path, **dict(options)).save(str(om))
        return str(om)

    return lambda path, **options: compile_once(path, tuple(sorted(options.items())))


@pytest.fixture
def compile_cache(tmp_path_factory, monkeypatch):
    """A compile cache of this session of tests."""
    monkeypatch.setenv("GE_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "ge_cache"))


def reference(path, feeds):
    """ONNX Runtime's outputs."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def difference(got, want, unequal=0):
    """The largest difference over the largest value, NaN and infinities at the same places; of integers and bools at
    most the share `unequal` differs."""
    assert len(got) == len(want)
    worst = 0.0
    for g, w in zip(got, want):
        assert g.dtype == w.dtype and g.shape == w.shape
        if not w.size:
            continue
        if g.dtype.kind != "f":
            assert np.count_nonzero(g != w) <= unequal * w.size, f"{np.count_nonzero(g != w)} of {w.size} differ"
            continue
        g, w = g.astype(np.float64), w.astype(np.float64)
        finite = np.isfinite(w)
        np.testing.assert_array_equal(np.isfinite(g), finite)
        np.testing.assert_array_equal(g[~finite], w[~finite])
        if finite.any():
            worst = max(worst, float(np.abs(g[finite] - w[finite]).max() / (np.abs(w[finite]).max() or 1.0)))
    return worst


def equal(a, b):
    """The same types, shapes and bits."""
    return len(a) == len(b) and all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for x, y in zip(a, b))
