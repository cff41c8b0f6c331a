"""ONNX's own node tests, run through the package: every one whose operators `ge ops` lists has to pass, except
those named here with a reason. A case whose sizes or axes come as inputs is run with these as constants where GE
says that it needs to know them, since then it still tells whether the operator is right.
"""

import functools
import re
import subprocess
import sys
import warnings

import ge
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from onnx.backend.test.loader import load_model_tests
    CASES = {case.name: case for case in load_model_tests(kind="node")}

# Name patterns of cases that do not pass, and why.
STRINGS = "strings are not computed on"
DATA = "its size depends on data"
EXCEPTIONS = {
    "test_ai_onnx_ml_label_encoder_(string_int.*|tensor_.*)": STRINGS,
    "test_equal_string.*": STRINGS,
    "test_identity_(opt|sequence)": "there are no optionals and sequences",
    "test_nonzero_example": DATA,
    "test_unique_.*": DATA,
    "test_resize_downsample_scales_(cubic|linear)_align_corners": "the corners are those of the output as it is, not of the unrounded size",
}

# Outputs are random: only their types and sizes are compared.
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


@functools.lru_cache(maxsize=None)
def supported():
    """The operators of `ge ops`, those of other domains as "domain.Name"."""
    out = subprocess.run([sys.executable, "-c", "from ge._cli import ge; ge()", "ops"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in out.splitlines() if line.strip()}


def operators(graph):
    for node in graph.node:
        yield node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        for a in node.attribute:
            for g in [a.g] if a.HasField("g") else a.graphs:
                yield from operators(g)


def is_listed(case):
    return set(operators(case.model.graph)) <= supported()


def as_array(x):
    return numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x


def with_constants(model, inputs):
    """The model with its scalars and short lists as constants; the first of several inputs is data, not a parameter."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    kept, feeds = [], []
    for i, (info, x) in enumerate(zip(model.graph.input, inputs)):
        x = np.asarray(x)
        if x.ndim == 0 or (x.ndim == 1 and (i > 0 or len(inputs) == 1)):
            m.graph.initializer.append(numpy_helper.from_array(x, info.name))
        else:
            kept.append(info)
            feeds.append(x)
    del m.graph.input[:]
    m.graph.input.extend(kept)
    return m, feeds


NEEDS_VALUES = re.compile("depends on data|known only at run time|must be known while compiling|must be a constant|needs one known size")


def run(model, inputs):
    try:
        return ge.compile(model).run(inputs)
    except ge.Error as e:
        if not NEEDS_VALUES.search(str(e)):
            raise
    model, inputs = with_constants(model, inputs)
    return ge.compile(model).run(inputs)


def numbers(x):
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def compare(case, got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.shape == b.shape and str(a.dtype) == str(b.dtype)
        if b.dtype.kind in "OUS":
            assert (a.astype(str) == b.astype(str)).all()
        elif not RANDOM & {n.op_type for n in case.model.graph.node}:
            narrow = b.dtype.itemsize <= 2 and b.dtype.kind not in "iub"
            rtol, atol = (max(case.rtol, 1e-2), max(case.atol, 1e-2)) if narrow else (max(case.rtol, 1e-3), max(case.atol, 1e-5))
            np.testing.assert_allclose(numbers(a), numbers(b), rtol=rtol, atol=atol)


def parameters():
    for name in sorted(n for n, case in CASES.items() if is_listed(case)):
        reason = next((r for pattern, r in EXCEPTIONS.items() if re.fullmatch(pattern, name)), None)
        # Strict: what passes after all must leave the list.
        yield pytest.param(name, marks=pytest.mark.xfail(reason=reason, strict=True) if reason else ())


@pytest.mark.parametrize("name", list(parameters()))
def test_node_case(name):
    case = CASES[name]
    for inputs, outputs in case.data_sets:
        compare(case, run(case.model, [as_array(x) for x in inputs]), [np.asarray(as_array(x)) for x in outputs])


def test_exceptions_are_still_listed():
    """An exception that names no case any more hides nothing, and has to go."""
    for pattern in EXCEPTIONS:
        assert any(re.fullmatch(pattern, n) for n in CASES if is_listed(CASES[n])), pattern
