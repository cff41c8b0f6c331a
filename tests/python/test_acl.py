"""pyACL's functions on the CPU, by the table that their documentation gives: names, arguments, returns, codes."""

import os
import subprocess
import sys
import threading

import acl
import fetch
import ge
import numpy as np
import onnx
import pytest
from conftest import equal
from onnx import TensorProto, helper

# The program is written from the documentation's table alone, in the words of its samples.
PROGRAM = '''
import sys
import acl
import numpy as np

ACL_MEM_MALLOC_NORMAL_ONLY, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST, NPY_FLOAT = 2, 1, 2, 11


def check(ret):
    assert ret == 0, ret


def dataset(desc, number, size_of):
    made = acl.mdl.create_dataset()
    for i in range(number):
        size = size_of(desc, i)
        ptr, ret = acl.rt.malloc(size, ACL_MEM_MALLOC_NORMAL_ONLY)
        check(ret)
        made, ret = acl.mdl.add_dataset_buffer(made, acl.create_data_buffer(ptr, size))
        check(ret)
    return made


check(acl.init())
check(acl.rt.set_device(0))
context, ret = acl.rt.create_context(0)
check(ret)
stream, ret = acl.rt.create_stream()
check(ret)
run_mode, ret = acl.rt.get_run_mode()
check(ret)
model_id, ret = acl.mdl.load_from_file(sys.argv[1])
check(ret)
desc = acl.mdl.create_desc()
check(acl.mdl.get_desc(desc, model_id))
inputs = dataset(desc, acl.mdl.get_num_inputs(desc), acl.mdl.get_input_size_by_index)
outputs = dataset(desc, acl.mdl.get_num_outputs(desc), acl.mdl.get_output_size_by_index)
dims, ret = acl.mdl.get_input_dims(desc, 0)
check(ret)
x = np.load(sys.argv[2])
assert list(x.shape) == dims["dims"]
buffer = acl.mdl.get_dataset_buffer(inputs, 0)
check(acl.rt.memcpy(acl.get_data_buffer_addr(buffer), acl.get_data_buffer_size(buffer), acl.util.numpy_to_ptr(x),
                    x.nbytes, ACL_MEMCPY_HOST_TO_DEVICE))
if sys.argv[4] == "async":
    check(acl.mdl.execute_async(model_id, inputs, outputs, stream))
    check(acl.rt.synchronize_stream(stream))
else:
    check(acl.mdl.execute(model_id, inputs, outputs))
buffer = acl.mdl.get_dataset_buffer(outputs, 0)
size = acl.get_data_buffer_size(buffer)
host, ret = acl.rt.malloc_host(size)
check(ret)
check(acl.rt.memcpy(host, size, acl.get_data_buffer_addr(buffer), size, ACL_MEMCPY_DEVICE_TO_HOST))
dims, ret = acl.mdl.get_cur_output_dims(desc, 0)
check(ret)
np.save(sys.argv[3], acl.util.ptr_to_numpy(host, tuple(dims["dims"]), NPY_FLOAT))
check(acl.rt.free_host(host))
for made in (inputs, outputs):
    for i in range(acl.mdl.get_dataset_num_buffers(made)):
        buffer = acl.mdl.get_dataset_buffer(made, i)
        check(acl.rt.free(acl.get_data_buffer_addr(buffer)))
        check(acl.destroy_data_buffer(buffer))
    check(acl.mdl.destroy_dataset(made))
check(acl.mdl.unload(model_id))
check(acl.mdl.destroy_desc(desc))
check(acl.rt.destroy_stream(stream))
check(acl.rt.destroy_context(context))
check(acl.rt.reset_device(0))
check(acl.finalize())
'''


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """{"fixed", "dynamic", "bounded"}: models of x (rows, 4) f32 and k (rows,) i64 -> x * 2 + k, k."""
    folder = tmp_path_factory.mktemp("acl")
    rows = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 4]),
            helper.make_tensor_value_info("k", TensorProto.INT64, ["rows"])]
    outs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 4]),
            helper.make_tensor_value_info("l", TensorProto.INT64, ["rows"])]
    nodes = [helper.make_node("Cast", ["k"], ["f"], to=TensorProto.FLOAT),
             helper.make_node("Unsqueeze", ["f", "axes"], ["column"]),
             helper.make_node("Add", ["x", "x"], ["two"]), helper.make_node("Add", ["two", "column"], ["y"]),
             helper.make_node("Add", ["k", "one"], ["l"])]
    constants = [helper.make_tensor("axes", TensorProto.INT64, [1], [1]), helper.make_tensor("one", TensorProto.INT64, [], [1])]
    model = helper.make_model(helper.make_graph(nodes, "acl", rows, outs, constants),
                              opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model)
    result = {}
    for name, shape in (("fixed", "x:3,4;k:3"), ("dynamic", None), ("bounded", "x:1~8,4;k:1~8")):
        options = {} if shape is None else {"input_shape": shape}
        result[name] = str(folder / f"{name}.om")
        ge.compile(model, output=result[name], **options)
    return result


