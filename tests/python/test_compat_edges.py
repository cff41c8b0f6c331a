"""Where ge.compat.onnxruntime and ONNX Runtime might part: copies, processes, odd feeds, wrong models, many callers."""

import copy
import multiprocessing
import os
import pickle
import signal
import threading
import weakref

import ge.compat.onnxruntime as ours
import numpy as np
import onnx
import onnxruntime as theirs
import pytest
from onnx import TensorProto, helper, numpy_helper
from side_by_side import FEED, TWO, F, W, X, agree, both, info, model, outcome, relu, same

pytestmark = pytest.mark.usefixtures("compile_cache")
I64 = TensorProto.INT64


# --- copies and references

MAKERS = {
    "session": lambda m, s: s, "native": lambda m, s: s._sess, "options": lambda m, s: m.SessionOptions(), "run options": lambda m, s: m.RunOptions(),
    "input": lambda m, s: s.get_inputs()[0], "meta": lambda m, s: s.get_modelmeta(), "value": lambda m, s: m.OrtValue.ortvalue_from_numpy(X),
    "level": lambda m, s: m.GraphOptimizationLevel.ORT_ENABLE_BASIC,
}


@pytest.mark.parametrize("how", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_copies(make, how):
    got, want = both(lambda m, s: how(make(m, s)) is not None)
    assert got[0] == want[0]
    if got[0] == "TypeError" and "pybind11_state" in got[1]:
        assert got == want


def test_errors_can_be_pickled():
    def call(m, s):
        try:
            s.run(["q"], FEED)
        except Exception as e:
            return [str(pickle.loads(pickle.dumps(e))), e.args, str(copy.copy(e))]
        return None
    assert "Invalid output name:q" in agree(call)[0]


@pytest.mark.parametrize("make", [MAKERS[k] for k in ("session", "options", "run options")])
def test_weak_references(make):
    def call(m, s):
        thing = make(m, s)
        return weakref.ref(thing)() is thing
    assert agree(call)


def test_what_a_model_says_cannot_be_changed():
    def call(m, s):
        del m
        s.get_inputs()[0].shape.append(9)
        return [outcome(setattr, s.get_inputs()[0], name, "q")[0] for name in ("name", "type", "shape")], s.get_inputs()[0].shape
    agree(call)


def test_a_session_keeps_its_options():
    def call(m, s):
        del s
        o = m.SessionOptions()
        o.intra_op_num_threads, o.logid = 1, "first"
        o.add_session_config_entry("key", "first")
        session = m.InferenceSession(TWO, o)
        o.intra_op_num_threads, o.logid = 3, "second"
        o.add_session_config_entry("key", "second")
        kept = session.get_session_options()
        session.set_providers()
        return [kept.intra_op_num_threads, kept.logid, kept.get_session_config_entry("key"), kept is o, session.get_session_options().logid]
    agree(call)


@pytest.mark.parametrize("key,value", [("", "v"), ("k" * 1024, "v"), ("k" * 1025, "v"), ("k", "v" * 8192), ("k", "v" * 8193), ("k", "")])
def test_lengths_of_entries(key, value):
    for options, add in (("SessionOptions", "add_session_config_entry"), ("RunOptions", "add_run_config_entry")):
        got, want = (outcome(getattr(getattr(m, options)(), add), key, value) for m in (ours, theirs))
        assert got == want


@pytest.mark.parametrize("change", [{"intra_op_num_threads": -1}, {"intra_op_num_threads": 99}, {"inter_op_num_threads": -2}, {"inter_op_num_threads": 3},
                                    {"log_severity_level": 9}, {"log_severity_level": 4}, {"enable_mem_reuse": False}, {"enable_mem_pattern": False},
                                    {"enable_cpu_mem_arena": False}, {"use_deterministic_compute": True}, {"execution_mode": "ORT_PARALLEL"}],
                         ids=lambda c: "-".join(c))
def test_sessions_with_options(change, capfd):
    def call(m, s):
        del s
        o = m.SessionOptions()
        for name, value in change.items():
            setattr(o, name, getattr(m.ExecutionMode, value) if name == "execution_mode" else value)
        return m.InferenceSession(TWO, o).run(None, FEED)
    got, want = both(call)
    assert got[0] == want[0]
    if got[0] == "value":
        same(got[1], want[1])
    capfd.readouterr()


@pytest.mark.parametrize("options", [None, {}, 0])
def test_no_options(options):
    agree(lambda m, s: m.InferenceSession(TWO, options).run(None, FEED))


# --- odd feeds

@pytest.mark.parametrize("x", [
    np.ma.array(X), X.view(type("Mine", (np.ndarray,), {})), np.lib.stride_tricks.as_strided(X, (2, 3), (0, 4)), X[::-1, ::-1], [X[0], X[1]], [[1.5, 2, 3]],
    np.zeros((0, 3), F), np.full((2, 3), np.nan, F)], ids=["masked", "subclass", "repeated", "reversed", "rows", "list", "empty", "nan"])
def test_feeds(x):
    agree(lambda _, s: s.run(["r"], {"x": x, "y": X[:1]}))


def test_feeds_that_cannot_be_written():
    x = X.copy()
    x.setflags(write=False)
    results = agree(lambda _, s: s.run(["r"], {"x": x, "y": x}))
    results[0][:] = 0  # the caller's own


def test_feeds_of_the_other_byte_order():
    """Here GE parts from ONNX Runtime, which takes the bytes as they lie."""
    session = ours.InferenceSession(TWO)
    same(session.run(None, {n: a.astype(">f4") for n, a in FEED.items()}), session.run(None, FEED))


@pytest.mark.parametrize("x", [["a"], [], (1, 2), "text", b"bytes", np.zeros((2, 3), "m8[s]"), np.zeros((2, 3), "f2"), X > 1, X.astype(object), np.float64(3),
                               np.zeros((2, 3, 1), F), np.array(1, F)], ids=lambda x: f"{type(x).__name__}-{getattr(x, 'dtype', '')}")
def test_feeds_that_are_refused(x):
    got, want = both(lambda _, s: s.run(None, {"x": x, "y": X}))
    assert got[0] == want[0] != "value" and got[1].startswith(want[1][:40]), (got, want)


@pytest.mark.parametrize("names,feed", [([None], FEED), ([1], FEED), ([""], FEED), ("", FEED), (None, {}), (None, {"x": X, "q": X}), (None, {b"x": X, "y": X}),
                                        (b"r", FEED), (["r"], {**FEED, "é": X}), (["r", "é"], FEED)], ids=str)
def test_names_that_are_refused(names, feed):
    got, want = both(lambda _, s: s.run(names, feed))
    assert got[0] == want[0] and (got[0] == "value" or got[1][:30] == want[1][:30]), (got, want)


@pytest.mark.parametrize("names", [{"r"}, {"m": 1, "r": 2}.keys(), {1: "m", 2: "r"}.values(), frozenset(["m"]), np.array(["r"]).tolist()], ids=repr)
def test_names_in_other_lists(names):
    agree(lambda _, s: s.run(names, FEED))
    agree(lambda _, s: [s.run((n for n in ("m", "r")), FEED), s.run(map(str, ("m", "r")), FEED)])


@pytest.mark.parametrize("shape,feed", [(["N", 3], (0, 3)), ([2, 3], (0, 3)), (["a", "b", "c"], (3, 0, 2)), (["a", "b", "c"], (0, 0, 0)), ([0], (0,)), ([0], (1,)),
                                        ([1], ()), ([1, 1], (1,))], ids=str)
def test_sizes(shape, feed):
    got, want = both(lambda _, s: s.run(None, {"x": np.ones(feed, F)}), relu(shape))
    assert got[0] == want[0]
    same(got[1], want[1]) if got[0] == "value" else None


@pytest.mark.parametrize("feed", [(1, 1), (1, 3), (3, 1), (2, 3), (1, 4), (0, 1), (1, 1)], ids=str)
def test_ranks_that_hang_on_sizes(feed):
    source = model([helper.make_node("Squeeze", ["x"], ["s"]), helper.make_node("Neg", ["s"], ["y"])], [info("x", ["N", "M"])], [info("y", [])])
    agree(lambda _, s: [s.run(None, {"x": np.arange(np.prod(f)).reshape(f).astype(F)}) for f in (feed, (2, 2), feed)], source)


def test_torch_tensors_are_refused():
    import torch
    got, want = both(lambda _, s: s.run(None, {"x": torch.from_numpy(X.copy()), "y": X}))
    assert got == want and got[0] == "RuntimeError"


# --- errors of loading and of running, by class

def changed(**fields):
    m = onnx.load_from_string(TWO)
    for name, value in fields.items():
        if name == "opset":
            del m.opset_import[:]
            m.opset_import.extend([helper.make_opsetid("", value)] if value else [])
        else:
            m.ClearField(name)
    return m.SerializeToString()


def weights(**fields):
    t = numpy_helper.from_array(W, "w")
    if "cut" in fields:
        t.raw_data = t.raw_data[:fields["cut"]]
    if "first" in fields:
        t.dims[0] = fields["first"]
    if "location" in fields:
        t = TensorProto(name="w", dims=W.shape, data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
        t.external_data.add(key="location", value=fields["location"])
    return model([helper.make_node("MatMul", ["x", "w"], ["y"])], [info("x", ["N", 3])], [info("y", None)], [t])


def of(*nodes, inputs=None, outputs=None):
    return model([helper.make_node(op, i, o, **a) for op, i, o, a in nodes], inputs or [info("x", [1, 2])], outputs or [info("y", None)])


WRONG = {
    "unknown operator": of(("NoSuch", ["x"], ["y"], {})),
    "unknown domain": of(("NoSuch", ["x"], ["y"], {"domain": "a.b"})),
    "unknown operator of Microsoft": of(("NoSuch", ["x"], ["y"], {"domain": "com.microsoft"})),
    "nothing defines it": of(("Relu", ["q"], ["y"], {})),
    "no such output": of(("Relu", ["x"], ["y"], {}), outputs=[info("z", None)]),
    "cycle": of(("Add", ["x", "b"], ["a"], {}), ("Relu", ["a"], ["b"], {}), outputs=[info("b", None)]),
    "defined twice": of(("Relu", ["x"], ["y"], {}), ("Abs", ["x"], ["y"], {})),
    "input twice": of(("Relu", ["x"], ["y"], {}), inputs=[info("x", [1]), info("x", [1])]),
    "no axis": of(("Concat", ["x", "x"], ["y"], {})),
    "bad axis": of(("Concat", ["x", "x"], ["y"], {"axis": 5})),
    "inner sizes": of(("MatMul", ["x", "x"], ["y"], {})),
    "two types": of(("Add", ["x", "i"], ["y"], {}), inputs=[info("x", [1]), info("i", [1], I64)]),
    "strings": of(("Relu", ["x"], ["y"], {}), inputs=[info("x", [1], TensorProto.STRING)], outputs=[info("y", None, TensorProto.STRING)]),
    "too many inputs": of(("Relu", ["x", "x"], ["y"], {})),
    "too few inputs": of(("MatMul", ["x"], ["y"], {})),
    "opset 99": changed(opset=99), "opset 3": changed(opset=3), "no opset": changed(opset=0), "no graph": changed(graph=None),
    "cut weights": weights(cut=8), "negative weights": weights(first=-1), "no file": weights(location="no_such_file"),
}


@pytest.mark.parametrize("source", WRONG.values(), ids=WRONG)
def test_models_that_are_wrong(source, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(source)
    for given in (source, str(path), path):
        got, want = (outcome(m.InferenceSession, given) for m in (ours, theirs))
        assert got[0] == want[0] != "value", (got, want)
        assert got[1].split(" : ")[:3] == want[1].split(" : ")[:3]
    if source == WRONG["no file"]:
        path.write_bytes(weights(location="../../../etc/passwd"))
        got, want = (outcome(m.InferenceSession, str(path))[0] for m in (ours, theirs))
        assert got == want == "Fail"


RUNS = {
    "Reshape": ([info("x", ["N"])], [numpy_helper.from_array(np.array([4, -1]), "s")], {"x": np.ones(6, F)}, {}),
    "Concat": ([info("x", ["N", "M"]), info("z", ["N", "K"])], [], {"x": np.ones((2, 3), F), "z": np.ones((2, 4), F)}, {"axis": 0}),
    "MatMul": ([info("x", ["N", "M"]), info("z", ["K", "L"])], [], {"x": np.ones((2, 3), F), "z": np.ones((2, 4), F)}, {}),
    "Gather": ([info("x", ["N"]), info("i", ["K"], I64)], [], {"x": X[0], "i": np.array([-9])}, {}),
    "GatherND": ([info("x", ["N"]), info("i", ["K", 1], I64)], [], {"x": X[0], "i": np.array([[-9]])}, {}),
    "ScatterND": ([info("x", ["N"]), info("i", ["K", 1], I64), info("u", ["K"])], [], {"x": X[0], "i": np.array([[9]]), "u": np.ones(1, F)}, {}),
    "ScatterElements": ([info("x", ["N"]), info("i", ["K"], I64), info("u", ["K"])], [], {"x": X[0], "i": np.array([9]), "u": np.ones(1, F)}, {}),
    "Conv": ([info("x", ["N", "C", "H", "W"])], [numpy_helper.from_array(np.ones((2, 3, 3, 3), F), "w")], {"x": np.ones((1, 4, 5, 5), F)}, {}),
}


@pytest.mark.parametrize("op", RUNS)
def test_runs_that_fail(op):
    inputs, weights_of_it, feed, attributes = RUNS[op]
    names = [i.name for i in inputs] + [t.name for t in weights_of_it]
    source = model([helper.make_node(op, names, ["y"], **attributes)], inputs, [info("y", None)], weights_of_it)
    got, want = both(lambda _, s: s.run(None, feed), source)
    assert got[0] == want[0] != "value"
    assert "Non-zero status code returned while running" in got[1] and op in got[1]


# --- many callers, other processes

def test_one_session_in_many_threads():
    session = ours.InferenceSession(TWO)
    feeds = [{"x": np.random.default_rng(i).normal(size=(1 + i % 5, 3)).astype(F), "y": X[:1] - i} for i in range(32)]
    want = [session.run(None, f) for f in feeds]
    got, barrier = [None] * len(feeds), threading.Barrier(8)

    def call(first):
        barrier.wait()
        for i in range(first, len(feeds), 8):
            got[i] = session.run(None, feeds[i])
    callers = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for c in callers:
        c.start()
    for c in callers:
        c.join(60)
    for g, w in zip(got, want):
        assert all(a.tobytes() == b.tobytes() for a, b in zip(g, w, strict=True))


def test_sessions_made_in_many_threads():
    sources, made = [relu(["N", i % 3 + 1]) for i in range(9)], [None] * 9

    def make(i):
        made[i] = ours.InferenceSession(sources[i]).run(None, {"x": -np.ones((2, i % 3 + 1), F)})
    callers = [threading.Thread(target=make, args=(i,)) for i in range(9)]
    for c in callers:
        c.start()
    for c in callers:
        c.join(60)
    assert [m[0].shape for m in made] == [(2, i % 3 + 1) for i in range(9)] and not any(m[0].any() for m in made)


@pytest.mark.parametrize("new", [False, True], ids=["the same", "a new one"])
def test_sessions_after_a_fork(new):
    session = ours.InferenceSession(TWO)
    want = session.run(None, FEED)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            got = (ours.InferenceSession(TWO) if new else session).run(None, FEED)
            os.write(writing, b"".join(a.tobytes() for a in got))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as f:
        assert f.read() == b"".join(a.tobytes() for a in want)
    os.waitpid(child, 0)


def by_model(source):
    return ours.InferenceSession(source).run(["m"], FEED)[0]


def test_sessions_in_worker_processes():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        got = pool.map(by_model, [TWO] * 4)
    for g in got:
        same(g, X @ W)
