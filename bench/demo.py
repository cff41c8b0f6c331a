"""`./dev demo`: a real model from its onnx file to answers about real files, in one screen.

The model is magika's, which names the type of a file from its first and last kilobyte.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "models")]
import fetch  # noqa: E402
import interleave  # noqa: E402

FILES = ["dev", "CMakeLists.txt", "pyproject.toml", "LICENSE", "README.md", "bench/demo.py",
         "src/base/hash.cc", "tests/models/models.json"]


def tokens(path, config):
    """What the model reads of a file: its start and its end without outer white space, padded."""
    size, block = os.path.getsize(path), config["block_size"]
    with open(path, "rb") as f:
        start = f.read(block).lstrip()[:config["beg_size"]]
        f.seek(max(0, size - block))
        end = f.read(block).rstrip()[-config["end_size"]:]
    pad = config["padding_token"]
    return (list(start) + [pad] * (config["beg_size"] - len(start)) +
            [pad] * (config["end_size"] - len(end)) + list(end))


def atc(model, folder):
    """Compiles with the command line, as a user would, in `folder` (atc writes a report where it runs); returns the .om."""
    om = os.path.join(folder, "magika.om")
    command = [os.path.join(os.path.dirname(sys.executable), "atc"), f"--model={model}", "--framework=5",
               f"--output={om}", "--soc_version=cpu"]
    print("$", " ".join(["atc"] + command[1:]).replace(ROOT + os.sep, ""))
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    print("\n".join(line for line in done.stdout.splitlines() if not line.startswith("[GE] WARN")))
    if done.returncode:
        sys.exit(f"atc failed with {done.returncode}")
    return om


def nearest(misses):
    """For each rule the miss that came closest: the largest part of its pattern matched."""
    best = {}
    for miss in misses:
        at = best.get(miss["rule"])
        if at is None or miss["matched"] * at["of"] > at["matched"] * miss["of"]:
            best[miss["rule"]] = miss
    return sorted(best.values(), key=lambda m: m["rule"])


def mib(count):
    return f"{count / 2**20:.2f} MiB"


def count_by(items, key):
    counts = {}
    for item in items:
        counts[item[key]] = counts.get(item[key], 0) + 1
    return counts


def main():
    import ge
    with tempfile.TemporaryDirectory() as folder:
        onnx = fetch.fetch("magika")
        with open(os.path.join(os.path.dirname(onnx), "config.min.json"), encoding="utf-8") as f:
            config = json.load(f)
        om = atc(onnx, folder)
        model = ge.load(om)
        feeds = {"bytes": np.array([tokens(os.path.join(ROOT, f), config) for f in FILES], np.int32)}
        (scores,) = model.run(feeds)
        threads = len(os.sched_getaffinity(0))
        result = interleave.compare({"ge": om, "onnxruntime": onnx}, threads, feeds, folder, rounds=3, seconds=0.3)
        report = model.report()
    summary(report, scores, config["target_labels_space"], result, threads)
    if result["onnxruntime"]["difference"] > 1e-4:
        sys.exit("the answers differ")


def summary(report, scores, labels, result, threads):
    memory, fused, misses = report["memory"], report["fused"], report["near_misses"]
    ours, theirs = result["ge"], result["onnxruntime"]
    print("\n--- summary " + "-" * 68)
    print("files     " + ", ".join(f"{os.path.basename(f)}: {labels[s.argmax()]} {s.max():.0%}"
                                   for f, s in list(zip(FILES, scores))[:4]))
    print("          " + ", ".join(f"{os.path.basename(f)}: {labels[s.argmax()]} {s.max():.0%}"
                                   for f, s in list(zip(FILES, scores))[4:]))
    print(f"fused     {len(fused)}: " + ", ".join(f"{n} x{c}" for n, c in sorted(count_by(fused, 'rule').items())))
    print(f"not fused {len(misses)} near misses" + (", the nearest of each rule:" if misses else ""))
    for miss in nearest(misses):
        print(f"          {miss['rule']} at {miss['anchor'].rsplit('/', 1)[-1]}: {miss['why']}"[:140])
    gap = memory["arena"] / memory["lower_bound"] - 1 if memory["lower_bound"] else 0.0
    print(f"memory    arena {mib(memory['arena'])}, lower bound {mib(memory['lower_bound'])} ({gap:+.1%}), "
          f"weights {mib(memory['weights'])}")
    print(f"latency   GE {ours['ms']:.2f} ms, ONNX Runtime {theirs['ms']:.2f} ms: {theirs['ratio']:.2f} times as fast "
          f"({len(FILES)} files, {threads} threads)")
    print(f"start     GE {ours['create_ms'] + ours['first_ms']:.0f} ms, ONNX Runtime "
          f"{theirs['create_ms'] + theirs['first_ms']:.0f} ms to the first answer")
    print(f"answers   agree: they differ by {theirs['difference']:.1e} of the largest value"
          if theirs["difference"] <= 1e-4 else f"answers   DIFFER by {theirs['difference']:.1e}")


if __name__ == "__main__":
    main()
