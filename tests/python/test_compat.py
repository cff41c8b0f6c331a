"""ge.compat.onnxruntime beside ONNX Runtime itself: each test asks both the same and compares what they say."""

import json
import os
import subprocess
import sys
import threading
import warnings

import ge.compat.onnxruntime as ours
import numpy as np
import onnx
import onnxruntime as theirs
import pytest
from onnx import TensorProto, helper, numpy_helper

theirs.set_default_logger_severity(4)
F = np.float32
X = np.arange(6, dtype=F).reshape(2, 3)
W = np.arange(12, dtype=F).reshape(3, 4) - 5


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("GE_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "ge_cache"))


def info(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "a_graph", inputs, outputs, list(initializers), doc_string="about the graph")
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9, producer_name="somebody",
                          domain="a.domain", model_version=7, doc_string="about the model")
    helper.set_model_props(m, {"names": "cat,dog", "b": "x=y"})
    return m.SerializeToString()


TWO = model([helper.make_node("Add", ["x", "y"], ["s"], name="adder"), helper.make_node("Relu", ["s"], ["r"]),
             helper.make_node("MatMul", ["x", "w"], ["m"])],
            [info("x", ["N", 3]), info("y", [None, 3])], [info("r", ["N", 3]), info("m", None)],
            [numpy_helper.from_array(W, "w")])


def relu(shape, dtype=TensorProto.FLOAT, out=None):
    return model([helper.make_node("Relu", ["x"], ["y"])], [info("x", shape, dtype)], [info("y", out, dtype)])


