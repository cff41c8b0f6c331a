"""What the ratios of a benchmark amount to: arithmetic alone, on the results of interleave.compare."""

import math
import statistics

COUNTS_AS = 0.5     # a model that fails or whose outputs disagree
TOLERANCE = 1e-3    # of the output's largest value
ROUNDED = {"allowed": 3e-2, "unequal": 0.01}  # of int8 and fp16 models: the same, and the share of integers that may differ
ORACLE = "onnxruntime"


def geomean(values):
    values = list(values)
    return math.exp(statistics.fmean(map(math.log, values))) if values else float("nan")


def allowed(result, ours):
    return result[ours].get("allowed", TOLERANCE)


def failure(result, ours="ge"):
    """Why this model does not count with its own ratio; None if it does."""
    if "error" in result[ours]:
        return result[ours]["error"]
    oracle = result.get(ORACLE)
    judges = [oracle] if oracle and "error" not in oracle else [r for e, r in result.items() if e != ours and "error" not in r]
    if not judges:
        return "no peer runs it, so nothing says whether it is right"
    difference = min(j["difference"] for j in judges)
    return None if difference <= allowed(result, ours) else f"the outputs differ by {difference:.1e}"


def peers(result, ours="ge"):
    """The other engines that ran it and whose outputs agree with ours: only those can be faster."""
    return {e: r for e, r in result.items() if e != ours and "error" not in r and r["difference"] <= allowed(result, ours)}


def better_peer(result, ours="ge"):
    """The name of the fastest peer: the one with the lowest ratio."""
    able = peers(result, ours)
    return min(able, key=lambda e: able[e]["ratio"]) if able else None


def ratio(result, peer, ours="ge"):
    """How many times as fast as the peer ("better": the better one); None: it has nothing to compare with."""
    if failure(result, ours):
        return COUNTS_AS
    if peer == "better":
        peer = better_peer(result, ours)
    able = peers(result, ours)
    return able[peer]["ratio"] if peer in able else None


def summary(results, peer, ours="ge"):
    """{name: result} against one peer: geomean, the least with its name, how many."""
    ratios = {name: ratio(result, peer, ours) for name, result in results.items()}
    ratios = {name: r for name, r in ratios.items() if r is not None}
    least = min(ratios, key=ratios.get) if ratios else None
    return {"geomean": geomean(ratios.values()), "least": ratios.get(least), "slowest": least, "count": len(ratios),
            "ratios": ratios}


def start_ms(run):
    """From nothing to the first outputs."""
    return run["create_ms"] + run["first_ms"]


def late_starts(results, ours="ge"):
    """{name: ms too many} of models whose start takes more than a steady run, 5 ms, and 0.1 ms per MB of the file."""
    allowed = {n: r[ours]["ms"] + 5 + 0.1 * r[ours]["file_mb"] for n, r in results.items() if not failure(r, ours)}
    return {n: start_ms(results[n][ours]) - most for n, most in allowed.items() if start_ms(results[n][ours]) > most}


def costs(results, ours="ge"):
    """Geomeans over the models that count: start and peak memory, ours over the better peer's."""
    pairs = [(r[ours], r[better_peer(r, ours)]) for r in results.values() if not failure(r, ours) and better_peer(r, ours)]
    return {"start": geomean(start_ms(a) / start_ms(b) for a, b in pairs),
            "peak_mb": geomean(a["peak_mb"] / b["peak_mb"] for a, b in pairs if a["peak_mb"] > 0 and b["peak_mb"] > 0)}


def below(summary_, mean_floor, floor):
    """What is under the floors, as lines; empty: both hold."""
    lines = [f"{name}: {r:.2f}, under {floor}" for name, r in sorted(summary_["ratios"].items(), key=lambda i: i[1]) if r < floor]
    if not summary_["geomean"] >= mean_floor:
        lines.insert(0, f"geomean: {summary_['geomean']:.2f}, under {mean_floor}")
    return lines
