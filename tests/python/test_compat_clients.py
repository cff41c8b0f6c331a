"""Packages of PyPI, unchanged, on ge.compat.onnxruntime: their answers are those that they give with ONNX Runtime.

The programs are in clients/; each prints its answers as JSON. Those that need more packages than every run of the
tests fetches are marked `models`.
"""

import json
import os
import subprocess
import sys

import clients
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PIXEL = 1.0  # corners of boxes: rounded to pixels by most programs


def run(program, folder, by_ge):
    arguments = [os.path.join(HERE, "clients", program + ".py")]
    if program in ("detects", "faces"):
        arguments.append(clients.photograph())
    here = [p for p in sys.path if p]  # where ge and onnxruntime are
    environment = {**os.environ, "GE_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join(clients.python_path(program) + here),
                   "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, *(["-m", "ge.compat.onnxruntime"] if by_ge else []), *arguments], env=environment,
                          capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().split("\n")[-1])


def agree(got, want, tolerance, where=""):
    assert type(got) is type(want), (where, got, want)
    if isinstance(want, dict):
        assert got.keys() == want.keys()
        for key in want:
            agree(got[key], want[key], PIXEL if key in ("boxes", "faces", "landmarks") else tolerance, f"{where}/{key}")
    elif isinstance(want, list):
        assert len(got) == len(want), (where, got, want)
        for i, (g, w) in enumerate(zip(got, want)):
            agree(g, w, tolerance, f"{where}/{i}")
    elif isinstance(want, float) or tolerance == PIXEL:
        assert abs(got - want) <= tolerance * (1 if tolerance == PIXEL else max(1, abs(want))), (where, got, want)
    else:
        assert got == want, (where, got, want)


# What the answers must say whoever gives them, so that two that found nothing do not count.
SENSE = {
    "magika_files": lambda a: a["labels"] == ["python", "c", "html", "json", "sql", "csv", "unknown"],
    "khmer_words": lambda a: all(" " in text for text in a["words"]),
    "thai_words": lambda a: all(len(words) > 4 for texts in a.values() for words in texts),
    "reads_text": lambda a: [t.replace(" ", "") for t in a["text"]] == [t.replace(" ", "") for t in a["drawn"]],
    "upright": lambda a: a["turned"] == ["0", "270", "180", "90"],
    "detects": lambda a: any(c.startswith("FACE") for c in a["classes"]),
    "faces": lambda a: len(a["faces"]) == 1 and len(a["landmarks"][0]) == 10,
    "wakes": lambda a: all(max(v for k, v in heard.items() if (k == "2" if word == "timer" else k.startswith(word))) > 0.8
                           for word, heard in a["heard"].items()),
    "hears_speech": lambda a: len(a["speech"]) >= 2 and min(a["scores"]) < 0.01 and max(a["scores"]) > 0.99,
    "layout": lambda a: {"text", "title", "table"} <= set(a["classes"]),
    "reads_code": lambda a: a["read"] == a["codes"],
    "pitch": lambda a: all(abs(s / n - 1) < 0.01 for s, n in zip(a["sung"], a["notes"], strict=True)),
    "rates_sound": lambda a: a["whole"] > 3 > 2 > a["torn"],
    "vowels": lambda a: all("\u064e" in text for texts in a.values() for text in texts),
    "chinese_words": lambda a: ["北京大学", "ORG"] in a["words"][0],
}


@pytest.mark.parametrize("program", [pytest.param(p, marks=[pytest.mark.models] if large else []) for p, (_, large) in clients.CLIENTS.items()])
def test_answers(program, tmp_path):
    want = run(program, tmp_path, by_ge=False)
    assert not list(tmp_path.iterdir())
    assert SENSE[program](want), want
    first = run(program, tmp_path, by_ge=True)
    agree(first, want, 2e-3)
    compiled = sorted(p.name for p in tmp_path.glob("*.om"))
    assert compiled  # GE ran, and kept what it compiled
    agree(run(program, tmp_path, by_ge=True), first, 1e-6)
    assert sorted(p.name for p in tmp_path.glob("*.om")) == compiled


def test_every_program_runs():
    programs = {f.name[:-3] for f in os.scandir(os.path.join(HERE, "clients")) if f.name.endswith(".py")} - {"speech"}
    assert programs == set(clients.CLIENTS) == set(SENSE)
