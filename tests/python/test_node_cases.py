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

# Name patterns of cases that need not pass, and why.
EXCEPTIONS = {
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
    """The model with its integer inputs of at most one axis, and those that say scales or regions, as constants."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    kept, feeds = [], []
    for info, x in zip(model.graph.input, inputs):
        x = np.asarray(x)
        small = x.ndim <= 1 and x.size <= 64 and len(inputs) > 1 or x.dtype.kind in "iu" and x.ndim <= 1
        if small and info.name != model.graph.input[0].name or x.ndim <= 1 and x.dtype.kind in "iu":
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


@pytest.mark.parametrize("name", sorted(n for n, case in CASES.items() if is_listed(case)))
def test_node_case(name):
    case = CASES[name]
    for pattern, reason in EXCEPTIONS.items():
        if re.fullmatch(pattern, name):
            pytest.xfail(reason)
    for inputs, outputs in case.data_sets:
        compare(case, run(case.model, [as_array(x) for x in inputs]), [np.asarray(as_array(x)) for x in outputs])


def test_exceptions_are_still_listed():
    """An exception that names no case any more hides nothing, and has to go."""
    for pattern in EXCEPTIONS:
        assert any(re.fullmatch(pattern, n) for n in CASES if is_listed(CASES[n])), pattern