def outcome(call, *args):
    """What a call gives: its value, or its exception's type and text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "value", call(*args)
    except Exception as e:
        return type(e).__name__, str(e)


def both(call, source=TWO, **options):
    """call(module, session) of both."""
    return [outcome(lambda m=m: call(m, m.InferenceSession(source, **options))) for m in (ours, theirs)]


def same(got, want):
    """Equal all the way down; arrays with the types of their elements."""
    assert type(got).__name__ == type(want).__name__, (got, want)
    if isinstance(got, np.ndarray):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    elif isinstance(got, (list, tuple)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
    else:
        assert got == want, (got, want)


def agree(call, source=TWO, **options):
    got, want = both(call, source, **options)
    assert got[0] == want[0] == "value", (got, want)
    same(got[1], want[1])
    return got[1]


# --- what a session says

def described(module, session):
    del module
    return [[(a.name, a.type, a.shape, str(a)) for a in args]
            for args in (session.get_inputs(), session.get_outputs(), session.get_overridable_initializers())]


@pytest.mark.parametrize("source", [
    TWO, relu(["N", 3]), relu([]), relu(None), relu(["?", -1, "", 0, "a+b"]), relu([None, "batch size", 4], out=["M", None, 4]),
    model([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Concat", ["y", "y"], ["z"], axis=0)],
          [info("x", ["N", 2])], [info("y", ["M", 2]), info("z", None)]),
    model([helper.make_node("Add", ["x", "w"], ["y"])], [info("x", ["N", 2]), info("w", [2])], [info("y", ["N", 2])],
          [numpy_helper.from_array(W[0, :2], "w")]),
    model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT64)], [info("x", [2], TensorProto.FLOAT16)], [info("y", [2], TensorProto.INT64)]),
], ids=["two", "named", "scalar", "unranked", "odd", "renamed", "doubled", "default", "types"])
def test_inputs_and_outputs(source):
    agree(described, source)


def test_modelmeta():
    fields = ("producer_name", "graph_name", "domain", "description", "graph_description", "version", "custom_metadata_map")
    said = agree(lambda _, s: [getattr(s.get_modelmeta(), f) for f in fields])
    assert said[-1] == {"names": "cat,dog", "b": "x=y"}


def test_om_files_keep_what_the_model_said(tmp_path):
    import ge
    om = tmp_path / "two.om"
    ge.compile(TWO).save(str(om))
    for source in (str(om), om, om.read_bytes()):
        session = ours.InferenceSession(source)
        assert described(ours, session) == both(described)[1][1]
        assert session.get_modelmeta().custom_metadata_map["names"] == "cat,dog"
        same(session.run(["r"], {"x": X, "y": X}), [np.maximum(X + X, 0)])


def test_signature_of_the_module():
    """Every public name of ONNX Runtime is here, but for what GE has no counterpart of."""
    lacking = {"AdapterFormat", "LoraAdapter", "ModelCompiler", "ModelPackage", "ModelPackageComponentContext", "ModelPackageContext",
               "ModelPackageOptions", "ModelPackageWriteMode", "OrtCompileApiFlags", "OrtEpAssignedNode", "OrtEpAssignedSubgraph",
               "OrtEpContextData", "OrtEpContextDataBuffer", "OrtExternalInitializerInfo", "OrtSyncStream", "SparseTensor",
               "contextlib", "import_capi_exception", "quantization", "transformers", "tools", "backend", "datasets", "experimental"}
    names = {n for n in dir(theirs) if not n.startswith("_")}
    assert names - set(dir(ours)) <= lacking
    assert not lacking & set(dir(ours))
    assert ours.__version__ == theirs.__version__


@pytest.mark.parametrize("name", ["InferenceSession", "SessionOptions", "RunOptions", "OrtValue", "IOBinding", "OrtDevice", "NodeArg",
                                  "ModelMetadata", "OrtMemoryInfo", "OrtArenaCfg"])
def test_attributes_of_classes(name):
    def public(c):
        return {n for n in dir(c) if not n.startswith("_")}
    sparse = {"as_sparse_tensor", "ort_value_from_sparse_tensor"}
    mine = public(getattr(ours, name))
    if name in ("ModelMetadata", "OrtMemoryInfo", "OrtArenaCfg"):
        mine = set(vars({"ModelMetadata": lambda: ours.ModelMetadata({})}.get(name, getattr(ours, name))()))
    assert public(getattr(theirs, name)) - mine <= sparse | {"create_v2"}


# --- runs

FEED = {"x": X, "y": -X}


@pytest.mark.parametrize("names", [None, [], ["m"], ["m", "r"], ("r",), ["m", "m"]])
def test_run_by_names(names):
    agree(lambda _, s: s.run(names, FEED))


@pytest.mark.parametrize("change", [
    {"y": X[:1]}, {"x": X[:0], "y": X[:0]}, {"x": np.asfortranarray(X)}, {"x": np.ones((2, 6), F)[:, ::2]}, {"x": X.tolist()},
    {"x": [[1, 2, 3], [4, 5, 6]]},
], ids=["broadcast", "empty", "fortran", "strided", "list", "ints"])
def test_run_takes(change):
    agree(lambda _, s: s.run(None, {**FEED, **change}))


def test_run_takes_options_and_ortvalues():
    agree(lambda m, s: s.run(output_names=["r"], input_feed=FEED, run_options=m.RunOptions()))
    agree(lambda m, s: s.run(None, {"x": m.OrtValue.ortvalue_from_numpy(X), "y": X}))


def test_sizes_of_one_name_may_differ():
    """ONNX Runtime takes names of sizes for comments."""
    source = model([helper.make_node("Add", ["x", "y"], ["z"])], [info("x", ["N", 2]), info("y", ["N", 2])], [info("z", ["N", 2])])
    x = X[:, :2]
    agree(lambda _, s: [s.run(None, {"x": x, "y": x[:1]}), s.run(None, {"x": x[:1], "y": x}), s.run(None, {"x": x, "y": x})], source)
    got, want = both(lambda _, s: s.run(None, {"x": x, "y": np.ones((3, 2), F)}), source)
    assert got[0] == want[0] == "Fail"


def test_inputs_of_open_rank():
    agree(lambda _, s: [s.run(None, {"x": a}) for a in (X, X[0], X[None], np.array(-3, F))], relu(None))
    agree(lambda _, s: [s.run(None, {"x": np.array(a, F)}) for a in (-3, 2)], relu([]))


def test_inputs_with_a_default_may_be_fed():
    source = model([helper.make_node("Add", ["x", "w"], ["y"])], [info("x", ["N", 2]), info("w", [2])], [info("y", ["N", 2])],
                   [numpy_helper.from_array(W[0, :2], "w")])
    x = X[:, :2]
    agree(lambda _, s: [s.run(None, {"x": x}), s.run(None, {"x": x, "w": np.full(2, 5, F)}), s.run(None, {"x": x})], source)


def test_sizes_fixed_by_options():
    def options(m):
        o = m.SessionOptions()
        o.add_free_dimension_override_by_name("N", 2)
        o.add_free_dimension_override_by_name("unknown", 9)
        return o
    got, want = ([described(m, m.InferenceSession(TWO, options(m))), m.InferenceSession(TWO, options(m)).run(None, FEED)] for m in (ours, theirs))
    same(got, want)
    got, want = (outcome(lambda m=m: m.InferenceSession(TWO, options(m)).run(None, {"x": np.ones((3, 3), F), "y": X})) for m in (ours, theirs))
    assert got == want and got[0] == "InvalidArgument"


def test_sizes_fixed_by_denotation():
    m = onnx.load_from_string(TWO)
    m.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    options = [module.SessionOptions() for module in (ours, theirs)]
    for o in options:
        o.add_free_dimension_override_by_denotation("DATA_BATCH", 2)
    got, want = (module.InferenceSession(m.SerializeToString(), o).get_inputs()[0].shape for module, o in zip((ours, theirs), options))
    assert got == want == [2, 3]


@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_ALL"])
def test_optimization_levels(level):
    options = ours.SessionOptions()
    options.graph_optimization_level = getattr(ours.GraphOptimizationLevel, level)
    session = ours.InferenceSession(TWO, options)
    assert bool(session._sess._models.plain.report()["fused"]) == (level != "ORT_DISABLE_ALL")
    same(session.run(["r"], FEED), [np.maximum(X - X, 0)])


def test_options_of_ge_and_the_optimized_model(tmp_path):
    options = ours.SessionOptions()
    options.add_session_config_entry("ge.enable_single_stream", "1")
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    first = ours.InferenceSession(TWO, options).run(None, FEED)
    same(ours.InferenceSession(options.optimized_model_filepath).run(None, FEED), first)
    options.add_session_config_entry("ge.no_such_option", "1")
    assert outcome(ours.InferenceSession, TWO, options)[0] == "Fail"


def test_the_second_start_compiles_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("GE_CACHE_DIR", str(tmp_path))
    sessions = [ours.InferenceSession(TWO) for _ in range(2)]
    times = [s._sess._models.plain.report()["times"]["from_cache"] for s in sessions]
    assert times == [False, True] and len(list(tmp_path.glob("*.om"))) == 1
    same(sessions[1].run(None, FEED), sessions[0].run(None, FEED))


def test_threads_of_a_session():
    options = ours.SessionOptions()
    options.intra_op_num_threads = 1
    session = ours.InferenceSession(TWO, options)
    assert session._sess._models.plain._native.threads() == 1
    results, callers = [], []
    for _ in range(4):
        callers.append(threading.Thread(target=lambda: results.append(session.run(None, FEED))))
        callers[-1].start()
    for c in callers:
        c.join()
    assert len(results) == 4
    for r in results:
        same(r, results[0])


def test_run_async():
    def results(m, s):
        del m
        done, got = threading.Event(), []

        def callback(outputs, user_data, error):
            got.extend([outputs, user_data, bool(error), threading.current_thread() is threading.main_thread()])
            done.set()
        s.run_async(["r"], FEED, callback, "mine")
        assert done.wait(20)
        done.clear()
        s.run_async(["r"], {"x": X, "y": np.ones((4, 3), F)}, callback, None)
        assert done.wait(20)
        return got
    o = {m: m.SessionOptions() for m in (ours, theirs)}
    for m in o:
        o[m].intra_op_num_threads = 2
    got, want = (results(m, m.InferenceSession(TWO, o[m])) for m in (ours, theirs))
    same(got, want)
    one = ours.SessionOptions()
    one.intra_op_num_threads = 1
    assert outcome(ours.InferenceSession(TWO, one).run_async, None, FEED, print, None)[0] == "InvalidArgument"


# --- errors of runs

@pytest.mark.parametrize("names,change,says", [
    (["q"], {}, ["Invalid output name:q"]), (["s"], {}, ["Invalid output name:s"]),
    (None, {"y": None, "-": "y"}, ["['y']"]), (None, {"z": X}, ["Invalid input name: z"]), (None, {"w": W}, ["Invalid input name: w"]),
    (None, {"x": X[0]}, ["Invalid rank for input: x Got: 1 Expected: 2"]),
    (None, {"x": X[:, :2]}, ["invalid dimensions for input: x", "index: 1 Got: 2 Expected: 3"]),
    (None, {"x": X.astype(np.float64)}, ["Actual: (tensor(double)) , expected: (tensor(float))"]),
    (None, {"x": X.astype(np.int64)}, ["Actual: (tensor(int64)) , expected: (tensor(float))"]),
    (None, {"x": np.array([["a"] * 3])}, ["Actual: (tensor(string)) , expected: (tensor(float))"]),
    (None, {"x": 1.0}, ["Unable to handle object of type <class 'float'>"]), (None, {"x": F(1)}, ["Unable to handle object"]),
    (None, {"x": [[1], [2, 3]]}, []), (None, {"x": None}, ["Missing Input: x"]), (None, {1: X}, ["incompatible function arguments"]),
    ("r", {}, ["incompatible function arguments"]), (None, {"y": np.ones((4, 3), F)}, ["Non-zero status code returned while running"]),
], ids=lambda v: None)
def test_errors_of_runs(names, change, says):
    feed = {**FEED, **change}
    if "-" in feed:
        del feed[feed.pop("-")]
    got, want = both(lambda _, s: s.run(names, feed))
    assert got[0] == want[0] != "value", (got, want)
    assert got[1].partition("while")[0].startswith(want[1].partition("0x")[0].partition("running")[0][:35]), (got, want)
    for text in says:
        assert text in got[1] and text in want[1], (got, want)


@pytest.mark.parametrize("feed", [None, [X, X]])
def test_feeds_that_are_no_mappings(feed):
    got, want = both(lambda _, s: s.run(None, feed))
    assert got == want


def test_indices_out_of_bounds():
    source = model([helper.make_node("Gather", ["x", "i"], ["y"])], [info("x", ["N", 3]), info("i", ["K"], TensorProto.INT64)], [info("y", None)])
    got, want = both(lambda _, s: s.run(None, {"x": X, "i": np.array([9])}), source)
    assert got[0] == want[0] == "InvalidArgument" and "9" in got[1]
    agree(lambda _, s: s.run(None, {"x": X, "i": [0, 1]}), source)


def test_terminate():
    def call(m, s):
        options = m.RunOptions()
        options.terminate = True
        return s.run(None, FEED, options)
    got, want = both(call)
    assert got == want and got[0] == "Fail"


# --- errors of loading

def one(op, shape=(1,), dtype=TensorProto.FLOAT, **kw):
    return model([helper.make_node(op, ["x"], ["y"], **kw)], [info("x", shape, dtype)], [info("y", None, dtype)])


@pytest.mark.parametrize("source", [b"", b"hello", TWO[:len(TWO) // 2], b"hello world, this is no model" * 9, None, 3, bytearray(TWO)],
                         ids=["empty", "short", "cut", "text", "None", "number", "bytearray"])
def test_what_is_no_model(source):
    got, want = (outcome(m.InferenceSession, source) for m in (ours, theirs))
    assert got[0] == want[0] != "value" and got[1].startswith(want[1].replace(".", "")[:60]), (got, want)


def test_files_that_are_no_models(tmp_path):
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "text.onnx").write_bytes(b"hello world, this is no model" * 9)
    for name in ("none.onnx", "empty.onnx", "text.onnx", ""):
        got, want = (outcome(m.InferenceSession, str(tmp_path / name)) for m in (ours, theirs))
        assert got[0] == want[0] != "value" and got[1].startswith(want[1][:80]), (got, want)


def test_models_that_are_wrong():
    for source, kinds in ((one("NoSuchOperator"), {"NotImplemented"}), (one("NoSuchOperator", domain="a.b"), {"NotImplemented"}),
                          (model([helper.make_node("Relu", ["q"], ["y"])], [info("x", [1])], [info("y", None)]), {"InvalidGraph"}),
                          (model([helper.make_node("MatMul", ["x", "x"], ["y"])], [info("x", [1, 2])], [info("y", None)]), {"Fail"})):
        got, want = (outcome(m.InferenceSession, source) for m in (ours, theirs))
        assert got[0] in kinds and want[0] != "value" and got[1].startswith("[ONNXRuntimeError] : "), (got, want)


def test_exceptions_are_where_programs_import_them_from():
    from ge.compat.onnxruntime.capi import onnxruntime_pybind11_state as mine
    real = theirs.capi.onnxruntime_pybind11_state
    names = [n for n in dir(real) if isinstance(getattr(real, n), type) and issubclass(getattr(real, n), Exception)]
    assert len(names) > 10
    for name in names:
        assert getattr(mine, name).__mro__[1:] == getattr(real, name).__mro__[1:]
    with pytest.raises(mine.NoSuchFile):
        ours.InferenceSession("no_such_file.onnx")


# --- options and providers

@pytest.mark.parametrize("name", ["SessionOptions", "RunOptions"])
def test_defaults_of_options(name):
    got, want = getattr(ours, name)(), getattr(theirs, name)()
    for field in (n for n in dir(want) if not n.startswith("_") and not callable(getattr(want, n))):
        assert repr(getattr(got, field)) == repr(getattr(want, field)), field


@pytest.mark.parametrize("field,value", [
    ("intra_op_num_threads", "3"), ("intra_op_num_threads", 3.0), ("intra_op_num_threads", -1), ("intra_op_num_threads", np.int64(2)),
    ("intra_op_num_threads", None), ("graph_optimization_level", 99), ("execution_mode", 0), ("enable_profiling", 1), ("logid", 3),
    ("log_severity_level", 77), ("no_such_field", 1)])
def test_setting_options(field, value):
    got, want = ([outcome(setattr, o, field, value)[0], getattr(o, field, None)] for o in (ours.SessionOptions(), theirs.SessionOptions()))
    assert repr(got) == repr(want)


def test_entries_of_options():
    for make, add, get in (("SessionOptions", "add_session_config_entry", "get_session_config_entry"), ("RunOptions", "add_run_config_entry", "get_run_config_entry")):
        got, want = ([outcome(getattr(o, add), "a", "b"), outcome(getattr(o, get), "a"), outcome(getattr(o, get), "z"), outcome(getattr(o, add), "a", 1)[0]]
                     for o in (getattr(ours, make)(), getattr(theirs, make)()))
        assert got == want


@pytest.mark.parametrize("name", ["GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder", "OrtAllocatorType", "OrtMemType",
                                  "OrtDeviceMemoryType", "OrtMemoryInfoDeviceType", "OrtHardwareDeviceType",
                                  "OrtExecutionProviderDevicePolicy", "OrtSparseFormat"])
def test_enumerations(name):
    got, want = getattr(ours, name), getattr(theirs, name)
    assert {k: int(v) for k, v in got.__members__.items()} == {k: int(v) for k, v in want.__members__.items()}
    for k, v in want.__members__.items():
        mine = getattr(got, k)
        assert (str(mine), repr(mine), mine.name, mine.value, got(int(v)) == mine) == (str(v), repr(v), v.name, v.value, want(int(v)) == v)
        assert mine == int(v) and mine != int(v) + 1


@pytest.mark.parametrize("providers,options", [
    (None, None), ([], None), (["CPUExecutionProvider"], None), (["CUDAExecutionProvider"], None),
    (["CUDAExecutionProvider", "CPUExecutionProvider"], None), (["Bogus"], None), ([3], None),
    ([("CPUExecutionProvider", {"a": 1})], None), (["CPUExecutionProvider"], [{"a": False}]), (["CPUExecutionProvider"], []),
    (["CPUExecutionProvider"] * 2, None), (["CUDAExecutionProvider", "CPUExecutionProvider"], [{"device_id": 0}, {}]),
    ("CPUExecutionProvider", None)])
def test_providers(providers, options, capsys):
    seen = []
    for m in (ours, theirs):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session = m.InferenceSession(TWO, providers=providers, provider_options=options)
        seen.append((session.get_providers(), list(session.get_provider_options()), [str(w.message).partition("Available")[0] for w in caught],
                     capsys.readouterr().out))
        same(session.run(["r"], FEED), [np.maximum(X - X, 0)])
    assert seen[0] == seen[1]


def test_setting_providers_again():
    def call(m, s):
        del m
        s.set_providers(["CPUExecutionProvider"])
        s.set_providers()
        return [s.run(["r"], FEED), s.get_providers(), outcome(s.set_providers, ["Foo"])]
    agree(call)
    for m in (ours, theirs):
        with pytest.raises(RuntimeError, match="Bogus"), pytest.warns(UserWarning):
            m.InferenceSession(TWO, providers=["Bogus"], enable_fallback=0)


def test_the_environment():
    for name in ("get_device", "get_all_providers", "get_version_string", "has_collective_ops"):
        assert getattr(ours, name)() == getattr(theirs, name)(), name
    assert "CPUExecutionProvider" in ours.get_available_providers()
    for call, args in (("set_default_logger_severity", (9,)), ("set_seed", (3,)), ("disable_telemetry_events", ()), ("set_default_logger_verbosity", (1,))):
        assert outcome(getattr(ours, call), *args)[0] == outcome(getattr(theirs, call), *args)[0]


# --- values

@pytest.mark.parametrize("make", [
    lambda m: m.OrtValue.ortvalue_from_numpy(X), lambda m: m.OrtValue.ortvalue_from_numpy(np.asfortranarray(X)),
    lambda m: m.OrtValue.ortvalue_from_numpy(X[:, ::2]), lambda m: m.OrtValue.ortvalue_from_numpy(np.array(3.0)),
    lambda m: m.OrtValue.ortvalue_from_numpy(X.astype(np.float16), "cpu", 0), lambda m: m.OrtValue.ortvalue_from_numpy(X > 1),
    lambda m: m.OrtValue.ortvalue_from_numpy(np.zeros((2, 0), np.int64)),
], ids=["f32", "fortran", "strided", "scalar", "f16", "bool", "empty"])
def test_values(make):
    def said(v):
        return [v.shape(), v.data_type(), v.element_type(), v.device_name(), v.is_tensor(), v.is_sparse_tensor(), v.is_tensor_sequence(),
                v.has_value(), v.tensor_size_in_bytes(), v.numpy().copy(), np.array(v), v.__dlpack_device__()]
    same(said(make(ours)), said(make(theirs)))


@pytest.mark.parametrize("make", [
    lambda V: V.ortvalue_from_numpy([1.0]), lambda V: V.ortvalue_from_numpy(np.array(["a"])), lambda V: V.ortvalue_from_numpy(X, "cuda", 0),
    lambda V: V.ortvalue_from_numpy(X, "foo", 0), lambda V: V.ortvalue_from_numpy(X.astype(np.complex64)) and None,
    lambda V: V.ortvalue_from_shape_and_type([2, -3], np.int64), lambda V: V.ortvalue_from_shape_and_type([2], "tensor(float)"),
    lambda V: V.ortvalue_from_numpy_with_onnx_type(X, 16), lambda V: V(X)],
    ids=["list", "strings", "cuda", "foo", "complex", "negative", "type", "size", "constructor"])
def test_values_that_cannot_be(make, request):
    got, want = (outcome(make, m.OrtValue)[0] for m in (ours, theirs))
    if "complex" in request.node.name:
        assert got == "value"  # GE has complex tensors
    else:
        assert got == want != "value"


def test_values_of_other_types():
    for given in (F, "float32", np.dtype("float32"), 1, np.int64, 7):
        got, want = (m.OrtValue.ortvalue_from_shape_and_type([2, 3], given) for m in (ours, theirs))
        assert (got.data_type(), got.shape(), got.element_type()) == (want.data_type(), want.shape(), want.element_type())
    bits = np.array([0x3f80, 0x4000], np.uint16)
    got, want = (m.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16) for m in (ours, theirs))
    assert (got.data_type(), got.element_type(), got.shape()) == (want.data_type(), want.element_type(), want.shape())
    assert got.numpy().astype(F).tolist() == [1.0, 2.0]


def test_values_share_memory_and_are_updated_in_place():
    for m in (ours, theirs):
        x = X.copy()
        v = m.OrtValue.ortvalue_from_numpy(x)
        assert v.data_ptr() == x.ctypes.data
        x[0, 0] = 9
        assert v.numpy()[0, 0] == 9
        v.update_inplace(np.full((2, 3), 4, F))
        assert (x == 4).all()
        v.update_inplace(m.OrtValue.ortvalue_from_numpy(X + 1))
        assert (x == X + 1).all()
        assert outcome(v.update_inplace, np.ones(7, F))[0] == "RuntimeError" and outcome(v.update_inplace, [1])[0] == "TypeError"
    other = ours.OrtValue.ortvalue_from_shape_and_type([2, 3], F)
    ours.copy_tensors([ours.OrtValue.ortvalue_from_numpy(X)], [other])
    assert (other.numpy() == X).all()


def test_dlpack():
    import torch
    for m in (ours, theirs):
        t = torch.arange(6.0).reshape(2, 3)
        v = m.OrtValue.from_dlpack(t)
        assert v.data_ptr() == t.data_ptr() and v.data_type() == "tensor(float)"
        assert torch.from_dlpack(m.OrtValue.ortvalue_from_numpy(X.copy())).tolist() == X.tolist()
        assert m.OrtValue.from_dlpack(torch.ones(2, dtype=torch.bfloat16)).data_type() == "tensor(bfloat16)"


def test_run_with_ort_values():
    def call(m, s):
        v = m.OrtValue.ortvalue_from_numpy(X)
        outputs = s.run_with_ort_values(None, {"x": v, "y": v})
        return [[o.numpy() for o in outputs], [type(o).__name__ for o in outputs], outcome(s.run_with_ort_values, None, {"x": v}),
                outcome(s.run_with_ort_values, None, {"x": v, "y": v, "z": v}), outcome(s.run_with_ort_values, None, {"x": X, "y": v})]
    agree(call)


# --- binding

def test_binding():
    def call(m, s):
        b = s.io_binding()
        seen = [outcome(s.run_with_iobinding, b)]
        x = X.copy()
        b.bind_cpu_input("x", x)
        b.bind_input("y", "cpu", 0, np.float32, [2, 3], x.ctypes.data)
        b.bind_output("m")
        b.bind_output("r", "cpu")
        s.run_with_iobinding(b)
        seen += [b.copy_outputs_to_cpu(), [o.shape() for o in b.get_outputs()]]
        x += 1  # read again at each run
        s.run_with_iobinding(b, m.RunOptions())
        seen += [b.copy_outputs_to_cpu(), b.get_outputs()[0].numpy()]
        y = m.OrtValue.ortvalue_from_numpy(X)
        b.bind_ortvalue_input("y", y)
        s.run_with_iobinding(b)
        seen += [b.copy_outputs_to_cpu()]
        b.clear_binding_inputs()
        b.clear_binding_outputs()
        b.synchronize_inputs()
        b.synchronize_outputs()
        return seen + [b.get_outputs()]
    agree(call)


def test_binding_to_memory_of_the_caller():
    def call(m, s):
        y, b = np.zeros((2, 4), F), s.io_binding()
        b.bind_cpu_input("x", X)
        b.bind_cpu_input("y", X)
        b.bind_output("m", "cpu", 0, np.float32, y.shape, y.ctypes.data)
        s.run_with_iobinding(b)
        seen = [y.copy(), b.get_outputs()[0].data_ptr() == y.ctypes.data]
        mine = m.OrtValue.ortvalue_from_numpy(np.zeros((2, 4), F))
        b.bind_ortvalue_output("m", mine)
        s.run_with_iobinding(b)
        return seen + [mine.numpy(), b.get_outputs()[0].data_ptr() == mine.data_ptr()]
    agree(call)


@pytest.mark.parametrize("bind", [
    lambda m, b: b.bind_cpu_input("zzz", X), lambda m, b: b.bind_cpu_input("x", X.tolist()), lambda m, b: b.bind_output("qq"),
    lambda m, b: b.bind_cpu_input("x", X.astype(int)), lambda m, b: b.bind_cpu_input("x", X[0]),
    lambda m, b: b.bind_output("m", "cpu", 0, F, None, X.ctypes.data), lambda m, b: b.bind_output("m", "foo"),
    lambda m, b: b.bind_ortvalue_output("m", m.OrtValue.ortvalue_from_numpy(np.zeros((3, 4), F))),
    lambda m, b: b.bind_ortvalue_output("m", m.OrtValue.ortvalue_from_numpy(np.zeros((2, 4), int))),
    lambda m, b: b.bind_input("x", "cuda", 0, F, [2, 3], X.ctypes.data)],
    ids=["input", "list", "output", "type", "rank", "no shape", "device", "shape", "output type", "cuda"])
def test_errors_of_bindings(bind):
    def call(m, s):
        b = s.io_binding()
        b.bind_cpu_input("x", X)
        b.bind_cpu_input("y", X)
        b.bind_output("m")
        bind(m, b)
        s.run_with_iobinding(b)
    got, want = both(call)
    assert got[0] == want[0] != "value" and got[1][:20] == want[1][:20], (got, want)


def test_a_binding_belongs_to_its_session():
    for m in (ours, theirs):
        b = m.InferenceSession(TWO).io_binding()
        with pytest.raises(ValueError, match="session that created it"):
            m.InferenceSession(TWO).run_with_iobinding(b)


# --- profiling

def test_profiling(tmp_path):
    seen = []
    for m in (ours, theirs):
        options = m.SessionOptions()
        options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / m.__name__)
        session = m.InferenceSession(TWO, options)
        session.run(None, FEED)
        path = session.end_profiling()
        with open(path, encoding="utf-8") as f:
            events = json.load(f)
        assert session.end_profiling() == "" and m.InferenceSession(TWO).end_profiling() == ""
        assert session.get_profiling_start_time_ns() > 0 and m.InferenceSession(TWO).get_profiling_start_time_ns() == 0
        nodes = [e for e in events if e["cat"] == "Node"]
        assert nodes and all({"op_name", "provider"} <= set(e["args"]) and e["name"].endswith("_kernel_time") for e in nodes)
        seen.append(({e["name"] for e in events if e["cat"] == "Session"}, {k for e in events for k in e}, os.path.dirname(path)))
    assert seen[0] == seen[1]


def test_a_profile_that_nobody_ends_is_written_all_the_same(tmp_path):
    options = ours.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "p")
    session = ours.InferenceSession(TWO, options)
    session.run(None, FEED)
    del session
    assert len(list(tmp_path.iterdir())) == 1


# --- in place of onnxruntime

PROGRAM = """
import sys
import numpy as np
import onnxruntime as ort
import onnxruntime.capi.onnxruntime_pybind11_state as state
from onnxruntime import InferenceSession, GraphOptimizationLevel
from onnxruntime.capi import _pybind_state as C
from onnxruntime.capi.onnxruntime_inference_collection import OrtValue
import importlib.metadata, importlib.util
assert importlib.util.find_spec("onnxruntime") and importlib.metadata.version("onnxruntime") == ort.__version__
assert C.OrtValue is state.OrtValue and OrtValue is ort.OrtValue
session = InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
try:
    session.run(None, {"x": np.zeros((1, 3), np.float32), "y": np.zeros((1, 3), np.float32), "z": np.zeros(1, np.float32)})
