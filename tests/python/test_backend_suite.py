"""ONNX's whole backend suite through its own runner, with ge.onnx_backend: all CPU cases but those named here with
a reason, as the compiler does by default, with fusion and memory reuse off, and with all sizes of all inputs open.
"""

import re
import warnings

import ge
import ge.onnx_backend
import numpy as np
import onnx
import onnx.backend.test
import pytest

# Name patterns of cases that GE leaves out, and why.
EXEMPT = {
    "test_image_decoder_": "decoding pictures is no inference",
    "test_(adagrad|adam|momentum|nesterov_momentum|gradient_of)(_|$)": "ai.onnx.preview.training trains",
    "test_bernoulli(_|$)": "the expected numbers come from a generator without a seed: test_bernoulli compares what is sure",
}


class Suite(onnx.backend.test.BackendTest):
    @classmethod
    def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol, model_dir=None):
        """A sequence's elements are tensors, scalars too, over which the runner's own comparison stumbles."""
        assert len(outputs) == len(ref_outputs)
        for got, want in zip(outputs, ref_outputs):
            if isinstance(want, list):
                assert isinstance(got, list)
                cls.assert_similar_outputs(want, got, rtol, atol, model_dir)
            elif want is None:
                assert got is None
            else:
                super().assert_similar_outputs([want], [got], rtol, atol, model_dir)


class Plain:
    """The backend without fusion and memory reuse."""

    supports_device = staticmethod(ge.onnx_backend.supports_device)

    @staticmethod
    def prepare(model, device="CPU", **options):
        return ge.onnx_backend.prepare(model, device, disable_fusion="all", disable_reuse_memory=1, **options)


# Cases that cannot be compiled before their sizes are known, and why.
FIXED = {
    "test_gathernd_": "the last size of the indices says how many axes the output has",
    "test_flexattention(?!.*_expanded)": "how many heads of queries share one of keys is written into the graph",
}


class Open:
    """The backend on models that say nothing of their inputs' sizes but how many there are. Lists of integers keep theirs:
    they are axes or shapes, and say how many axes a value has."""

    supports_device = staticmethod(ge.onnx_backend.supports_device)

    @staticmethod
    def prepare(model, device="CPU", **options):
        opened = type(model)()
        opened.CopyFrom(model)
        for value in opened.graph.input:
            t = value.type.tensor_type
            listed = t.elem_type in (onnx.TensorProto.INT32, onnx.TensorProto.INT64) and len(t.shape.dim) == 1
            for k, dim in enumerate(t.shape.dim):
                if not listed:
                    dim.Clear()
                    dim.dim_param = f"{value.name}.{k}"
        for value in opened.graph.output:
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.ClearField("shape")
        del opened.graph.value_info[:]
        return ge.onnx_backend.prepare(opened, device, **options)


def cases(backend, suffix, exempt):
    """The runner's classes, with the cases for the CPU that are not exempt. The runner's large models of random weights
    are left out: what it compares with takes minutes to compute."""
    for name, cls in Suite(backend, __name__).test_cases.items():
        if name == "OnnxBackendRealModelTest":
            continue
        for case in [n for n in dir(cls) if n.startswith("test_")]:
            if not case.endswith("_cpu") or re.match("|".join(exempt), case):
                delattr(cls, case)
        cls.__name__ = cls.__qualname__ = name + suffix
        yield cls.__name__, cls


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    globals().update(cases(ge.onnx_backend, "", EXEMPT))
    globals().update(cases(Plain, "Plain", EXEMPT))
    globals().update(cases(Open, "Open", EXEMPT | FIXED))
    NODES = {case.name: case for case in onnx.backend.test.loader.load_model_tests(kind="node")}


def count(kind):
    cls = globals()[f"OnnxBackend{kind}Test"]
    return sum(n.startswith("test_") for n in dir(cls))


def test_the_whole_suite_is_there():
    assert len(NODES) == 1884 and {k: count(k) for k in ("NodeModel", "PyTorchConvertedModel", "PyTorchOperatorModel", "SimpleModel")} == {
        "NodeModel": 1862, "PyTorchConvertedModel": 82, "PyTorchOperatorModel": 35, "SimpleModel": 21}
    for pattern in EXEMPT | FIXED:
        assert any(re.match(pattern, n) for n in NODES), pattern


@pytest.mark.parametrize("name", [n for n in NODES if "bernoulli" in n])
def test_bernoulli(name):
    model = NODES[name].model
    (inputs, outputs), = NODES[name].data_sets
    got, = ge.compile(model).run(list(inputs))
    assert got.shape == outputs[0].shape and got.dtype == outputs[0].dtype
    assert np.isin(got, (0, 1)).all()
    # As many ones as the probabilities say: of 1000 times as many elements, within five standard deviations.
    many = onnx.ModelProto()
    many.CopyFrom(model)
    for value in [*many.graph.input, *many.graph.output]:
        value.type.tensor_type.shape.dim.insert(0, onnx.TensorShapeProto.Dimension(dim_value=1000))
    p = np.broadcast_to(inputs[0], (1000, *inputs[0].shape)).copy()
    got, = ge.compile(many).run([p])
    assert np.isin(got, (0, 1)).all()
    if name.endswith("_expanded"):
        p = 1 - p  # ONNX's expansion asks whether the random number is greater
    assert abs(got.mean() - p.mean()) < 5 * np.sqrt((p * (1 - p)).mean() / p.size)
