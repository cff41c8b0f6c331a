"""States: a model that keeps its keys and values from run to run gives what the model that is handed them gives."""

import os
import subprocess
import sys
import threading

import ge
import numpy as np
import pytest
from decoder_graphs import decoder, in_f16

TOLERANCE = 2e-5   # of the largest value: other blocks of keys, other order of sums


def close(got, want):
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= TOLERANCE * np.abs(want).max()


class Handed:
    """The same model without states: pasts are handed in, and come out longer."""

    def __init__(self, onnx_model, batch=1):
        self.model = ge.compile(onnx_model)
        self.kept = {p.name: np.zeros([batch if k == 0 else 0 if k == 2 else d for k, d in enumerate(p.shape)], p.dtype)
                     for p in self.model.inputs if p.name != "tokens"}

    def run(self, tokens):
        logits, *present = self.model.run({"tokens": tokens, **self.kept})
        self.kept = dict(zip(self.kept, present))
        return logits


def tokens_of(*sizes, batch=1, seed=3, vocabulary=50):
    random = np.random.default_rng(seed)
    return [random.integers(0, vocabulary, (batch, n)) for n in sizes]


@pytest.fixture(scope="module")
def model():
    return ge.compile(decoder(), state="auto:64")


def test_signature(model):
    assert [p.name for p in model.inputs] == ["tokens"]
    assert [p.name for p in model.outputs] == ["logits"]
    assert set(model.states) == {f"{n}.{kind}" for n in range(2) for kind in ("key", "value")}
    assert model.states["0.key"] == (np.dtype(np.float32), (-1, 2, 64, 8), 2)
    plain = ge.compile(decoder())
    assert len(plain.inputs) == 5 and len(plain.outputs) == 5 and not plain.states and plain.state is None


@pytest.mark.parametrize("options", [{}, {"disable_reuse_memory": 1}, {"disable_fusion": "all"}, {"reference": True}],
                         ids=["default", "no reuse", "unfused", "reference"])
@pytest.mark.parametrize("rotary", [True, False])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_chunks_of_any_size(groups, rotary, options):
    onnx_model = decoder(groups=groups, rotary=rotary)
    model, handed = ge.compile(onnx_model, state="auto:64", **options), Handed(onnx_model)
    state = model.new_state()
    for tokens in tokens_of(5, 1, 1, 17, 2, 1, 0, 3, 34):
        (logits,) = model.run([tokens], state=state)
        close(logits, handed.run(tokens)) if tokens.size else None
    assert state.length == 64
    saved = state.fork()
    assert saved.length == 64


def test_content_is_that_of_the_outputs(model):
    handed, state = Handed(decoder()), model.new_state()
    for tokens in tokens_of(4, 1, 7):
        model.run([tokens], state=state)
        handed.run(tokens)
    for name, (dims, content) in contents(state).items():
        want = handed.kept[f"past_key_values.{name}"]
        assert dims == want.shape
        close(content.reshape(dims), want)