except state.InvalidArgument as e:
    print(e)
print(__name__, sys.argv[2:], session.run(["m"], {n: np.ones((2, 3), np.float32) for n in "xy"})[0].tolist())
print("GE" in ort.get_build_info(), file=sys.stderr)
"""


def started(args, folder, **environment):
    environment = {**os.environ, "GE_CACHE_DIR": str(folder / "cache"), **environment}
    return subprocess.run([sys.executable, *args], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "two.onnx").write_bytes(TWO)
    return tmp_path


@pytest.mark.parametrize("how", [["program.py"], ["-m", "program"], ["-c", PROGRAM]], ids=["script", "module", "code"])
def test_an_unchanged_program(how, program):
    plain = started([*how, "two.onnx", "a", "--b"], program)
    assert plain.returncode == 0 and plain.stderr.strip().endswith("False"), plain.stderr
    ge = started(["-m", "ge.compat.onnxruntime", *how, "two.onnx", "a", "--b"], program)
    assert ge.returncode == 0 and ge.stderr.strip().endswith("True"), ge.stderr
    assert ge.stdout == plain.stdout and "__main__ ['a', '--b'] [[" in ge.stdout


def test_the_starter_says_how_it_is_used(tmp_path):
    for args, status in (([], 2), (["-h"], 0), (["-m"], 2)):
        done = started(["-m", "ge.compat.onnxruntime", *args], tmp_path)
        assert done.returncode == status and done.stdout.startswith("usage: ")
    (tmp_path / "exits.py").write_text("import sys; sys.exit(7)")
    assert started(["-m", "ge.compat.onnxruntime", "exits.py"], tmp_path).returncode == 7


def test_install_and_uninstall(program):
    code = """
