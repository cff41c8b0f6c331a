"""The wheel stands alone: installed into an empty environment, away from the build tree."""

import os
import subprocess
import sys

import fetch
import numpy as np
import pytest
from conftest import ROOT, difference, reference

RUN = """
import sys
import numpy as np
import ge
assert sys.argv[3] not in ge.__file__, ge.__file__
feeds = dict(np.load(sys.argv[2]))
np.save(sys.argv[4], ge.compile(sys.argv[1]).run(feeds)[0])
"""


@pytest.mark.slow
def test_wheel_in_an_empty_environment(tmp_path):
    dist = os.path.join(ROOT, "build", "tested-wheel")
    done = subprocess.run([os.path.join(ROOT, "dev"), "wheel", dist], check=True, stdout=subprocess.PIPE, text=True)
    wheel = os.path.join(ROOT, done.stdout.strip().split("\n")[-1])
    assert "manylinux" in os.path.basename(wheel)
    env = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", str(env)], check=True)
    python = str(env / "bin" / "python")
    # The versions that are tested here; pip takes them from its cache.
    pins = [f"{p}=={__import__(p).__version__}" for p in ("numpy", "ml_dtypes")]
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel, *pins], check=True)
    bare = {"PATH": os.path.join(env, "bin") + ":/usr/bin:/bin"}
    names = subprocess.run([python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"],
                           check=True, capture_output=True, text=True, env=bare).stdout
    installed = {line.split("==")[0].lower() for line in names.split()}
    assert installed - {"pip", "setuptools"} == {"ge", "numpy", "ml_dtypes"}

    path, feeds = fetch.fetch("magika"), fetch.feeds("magika")
    np.savez(tmp_path / "feeds.npz", **feeds)
    out = tmp_path / "out.npy"
    subprocess.run([python, "-c", RUN, path, str(tmp_path / "feeds.npz"), ROOT, str(out)], check=True,
                   cwd=tmp_path, env=bare)
    want = reference(path, feeds)
    assert difference([np.load(out)], want) <= 1e-4

    om = tmp_path / "magika.om"
    atc = subprocess.run(["atc", f"--model={path}", "--framework=5", f"--output={om}", "--soc_version=cpu"],
                         cwd=tmp_path, env=bare, capture_output=True, text=True)
    assert atc.returncode == 0, atc.stdout + atc.stderr
    run = subprocess.run(["ge", "run", str(om), "--input", str(tmp_path / "feeds.npz"), "--output", str(tmp_path)],
                         cwd=tmp_path, env=bare, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert difference([np.load(tmp_path / "target_label.npy")], want) <= 1e-4