def contents(state):
    """{name: (dims, elements)} of a saved state, read by its description in src/runtime/state_file.cc."""
    data = state.save()
    assert data[:8] == b"GESTATE\0"
    out, at = {}, 16

    def number(size):
        nonlocal at
        at += size
        return int.from_bytes(data[at - size:at], "little", signed=size == 8)
    for _ in range(int.from_bytes(data[12:16], "little")):
        size = number(4)
        name = data[at:at + size].decode()
        kind = {1: np.float32, 3: np.int8}[data[at + size]]
        at += size + 1 + 4
        capacity = [number(8) for _ in range(number(4))]
        dims = tuple(number(8) for _ in range(number(4)))
        assert not dims or len(capacity) == len(dims)
        size = number(8)
        out[name] = dims, np.frombuffer(data, kind, size // np.dtype(kind).itemsize, at)
        at += size
    return out


def test_batch():
    model, handed = ge.compile(decoder(), state="auto:32"), Handed(decoder(), batch=3)
    state = model.new_state()
    for tokens in tokens_of(4, 1, 9, batch=3):
        close(model.run([tokens], state=state)[0], handed.run(tokens))
    with pytest.raises(ge.Error) as e:
        model.run(tokens_of(1, batch=2), state=state)
    assert e.value.code == "E40001" and "0.key" in str(e.value)
    assert state.length == 14
    state.reset()
    close(model.run(tokens_of(4, batch=2), state=state)[0], Handed(decoder(), batch=2).run(tokens_of(4, batch=2)[0]))


def test_default_state(model):
    fresh = ge.compile(decoder(), state="auto:64")
    state = model.new_state()
    for tokens in tokens_of(3, 1, 2):
        close(fresh.run([tokens])[0], model.run([tokens], state=state)[0])
    assert fresh.state.length == 6
    fresh.state.reset()
    assert fresh.state.length == 0
    close(fresh(tokens_of(3)[0]), model.run(tokens_of(3), state=model.new_state())[0])


def test_fork(model):
    first, *rest = tokens_of(6, 1, 1, 5)
    before = model.memory()["state"]
    a = model.new_state()
    model.run([first], state=a)
    b = a.fork()
    assert model.memory()["state"] - before == a.memory()["committed"] + b.memory()["committed"] > 0
    other = tokens_of(1, 1, 5, seed=9)
    want = Handed(decoder())
    want.run(first)
    for tokens, others in zip(rest, other):
        close(model.run([tokens], state=a)[0], want.run(tokens))
        model.run([others], state=b)
    want = Handed(decoder())
    want.run(first)
    for others in other[:-1]:
        want.run(others)
    b2 = model.new_state()
    model.run([first], state=b2)
    for others in other:
        last = model.run([others], state=b2)[0]
    close(last, want.run(other[-1]))
    assert a.length == b.length == 13


def test_save_and_load_across_processes(model, tmp_path):
    first, second = tokens_of(9, 2)
    state = model.new_state()
    model.run([first], state=state)
    om, saved, out = tmp_path / "m.om", tmp_path / "s.state", tmp_path / "out.npy"
    model.save(om)
    state.save(saved)
    script = ("import sys, ge, numpy as np; m = ge.load(sys.argv[1]); s = m.load_state(sys.argv[2]); assert s.length == 9;"
              "np.save(sys.argv[3], m.run([np.array(eval(sys.argv[4]))], state=s)[0])")
    subprocess.run([sys.executable, "-c", script, om, saved, out, repr(second.tolist())], check=True, env=os.environ)
    np.testing.assert_array_equal(np.load(out), model.run([second], state=state)[0])
    # Another capacity holds it as well, if it is enough.
    larger = ge.compile(decoder(), state="auto:100")
    again = larger.load_state(saved)
    close(larger.run([second], state=again)[0], np.load(out))
    with pytest.raises(ge.Error, match="9 entries"):
        ge.compile(decoder(), state="auto:8").load_state(saved)
    with pytest.raises(ge.Error, match="no tensor '2.key'"):
        ge.compile(decoder(layers=3), state="auto:64").load_state(saved)


def test_damaged_files(model):
    state = model.new_state()
    model.run(tokens_of(3), state=state)
    data = state.save()
    random = np.random.default_rng(5)
    for size in [0, 7, 16, len(data) - 1, *random.integers(0, len(data), 20)]:
        with pytest.raises(ge.Error) as e:
            model.load_state(data[:size])
        assert e.value.code == "E13005"
    for at in random.integers(0, len(data), 60):
        flipped = bytearray(data)
        flipped[at] ^= 1 << int(random.integers(8))
        with pytest.raises(ge.Error):
            model.load_state(flipped)
    assert state.length == 3


def test_capacity(model):
    state = model.new_state()
    model.run(tokens_of(60), state=state)
    before = state.save()
    with pytest.raises(ge.Error) as e:
        model.run(tokens_of(5), state=state)
    assert e.value.code == "E40001" and "65" in str(e.value) and "64" in str(e.value) and "key" in str(e.value) and e.value.fix
    assert state.length == 60 and state.save() == before
    model.run(tokens_of(4), state=state)
    assert state.length == 64


def test_a_failed_run_changes_nothing(model):
    state = model.new_state()
    model.run(tokens_of(6), state=state)
    before = state.save()
    with pytest.raises(ge.Error):
        model.run([np.array([[1, 2, 5000]])], state=state)   # no such row of the embedding
    assert state.length == 6 and state.save() == before


def test_one_call_at_a_time():
    model = ge.compile(decoder(layers=4, heads=8, groups=8, depth=64), state="auto:4096")
    state = model.new_state()
    failures, stop = [], threading.Event()

    def work():
        while not stop.is_set():
            try:
                model.run(tokens_of(64), state=state)
                if state.length > 3000:
                    state.reset()
            except ge.Error as e:
                failures.append(e)
                stop.set()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    stop.set()
    assert failures and all("in use by another call" in str(e) for e in failures)
    state.reset()
    close(model.run(tokens_of(3), state=state)[0], model.run(tokens_of(3), state=model.new_state())[0])


def test_several_sequences_at_one_time(model):
    lengths = [1, 5, 12, 30]
    results = {}

    def work(seed):
        state = model.new_state()
        results[seed] = [model.run([t], state=state)[0] for t in tokens_of(*lengths, seed=seed)]
    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for seed, got in results.items():
        want = Handed(decoder())
        for g, t in zip(got, tokens_of(*lengths, seed=seed)):
            close(g, want.run(t))


def test_prefill_and_decode_share_a_state():
    prefill = ge.compile(decoder(past=False), state="auto:64")
    decode = ge.compile(decoder(), state="auto:64")
    first, *rest = tokens_of(11, 1, 1, 4)
    handed, state = Handed(decoder()), prefill.new_state()
    for _ in range(2):   # a prefill begins anew
        close(prefill.run([first], state=state)[0], handed.run(first))
        assert state.length == 11
        for tokens in rest:
            close(decode.run([tokens], state=state)[0], handed.run(tokens))
        assert state.length == 17
        handed = Handed(decoder())


@pytest.mark.parametrize("other, what", [({"groups": 4}, r"capacity \[-1,2,64,8\]"), ({"layers": 3}, "no tensor '2.key'")])
def test_states_of_another_model(model, other, what):
    with pytest.raises(ge.Error, match=what) as e:
        ge.compile(decoder(**other), state="auto:64").run(tokens_of(2), state=model.new_state())
    assert e.value.code == "E40001" and e.value.fix
    with pytest.raises(ge.Error, match="no states"):
        ge.compile(decoder(), input_shape="past_key_values.0.key:1,2,4,8").run(
            {**Handed(decoder()).kept, "tokens": tokens_of(2)[0]}, state=model.new_state())


def test_memory(model):
    token = 2 * 2 * 2 * 8 * 4   # layers, key and value, groups, depth, bytes
    assert model.report()["memory"]["state_bytes_per_token"] == token
    assert model.report()["memory"]["state"] == 64 * token
    long = ge.compile(decoder(), state="auto:100000")
    state = long.new_state()
    for length in (100, 1000, 9000):
        state.reset()
        assert state.memory()["committed"] == 0
        done = 0
        while done < length:
            done += long.run(tokens_of(min(1000, length - done)), state=state)[0].shape[1]
        memory = state.memory()
        pieces = 2 * 2 * 2      # layers, key and value, groups: each begins and ends inside a page
        assert length * token <= memory["committed"] <= length * token + pieces * 2 * 4096
        assert memory["reserved"] >= 100000 * token and memory["bytes_per_token"] == token
        assert long.memory()["state"] == memory["committed"]
    state.reset()
    assert long.memory()["state"] == 0
    del state
    assert long.memory()["state_reserved"] == 0


def test_only_the_cache_is_kept_across_layers():
    """All layers share the other buffers: the arena does not grow with their number."""
    def arena(layers):
        model = ge.compile(decoder(layers=layers), state="auto:64")
        model.run(tokens_of(16))
        return model.report()["memory"]["arena"]
    assert arena(8) <= arena(2)


def test_report(model):
    states = {s["name"]: s for s in model.report()["states"]}
    assert len(states) == 4 and all(s["update"] == "appended" and not s["why"] for s in states.values())
    assert "0.key: appended" in model.explain()
    assert "state: 0.key f32[?,2,up to 64,8]" in model._native.inspect(False)


@pytest.mark.parametrize("seed", range(4))
def test_attention_operator(seed):
    """Attention of opset 23: what it reads as past and gives as present."""
    from test_attention import floats, model_of
    r = np.random.RandomState(seed)
    groups, times, depth, width = r.randint(1, 3), r.randint(1, 4), 8, r.choice([8, 12])
    heads, attrs = groups * times, {"is_causal": 1}

    def fresh(n):
        return [floats(r, 1, heads, n, depth), floats(r, 1, groups, n, depth), floats(r, 1, groups, n, width)]

    def pasts(n):
        return [floats(r, 1, groups, n, depth), floats(r, 1, groups, n, width)]
    onnx_model = model_of("Attention", fresh(2) + [None] + pasts(3), ["y", "pk", "pv"], attrs, fixed=False)
    names = [i.name for i in onnx_model.graph.input]
    plain, model = ge.compile(onnx_model), ge.compile(onnx_model, state=f"{names[3]}:pk:2:40;{names[4]}:pv:2:40")
    assert [s["update"] for s in model.report()["states"]] == ["appended", "appended"]
    state, past = model.new_state(), pasts(0)
    for n in (5, 1, 1, 3):
        new = fresh(n)
        want, *past = plain.run(new + past)
        close(model.run(new, state=state)[0], want)


def group_query(r, batch, heads, groups, depth, queries, past, total):
    from test_attention import floats
    inputs = [floats(r, batch, queries, n * depth) for n in (heads, groups, groups)]
    inputs += [floats(r, batch, groups, past, depth) for _ in range(2)]
    return inputs + [np.full(batch, past + queries - 1, np.int32), np.zeros((batch, total), np.int64)]


def test_group_query_attention():
    """com.microsoft's: appended where it lies, as many as total_sequence_length says."""
    from test_attention import model_of
    r = np.random.RandomState(3)
    groups, times, depth = 2, 3, 16
    attrs = {"num_heads": groups * times, "kv_num_heads": groups}
    example = group_query(r, 1, groups * times, groups, depth, 2, 3, 5)
    onnx_model = model_of("GroupQueryAttention", example, ["y", "pk", "pv"], attrs, "com.microsoft", fixed=False, sized=6)
    names = [i.name for i in onnx_model.graph.input]
    plain, model = ge.compile(onnx_model), ge.compile(onnx_model, state=f"{names[3]}:pk:2:40;{names[4]}:pv:2:40")
    assert [s["update"] for s in model.report()["states"]] == ["replaced", "replaced"]
    state, past = model.new_state(), [np.zeros((1, groups, 0, depth), np.float32)] * 2
    for n in (5, 1, 1, 3):
        length = past[0].shape[2]
        q, k, v, _, _, last, total = group_query(r, 1, groups * times, groups, depth, n, length, length + n)
        want, *past = plain.run([q, k, v, *past, last, total])
        close(model.run([q, k, v, last, total], state=state)[0], want)
        assert state.length == length + n
    for (_, content), want in zip(contents(state).values(), past):
        close(content.reshape(want.shape), want)


@pytest.mark.parametrize("kind, moves", [("bf16", 0.03), ("f16", 0.004)])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_stored_in_16_bits(groups, kind, moves):
    """Half the bytes; what is held is rounded once, so that logits move by what rounding does."""
    onnx_model = decoder(groups=groups)
    model, exact = ge.compile(onnx_model, state="auto:64", state_dtype=kind), Handed(onnx_model)
    assert model.states["0.key"][0].name == {"bf16": "bfloat16", "f16": "float16"}[kind]
    assert model.report()["memory"]["state_bytes_per_token"] == 2 * 2 * groups * 8 * 2
    states = model.report()["states"]
    assert all(s["update"] == "appended" and not s["converted"] for s in states), states
    fused = [f["rule"] for f in model.report()["fused"]]
    assert fused.count("attention_cache") == 2
    state, direct = model.new_state(), model.new_state()
    for tokens in tokens_of(5, 1, 1, 17, 2, 1, 12):
        got, want = model.run([tokens], state=state)[0], exact.run(tokens)
        assert 0 < np.abs(got - want).max() <= moves * np.abs(want).max()
    whole = model.run([np.concatenate(tokens_of(5, 1, 1, 17, 2, 1, 12), axis=1)], state=direct)[0]
    close(got, whole[:, -12:])   # the same cache, however it was cut


def test_16_bits_saved_and_loaded():
    model = ge.compile(decoder(), state="auto:64", state_dtype="bf16")
    state = model.new_state()
    (first,) = tokens_of(20)
    model.run([first], state=state)
    data = state.save()
    assert len(data) < 20 * 2 * 2 * 2 * 8 * 2 + 1000
    fresh = model.load_state(data)
    (token,) = tokens_of(1, seed=8)
    np.testing.assert_array_equal(model.run([token], state=fresh)[0], model.run([token], state=state)[0])


def test_a_model_in_f16():
    """Its caches stay f16: they are appended to, and read by attention, as they lie."""
    onnx_model = in_f16(decoder())
    model, handed = ge.compile(onnx_model, state="auto:64"), Handed(onnx_model)
    states = model.report()["states"]
    assert all(s["update"] == "appended" and not s["converted"] for s in states), states
    assert model.states["0.key"][0] == np.float16
    state = model.new_state()
    for tokens in tokens_of(5, 1, 1, 17, 2):
        got, want = model.run([tokens], state=state)[0].astype(np.float32), handed.run(tokens).astype(np.float32)
        assert np.abs(got - want).max() <= 0.02 * np.abs(want).max()


def test_command_line(tmp_path):
    import onnx
    onnx.save(decoder(), tmp_path / "d.onnx")
    tool = os.path.join(os.path.dirname(ge.__file__), "bin", "atc")
    if not os.path.exists(tool):
        pytest.skip("no atc beside the package")
    done = subprocess.run([tool, f"--model={tmp_path / 'd.onnx'}", f"--output={tmp_path / 'd'}", "--framework=5", "--soc_version=CPU", "--state=auto:64"],
                          capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    model = ge.load(tmp_path / "d.om")
    close(model.run(tokens_of(3), state=model.new_state())[0], Handed(decoder()).run(tokens_of(3)[0]))