import sys, ge.compat.onnxruntime as compat
compat.install(); compat.install()
import onnxruntime, onnxruntime.capi.onnxruntime_validation
assert onnxruntime is compat
compat.uninstall(); compat.uninstall()
assert not [n for n in sys.modules if n.partition(".")[0] == "onnxruntime"]
import onnxruntime
assert onnxruntime is not compat and "GE" not in onnxruntime.get_build_info()
try:
    compat.install()
except RuntimeError as e:
    print(e)
"""
    done = started(["-c", code], program)
    assert done.returncode == 0 and "is imported already" in done.stdout and "before anything imports" in done.stdout, done.stderr


def test_without_onnxruntime(program):
    """As where it is not installed: nothing of it is needed, and its metadata are there."""
    (program / "sitecustomize.py").write_text("""
import sys
class Hidden:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "onnxruntime":
            raise ModuleNotFoundError(name)
    def find_distributions(context):
        return []
sys.meta_path.insert(0, Hidden)
""")
    hidden = {"PYTHONPATH": os.pathsep.join([str(program), *sys.path])}
    assert started(["program.py", "two.onnx"], program, **hidden).returncode != 0
    done = started(["-m", "ge.compat.onnxruntime", "program.py", "two.onnx"], program, **hidden)
    assert done.returncode == 0, done.stderr
