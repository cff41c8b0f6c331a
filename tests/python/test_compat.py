"""ge.compat.onnxruntime beside ONNX Runtime itself: each test asks both the same and compares what they say."""

import threading

import ge.compat.onnxruntime as ours
import numpy as np
import onnx
import onnxruntime as theirs
import pytest
from onnx import TensorProto, helper, numpy_helper
from side_by_side import F, FEED, TWO, W, X, agree, both, described, info, model, outcome, relu, same

pytestmark = pytest.mark.usefixtures("compile_cache")


# --- what a session says

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


def test_exceptions_are_where_programs_import_them_from():
    from ge.compat.onnxruntime.capi import onnxruntime_pybind11_state as mine
    real = theirs.capi.onnxruntime_pybind11_state
    names = [n for n in dir(real) if isinstance(getattr(real, n), type) and issubclass(getattr(real, n), Exception)]
    assert len(names) > 10
    for name in names:
        assert getattr(mine, name).__mro__[1:] == getattr(real, name).__mro__[1:]
    with pytest.raises(mine.NoSuchFile):
        ours.InferenceSession("no_such_file.onnx")