X, K = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([5, 6, 7], np.int64)


def expected(x, k):
    return [x * 2 + k[:, None].astype(np.float32), k + 1]


@pytest.fixture
def ready():
    assert acl.init() == 0
    yield
    assert acl.finalize() == 0


def load(path):
    model_id, ret = acl.mdl.load_from_file(path)
    assert ret == 0, acl.get_recent_err_msg()
    return model_id


def described(model_id):
    desc = acl.mdl.create_desc()
    assert acl.mdl.get_desc(desc, model_id) == 0
    return desc


def buffers(*arrays):
    dataset = acl.mdl.create_dataset()
    for a in arrays:
        ptr, size = (0, 0) if a is None else (acl.util.numpy_to_ptr(a), a.nbytes)
        dataset, ret = acl.mdl.add_dataset_buffer(dataset, acl.create_data_buffer(ptr, size))
        assert ret == 0
    return dataset


def fetched(dataset, index, shape, number):
    buffer = acl.mdl.get_dataset_buffer(dataset, index)
    return acl.util.ptr_to_numpy(acl.get_data_buffer_addr(buffer), shape, number).copy()


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_program_written_from_the_table(way, tmp_path, compiled):
    om = compiled(fetch.fetch("surfaces_mlp"), input_shape="input:5,4")
    x = np.random.RandomState(0).standard_normal((5, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, "program.py", om, "x.npy", "y.npy", way], cwd=tmp_path, capture_output=True,
                          text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert equal([np.load(tmp_path / "y.npy")], ge.load(om).run([x]))


def test_init_and_finalize():
    assert acl.finalize() == 100001
    assert "acl.init()" in acl.get_recent_err_msg()
    assert acl.mdl.load_from_file("x.om") == (0, 100001)
    assert acl.init() == 0 and acl.init("acl.json") == 100002
    assert acl.finalize() == 0 and acl.finalize() == 100001
    assert acl.get_version()[3] == 0


def test_devices_contexts_streams(ready):
    assert acl.rt.set_device(0) == 0 and acl.rt.reset_device(0) == 0 and acl.rt.set_device(1) == 100000
    assert acl.rt.get_device_count() == (1, 0) and acl.rt.get_device() == (0, 0) and acl.rt.get_run_mode() == (0, 0)
    context, ret = acl.rt.create_context(0)
    assert ret == 0 and acl.rt.get_context() == (context, 0) and acl.rt.set_context(context) == 0
    assert acl.rt.create_context(7)[1] == 100000
    assert acl.rt.destroy_context(context) == 0 and acl.rt.destroy_context(context) == 100000
    stream, ret = acl.rt.create_stream()
    assert ret == 0 and acl.rt.synchronize_stream(stream) == 0 and acl.rt.synchronize_device() == 0
    assert acl.rt.destroy_stream(stream) == 0 and acl.rt.synchronize_stream(stream) == 100000


def test_memory(ready):
    a, ret = acl.rt.malloc(100, 2)
    b, ret_host = acl.rt.malloc_host(100)
    assert ret == ret_host == 0 and a % 64 == 0
    data = bytes(range(100))
    source = acl.util.bytes_to_ptr(data)
    assert acl.rt.memcpy(a, 100, source, 100, 1) == 0 and acl.rt.memcpy(b, 100, a, 100, 2) == 0
    assert acl.util.ptr_to_bytes(b, 100) == data
    assert acl.rt.memset(a, 100, 7, 50) == 0 and acl.util.ptr_to_bytes(a, 100) == bytes([7] * 50) + data[50:]
    for wrong in [(a, 50, source, 100, 1), (a, 100, source, -1, 1), (0, 100, source, 100, 1), (a, 200, source, 200, 1),
                  (a, 100, source, 100, 9)]:
        assert acl.rt.memcpy(*wrong) == 100000, wrong
    assert acl.rt.memset(a, 100, 0, 101) == 100000
    assert acl.rt.malloc(0, 2) == (0, 100000) and acl.rt.malloc(-1, 2) == (0, 100000) and acl.rt.malloc(1, 77) == (0, 100000)
    assert acl.rt.malloc(1 << 60, 2) == (0, 200000)
    assert acl.rt.free(a) == 0 and acl.rt.free(a) == 100000 and acl.rt.free_host(b) == 0 and acl.rt.free(12345) == 100000


def test_util():
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    ptr = acl.util.numpy_to_ptr(array)
    assert ptr == array.ctypes.data
    same = acl.util.ptr_to_numpy(ptr, (2, 3), 23)
    assert same.dtype == np.float16 and np.array_equal(same, array)
    same[0, 0] = 9
    assert array[0, 0] == 9, "it is the same memory"
    assert acl.util.ptr_to_numpy(0, (0, 3), 11).shape == (0, 3)
    with pytest.raises(ValueError, match="contiguous"):
        acl.util.numpy_to_ptr(array.T)
    with pytest.raises(ValueError, match="99"):
        acl.util.ptr_to_numpy(ptr, (1,), 99)


def test_data_buffers(ready):
    array = np.zeros(4, np.float32)
    buffer = acl.create_data_buffer(array.ctypes.data, 16)
    assert acl.get_data_buffer_addr(buffer) == array.ctypes.data
    assert acl.get_data_buffer_size(buffer) == acl.get_data_buffer_size_v2(buffer) == 16
    assert acl.update_data_buffer(buffer, array.ctypes.data + 4, 12) == 0 and acl.get_data_buffer_size(buffer) == 12
    assert acl.update_data_buffer(buffer, 0, 12) == 100000 and acl.update_data_buffer(999999, 0, 0) == 100000
    assert acl.create_data_buffer(0, 5) is None and acl.create_data_buffer(array.ctypes.data, -1) is None
    dataset = acl.mdl.create_dataset()
    assert acl.mdl.add_dataset_buffer(dataset, buffer) == (dataset, 0)
    assert acl.mdl.add_dataset_buffer(dataset, 999999) == (dataset, 100000)
    assert acl.mdl.get_dataset_num_buffers(dataset) == 1 and acl.mdl.get_dataset_buffer(dataset, 0) == buffer
    assert acl.mdl.get_dataset_buffer(dataset, 1) is None
    assert acl.destroy_data_buffer(buffer) == 0 and acl.destroy_data_buffer(buffer) == 100000
    assert acl.mdl.destroy_dataset(dataset) == 0 and acl.mdl.destroy_dataset(dataset) == 100000


def test_descriptions(ready, files):
    desc = described(load(files["fixed"]))
    assert (acl.mdl.get_num_inputs(desc), acl.mdl.get_num_outputs(desc)) == (2, 2)
    assert [acl.mdl.get_input_size_by_index(desc, i) for i in range(3)] == [48, 24, 0]
    assert [acl.mdl.get_output_size_by_index(desc, i) for i in range(2)] == [48, 24]
    assert [acl.mdl.get_input_name_by_index(desc, i) for i in range(3)] == ["x", "k", ""]
    assert [acl.mdl.get_output_name_by_index(desc, i) for i in range(2)] == ["y", "l"]
    assert [acl.mdl.get_input_data_type(desc, i) for i in range(2)] == [0, 9]
    assert [acl.mdl.get_output_data_type(desc, i) for i in range(2)] == [0, 9]
    assert acl.mdl.get_input_dims(desc, 0) == ({"name": "x", "dimCount": 2, "dims": [3, 4]}, 0)
    assert acl.mdl.get_output_dims(desc, 1) == ({"name": "l", "dimCount": 1, "dims": [3]}, 0)
    assert acl.mdl.get_cur_output_dims(desc, 1) == acl.mdl.get_output_dims(desc, 1)
    assert acl.mdl.get_input_dims(desc, 2)[1] == 100000
    assert acl.mdl.get_input_index_by_name(desc, "k") == (1, 0) and acl.mdl.get_output_index_by_name(desc, "l") == (1, 0)
    assert acl.mdl.get_input_index_by_name(desc, "z")[1] == 100000
    assert acl.mdl.get_input_index_by_name(desc, "ascend_mbatch_shape_data")[1] == 100019
    assert acl.mdl.get_dynamic_batch(desc) == ({"batchCount": 0, "batch": []}, 0)
    assert acl.mdl.destroy_desc(desc) == 0 and acl.mdl.destroy_desc(desc) == 100000
    assert acl.mdl.get_desc(desc, 1) == 100000
    assert acl.mdl.get_desc(acl.mdl.create_desc(), 999999) == 100011


def test_query_size(files, compiled):
    work, weight, ret = acl.mdl.query_size(files["fixed"])
    report = ge.load(files["fixed"]).report()["memory"]
    assert (work, weight, ret) == (report["arena"], report["weights"], 0)
    assert acl.mdl.query_size("nothing.om") == (0, 0, 100003)


def test_ways_to_load(ready, files):
    with open(files["fixed"], "rb") as f:
        data = f.read()
    one, ret = acl.mdl.load_from_mem(acl.util.bytes_to_ptr(data), len(data))
    work, weight, _ = acl.mdl.query_size(files["fixed"])
    two, ret_two = acl.mdl.load_from_file_with_mem(files["fixed"], 0, work, 0, weight)
    assert ret == ret_two == 0 and one != two
    for model_id in (one, two):
        y, l = np.zeros_like(X), np.zeros_like(K)
        assert acl.mdl.execute(model_id, buffers(X, K), buffers(y, l)) == 0
        assert equal([y, l], expected(X, K))


def test_broken_files(ready, files, tmp_path):
    with open(files["fixed"], "rb") as f:
        data = f.read()
    (tmp_path / "cut.om").write_bytes(data[:len(data) // 2])
    (tmp_path / "text.om").write_text("no model at all")
    assert acl.mdl.load_from_file(str(tmp_path / "nothing.om")) == (0, 100003)
    assert "nothing.om" in acl.get_recent_err_msg()
    for name in ("cut.om", "text.om"):
        assert acl.mdl.load_from_file(str(tmp_path / name)) == (0, 100013)
    assert acl.mdl.load_from_mem(acl.util.bytes_to_ptr(data), 10) == (0, 100013)
    assert acl.mdl.load_from_mem(0, 10) == (0, 100000) and acl.mdl.load_from_file(None) == (0, 100000)


def test_execute_refuses(ready, files):
    model_id = load(files["fixed"])
    y, l = np.zeros_like(X), np.zeros_like(K)
    good, out = buffers(X, K), buffers(y, l)
    assert acl.mdl.execute(999999, good, out) == 100011
    assert acl.mdl.execute(model_id, 999999, out) == 100000 and acl.mdl.execute(model_id, good, None) == 100000
    assert acl.mdl.execute(model_id, buffers(X), out) == 100000
    assert acl.mdl.execute(model_id, buffers(X[:2], K), out) == 100017
    assert "'x'" in acl.get_recent_err_msg() and "32" in acl.get_recent_err_msg()
    assert acl.mdl.execute(model_id, buffers(None, K), out) == 100017
    assert acl.mdl.execute(model_id, good, buffers(y[:1], l)) == 100018
    gone = buffers(X, K)
    acl.destroy_data_buffer(acl.mdl.get_dataset_buffer(gone, 0))
    assert acl.mdl.execute(model_id, gone, out) == 100000
    assert acl.mdl.execute(model_id, good, out) == 0 and equal([y, l], expected(X, K))
    assert acl.mdl.set_dynamic_batch_size(model_id, good, 0, 3) == 100019
    stream, _ = acl.rt.create_stream()
    assert acl.mdl.execute_async(model_id, buffers(X[:2], K), out, stream) == 0
    assert acl.mdl.execute_async(model_id, good, out, stream) == 0
    assert acl.rt.synchronize_stream(stream) == 100017, "the first failure"
    assert acl.rt.synchronize_stream(stream) == 0
    assert acl.mdl.execute_async(model_id, good, out, 999999) == 100000
    assert acl.mdl.execute_async(model_id, good, out, 0) == 0 and acl.rt.synchronize_device() == 0


def test_unload(ready, files):
    model_id = load(files["fixed"])
    desc = described(model_id)
    assert acl.mdl.unload(model_id) == 0 and acl.mdl.unload(model_id) == 100011
    assert acl.mdl.execute(model_id, buffers(X, K), buffers(None, None)) == 100011
    assert acl.mdl.get_num_inputs(desc) == 2, "a description outlives the model"


def test_empty_output_buffers_are_filled(ready, files):
    model_id = load(files["dynamic"])
    out = buffers(None, None)
    addresses = set()
    for rows in (3, 1, 50):  # 1 fits into what 3 got, 50 does not
        x, k = np.full((rows, 4), rows, np.float32), np.arange(rows)
        assert acl.mdl.execute(model_id, buffers(x, k), out) == 0
        assert equal([fetched(out, 0, (rows, 4), 11), fetched(out, 1, (rows,), np.int64)], expected(x, k))
        addresses.add(acl.get_data_buffer_addr(acl.mdl.get_dataset_buffer(out, 0)))
    for i in range(2):
        assert acl.rt.free(acl.get_data_buffer_addr(acl.mdl.get_dataset_buffer(out, i))) == 0, "the caller frees it"
    assert 1 <= len(addresses) <= 2


def test_dynamic_sizes(ready, files):
    model_id = load(files["dynamic"])
    desc = described(model_id)
    assert acl.mdl.get_input_dims(desc, 0)[0]["dims"] == [-1, 4] and acl.mdl.get_input_size_by_index(desc, 0) == 0
    index, ret = acl.mdl.get_input_index_by_name(desc, "ascend_mbatch_shape_data")
    assert (index, ret) == (2, 0)
    big_x, big_k = np.zeros((8, 4), np.float32), np.zeros(8, np.int64)
    big_x[:3], big_k[:3] = X, K
    settings = [lambda d: acl.mdl.set_dynamic_batch_size(model_id, d, index, 3),
                lambda d: acl.mdl.set_input_dynamic_dims(model_id, d, index, {"name": "", "dimCount": 3, "dims": [3, 4, 3]}),
                lambda d: acl.mdl.set_input_dynamic_dims(model_id, d, index, [3, 4, 3])]
    for setting in settings:
        given, out = buffers(big_x, big_k), buffers(None, None)
        assert setting(given) == 0
        assert acl.mdl.get_cur_output_dims(desc, 0) == ({"name": "y", "dimCount": 2, "dims": [3, 4]}, 0)
        assert acl.mdl.execute(model_id, given, out) == 0, acl.get_recent_err_msg()
        assert equal([fetched(out, 0, (3, 4), 11), fetched(out, 1, (3,), np.int64)], expected(X, K))
    given = buffers(big_x, big_k)
    assert acl.mdl.execute(model_id, given, buffers(None, None)) == 0
    assert acl.mdl.get_cur_output_dims(desc, 1)[0]["dims"] == [8], "told by the bytes of the buffers"
    assert acl.mdl.set_input_dynamic_dims(model_id, given, index, [3, 4]) == 100000
    assert acl.mdl.set_input_dynamic_dims(model_id, given, index, [3, 5, 3]) == 100000
    assert acl.mdl.set_dynamic_batch_size(model_id, 999999, index, 3) == 100000
    assert acl.mdl.set_dynamic_batch_size(999999, given, index, 3) == 100011
    assert acl.mdl.set_dynamic_batch_size(model_id, given, index, 9) == 0
    assert acl.mdl.execute(model_id, given, buffers(None, None)) == 100017, "the buffers hold 8 rows"
    assert acl.mdl.execute(model_id, buffers(X, K[:2].copy()), buffers(None, None)) == 100017


def test_height_and_width(ready, tmp_path):
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 2, "h", "w"]) for n in "xy"]
    model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "hw", info[:1], info[1:]),
                              opset_imports=[helper.make_opsetid("", 17)])
    ge.compile(model, output=tmp_path / "hw.om")
    model_id = load(str(tmp_path / "hw.om"))
    x = np.random.RandomState(1).standard_normal((1, 2, 3, 5)).astype(np.float32)
    given, out = buffers(x), buffers(None)
    assert acl.mdl.execute(model_id, given, out) == 100017, "two sizes cannot follow from the bytes"
    assert "set_input_dynamic_dims" in acl.get_recent_err_msg()
    assert acl.mdl.set_dynamic_hw_size(model_id, given, 1, 3, 5) == 0
    assert acl.mdl.execute(model_id, given, out) == 0
    assert np.array_equal(fetched(out, 0, (1, 2, 3, 5), 11), np.maximum(x, 0))


