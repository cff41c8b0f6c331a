"""What tasks a model becomes: kernels that run show in the profile."""

import os

import ge
import numpy as np
import pytest
from ge import _arrays
from onnx import TensorProto, helper, numpy_helper

WORDS, WIDTH = 700, 512  # more than constant folding may add


def kernels(model, *inputs):
    arrays = [_arrays.to_native(v, p) for v, p in zip(inputs, model.inputs)]
    return [kernel for _, kernel, *_ in model._native.profile(arrays)]


def numbers(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def tied(middle, rows="n"):
    """logits = x times a view of the table that a Gather reads as it is."""
    table = np.random.RandomState(5).standard_normal((WORDS, WIDTH)).astype(np.float32)
    nodes = [helper.make_node("Gather", ["table", "ids"], ["x"], axis=0),
             *(helper.make_node(op, inputs, [output]) for op, inputs, output in middle),
             helper.make_node("MatMul", ["x", "seen"], ["y"])]
    initializers = [numpy_helper.from_array(table, "table"), numbers("one", 0), numbers("thrice", 3, 1, 1),
                    numbers("first", -1, -1), numbers("last", -WORDS - 1, -WIDTH - 1), numbers("axes", 0, 1),
                    numbers("back", -1, -1)]
    graph = helper.make_graph(nodes, "tied", [helper.make_tensor_value_info("ids", TensorProto.INT64, [rows])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], initializers)
    return table, helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


TRANSPOSE = ("Transpose", ["table"], "seen")
VIEWS = {  # name: (nodes, what they see of the table, whether it is packed ahead for many rows)
    "transpose": ([TRANSPOSE], lambda t: t.T, True),
    "two_views": ([("Transpose", ["table"], "t"), ("Unsqueeze", ["t", "one"], "seen")], lambda t: t.T[None], True),
    "backwards": ([("Slice", ["table", "first", "last", "axes", "back"], "s"), ("Transpose", ["s"], "seen")],
                  lambda t: t[::-1, ::-1].T, True),
    "expanded": ([("Transpose", ["table"], "t"), ("Expand", ["t", "thrice"], "seen")],
                 lambda t: np.broadcast_to(t.T, (3, WIDTH, WORDS)), False),
}


@pytest.mark.parametrize("options", [{}, {"disable_reuse_memory": 1}, {"disable_fusion": "all"}], ids=["default", "no_views", "no_fusion"])
@pytest.mark.parametrize("name", VIEWS)
def test_any_number_of_rows_reads_a_shared_constant(name, options, tmp_path):
    middle, view, _ = VIEWS[name]
    table, proto = tied(middle)
    model = ge.compile(proto, **options)
    for ids in ([3], [0, WORDS - 1, 7, 7], []):
        ids = np.array(ids, np.int64)
        (got,) = model.run([ids])
        want = table[ids] @ view(table)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, atol=2e-4)
    assert "cube.pack_b" not in kernels(model, np.array([3], np.int64))
    assert not holds_table_twice(model, tmp_path)


def holds_table_twice(model, folder):
    model.save(str(folder / "m.om"))
    return os.path.getsize(folder / "m.om") > 1.9 * WORDS * WIDTH * 4


@pytest.mark.parametrize("name", VIEWS)
def test_only_known_many_rows_have_a_shared_constant_packed_ahead(name, tmp_path):
    middle, view, ahead = VIEWS[name]
    for rows, twice in ((2, False), (100, ahead)):
        table, proto = tied(middle, rows)
        model = ge.compile(proto)
        ids = np.arange(rows) * 7 % WORDS
        (got,) = model.run([ids])
        want = table[ids].astype(np.float64) @ view(table)
        np.testing.assert_allclose(got, want, atol=1e-6 * np.abs(want).max())
        assert "cube.pack_b" not in kernels(model, ids)
        assert holds_table_twice(model, tmp_path) == twice
