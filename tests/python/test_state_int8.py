"""States that are stored as bytes with a scale for each row (--state_dtype=int8)."""

import ge
import numpy as np
import pytest
from decoder_graphs import F32, Builder, decoder, in_f16, stored_in_bytes
from test_attention import floats, model_of
from test_state import Handed, close, contents, tokens_of


def rounded(x):
    """Bytes and scales of the rows of x, as they are stored."""
    scale = np.abs(x).max(-1, keepdims=True) / np.float32(127)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(scale > 0, np.clip(np.rint(x / scale), -127, 127), 0).astype(np.int8), scale


def widened(x):
    q, scale = rounded(x)
    return q * scale


@pytest.mark.parametrize("options", [{}, {"disable_reuse_memory": 1}, {"disable_fusion": "all"}, {"reference": True}, {"verify": True}],
                         ids=["default", "no reuse", "unfused", "reference", "verified"])
@pytest.mark.parametrize("groups, depth, rotary, batch", [(1, 8, True, 1), (2, 8, True, 2), (4, 16, True, 1), (2, 5, False, 1), (1, 33, False, 3), (4, 64, True, 1)])
def test_a_decoder(groups, depth, rotary, batch, options):
    """What is rounded is what a numpy-like graph rounds; and that moves the logits by little."""
    shape = {"groups": groups, "depth": depth, "rotary": rotary}
    model = ge.compile(decoder(**shape), state="auto:64", state_dtype="int8", **options)
    exact, same = Handed(decoder(**shape), batch), Handed(stored_in_bytes(decoder(**shape)), batch)
    state, direct = model.new_state(), model.new_state()
    pieces = tokens_of(5, 1, 1, 17, 2, 1, 12, batch=batch)
    for tokens in pieces:
        got, want, like = model.run([tokens], state=state)[0], exact.run(tokens), same.run(tokens)
        assert 0 < np.abs(got - want).max() <= 2e-2 * np.abs(want).max()
        # By the operators as they stand, a run sees its new rows before they are rounded. And a number near the middle
        # between two bytes may become the other one.
        assert "reference" in options or np.abs(got - like).max() <= 2e-3 * np.abs(like).max()
    whole = model.run([np.concatenate(pieces, axis=1)], state=direct)[0][:, -12:]
    assert np.abs(got - whole).max() <= (2e-2 if "reference" in options else 2e-3) * np.abs(whole).max()
    assert state.length == 39


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_report_and_memory(groups):
    model = ge.compile(decoder(groups=groups), state="auto:64", state_dtype="int8")
    token = 2 * 2 * groups * (8 + 4)   # layers, key and value, groups, bytes and scale
    assert model.report()["memory"]["state_bytes_per_token"] == token and model.report()["memory"]["state"] == 64 * token
    assert model.states["0.key"] == (np.dtype(np.int8), (-1, groups, 64, 8), 2)
    assert model.states["0.key.scale"] == (np.dtype(np.float32), (-1, groups, 64, 1), 2)
    states = model.report()["states"]
    assert len(states) == 8 and all(s["update"] == "appended" and not s["converted"] and not s["why"] and not s["unfit"] for s in states), states
    assert [f["rule"] for f in model.report()["fused"]].count("attention_cache") == 2
    assert [p.name for p in model.inputs] == ["tokens"] and [p.name for p in model.outputs] == ["logits"]
    text = model._native.inspect(False)
    assert f"state: 1.value i8[?,{groups},up to 64,8]" in text and f"state: 1.value.scale f32[?,{groups},up to 64,1]" in text
    state = model.new_state()
    model.run(tokens_of(9), state=state)
    assert state.memory()["bytes_per_token"] == token and model.memory()["state"] == state.memory()["committed"] > 0
    state.reset()
    assert state.length == 0 and state.memory()["committed"] == 0


