"""GE as a backend of ONNX's own test runner: `onnx.backend.test.BackendTest(ge.onnx_backend, __name__)`.

Needs the package onnx. prepare(model).run(inputs) takes the inputs in the model's order and returns the outputs in
its order; an operator that GE has not makes prepare() raise ge.Error.
"""

import ge
from onnx.backend.base import Backend, BackendRep


class Model(BackendRep):
    """A compiled model; options are those of ge.compile."""

    def __init__(self, model, **options):
        self._model = ge.compile(model, **options)

    def run(self, inputs, **_):
        return tuple(self._model.run(list(inputs)))


class GraphEngine(Backend):
    @classmethod
    def is_compatible(cls, model, device="CPU", **_):
        try:
            cls.prepare(model, device)
        except ge.Error:
            return False
        return True

    @classmethod
    def prepare(cls, model, device="CPU", **options):
        if not cls.supports_device(device):
            raise ValueError(f"GE runs on the CPU, not on {device}")
        return Model(model, **options)

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **options):
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def supports_device(cls, device):
        return device.split(":")[0] == "CPU"


is_compatible = GraphEngine.is_compatible
prepare = GraphEngine.prepare
run_model = GraphEngine.run_model
supports_device = GraphEngine.supports_device
