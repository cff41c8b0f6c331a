"""Decoders with a KV cache as exporters write them: with a state their logits are PyTorch's at every position, however
it is reached, nothing is moved but what is new, and memory is what the report says.

The large ones (`--models`) come from the transformers package: requirements-transformers.txt.
"""

import re
import subprocess
import sys

import decoders
import ge
import numpy as np
import pytest

LARGE = pytest.mark.models
SMALL_MODELS = ["llama_tiny", "gpt2_tiny", pytest.param("llama_small", marks=LARGE), pytest.param("gpt2_small", marks=LARGE)]
POSITIONS = (1, 2, 5, 64, 200)
CAPACITY = 256


@pytest.fixture(scope="module", params=SMALL_MODELS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def model(name):
    return ge.compile(decoders.export(name), state=f"auto:{CAPACITY}")


@pytest.fixture(scope="module")
def ids(name):
    return decoders.tokens(name, CAPACITY)


@pytest.fixture(scope="module")
def want(name, ids):
    return decoders.reference(name, ids, POSITIONS)


def close(got, want, tolerance=1e-5):
    """Of the largest logit."""
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= tolerance * np.abs(want).max(), np.abs(got - want).max() / np.abs(want).max()


def reach(model, state, ids, position, steps, chunk=CAPACITY):
    """The logits at `position`, the last `steps` tokens one by one, those before in pieces."""
    state.reset()
    at, logits = 0, None
    while at < position:
        n = 1 if position - at <= steps else min(chunk, position - steps - at)
        (logits,) = model.run({"input_ids": ids[:, at:at + n]}, state=state)
        at += n
    assert state.length == position
    return logits


def test_the_cache_is_the_state(name, model):
    s = decoders.sizes(name)
    assert [p.name for p in model.inputs] == ["input_ids"] and [p.name for p in model.outputs] == ["logits"]
    states = model.report()["states"]
    assert len(states) == 2 * s["layers"] and {x["update"] for x in states} == {"appended"}, states
    for n in range(s["layers"]):
        for part in ("key", "value"):
            assert model.states[f"{n}.{part}"] == (np.dtype(np.float32), (-1, s["kv_heads"], CAPACITY, s["head_size"]), 2)


def test_all_of_it_is_fused(name, model):
    """One task an attention, which reads the cache as it lies: no mask in memory, no repeated head."""
    s = decoders.sizes(name)
    rules = [f["rule"] for f in model.report()["fused"]]
    assert rules.count("attention") == s["layers"], model.explain()
    if s["kv_heads"] < s["heads"]:
        assert rules.count("attention_groups") == s["layers"] and rules.count("rotary") == 2 * s["layers"], model.explain()
    misses = [m for m in model.report()["near_misses"] if m["rule"].startswith(("attention", "rotary"))]
    assert not misses, misses
    assert not model.report()["reference_ops"]


@pytest.mark.parametrize("steps", [0, 3, CAPACITY], ids=["prefill", "then steps", "steps alone"])
def test_logits(model, ids, want, steps):
    state = model.new_state()
    for position in POSITIONS:
        close(reach(model, state, ids, position, steps), want[position])


def test_prefill_in_pieces(model, ids, want):
    for chunk in (1, 7, 60):
        close(reach(model, model.new_state(), ids, 200, 0, chunk), want[200])


def test_two_sequences_at_one_time(name, model, ids, want):
    both = np.concatenate([ids, decoders.tokens(name, CAPACITY)[:, ::-1]])
    logits = reach(model, model.new_state(), both, 64, 2)
    close(logits[:1], want[64])
    close(logits[1:], reach(model, model.new_state(), both[1:], 64, 2))


def test_fork_and_save(model, ids, want, tmp_path):
    state = model.new_state()
    reach(model, state, ids, 60, 0)
    other = state.fork()
    state.save(tmp_path / "s.state")
    model.run({"input_ids": ids[:, :100]}, state=other)   # another text
    loaded = model.load_state(tmp_path / "s.state")
    for s in (state, loaded):
        assert s.length == 60
        for at in range(60, 64):
            (logits,) = model.run({"input_ids": ids[:, at:at + 1]}, state=s)
        close(logits, want[64])
    assert other.length == 160


def test_the_same_without_a_state(name, ids, want):
    """Past in, present out: sizes of pasts are open, from zero on."""
    model = ge.compile(decoders.export(name))
    pasts, _ = decoders.port_names(name)
    past, at = decoders.empty_past(name), 0
    for n in (1, 1, 3, 59):
        logits, *present = model.run({"input_ids": ids[:, at:at + n], **past})
        past, at = dict(zip(pasts, present)), at + n
        if at in want:
            close(logits, want[at])
    assert at == 64


def test_sizes_that_follow_others_give_the_same_bits(name, tmp_path):
    """What is prepared for one past is taken over for the next where sizes are the same: as if it were not."""
    path = str(tmp_path / "m.om")
    model = ge.compile(decoders.export(name), output=path)
    random = np.random.default_rng(3)
    for new, past in ((1, 0), (1, 1), (1, 2), (1, 70), (3, 70), (1, 70), (1, 2), (1, 0)):
        feeds = {"input_ids": decoders.tokens(name, new)}
        feeds |= {k: random.standard_normal(v.shape, np.float32) for k, v in decoders.empty_past(name, length=past).items()}
        for got, fresh in zip(model.run(feeds), ge.load(path).run(feeds)):
            np.testing.assert_array_equal(got, fresh)


# ---- what a token costs

def moved(model, tmp_path, **sizes):
    """Bytes that tasks which only move data write, for these sizes: {kernel: bytes}."""
    path = str(tmp_path / "m.om")
    model.save(path)
    text = subprocess.run([sys.executable, "-c", "from ge._cli import ge; ge()", "inspect", path, "--tasks"], capture_output=True, text=True, check=True).stdout
    width = {"f32": 4, "i64": 8, "i32": 4, "bool": 1}
    total = {}
    for kernel, outs in re.findall(r"^ *\d+ lane \d+ \w+ +(\S+) +.* -> (.*)$", text, re.M):
        for dtype, dims in re.findall(r"(\w+)\[(.*?)\]", outs):
            size = width[dtype]
            for d in re.split(r",(?![^()]*\))", dims) if dims else []:
                size *= eval(d, {"__builtins__": {}, "max": max, "min": min}, sizes)
            total[kernel] = total.get(kernel, 0) + size
    assert "cube.attention" in total
    return total


def test_what_a_token_writes_does_not_grow(name, model, tmp_path):
    """Every task writes the same bytes at position 10 and at 10,000; what is copied is at most the new entries."""
    early, late = (moved(model, tmp_path, batch=1, new=1, past=past) for past in (10, 10000))
    assert early == late
    copies = sum(n for kernel, n in late.items() if kernel.startswith("move."))
    assert copies <= decoders.sizes(name)["bytes_per_token"] + 8192, late
    stateless = moved(ge.compile(decoders.export(name)), tmp_path, batch=1, new=1, past=10000)
    assert sum(stateless.values()) > 10000 * decoders.sizes(name)["bytes_per_token"]   # so the test can tell


def test_memory_is_what_the_report_says(name, model, ids):
    token = decoders.sizes(name)["bytes_per_token"]
    memory = model.report()["memory"]
    assert memory["state_bytes_per_token"] == token and memory["state"] == CAPACITY * token
    long = ge.compile(decoders.export(name), state="auto:30000")
    state = long.new_state()
    s = decoders.sizes(name)
    pieces = 2 * s["layers"] * s["kv_heads"]   # each begins and ends inside a page
    for length in (10, 200):
        reach(long, state, ids, length, 0)
        assert length * token <= state.memory()["committed"] <= length * token + pieces * 2 * 4096
    assert state.memory()["reserved"] >= 30000 * token


# ---- through the module itself

def test_a_module_is_compiled_with_its_state():
    """ge.compile(module, state=...): names are forward's parameters and what torch.export calls the results."""
    import torch

    class Running(torch.nn.Module):
        def forward(self, x, seen):
            seen = torch.cat((seen, x), dim=1)
            return seen.cumsum(1)[:, -1:], seen

    x, seen = torch.randn(1, 3, 4), torch.randn(1, 5, 4)
    dims = {"x": {1: torch.export.Dim("new")}, "seen": {1: torch.export.Dim("past")}}
    model = ge.compile(Running(), example_inputs=(x, seen), dynamic_shapes=dims, state="seen:cat:1:64")
    state, total = model.new_state(), torch.zeros(1, 1, 4)
    for n in (3, 1, 1, 7):
        piece = torch.randn(1, n, 4)
        total = total + piece.sum(1, keepdim=True)
        np.testing.assert_allclose(model(piece, state=state), total, rtol=1e-4, atol=1e-4)
    assert state.length == 12
