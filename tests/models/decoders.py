"""Decoders with a KV cache: past keys and values in, present ones out, logits of the last position.

    python tests/models/decoders.py [NAME ...]       exports into the model cache, prints the paths

llama_tiny, gpt2_tiny    modules of our own, two layers, small enough for every run of the tests
llama_small, gpt2_small  the same sizes from the `transformers` package (requirements-transformers.txt), random weights
llama_0.1b, gpt2_0.1b    the sizes that people run

Inputs and outputs have the names that exporters give: input_ids, past_key_values.N.key, past_key_values.N.value;
logits, present.N.key, present.N.value.
"""

import functools
import hashlib
import os
import sys
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fetch  # noqa: E402

# kind, layers, width, query heads, heads of keys and values, inner width, words, places
SIZES = {
    "llama_tiny": ("own_llama", 2, 64, 4, 2, 172, 101, 256),
    "gpt2_tiny": ("own_gpt2", 2, 64, 4, 4, 256, 101, 256),
    "llama_small": ("transformers_llama", 2, 64, 4, 2, 172, 101, 256),
    "gpt2_small": ("transformers_gpt2", 2, 64, 4, 4, 256, 101, 256),
    "llama_0.1b": ("transformers_llama", 12, 768, 12, 4, 2048, 32000, 20000),
    "gpt2_0.1b": ("transformers_gpt2", 12, 768, 12, 12, 3072, 32000, 20000),
}


def sizes(name):
    """{layers, width, heads, kv_heads, inner, words, places, head_size, bytes_per_token}."""
    keys = ("kind", "layers", "width", "heads", "kv_heads", "inner", "words", "places")
    out = dict(zip(keys, SIZES[name]))
    out["head_size"] = out["width"] // out["heads"]
    out["bytes_per_token"] = 2 * out["layers"] * out["kv_heads"] * out["head_size"] * 4
    return out