def test_saved_loaded_forked_and_reset(tmp_path):
    model = ge.compile(decoder(), state="auto:64", state_dtype="int8")
    state = model.new_state()
    (first,), (token,), (other,) = tokens_of(20), tokens_of(1, seed=8), tokens_of(1, seed=9)
    model.run([first], state=state)
    state.save(tmp_path / "s.state")
    fork, loaded = state.fork(), model.load_state(tmp_path / "s.state")
    assert (tmp_path / "s.state").stat().st_size < 20 * 2 * 2 * 2 * (8 + 4) + 1500
    want = model.run([token], state=state)[0]
    for s in (fork, loaded):
        assert s.length == 20
        before = s.save()
        changed = s.fork()
        model.run([other], state=changed)
        assert s.save() == before
        np.testing.assert_array_equal(model.run([token], state=s)[0], want)
    state.reset()
    model.run([first], state=state)
    np.testing.assert_array_equal(model.run([token], state=state)[0], want)
    with pytest.raises(ge.Error, match="'0.key' is f32, the model takes i8"):
        model.run([token], state=ge.compile(decoder(), state="auto:64").new_state())
    with pytest.raises(ge.Error, match="'0.key'"):
        ge.compile(decoder(), state="auto:64", state_dtype="f16").load_state(tmp_path / "s.state")


def test_prefill_and_decode_share_a_state():
    """A prefill computes with rows that are not rounded, and stores rounded ones."""
    prefill = ge.compile(decoder(past=False), state="auto:64", state_dtype="int8")
    decode = ge.compile(decoder(), state="auto:64", state_dtype="int8")
    first, *rest = tokens_of(11, 1, 4)
    state, want = prefill.new_state(), Handed(decoder())
    want.run(first)
    for _ in range(2):
        prefill.run([first], state=state)
        got = [decode.run([t], state=state)[0] for t in rest]
    for g, t in zip(got, rest):
        w = want.run(t)
        assert 0 < np.abs(g - w).max() <= 2e-2 * np.abs(w).max()


@pytest.mark.parametrize("seed", range(8))
def test_attention_operator(seed):
    """Random sizes and masks; what is stored is numpy's to the bit, and what is read is that."""
    r = np.random.RandomState(seed)
    groups, times, batch = r.randint(1, 4), r.randint(1, 4), r.randint(1, 3)
    depth, width = (int(r.choice([2, 3, 8, 17, 40, 64, 65])) for _ in range(2))
    attrs = {"is_causal": int(r.randint(2)), "softcap": float(r.choice([0, 3]))}
    kind = r.choice(["none", "bool", "float"])

    def fresh(n, total):
        mask = {"none": None, "bool": r.rand(n, total) < 0.8, "float": floats(r, n, total)}[kind]
        if kind == "bool":
            mask[:, 0] = True
        return [floats(r, batch, groups * times, n, depth), floats(r, batch, groups, n, depth), floats(r, batch, groups, n, width), mask]

    def pasts(n):
        return [floats(r, batch, groups, n, depth), floats(r, batch, groups, n, width)]
    onnx_model = model_of("Attention", fresh(2, 5) + pasts(3), ["y", "pk", "pv"], attrs, fixed=False)
    names = [i.name for i in onnx_model.graph.input]
    if kind != "none":
        onnx_model.graph.input[3].type.tensor_type.shape.dim[1].dim_param = "keys"
    plain, model = ge.compile(onnx_model), ge.compile(onnx_model, state=f"{names[-2]}:pk:2:80;{names[-1]}:pv:2:80", state_dtype="int8")
    states = model.report()["states"]
    assert [s["update"] for s in states] == ["appended"] * 4 and not any(s["converted"] for s in states), states
    state, past, appended = model.new_state(), pasts(0), pasts(0)
    for n in (5, 1, 1, 3, 40, 1):
        given = fresh(n, past[0].shape[2] + n)
        q, k, v, *mask = [x for x in given if x is not None]
        (got,) = model.run([q, k, v, *mask], state=state)
        want, *past = plain.run([q, widened(k), widened(v), *mask, *past])
        close(got, want)
        appended = [np.concatenate(x, axis=2) for x in zip(appended, (k, v))]
    stored = contents(state)
    for name, x in zip(("pk", "pv"), appended):
        for part, want in zip(("", ".scale"), rounded(x)):
            dims, content = stored[name + part]
            assert dims == want.shape
            np.testing.assert_array_equal(content.reshape(dims), want)


