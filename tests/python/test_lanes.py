"""Lanes of tasks (streams of real ATC): a view in the reports that changes no result."""

import re

import ge
import numpy as np
import pytest
from conftest import equal
from onnx import TensorProto, helper, numpy_helper


ROWS = 600


def branches():
    """Two chains of products from one input, and a longer one beside them. Each product has weights of its own, and
    rows enough that products of one input stay apart."""
    random, weights = np.random.RandomState(1), []
    nodes, ends = [], []
    for branch, length in enumerate((2, 2, 5)):
        value = "x"
        for step in range(length):
            w = (random.standard_normal((64, 64)) / 8).astype(np.float32)
            weights.append(numpy_helper.from_array(w, f"w{branch}{step}"))
            nodes += [helper.make_node("MatMul", [value, f"w{branch}{step}"], [f"m{branch}{step}"]),
                      helper.make_node("Softmax", [f"m{branch}{step}"], [f"s{branch}{step}"], axis=0)]
            value = f"s{branch}{step}"
        ends.append(value)
    nodes += [helper.make_node("Concat", ends, ["y"], axis=0)]
    graph = helper.make_graph(nodes, "branches", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def lanes(model):
    """{lane: [(kernel, task), ...]} as `ge inspect --tasks` lists them."""
    found = {}
    for lane, kernel, task in re.findall(r"lane (\d+) \S+ +(\S+) +(\S+)", model._native.inspect(True)):
        found.setdefault(int(lane), []).append((kernel, task))
    return found


def test_cube_and_vector_have_lanes_of_their_own():
    found = lanes(ge.compile(branches()))
    assert {kernel for kernel, _ in found[0]} == {"cube.matmul"}
    assert all(not kernel.startswith("cube.") for kernel, _ in found[1])


def test_one_lane():
    assert set(lanes(ge.compile(branches(), enable_single_stream=True))) == {0}


def test_a_balanced_pair_of_lanes_shares_the_branches():
    found = lanes(ge.compile(branches(), multi_stream_parallel_mode="LoadBalance:2"))
    assert set(found) == {0, 1}
    products = [sum(kernel == "cube.matmul" for kernel, _ in tasks) for tasks in found.values()]
    assert abs(products[0] - products[1]) <= 1 and sum(products) == 9


def test_the_longest_chain_is_the_main_lane():
    found = lanes(ge.compile(branches(), multi_stream_parallel_mode="MainStream:3"))
    assert sum(kernel == "cube.matmul" for kernel, _ in found[0]) == 5
    assert [sum(kernel == "cube.matmul" for kernel, _ in found[lane]) for lane in (1, 2)] == [2, 2]


def test_lanes_change_no_result():
    x = np.random.RandomState(2).standard_normal((ROWS, 64)).astype(np.float32)
    first = ge.compile(branches()).run([x])
    for mode in ("LoadBalance:4", "MainStream:2"):
        assert equal(ge.compile(branches(), multi_stream_parallel_mode=mode).run([x]), first)


@pytest.mark.parametrize("mode", ["", "CV", "LoadBalance", "LoadBalance:0", "LoadBalance:65", "MainStream:x", "MainStream:-1"])
def test_other_modes_are_refused(mode):
    with pytest.raises(ge.Error) as caught:
        ge.compile(branches(), multi_stream_parallel_mode=mode)
    assert caught.value.code == "E10001" and "LoadBalance:N" in str(caught.value)


def test_single_and_several_exclude_each_other():
    with pytest.raises(ge.Error) as caught:
        ge.compile(branches(), enable_single_stream=True, multi_stream_parallel_mode="cv")
    assert caught.value.code == "E10056"