def test_bounded_sizes_have_a_size(ready, files):
    desc = described(load(files["bounded"]))
    assert acl.mdl.get_input_dims(desc, 0)[0]["dims"] == [-1, 4]
    assert [acl.mdl.get_input_size_by_index(desc, i) for i in range(2)] == [8 * 16, 8 * 8]


def test_threads_share_a_model(ready, files):
    model_id = load(files["dynamic"])
    stream, _ = acl.rt.create_stream()
    wrong = []

    def caller(k):
        for i in range(20):
            x, n = np.full((k + 1, 4), i, np.float32), np.arange(k + 1) + i
            y, l = np.zeros_like(x), np.zeros_like(n)
            given, out = buffers(x, n), buffers(y, l)
            ret = acl.mdl.execute_async(model_id, given, out, stream) if k % 2 else acl.mdl.execute(model_id, given, out)
            ret = ret or (acl.rt.synchronize_device() if k % 2 else 0)
            if ret or not equal([y, l], expected(x, n)):
                wrong.append((k, i, ret))
    callers = [threading.Thread(target=caller, args=(k,)) for k in range(0, 6, 2)]
    [c.start() for c in callers]
    caller(1)  # alone on the stream: synchronizing waits for what is there at the time
    [c.join() for c in callers]
    assert not wrong
    assert acl.rt.destroy_stream(stream) == 0


