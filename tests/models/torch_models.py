"""GPT-2-, Llama- and ViT-shaped modules with seeded weights, exported from PyTorch when they are asked for.

    python tests/models/torch_models.py [NAME ...]       exports into the model cache, prints the paths

gpt2    learned positions, LayerNorm, one product for q, k and v, causal mask cut out of a buffer, tanh Gelu,
        the embedding tied to the output
llama   RMSNorm, rotary embedding, fewer heads for keys and values than for queries, SwiGLU, PyTorch's own attention
vit     patches by a strided convolution, a class token, PyTorch's own attention, erf Gelu
"""

import functools
import hashlib
import os
import sys
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fetch  # noqa: E402
import inputs  # noqa: E402

# name -> kind and sizes; the small ones are for tests, the others of the sizes that people run.
SIZES = {
    "gpt2_small": {"kind": "gpt2", "width": 64, "heads": 4, "layers": 2, "words": 101, "places": 64},
    "llama_small": {"kind": "llama", "width": 64, "heads": 4, "kv_heads": 2, "inner": 172, "layers": 2, "words": 101},
    "vit_small": {"kind": "vit", "width": 64, "heads": 4, "layers": 2, "size": 48, "patch": 8, "classes": 10},
    "gpt2": {"kind": "gpt2", "width": 768, "heads": 12, "layers": 12, "words": 50257, "places": 1024, "last_only": True},
    "vit": {"kind": "vit", "width": 768, "heads": 12, "layers": 12, "size": 224, "patch": 16, "classes": 1000},
}