@functools.lru_cache(maxsize=None)
def own_modules():
    """{kind: class}; PyTorch is loaded only when a module is made."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    def split(x, heads):
        return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)

    def attend(q, k, v, past, groups):
        """(result, keys, values): new queries over past and new keys, none over what comes after it."""
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        new, total = q.shape[2], k.shape[2]
        seen = torch.arange(total)[None, :] <= torch.arange(new)[:, None] + (total - new)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=groups > 1)
        return y.transpose(1, 2).reshape(y.shape[0], new, -1), k, v

    class LlamaLayer(nn.Module):
        def __init__(self, width, heads, kv_heads, inner):
            super().__init__()
            self.heads, self.kv_heads = heads, kv_heads
            kv_width = width // heads * kv_heads
            self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
            self.q, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.k, self.v = nn.Linear(width, kv_width, bias=False), nn.Linear(width, kv_width, bias=False)
            self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
            self.down = nn.Linear(inner, width, bias=False)

        def forward(self, x, turn, past):
            h = self.norm1(x)
            q, k = turn(split(self.q(h), self.heads)), turn(split(self.k(h), self.kv_heads))
            y, k, v = attend(q, k, split(self.v(h), self.kv_heads), past, self.heads // self.kv_heads)
            x = x + self.out(y)
            h = self.norm2(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h)), k, v

    class Llama(nn.Module):
        def __init__(self, layers, width, heads, kv_heads, inner, words, places):
            super().__init__()
            self.word = nn.Embedding(words, width)
            self.layers = nn.ModuleList(LlamaLayer(width, heads, kv_heads, inner) for _ in range(layers))
            self.norm, self.head = nn.RMSNorm(width, eps=1e-5), nn.Linear(width, words, bias=False)
            size = width // heads
            self.register_buffer("speeds", 10000.0 ** (-torch.arange(0, size, 2) / size))

        def hidden(self, ids, past):
            before = 0 if past is None else past[0][0].shape[2]
            angles = (torch.arange(ids.shape[1]) + before).float()[:, None] * self.speeds[None, :]
            angles = torch.cat((angles, angles), dim=-1)
            cos, sin = angles.cos(), angles.sin()

            def turn(x):
                one, two = x.chunk(2, dim=-1)
                return x * cos + torch.cat((-two, one), dim=-1) * sin
            x, present = self.word(ids), []
            for i, layer in enumerate(self.layers):
                x, k, v = layer(x, turn, None if past is None else past[i])
                present += [k, v]
            return x, present

        def logits(self, x):
            return self.head(self.norm(x))

    class Gpt2Layer(nn.Module):
        def __init__(self, width, heads, inner):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

        def forward(self, x, past):
            q, k, v = (split(part, self.heads) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
            y, k, v = attend(q, k, v, past, 1)
            x = x + self.out(y)
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")), k, v

    class Gpt2(nn.Module):
        def __init__(self, layers, width, heads, kv_heads, inner, words, places):
            super().__init__()
            assert heads == kv_heads
            self.word, self.place = nn.Embedding(words, width), nn.Embedding(places, width)
            self.layers = nn.ModuleList(Gpt2Layer(width, heads, inner) for _ in range(layers))
            self.norm = nn.LayerNorm(width)

        def hidden(self, ids, past):
            before = 0 if past is None else past[0][0].shape[2]
            x, present = self.word(ids) + self.place(torch.arange(ids.shape[1]) + before), []
            for i, layer in enumerate(self.layers):
                x, k, v = layer(x, None if past is None else past[i])
                present += [k, v]
            return x, present

        def logits(self, x):
            return F.linear(self.norm(x), self.word.weight)

    return {"own_llama": Llama, "own_gpt2": Gpt2}


@functools.lru_cache(maxsize=None)
def transformers_module():
    """A class with the same two functions over a model of `transformers`."""
    import torch
    import transformers

    class Hidden(torch.nn.Module):
        def __init__(self, kind, layers, width, heads, kv_heads, inner, words, places):
            super().__init__()
            # Deviations larger than those of training's start: attention then has something to choose.
            if kind == "transformers_llama":
                config = transformers.LlamaConfig(
                    vocab_size=words, hidden_size=width, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads,
                    num_key_value_heads=kv_heads, max_position_embeddings=places, initializer_range=0.06, tie_word_embeddings=True)
                self.whole = transformers.LlamaForCausalLM(config)
                self.body = self.whole.model
            else:
                config = transformers.GPT2Config(vocab_size=words, n_embd=width, n_inner=inner, n_layer=layers, n_head=heads,
                                                 n_positions=places, initializer_range=0.06)
                self.whole = transformers.GPT2LMHeadModel(config)
                self.body = self.whole.transformer
            config._attn_implementation = "sdpa"

        def hidden(self, ids, past):
            cache = transformers.DynamicCache(past)
            out = self.body(input_ids=ids, cache=cache, use_cache=True)
            return out.last_hidden_state, [t for layer in cache.layers for t in (layer.keys, layer.values)]

        def logits(self, x):
            return self.whole.lm_head(x)

    return Hidden


@functools.lru_cache(maxsize=2)
def build(name):
    """The module with seeded weights: hidden(ids, past) -> (hidden, present), logits(hidden)."""
    import torch
    torch.manual_seed(11)
    kind, *rest = SIZES[name]
    module = own_modules()[kind](*rest) if kind.startswith("own") else transformers_module()(kind, *rest)
    return module.eval()


def port_names(name):
    """(inputs, outputs) beside input_ids and logits."""
    both = [f"{i}.{part}" for i in range(sizes(name)["layers"]) for part in ("key", "value")]
    return ["past_key_values." + b for b in both], ["present." + b for b in both]


def tokens(name, length, batch=1):
    return np.random.default_rng(5).integers(0, sizes(name)["words"], (batch, length), dtype=np.int64)


def empty_past(name, batch=1, length=0):
    s = sizes(name)
    return {p: np.zeros((batch, s["kv_heads"], length, s["head_size"]), np.float32) for p in port_names(name)[0]}


def export(name, dynamo=True):
    """The path of the .onnx file; batch, new and past length are dynamic."""
    import torch
    with open(os.path.abspath(__file__), "rb") as f:
        version = hashlib.sha256(f.read() + torch.__version__.encode()).hexdigest()[:12]
    folder = os.path.join(fetch.cache_folder(), "decoders", name)
    path = os.path.join(folder, f"{'dynamo' if dynamo else 'script'}_{version}.onnx")
    if os.path.isfile(path):
        return path
    os.makedirs(folder, exist_ok=True)
    module = build(name)

    class LastLogits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, input_ids, past):
            x, present = self.module.hidden(input_ids, list(zip(past[::2], past[1::2])))
            return self.module.logits(x[:, -1:]), present

    pasts, presents = port_names(name)
    example = (torch.from_numpy(tokens(name, 5, 2)), [torch.from_numpy(p) for p in empty_past(name, 2, 7).values()])
    options = {"dynamo": dynamo, "verbose": False, "input_names": ["input_ids", *pasts], "output_names": ["logits", *presents]}
    if dynamo:
        batch, new, past = (torch.export.Dim(n) for n in ("batch", "new", "past"))
        options.update(external_data=False, dynamic_shapes=({0: batch, 1: new}, [{0: batch, 2: past}] * len(pasts)))
    else:
        options["dynamic_axes"] = {"input_ids": {0: "batch", 1: "new"}, **{p: {0: "batch", 2: "past"} for p in pasts},
                                   **{p: {0: "batch", 2: "total"} for p in presents}}
    partial = path + f".{os.getpid()}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(LastLogits().eval(), example, partial, **options)
    os.replace(partial, path)
    return path


def reference(name, ids, positions):
    """PyTorch's logits at these positions (1 is the first) of one pass over all tokens before them."""
    import torch
    module = build(name)
    with torch.no_grad():
        x, _ = module.hidden(torch.from_numpy(ids[:, :max(positions)]), None)
        return {p: module.logits(x[:, p - 1:p]).numpy() for p in positions}


if __name__ == "__main__":
    for wanted in sys.argv[1:] or SIZES:
        print(export(wanted))