def test_rows_of_zeros_and_what_is_not_finite():
    r = np.random.RandomState(2)
    arrays = [floats(r, 1, 1, 2, 8) for _ in range(3)] + [None] + [floats(r, 1, 1, 3, 8) for _ in range(2)]
    onnx_model = model_of("Attention", arrays, ["y", "pk", "pv"], {}, fixed=False)
    names = [i.name for i in onnx_model.graph.input]
    model = ge.compile(onnx_model, state=f"{names[3]}:pk:2:16;{names[4]}:pv:2:16", state_dtype="int8")
    q, k, v = arrays[:3]
    k[0, 0, 1] = 0
    v[0, 0, 0] = 0
    state = model.new_state()
    (y,) = model.run([q, k, v], state=state)
    scores = q[0, 0] @ widened(k)[0, 0].T / np.sqrt(np.float32(8))
    p = np.exp(scores - scores.max(-1, keepdims=True))
    close(y[0, 0], p / p.sum(-1, keepdims=True) @ widened(v)[0, 0])
    v[0, 0, 1, 3] = np.inf   # its row cannot be told any more
    assert np.isnan(model.run([q[:, :, :1], k[:, :, :1], v[:, :, 1:]], state=state)[0]).all()


def test_static_caches():
    """Whole rows that are replaced where they lie; nothing else of them is touched."""
    r = np.random.RandomState(4)
    b = Builder(1)
    b.op("TensorScatter", "cache", "new", "at", name="cache_out", axis=2)
    b.op("ReduceSum", "cache_out", b.ints(3), keepdims=0, name="y")
    proto = b.model([("cache", F32, [2, 2, 16, 8]), ("new", F32, [2, 2, "n", 8]), ("at", 7, [2])], [("y", F32, None), ("cache_out", F32, [2, 2, 16, 8])], opset=24)
    model = ge.compile(proto, state="cache:cache_out", state_dtype="int8")
    assert [(s["update"], s["unfit"]) for s in model.report()["states"]] == [("replaced", "")] * 2, model.explain()
    state, want = model.new_state(), np.zeros((2, 2, 16, 8), np.float32)
    for n, at in ((3, (0, 2)), (1, (3, 5)), (4, (9, 12))):
        new = floats(r, 2, 2, n, 8)
        (y,) = model.run([new, np.array(at, np.int64)], state=state)
        for i, a in enumerate(at):
            want[i, :, a:a + n] = widened(new)[i]
        close(y, want.sum(3))


@pytest.mark.parametrize("shape, axis, why", [((2, 3, "past"), 2, "grows along its last axis"), ((1, "past", 1), 1, "of one value"), (("past",), 0, "no rows")])
def test_what_has_no_rows_stays_f32(shape, axis, why):
    b = Builder(1)
    b.op("Concat", "past", "new", axis=axis, name="present")
    b.op("ReduceSum", "present", b.ints(*range(len(shape))), keepdims=0, name="y")
    new, total = (tuple(n if d == "past" else d for d in shape) for n in ("n", "total"))
    model = ge.compile(b.model([("past", F32, shape), ("new", F32, new)], [("y", F32, []), ("present", F32, total)]), state=f"past:present:{axis}:64", state_dtype="int8")
    (s,) = model.report()["states"]
    assert why in s["unfit"] and s["update"] == "appended" and why in model.explain()
    assert model.states["present"][0] == np.float32
    state, total = model.new_state(), 0
    for n in (3, 1):
        x = np.full([n if d == "past" else d for d in shape], 0.1, np.float32)
        total += x.sum()
        close(model.run([x], state=state)[0], np.float32(total))


def test_a_running_value_stays_f32():
    b = Builder(1)
    b.op("Add", "before", "x", name="after")
    model = ge.compile(b.model([("before", F32, [1, 4, 8]), ("x", F32, [1, 4, 8])], [("after", F32, [1, 4, 8])]), state="before:after", state_dtype="int8")
    (s,) = model.report()["states"]
    assert "does not grow" in s["unfit"] and model.states["after"][0] == np.float32


