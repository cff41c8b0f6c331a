"""Keys and values that lie one upon the other in one state, as GPT-2's old exports have them."""

import ge
import numpy as np
import pytest
from decoder_graphs import stacked_decoder
from test_state import close, tokens_of


def handed(model, pieces, layers=2, heads=4, depth=8):
    """Logits of each piece, pasts handed in."""
    batch, kept = pieces[0].shape[0], [np.zeros((2, pieces[0].shape[0], heads, 0, depth), np.float32)] * layers
    assert all(k.shape[1] == batch for k in kept)
    for tokens in pieces:
        logits, *kept = model.run([tokens, *kept])
        yield logits


@pytest.mark.parametrize("kind, moves", [("f32", 2e-5), ("f16", 4e-3), ("bf16", 3e-2), ("int8", 2e-2)])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("how", ["gather", "split", "slice"])
def test_stacked_caches(how, batch, kind, moves):
    proto = stacked_decoder(how, batch=batch)
    model, plain = ge.compile(proto, state="auto:64", state_dtype=kind), ge.compile(proto)
    states = model.report()["states"]
    assert len(states) == (4 if kind == "int8" else 2)
    assert all(s["update"] == "appended" and not s["converted"] for s in states), states
    assert [f["rule"] for f in model.report()["fused"]].count("attention_cache") == (0 if kind == "f32" else 2)
    size = {"f32": 32, "f16": 16, "bf16": 16, "int8": 8 + 4}[kind]
    assert model.report()["memory"]["state_bytes_per_token"] == 2 * 2 * batch * 4 * size
    pieces, state = tokens_of(5, 1, 1, 17, 2, 1, 12, batch=batch), model.new_state()
    for tokens, want in zip(pieces, handed(plain, pieces)):
        got = model.run([tokens], state=state)[0]
        assert np.abs(got - want).max() <= moves * np.abs(want).max()
    assert state.length == 39
    other = state.fork()
    (token,) = tokens_of(1, batch=batch, seed=8)
    np.testing.assert_array_equal(model.run([token], state=other)[0], model.run([token], state=state)[0])


def test_by_the_operators_as_they_stand():
    proto = stacked_decoder("gather")
    model, plain = ge.compile(proto, state="auto:64", reference=True), ge.compile(proto)
    pieces, state = tokens_of(5, 1, 3), model.new_state()
    for tokens, want in zip(pieces, handed(plain, pieces)):
        close(model.run([tokens], state=state)[0], want)