@functools.lru_cache(maxsize=None)
def modules():
    """{kind: class}; PyTorch is loaded only when a module is made."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    def split(x, heads):
        return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)

    def joined(x):
        return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)

    class Gpt2Block(nn.Module):
        def __init__(self, width, heads, places):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.register_buffer("seen", torch.ones(places, places, dtype=torch.bool).tril()[None, None])

        def forward(self, x):
            q, k, v = (split(part, self.heads) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
            scores = torch.matmul(q, k.transpose(-1, -2)) / q.shape[-1] ** 0.5
            seen = self.seen[:, :, :x.shape[1], :x.shape[1]]
            scores = torch.where(seen, scores, torch.finfo(scores.dtype).min)
            x = x + self.out(joined(torch.matmul(scores.softmax(dim=-1), v)))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Gpt2(nn.Module):
        def __init__(self, width, heads, layers, words, places, last_only=False):
            super().__init__()
            self.last_only = last_only  # as a prefill, which needs the next token alone
            self.word, self.place = nn.Embedding(words, width), nn.Embedding(places, width)
            self.blocks = nn.ModuleList(Gpt2Block(width, heads, places) for _ in range(layers))
            self.norm = nn.LayerNorm(width)
            nn.init.normal_(self.word.weight, std=0.05)
            nn.init.normal_(self.place.weight, std=0.05)

        def forward(self, ids):
            x = self.word(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
            for block in self.blocks:
                x = block(x)
            x = self.norm(x[:, -1:] if self.last_only else x)
            return F.linear(x, self.word.weight)

    class RmsNorm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.weight = nn.Parameter(torch.empty(width).uniform_(0.8, 1.2))

        def forward(self, x):
            return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def turned(x, cos, sin):
        one, two = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-two, one), dim=-1) * sin

    class LlamaBlock(nn.Module):
        def __init__(self, width, heads, kv_heads, inner):
            super().__init__()
            self.heads, self.kv_heads = heads, kv_heads
            self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
            kv_width = width // heads * kv_heads
            self.q, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.k, self.v = nn.Linear(width, kv_width, bias=False), nn.Linear(width, kv_width, bias=False)
            self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
            self.down = nn.Linear(inner, width, bias=False)

        def shared(self, x):
            """Each head of keys or values for its group of query heads."""
            groups = self.heads // self.kv_heads
            batch, heads, length, size = x.shape
            return x[:, :, None].expand(batch, heads, groups, length, size).reshape(batch, heads * groups, length, size)

        def forward(self, x, cos, sin):
            h = self.norm1(x)
            q, k = turned(split(self.q(h), self.heads), cos, sin), turned(split(self.k(h), self.kv_heads), cos, sin)
            v = split(self.v(h), self.kv_heads)
            x = x + self.out(joined(F.scaled_dot_product_attention(q, self.shared(k), self.shared(v), is_causal=True)))
            h = self.norm2(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    class Llama(nn.Module):
        def __init__(self, width, heads, kv_heads, inner, layers, words):
            super().__init__()
            self.word = nn.Embedding(words, width)
            self.blocks = nn.ModuleList(LlamaBlock(width, heads, kv_heads, inner) for _ in range(layers))
            self.norm, self.head = RmsNorm(width), nn.Linear(width, words, bias=False)
            size = width // heads
            self.register_buffer("speeds", 10000.0 ** (-torch.arange(0, size, 2) / size))

        def forward(self, ids):
            places = torch.arange(ids.shape[1], device=ids.device).float()
            angles = places[:, None] * self.speeds[None, :]
            angles = torch.cat((angles, angles), dim=-1)
            cos, sin = angles.cos(), angles.sin()
            x = self.word(ids)
            for block in self.blocks:
                x = block(x, cos, sin)
            return self.head(self.norm(x))

    class VitBlock(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            batch, length, width = x.shape
            qkv = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, width // self.heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            x = x + self.out(joined(F.scaled_dot_product_attention(q, k, v)))
            return x + self.mlp(self.norm2(x))

    class Vit(nn.Module):
        def __init__(self, width, heads, layers, size, patch, classes):
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.cls = nn.Parameter(torch.randn(1, 1, width) * 0.02)
            self.place = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
            self.blocks = nn.ModuleList(VitBlock(width, heads) for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

        def forward(self, picture):
            x = self.patches(picture).flatten(2).transpose(1, 2)
            x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), dim=1) + self.place
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x)[:, 0])

    return {"gpt2": Gpt2, "llama": Llama, "vit": Vit}


def build(name):
    """The module with seeded weights."""
    import torch
    sizes = dict(SIZES[name])
    torch.manual_seed(11)
    return modules()[sizes.pop("kind")](**sizes).eval()


def feeds(name, batch=1, length=16):
    """Tokens of that length, or pictures."""
    sizes = SIZES[name]
    if sizes["kind"] == "vit":
        recipe = {"kind": "picture", "dtype": "float32", "shape": [batch, 3, sizes["size"], sizes["size"]],
                  "channel_axis": 1, "mean": [0.5] * 3, "std": [0.5] * 3}
        return inputs.make(name, {"picture": recipe})
    recipe = {"kind": "integers", "dtype": "int64", "shape": [batch, length], "low": 0, "high": sizes["words"]}
    return inputs.make(name, {"ids": recipe})


def export(name, dynamo=True):
    """The path of the .onnx file; the batch and, but for vit, the length are dynamic."""
    import torch
    with open(os.path.abspath(__file__), "rb") as f:
        version = hashlib.sha256(f.read() + torch.__version__.encode()).hexdigest()[:12]
    folder = os.path.join(fetch.cache_folder(), name)
    path = os.path.join(folder, f"{'dynamo' if dynamo else 'script'}_{version}.onnx")
    if os.path.isfile(path):
        return path
    os.makedirs(folder, exist_ok=True)
    ((port, example),) = feeds(name, batch=2, length=12).items()
    axes = {0: "batch"} if port == "picture" else {0: "batch", 1: "length"}
    options = {"dynamo": dynamo, "verbose": False, "input_names": [port], "output_names": ["y"]}
    if dynamo:
        options.update(external_data=False, dynamic_shapes=({i: torch.export.Dim(n) for i, n in axes.items()},))
    else:
        options["dynamic_axes"] = {port: axes, "y": {0: "batch"}}
    partial = path + f".{os.getpid()}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(build(name), (torch.from_numpy(example),), partial, **options)
    os.replace(partial, path)
    return path


if __name__ == "__main__":
    for wanted in sys.argv[1:] or SIZES:
        for exporter in (True, False):
            print(export(wanted, exporter))
