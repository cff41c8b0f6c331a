"""bf16 builds: `./dev bench models --precision=bf16 [NAME ...]`.

GE compiled with precision_mode_v2=mixed_bfloat16, beside GE's f32 build and OpenVINO with the precision that it
chooses itself (bf16 where the CPU has it); how far each is from ONNX Runtime's f32. One thread unless told. A model
that fails, or is further off than 3e-2 of the largest value and than OpenVINO, counts 0.5.
"""

import json
import os
import tempfile

import interleave
import score

BF16 = {"precision_mode_v2": "mixed_bfloat16"}
PEER, PLAIN, ORACLE = "openvino:default", "ge:f32", "onnxruntime"
TOLERANCE, BAR = 3e-2, 1.0


def failure(result):
    """Why this model counts 0.5; None if it counts with its ratio."""
    if "error" in result["ge"]:
        return result["ge"]["error"]
    if "wrong" not in result["ge"]:
        return "nothing says whether it is right"
    allowed = max(TOLERANCE, result[PEER].get("wrong", 0.0))
    return None if result["ge"]["wrong"] <= allowed else f"its outputs are off by {result['ge']['wrong']:.1e}"


def ratio(result):
    """How many times as fast as the peer; None where that cannot run the model."""
    if failure(result):
        return score.COUNTS_AS
    return result[PEER].get("ratio")


def measure(case, threads, folder, a):
    import ge
    path, feeds = case[0](), case[1]()
    paths = {"ge": os.path.join(folder, "bf16.om"), PLAIN: os.path.join(folder, "f32.om"), PEER: path, ORACLE: path}
    try:
        ge.compile(path, **BF16).save(paths["ge"])
        ge.compile(path).save(paths[PLAIN])
        return interleave.compare(paths, threads, feeds, folder, a.rounds, a.seconds, tolerant=True, oracle=ORACLE)
    except (ValueError, RuntimeError) as e:  # one model's failure must not hide the others' figures
        return {"ge": {"error": f"{e}".splitlines()[0][:200]}}


def row(name, threads, result):
    text = f"{name:<28}{threads:>2}"
    if "error" in result["ge"]:
        return f"{text}  FAILS, counts {score.COUNTS_AS}: {result['ge']['error']}"
    ours, peer, plain = result["ge"], result[PEER], result[PLAIN]
    text += f"{ours['ms']:>10.3f}{plain['ms']:>10.3f}{plain['ratio']:>7.2f}"
    if "error" in peer:
        return f"{text}  the peer cannot run it"
    text += f"{peer['ms']:>10.3f}{peer['ratio']:>7.2f} {min(peer['ratios']):.2f}-{max(peer['ratios']):.2f}"
    text += "".join(f"{result[e].get('wrong', float('nan')):>9.1e}" for e in ("ge", PEER))
    return text + (f"  counts {score.COUNTS_AS}: {failure(result)}" if failure(result) else "")


def run(cases, names, a):
    """The table of these models, its geomean; 0 if --floors was not given or the bar holds."""
    print(f"{'model':<28}{'t':>2}{'bf16 ms':>10}{'f32 ms':>10}{'gain':>7}{'peer ms':>10}{'ratio':>7} {'(rounds)':<9}{'off':>9}{'its':>9}")
    results = {t: {} for t in a.threads}
    for name in names:
        for threads in a.threads:
            with tempfile.TemporaryDirectory() as folder:
                results[threads][name] = measure(cases[name], threads, folder, a)
            print(row(name, threads, results[threads][name]), flush=True)
    for threads, of in results.items():
        ratios = {n: ratio(r) for n, r in of.items() if ratio(r) is not None}
        print(f"{threads} thread{'s' if threads > 1 else ''}: geomean {score.geomean(ratios.values()):.3f} over {len(ratios)} models; under 1: "
              + (", ".join(f"{n} {r:.2f}" for n, r in sorted(ratios.items(), key=lambda i: i[1]) if r < 1) or "none"))
    os.makedirs(os.path.dirname(a.output), exist_ok=True)
    with open(a.output, "w", encoding="utf-8") as f:
        json.dump([{"model": n, "threads": t, **r} for t, of in results.items() for n, r in of.items()], f, indent=1)
    held = score.geomean(r for r in map(ratio, results[min(results)].values()) if r is not None) >= BAR
    return 0 if held or not a.floors else 1
