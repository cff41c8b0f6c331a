"""Session: load an .om file and run it; torch tensors give torch tensors."""

import ge

from ._error import Error


class Session:
    """One loaded model. options are kept for programs that pass them."""

    def __init__(self, options=None):
        self.options = dict(options or {})
        self.model = None

    def load_model(self, path, threads=None):
        self.model = ge.load(path, threads=threads)
        return self

    def run(self, *inputs):
        """Tensors or arrays, one list of them, or a dict by name; gives one value or a tuple."""
        if self.model is None:
            raise Error("The session has no model.", "E40001", fix="call load_model(path) first")
        if len(inputs) == 1 and isinstance(inputs[0], (dict, list, tuple)):
            inputs = self.model.in_order(inputs[0])
        return self.model(*inputs)


def load_om_model(path, threads=None):
    """The loaded model, for run_om."""
    return Session().load_model(path, threads)


def run_om(model, *inputs):
    return model.run(*inputs)
