"""Many callers on one Model, and what a run costs them."""

import hashlib
import os
import statistics
import subprocess
import sys
import threading
import time

import fetch
import ge
import pytest
import simple_attention
from conftest import equal


def test_callers_at_the_same_time_get_their_own_results(compiled):
    model = ge.load(compiled(fetch.fetch("khmer_segmenter")))
    cases = [fetch.feeds("khmer_segmenter", c) for c in ("default", "short", "long")]
    want = [model.run(f) for f in cases]
    wrong, errors = [], []

    def caller(k):
        try:
            for i in range(8):
                which = (i + k) % len(cases)
                if not equal(model.run(cases[which]), want[which]):
                    wrong.append(which)
        except Exception as e:  # a thread's exception would be lost
            errors.append(e)

    callers = [threading.Thread(target=caller, args=(k,)) for k in range(6)]
    [c.start() for c in callers]
    [c.join() for c in callers]
    assert not wrong and not errors


def rate(work, callers, seconds=0.4):
    """Calls a second of `callers` threads that do `work` over and over."""
    counts, end = [0] * callers, time.perf_counter() + seconds

    def loop(k):
        while time.perf_counter() < end:
            work()
            counts[k] += 1

    start = time.perf_counter()
    threads = [threading.Thread(target=loop, args=(k,)) for k in range(callers)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return sum(counts) / (time.perf_counter() - start)


@pytest.mark.slow
def test_two_callers_at_once(compiled, record_property):
    """Two callers share one model; the goal is 1.6 times one's throughput where two plain loops reach 1.9.

    The share of what two plain loops gain is printed and recorded: time decides nothing here, that two
    calls run at the same time, each in a Context of its own, does.
    """
    model = ge.load(compiled(fetch.fetch("nudenet_yolov8n")), threads=1)
    feeds, block = fetch.feeds("nudenet_yolov8n"), bytes(1 << 22)
    run, plain = lambda: model.run(feeds), lambda: hashlib.sha256(block).digest()  # releases the GIL
    rate(run, 2)
    shares = []
    for _ in range(3):
        gain = rate(run, 2) / rate(run, 1)
        possible = rate(plain, 2) / rate(plain, 1)
        shares.append(gain / possible)
    share = statistics.median(shares)
    record_property("share", share)
    print(f"two callers gain {share:.2f} of what two plain loops gain (goal {1.6 / 1.9:.2f})")
    assert model.memory()["contexts"] == 2


FORK = """
import os, sys
sys.path.insert(0, sys.argv[2])
import fetch, ge
model, feeds = ge.load(sys.argv[1], threads=2), fetch.feeds("nudenet_yolov8n")
want = model.run(feeds)[0].tobytes()
child = os.fork()
same = model.run(feeds)[0].tobytes() == want
if child == 0:
    os._exit(0 if same else 1)
sys.exit(0 if same and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 else 1)
"""


def test_a_child_after_fork_works(compiled):
    om = compiled(fetch.fetch("nudenet_yolov8n"))
    subprocess.run([sys.executable, "-c", FORK, om, os.path.dirname(fetch.__file__)], check=True, timeout=60)


MEMORY = """
import sys
sys.path.insert(0, sys.argv[2])
import ge, numpy as np
def high():
    return next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith("VmHWM"))
def resident():
    return next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith("VmRSS"))
model = ge.load(sys.argv[1], threads=2)
x = np.random.RandomState(0).standard_normal((1, int(sys.argv[3]), 768)).astype(np.float32)
model.run({"x": x[:, :64]})      # maps the weights, starts the pool
open("/proc/self/clear_refs", "w").write("5")
before = resident()
y = model.run({"x": x})[0]
growth = high() - before - y.nbytes
print(growth, model.memory()["arena"])
"""


@pytest.mark.slow
def test_memory_of_a_long_sequence_is_what_is_printed(compiled):
    om = compiled(simple_attention.export())
    out = subprocess.run([sys.executable, "-c", MEMORY, om, os.path.dirname(fetch.__file__), "8192"],
                         check=True, capture_output=True, text=True).stdout
    growth, arena = map(int, out.split())
    assert arena < 120e6
    assert growth <= 1.1 * arena, (growth, arena)
