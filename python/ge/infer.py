"""InferSession(device, path).infer([arrays]): the short form that wrappers of ACL made common."""

import ge


class InferSession:
    def __init__(self, device_id, model_path, threads=None):
        self.device_id = device_id
        self.model = ge.load(model_path, threads=threads)

    def infer(self, feeds, mode="static", **unused):
        """Arrays in input order; gives a list of arrays. mode and the like are accepted: every size runs alike."""
        return self.model.run(feeds if isinstance(feeds, (list, tuple, dict)) else [feeds])

    def get_inputs(self):
        return self.model.inputs

    def get_outputs(self):
        return self.model.outputs

    def free_resource(self):
        self.model.trim()
