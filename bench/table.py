"""The table of models that bench/RESULTS.md holds, from what `./dev bench models` wrote: `./dev bench table [JSON ...]`.

Several files are joined (a run of each model on its own, say); of a model that is in several, the last counts.
"""

import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
import score  # noqa: E402

PEERS = ("onnxruntime", "openvino")


def read(files, threads):
    """{model: result} of the runs with so many threads."""
    results = {}
    for path in files:
        with open(path, encoding="utf-8") as f:
            for r in json.load(f)["results"]:
                if r["threads"] == threads:
                    results[r["model"]] = {k: v for k, v in r.items() if k not in ("model", "threads")}
    return results


def cell(result, peer):
    if "error" in result.get(peer, {"error": ""}):
        return "cannot run it"
    ratio = f"{result[peer]['ratio']:.2f}"
    return ratio if peer in score.peers(result) else f"{ratio} (other outputs)"


def agreement(result):
    """The largest difference to ONNX Runtime; to OpenVINO where that cannot run the model."""
    for peer in PEERS:
        if "difference" in result.get(peer, {}):
            return f"{result[peer]['difference']:.0e}"
    return "no peer runs it"


def rows(results):
    yield "| model | differs | ms | to ONNX Runtime | to OpenVINO |"
    yield "|---|---|---|---|---|"
    for name, r in results.items():
        if "error" in r["ge"]:
            yield f"| {name} | fails: {r['ge']['error'][:80]} | | | |"
            continue
        mark = " (too much)" if score.failure(r) else ""
        yield f"| {name} | {agreement(r)}{mark} | {r['ge']['ms']:.2f} | {cell(r, PEERS[0])} | {cell(r, PEERS[1])} |"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="./dev bench table", description=__doc__)
    parser.add_argument("files", nargs="*", default=[os.path.join(ROOT, "build", "bench_models.json")])
    parser.add_argument("--threads", type=int, default=1)
    a = parser.parse_args(arguments)
    results = read(a.files, a.threads)
    print("\n".join(rows(results)))
    for peer in (*PEERS, "better"):
        s = score.summary(results, peer)
        if s["count"]:
            print(f"\nto {peer}: geomean {s['geomean']:.2f}, least {s['least']:.2f} ({s['slowest']}), {s['count']} models", end="")
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
