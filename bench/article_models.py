"""Modules of the article's tables 2 to 4, in PyTorch, and their export.

ConvAttention: a convolutional stem with BatchNorm and two attention blocks over its pixels.
Decoder: GPT-2-shaped blocks (width 768, 12 heads) over embeddings, causal; with its keys and values as
outputs where a cache is wanted.
"""

import warnings

import torch
from torch import nn


class Block(nn.Module):
    """Pre-norm attention and MLP; the mask is added to the scores."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def split(self, x):
        return x.reshape(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, mask=None):
        h = self.norm1(x)
        q, k, v = self.split(self.q(h)), self.split(self.k(h)), self.split(self.v(h))
        scores = torch.matmul(q, k.transpose(-2, -1)) * self.scale
        if mask is not None:
            scores = scores + mask
        h = torch.matmul(torch.softmax(scores, dim=-1), v).transpose(1, 2).reshape(x.shape)
        x = x + self.out(h)
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x)))), k, v


class ConvAttention(nn.Module):
    def __init__(self, width=256, heads=4):
        super().__init__()
        sizes = [3, width // 4, width // 2, width]
        self.stem = nn.Sequential(*[layer for a, b in zip(sizes, sizes[1:]) for layer in
                                    (nn.Conv2d(a, b, 3, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())])
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(2))
        self.head = nn.Linear(width, 100)
        for m in self.stem:  # as after training: statistics that BatchNorm has to apply
            if isinstance(m, nn.BatchNorm2d):
                m.running_mean.normal_(0, 0.1)
                m.running_var.uniform_(0.5, 1.5)

    def forward(self, picture):
        x = self.stem(picture).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x, _, _ = block(x)
        return self.head(x.mean(dim=1))


class Decoder(nn.Module):
    def __init__(self, layers, tokens, cache=False, width=768, heads=12, words=1000):
        super().__init__()
        self.cache = cache
        self.word, self.place = nn.Embedding(words, width), nn.Parameter(torch.randn(tokens, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.register_buffer("mask", torch.full((tokens, tokens), -1e9).triu(1))

    def forward(self, ids):
        x, kept = self.word(ids) + self.place, []
        for block in self.blocks:
            x, k, v = block(x, self.mask)
            kept += [k, v]
        logits = self.head(self.norm(x[:, -1:] if self.cache else x))
        return (logits, *kept) if self.cache else logits


def export(module, inputs, path):
    """{name: example} to an .onnx file of fixed sizes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module.eval(), tuple(inputs.values()), path, input_names=list(inputs), dynamo=False, verbose=False)
    return path


def conv_attention(path, size):
    torch.manual_seed(2)
    return export(ConvAttention(), {"picture": torch.zeros(1, 3, size, size)}, path)


def decoder(path, layers, tokens, cache=False):
    torch.manual_seed(3)
    return export(Decoder(layers, tokens, cache), {"ids": torch.zeros(1, tokens, dtype=torch.int64)}, path)
