"""Whisper transcribes speech with its keys and values in a State, a prefill and a step program sharing it, and with
pasts handed in and out: the same tokens, which are ONNX Runtime's.
"""

import os
import sys

import clients
import fetch
import ge
import numpy as np
import onnxruntime
import pytest

pytestmark = pytest.mark.models

LAYERS, CAPACITY = 6, 448
START, END = [50258, 50259, 50359, 50363], 50257   # transcript, English, transcribe, no time stamps
TEXT = "The quick brown fox jumps over the lazy dog. Yesterday it rained all day."
CROSS = [f"cross.{i}.{part}" for i in range(LAYERS) for part in ("key", "value")]
SELF = [f"{i}.self.{part}" for i in range(LAYERS) for part in ("key", "value")]


def mel_filters():
    """80 triangles of equal area on the mel scale of Slaney, over 201 frequencies up to 8 kHz."""
    def to_hertz(mel):
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))
    top = 15 + 27 * np.log(8) / np.log(6.4)
    edges = to_hertz(np.linspace(0, top, 82))
    at = np.linspace(0, 8000, 201)
    up = (at - edges[:-2, None]) / np.diff(edges)[:-1, None]
    down = (edges[2:, None] - at) / np.diff(edges)[1:, None]
    return np.maximum(0, np.minimum(up, down)) * (2 / (edges[2:] - edges[:-2]))[:, None]


def features(sound):
    """What Whisper hears: [1, 80, 3000] of 30 seconds at 16 kHz."""
    sound = np.pad(sound[:480000], (0, max(0, 480000 - len(sound))))
    padded = np.pad(sound, 200, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, 400)[::160][:3000]
    power = np.abs(np.fft.rfft(frames * np.hanning(401)[:-1])) ** 2
    log = np.log10(np.maximum(mel_filters() @ power.T, 1e-10))
    return ((np.maximum(log, log.max() - 8) + 4) / 4).astype(np.float32)[None]


@pytest.fixture(scope="module")
def heard():
    sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients"), clients.requirements("requirements-clients-large.txt")]
    import speech
    return features(speech.say(TEXT) / 32768)


def greedy(first, step, most=40):
    tokens = [int(first.argmax())]
    while tokens[-1] != END and len(tokens) < most:
        tokens.append(int(step(np.array([[tokens[-1]]], np.int64)).argmax()))
    return tokens


def handed_on(run_prefill, run_step, encoded):
    """Pasts in, presents out; run_*: feeds to {output: array}."""
    out = run_prefill({"input_ids": np.array([START], np.int64), "encoder_hidden_states": encoded})
    kept = {name: out[name] for name in CROSS} | {f"past.{name}": out[f"present.{name}"] for name in SELF}

    def step(token):
        out = run_step({"input_ids": token, **kept})
        kept.update({f"past.{name}": out[f"present.{name}"] for name in SELF})
        return out["logits"][0, -1]
    return greedy(out["logits"][0, -1], step)


def in_onnxruntime(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options)
    names = [o.name for o in session.get_outputs()]
    return lambda feeds: dict(zip(names, session.run(names, feeds)))


def in_ge(path):
    model = ge.compile(path)
    return lambda feeds: dict(zip([p.name for p in model.outputs], model.run(feeds)))


def test_speech_is_transcribed_with_and_without_a_state(heard):
    paths = [fetch.fetch(f"whisper_base_{part}") for part in ("encoder", "decoder_prefill", "decoder_step")]
    (encoded,) = ge.compile(paths[0]).run([heard])
    prefill = ge.compile(paths[1], state=";".join([f"auto:{CAPACITY}", *(f":{name}" for name in CROSS)]))
    step = ge.compile(paths[2], state=";".join([f"auto:{CAPACITY}", *(f"{name}:" for name in CROSS)]))
    assert [p.name for p in step.inputs] == ["input_ids"] and [p.name for p in step.outputs] == ["logits"]
    assert {s["update"] for s in step.report()["states"]} == {"appended", "kept"}
    assert {s["update"] for s in prefill.report()["states"]} == {"written"}
    state = prefill.new_state()
    transcripts = []
    for _ in range(2):   # a prefill begins anew
        (logits,) = prefill.run({"input_ids": np.array([START], np.int64), "encoder_hidden_states": encoded}, state=state)
        transcripts.append(greedy(logits[0, -1], lambda token: step.run([token], state=state)[0][0, -1]))
        assert state.lengths["0.self.key"] == len(START) + len(transcripts[0]) - 1
    assert transcripts[0] == transcripts[1]
    assert transcripts[0] == handed_on(in_ge(paths[1]), in_ge(paths[2]), encoded)
    assert transcripts[0] == handed_on(in_onnxruntime(paths[1]), in_onnxruntime(paths[2]), encoded)
    assert transcripts[0][-1] == END and len(transcripts[0]) > 10   # as many tokens as the text has words, and more
