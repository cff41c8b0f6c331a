"""Small networks of common kinds, exported by PyTorch with dynamic shapes: what bench/shapes.py adds to the real models."""

import functools
import hashlib
import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests", "models"))
import fetch  # noqa: E402
import inputs  # noqa: E402

# name -> the shapes of its input that are measured.
SHAPES = {
    "images": [(1, 3, 224, 224), (2, 3, 160, 320), (1, 3, 97, 131)],      # 3x3 convolutions, depthwise, a skip, up and down
    "encoder": [(1, 128, 256), (4, 37, 256), (1, 700, 256)],              # two layers of PyTorch's TransformerEncoder
    "recurrent": [(1, 60, 80), (5, 25, 80)],                              # an LSTM in both directions
    "sound": [(1, 1, 16000), (2, 1, 7001)],                               # 1-D convolutions with strides and dilations
    "tokens": [(1, 200, 192), (8, 31, 192)],                              # RMSNorm, SwiGLU, attention with one head for keys
}
NAMES = list(SHAPES)
DYNAMIC = {"images": (0, 2, 3), "encoder": (0, 1), "recurrent": (0, 1), "sound": (0, 2), "tokens": (0, 1)}


@functools.lru_cache(maxsize=None)
def modules():
    """{name: class}; PyTorch is loaded only when a module is made."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    def block(inner, outer, stride=1, groups=1, kernel=3):
        return nn.Sequential(nn.Conv2d(inner, outer, kernel, stride, kernel // 2, groups=groups), nn.BatchNorm2d(outer), nn.ReLU())

    class Images(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.down = block(3, 32, 2), block(32, 64, 2)
            self.one, self.two = block(64, 64), block(64, 64)
            self.spatial, self.mix = block(64, 64, groups=64), block(64, 96, kernel=1)
            self.deep, self.last = block(96, 96), nn.Conv2d(96, 16, 1)

        def forward(self, x):
            x = self.down(self.stem(x))
            x = x + self.two(self.one(x))
            y = self.deep(F.max_pool2d(self.mix(self.spatial(x)), 2))
            y = F.interpolate(y, size=x.shape[2:], mode="nearest")
            return self.last(y).sigmoid()

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(256, 8, 1024, activation="gelu", batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, x):
            return self.layers(x).mean(dim=1)

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(80, 96, batch_first=True, bidirectional=True), nn.Linear(192, 30)

        def forward(self, x):
            return F.log_softmax(self.head(self.lstm(x)[0]), dim=-1)

    class Sound(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv1d(1, 32, 16, 8)
            self.middle = nn.ModuleList(nn.Conv1d(32, 32, 3, padding=2 ** i, dilation=2 ** i) for i in range(5))
            self.last = nn.ConvTranspose1d(32, 1, 16, 8)

        def forward(self, x):
            y = self.first(x)
            for layer in self.middle:
                y = y + F.gelu(layer(y))
            return torch.tanh(self.last(y))

    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.out = nn.Linear(192, 192), nn.Linear(192, 48), nn.Linear(192, 48), nn.Linear(192, 192)
            self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in ((192, 512), (192, 512), (512, 192)))
            self.norm1, self.norm2 = nn.RMSNorm(192), nn.RMSNorm(192)

        def forward(self, x):
            h = self.norm1(x)
            q = self.q(h).unflatten(-1, (4, 48)).transpose(1, 2)
            k, v = self.k(h)[:, None], self.v(h)[:, None]
            y = F.scaled_dot_product_attention(q, k.expand_as(q), v.expand_as(q), is_causal=True)
            x = x + self.out(y.transpose(1, 2).flatten(2))
            h = self.norm2(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    return {"images": Images, "encoder": Encoder, "recurrent": Recurrent, "sound": Sound, "tokens": Tokens}


def feeds(name):
    return [{"x": inputs.seeded("shapes", name, str(i)).standard_normal(s).astype("float32")} for i, s in enumerate(SHAPES[name])]


def export(name):
    """The path of the .onnx file."""
    import torch
    with open(os.path.abspath(__file__), "rb") as f:
        version = hashlib.sha256(f.read() + torch.__version__.encode()).hexdigest()[:12]
    folder = os.path.join(fetch.cache_folder(), "shapes_" + name)
    path = os.path.join(folder, f"{version}.onnx")
    if os.path.isfile(path):
        return path
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(5)
    example = torch.randn(*(2 * s if i == 0 else s for i, s in enumerate(SHAPES[name][0])))
    partial = f"{path}.{os.getpid()}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(modules()[name]().eval(), (example,), partial, dynamo=True, external_data=False, verbose=False, input_names=["x"],
                          output_names=["y"], dynamic_shapes=({i: torch.export.Dim.DYNAMIC for i in DYNAMIC[name]},))
    os.replace(partial, path)
    return path