# --- .npu() without an NPU

def python(program, cwd, **environment):
    done = subprocess.run([sys.executable, "-c", program], cwd=cwd, capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def with_folder(folder):
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))}


NPU = """
{0}
t = torch.ones(2)
m = torch.nn.Linear(2, 2)
assert t.npu() is t and m.npu(0) is m and t.npu(non_blocking=True).device.type == "cpu"
assert torch.npu.synchronize() is None and not torch.npu.is_available() and torch.npu.device_count() == 0
import torch.npu
assert acl.finalize() == 0 and acl.init() == 0
"""


@pytest.mark.parametrize("order", ["import torch, acl; acl.init()", "import acl; acl.init(); import torch"])
def test_npu_stays_on_the_cpu_and_says_so_once(order, tmp_path):
    assert python(NPU.format(order), tmp_path) == "[GE] No NPU here: .npu() leaves tensors and modules on the CPU\n"


def test_nothing_is_said_or_imported_without_torch(tmp_path):
    assert python("import acl, sys; acl.init(); assert 'torch' not in sys.modules; acl.finalize()", tmp_path) == ""


def test_a_real_torch_npu_is_left_alone(tmp_path):
    (tmp_path / "torch_npu.py").write_text("")
    program = "import torch, acl; acl.init(); assert not hasattr(torch, 'npu') and not hasattr(torch.Tensor, 'npu')"
    assert python(program, tmp_path, **with_folder(tmp_path)) == ""
    program = ("import torch, types; torch.npu = real = types.ModuleType('npu'); torch.Tensor.npu = 5\n"
               "import acl; acl.init(); assert torch.npu is real and torch.Tensor.npu == 5")
    assert python(program, tmp_path) == ""


def test_a_real_acl_is_left_alone_and_reported(tmp_path):
    (tmp_path / "acl.py").write_text("def init(): return 'real'\n")
    program = ("import acl, logging, ge\nassert acl.init() == 'real'\nlogging.basicConfig(format='%(name)s: %(message)s')\n"
               "import sys; sys.stderr = sys.stdout\nlogging.getLogger().handlers[0].setStream(sys.stdout)\nge.init()\n"
               "assert acl.init() == 'real'")
    out = python(program, tmp_path, **with_folder(tmp_path))
    assert out.startswith("ge: module acl (") and "left alone" in out and "acl.py" in out


def test_infer_session(files):
    s = ge.InferSession(0, files["dynamic"])
    assert equal(s.infer([X, K]), expected(X, K))
    assert equal(s.infer({"k": K, "x": X}, mode="dymshape"), expected(X, K))
    assert [p.name for p in s.get_inputs()] == ["x", "k"] and [p.name for p in s.get_outputs()] == ["y", "l"]
    s.free_resource()
    assert s.model.memory()["contexts"] == 0
    assert equal(s.infer([X, K]), expected(X, K))
    with pytest.raises(ge.Error, match="takes 2 inputs"):
        s.infer(X)