def test_a_cache_that_is_not_appended_to():
    """Made anew from what it held: right, and the report names what makes all of it."""
    b = Builder(1)
    b.op("Concat", b.op("Neg", "past"), "new", axis=1, name="present")
    b.op("ReduceSum", "present", b.ints(1), keepdims=0, name="y")
    proto = b.model([("past", F32, [1, "past_size", 8]), ("new", F32, [1, "n", 8])], [("y", F32, [1, 8]), ("present", F32, [1, "total", 8])])
    model = ge.compile(proto, state="past:present:1:64", state_dtype="int8")
    assert {s["update"] for s in model.report()["states"]} == {"copied"} and all(s["why"] for s in model.report()["states"])
    assert model.report()["states"][0]["converted"]
    r, state, held = np.random.RandomState(1), model.new_state(), np.zeros((1, 0, 8), np.float32)
    for n in (3, 1, 5):
        new = floats(r, 1, n, 8)
        now = np.concatenate([-held, new], axis=1)
        close(model.run([new], state=state)[0], now.sum(1))
        held = widened(now)


def test_a_model_in_f16():
    onnx_model = in_f16(decoder())
    model, handed = ge.compile(onnx_model, state="auto:64", state_dtype="int8"), Handed(onnx_model)
    states = model.report()["states"]
    assert all(s["update"] == "appended" and not s["converted"] and not s["unfit"] for s in states), states
    assert model.states["0.key"][0] == np.int8 and [f["rule"] for f in model.report()["fused"]].count("attention_cache") == 2
    state = model.new_state()
    for tokens in tokens_of(5, 1, 1, 17, 2):
        got, want = model.run([tokens], state=state)[0].astype(np.float32), handed.run(tokens).astype(np.float32)
        assert np.abs(got - want).max() <= 3e-2 * np.abs(want).max()


def test_other_types_stay_as_they_are():
    b = Builder(1)
    b.op("Concat", "past", "new", axis=1, name="present")
    b.op("ReduceSum", "present", b.ints(1), keepdims=0, name="y")
    proto = b.model([("past", 6, [1, "past_size", 8]), ("new", 6, [1, "n", 8])], [("y", 6, [1, 8]), ("present", 6, [1, "total", 8])])
    for kind in ("int8", "f16"):
        model = ge.compile(proto, state="past:present:1:64", state_dtype=kind)
        assert [s["unfit"] for s in model.report()["states"]] == ["it is i32"] and model.states["present"][0] == np.int32


def test_names_that_are_taken():
    b = Builder(1)
    for name in ("kv", "kv.scale"):
        b.op("Concat", name + "_in", "new", axis=1, name=name)
    proto = b.model([("new", F32, [1, "n", 8]), ("kv_in", F32, [1, "past", 8]), ("kv.scale_in", F32, [1, "past", 8])], [("kv", F32, [1, "total", 8]), ("kv.scale", F32, [1, "total", 8])])
    model = ge.compile(proto, state="kv_in:kv:1:64;kv.scale_in:kv.scale:1:64", state_dtype="int8")
    assert {name: kind.name for name, (kind, _, _) in model.states.items()} == {"kv": "float32", "kv.scale": "int8", "kv.scale.scale": "float32"}
    assert "'kv.scale'" in model.report()["states"][0]["unfit"]


def test_a_cache_that_is_only_read():
    """Filled by one model, read by another, as encoders' keys are."""
    r = np.random.RandomState(3)
    b = Builder(1)
    b.op("Identity", "x", name="kv")
    fill = ge.compile(b.model([("x", F32, [1, 2, "t", 8])], [("kv", F32, [1, 2, "t", 8])]), state=":kv:2:64", state_dtype="int8")
    b = Builder(1)
    b.op("MatMul", "q", b.op("Transpose", "kv", perm=[0, 1, 3, 2]), name="y")
    read = ge.compile(b.model([("q", F32, [1, 2, "s", 8]), ("kv", F32, [1, 2, "t", 8])], [("y", F32, [1, 2, "s", "t"])]), state="kv::2:64", state_dtype="int8")
    state, x, q = fill.new_state(), floats(r, 1, 2, 9, 8), floats(r, 1, 2, 3, 8)
    fill.run([x], state=state)
    for _ in range(2):
        close(read.run([q], state=state)[0], q @ widened(x).swapaxes(2, 3))
    assert state.length == 9 and {s["update"] for s in read.report()["states"]} == {"kept"}


def test_options():
    with pytest.raises(ge.Error, match="int8"):
        ge.compile(decoder(), state="auto:64", state_dtype="int4")
