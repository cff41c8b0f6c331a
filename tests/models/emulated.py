"""Real models on an emulated CPU, beside the native build of the same sources: compiled to the same bytes, and run
with the same results.

    python tests/models/emulated.py NATIVE_GE EMULATOR... EMULATED_GE
"""

import filecmp
import os
import subprocess
import sys
import tempfile

import fetch
import numpy as np

MODELS = ["magika", "khmer_segmenter"]
TOLERANCE = 1e-4  # of the output's largest value, as beside ONNX Runtime


def ge(command, *arguments):
    subprocess.run([*command, *arguments], check=True, stdout=subprocess.DEVNULL)


def run(command, om, feeds, folder):
    """{output name: array}."""
    os.makedirs(folder)
    inputs = os.path.join(folder, "inputs.npz")
    np.savez(inputs, **feeds)
    outputs = os.path.join(folder, "outputs")
    ge(command, "run", om, "--input", inputs, "--output", outputs)
    return {name: np.load(os.path.join(outputs, name)) for name in sorted(os.listdir(outputs))}


def difference(got, want):
    """The largest difference over the largest value of an output; other types than floats must be equal."""
    worst = 0.0
    for name, w in want.items():
        g = got[name]
        assert g.dtype == w.dtype and g.shape == w.shape and w.size, name
        if w.dtype.kind != "f":
            np.testing.assert_array_equal(g, w)
            continue
        assert np.ptp(w) > 0, "a flat output would show no error"
        assert np.array_equal(np.isfinite(g), np.isfinite(w)), name
        worst = max(worst, float(np.abs(g - w).max() / np.abs(w).max()))
    return worst


def check(name, native, emulated, folder):
    """The largest difference of any case from the native results."""
    path, worst = fetch.fetch(name), 0.0
    om, again = os.path.join(folder, "native.om"), os.path.join(folder, "emulated.om")
    ge(native, "compile", path, "-o", om)
    ge(emulated, "compile", path, "-o", again)
    assert filecmp.cmp(om, again, shallow=False), f"{name}: the .om depends on the machine that compiles"
    for case in fetch.catalogue()[name]["feeds"]:
        feeds = fetch.feeds(name, case)
        want = run(native, om, feeds, os.path.join(folder, f"{case}-native"))
        got = run(emulated, om, feeds, os.path.join(folder, f"{case}-emulated"))
        assert want and got.keys() == want.keys()
        worst = max(worst, difference(got, want))
    return worst


def main():
    native, emulated = sys.argv[1:2], sys.argv[2:]
    failed = False
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            worst = check(name, native, emulated, folder)
        failed |= not worst <= TOLERANCE
        print(f"    {name}: largest difference {worst:.1e} of the output's largest value, {TOLERANCE:.0e} allowed", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
