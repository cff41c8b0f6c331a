"""ONNX's own node tests, run through the package: every one whose operators `ge ops` lists has to pass, except
those named here with a reason.
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
EXCEPTIONS = {
    "test_affine_grid_3d_align_corners_expanded": "the branches of an If give values of different ranks, which plain kernels then read",
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


def as_value(x):
    """An array, a list of them, or None."""
    if isinstance(x, onnx.TensorProto):
        return numpy_helper.to_array(x)
    if isinstance(x, onnx.SequenceProto):
        return numpy_helper.to_list(x)
    return numpy_helper.to_optional(x) if isinstance(x, onnx.OptionalProto) else x


def numbers(x):
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def compare(case, got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want):
        if b is None or isinstance(b, list):
            assert type(a) is type(b)
            if b:
                compare(case, a, b)
            continue
        b = np.asarray(b)
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
        compare(case, ge.compile(case.model).run([as_value(x) for x in inputs]), [as_value(x) for x in outputs])


def test_exceptions_are_still_listed():
    """An exception that names no case any more hides nothing, and has to go."""
    for pattern in EXCEPTIONS:
        assert any(re.fullmatch(pattern, n) for n in CASES if is_listed(CASES[n])), pattern
