"""Options, values, bindings and profiles of ge.compat.onnxruntime, beside ONNX Runtime's."""

import json
import os
import warnings

import ge.compat.onnxruntime as ours
import numpy as np
import onnxruntime as theirs
import pytest
from side_by_side import F, FEED, TWO, X, agree, both, outcome, same

pytestmark = pytest.mark.usefixtures("compile_cache")


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
