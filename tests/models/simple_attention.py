"""SimpleAttention: four Linear layers of 768 and one head, exported from PyTorch at test time.

    python tests/models/simple_attention.py       exports into the model cache, prints the paths
"""

import hashlib
import os
import sys
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fetch  # noqa: E402
import inputs  # noqa: E402

HIDDEN = 768
SEQUENCES = (512, 2048, 8192)


def build():
    """The module with seeded weights."""
    import torch

    class SimpleAttention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.q_proj = torch.nn.Linear(HIDDEN, HIDDEN)
            self.k_proj = torch.nn.Linear(HIDDEN, HIDDEN)
            self.v_proj = torch.nn.Linear(HIDDEN, HIDDEN)
            self.o_proj = torch.nn.Linear(HIDDEN, HIDDEN)

        def forward(self, x):
            q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
            scores = torch.matmul(q, k.transpose(-2, -1)) / (HIDDEN ** 0.5)
            return self.o_proj(torch.matmul(torch.softmax(scores, dim=-1), v))

    torch.manual_seed(7)
    return SimpleAttention().eval()


def export(sequence=None, dynamo=True):
    """The path of the .onnx file; without `sequence` that dimension is dynamic ("seq")."""
    import torch
    with open(os.path.abspath(__file__), "rb") as f:
        version = hashlib.sha256(f.read() + torch.__version__.encode()).hexdigest()[:12]
    kind = "dynamo" if dynamo else "script"
    folder = os.path.join(fetch.cache_folder(), "simple_attention")
    path = os.path.join(folder, f"{kind}_{sequence or 'dynamic'}_{version}.onnx")
    if os.path.isfile(path):
        return path
    os.makedirs(folder, exist_ok=True)
    x = torch.zeros(1, sequence or 512, HIDDEN)
    options = {"dynamo": dynamo, "verbose": False, "input_names": ["x"], "output_names": ["y"]}
    if dynamo:
        options["external_data"] = False
    if sequence is None and dynamo:
        options["dynamic_shapes"] = ({1: torch.export.Dim("seq")},)
    elif sequence is None:
        options["dynamic_axes"] = {"x": {1: "seq"}, "y": {1: "seq"}}
    partial = path + f".{os.getpid()}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(build(), (x,), partial, **options)
    os.replace(partial, path)
    return path


def feeds(sequence):
    random = inputs.seeded("feed", "simple_attention", str(sequence))
    return {"x": random.standard_normal((1, sequence, HIDDEN)).astype(np.float32)}


if __name__ == "__main__":
    for dynamo in (True, False):
        print(export(dynamo=dynamo))
