"""Engines side by side: each in a process of its own that lives through all rounds, taking turns.

A machine's speed drifts, so only ratios within one round count; the median over the rounds is what
is reported. While one engine runs, the others wait for input; what they burn meanwhile is measured.
"""

import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PAUSE = 0.03  # lets the pool of the engine that has just run go to sleep


class Worker:
    def __init__(self, engine, threads, path, feeds_file, folder):
        self.engine = engine
        self.outputs_file = os.path.join(folder, f"{engine}-{threads}.npz")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "OPENBLAS_", "MKL_"))}
        environment["GE_NUM_THREADS"] = str(threads)
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "engines.py"), engine, str(threads), path, feeds_file,
             self.outputs_file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.start = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.engine} stopped with exit code {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.engine}: {answer['error']}")
        return answer

    def turn(self, least, seconds):
        self.process.stdin.write(f"{least} {seconds}\n")
        self.process.stdin.flush()
        return self.answer()

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def outputs(self):
        with np.load(self.outputs_file) as f:
            return [f[f"o{i}"] for i in range(len(f.files))]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


def difference(got, want, unequal=0):
    """The largest difference over the largest value, over all outputs; infinite if they do not fit.

    What is not a float must be equal but for the share `unequal`; NaN and infinities must be, in place and kind.
    """
    worst = 0.0
    for g, w in zip(got, want):
        if g.shape != w.shape or g.dtype != w.dtype:
            return float("inf")
        if g.dtype.kind != "f":
            worst = max(worst, 0.0 if np.count_nonzero(g != w) <= unequal * w.size else float("inf"))
            continue
        finite = np.isfinite(w)
        if not np.array_equal(g[~finite], w[~finite], equal_nan=True) or not np.isfinite(g[finite]).all():
            return float("inf")
        if finite.any():
            g, w = g[finite].astype(np.float64), w[finite].astype(np.float64)
            worst = max(worst, float(np.abs(g - w).max() / (np.abs(w).max() or 1.0)))
    return worst if len(got) == len(want) else float("inf")


def started_often(start, starts):
    """A worker whose start is the middle one, by time, of `starts` processes that were fresh one after another."""
    begins = []
    for k in range(starts):
        worker = start()
        begins.append(worker.start)
        if k + 1 < starts:
            worker.close()
    worker.start = sorted(begins, key=lambda b: b["create_ms"] + b["first_ms"])[starts // 2]
    return worker


def started(paths, threads, feeds_file, folder, start, tolerant, starts=1):
    """(the workers, {engine: {"error"}} of those that cannot run the model)."""
    workers, failed = [], {}
    for engine, path in paths.items():
        try:
            workers.append(started_often(lambda e=engine, p=path: start(e, threads, p, feeds_file, folder), starts))
        except RuntimeError as e:
            if not tolerant:
                raise
            failed[engine] = {"error": str(e)}
        time.sleep(PAUSE)
    return workers, failed


def take_turns(workers, rounds, least, seconds):
    """({engine: seconds of a run, one for each round}, the largest share of a CPU that waiting engines used)."""
    best, idle = {w.engine: [] for w in workers}, 0.0
    for worker in workers:
        worker.turn(1, 0.1)  # warm
    for k in range(rounds):
        for worker in workers if k % 2 == 0 else workers[::-1]:
            others = [w for w in workers if w is not worker]
            time.sleep(PAUSE)
            before, start = [w.cpu_seconds() for w in others], time.perf_counter()
            best[worker.engine].append(statistics.median(worker.turn(least, seconds)))
            burnt = sum(w.cpu_seconds() - b for w, b in zip(others, before))
            idle = max(idle, burnt / (time.perf_counter() - start))
    return best, idle


def compare(paths, threads, feeds, folder, rounds=5, seconds=0.5, least=3, start=Worker, tolerant=False, starts=1, oracle=None,
            unequal=0):
    """paths: {engine: its model file}; the first engine is compared with each of the others. The same engine
    can stand there several times with other files, as "ge:one" and "ge:two".

    Returns {engine: {"ms", "create_ms", "first_ms", "peak_mb", "ratio", "ratios", "difference"}}, where
    ratio says how many times as fast the first engine is; with an oracle among the engines also "wrong", the
    difference to its outputs. Of integers the share `unequal` may differ. If `tolerant`, an engine that cannot
    run the model has {"error"} alone, and if that is the first one, nobody is timed; else it is an error.
    Create and first run are those of the middle one of `starts` fresh processes.
    """
    feeds_file = os.path.join(folder, "feeds.npz")
    np.savez(feeds_file, **feeds)
    workers, result = started(paths, threads, feeds_file, folder, start, tolerant, starts)
    try:
        if next(iter(paths)) in result:
            return result
        best, idle = take_turns(workers, rounds, least, seconds)
        first, judge = workers[0], next((w for w in workers if w.engine == oracle), None)
        for worker in workers:
            ratios = [theirs / ours for theirs, ours in zip(best[worker.engine], best[first.engine])]
            result[worker.engine] = {
                **worker.start, "ms": 1e3 * statistics.median(best[worker.engine]), "ratios": ratios,
                "ratio": statistics.median(ratios), "difference": difference(first.outputs(), worker.outputs(), unequal)}
            if judge:
                result[worker.engine]["wrong"] = difference(worker.outputs(), judge.outputs())
        if idle > 0.05:
            print(f"  note: a waiting engine used {idle:.0%} of a CPU", file=sys.stderr)
        return result
    finally:
        for worker in workers:
            worker.close()
