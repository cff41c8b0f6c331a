"""GE as a guest in somebody's process: it prints nothing, changes nothing, survives threads and forks.

Quotas of CPUs and the flags of the vector unit inside a run are tested in tests/runtime/pool_test.cc.
"""

import gc
import logging
import multiprocessing
import os
import statistics
import subprocess
import sys
import threading
import time

import fetch
import ge
import numpy as np
import pytest
import simple_attention
import torch
from conftest import equal


@pytest.fixture(scope="module")
def segmenter(compiled):
    return ge.load(compiled(fetch.fetch("khmer_segmenter")))


@pytest.fixture(scope="module")
def mlp():
    return ge.compile(fetch.fetch("surfaces_mlp"))


# --- threads

def test_any_number_of_threads_call_one_model_while_others_compile(segmenter):
    cases = [fetch.feeds("khmer_segmenter", c) for c in ("default", "short")]
    want = [segmenter.run(f) for f in cases]
    wrong = []

    def caller(k):
        try:
            for i in range(3):
                if not equal(segmenter.run(cases[(i + k) % 2]), want[(i + k) % 2]):
                    wrong.append(k)
        except Exception as e:  # a thread's exception would be lost
            wrong.append(e)

    def compiler():
        try:
            model = ge.compile(fetch.fetch("surfaces_mlp"))
            model.run([np.ones((2, 4), np.float32)])
        except Exception as e:
            wrong.append(e)

    threads = [threading.Thread(target=caller, args=(k,)) for k in range(16)]
    threads += [threading.Thread(target=compiler) for _ in range(2)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_a_run_releases_the_gil(compiled):
    model = ge.load(compiled(simple_attention.export()), threads=1)
    x = np.ones((1, 1024, 768), np.float32)
    model.run([x])
    runner = threading.Thread(target=lambda: [model.run([x]) for _ in range(3)])
    runner.start()
    ticks = 0
    while runner.is_alive():
        time.sleep(0.001)
        ticks += 1
    assert ticks > 12, "this thread stood still while the other ran"  # holding the GIL leaves one tick a run


# --- fork

def in_a_child(model, feeds, want, results):
    again = ge.compile(fetch.fetch("surfaces_mlp")).run([np.ones((2, 4), np.float32)])[0]
    results.put((equal(model.run(feeds), want), again.tobytes()))


def test_children_after_fork_work(segmenter, mlp):
    """What multiprocessing does by default on Linux: the parent has run, its pool is not in the child."""
    context = multiprocessing.get_context("fork")
    feeds = fetch.feeds("khmer_segmenter")
    want, small = segmenter.run(feeds), mlp.run([np.ones((2, 4), np.float32)])[0].tobytes()
    results = context.Queue()
    children = [context.Process(target=in_a_child, args=(segmenter, feeds, want, results)) for _ in range(2)]
    [c.start() for c in children]
    assert [results.get(timeout=120) for _ in children] == [(True, small)] * 2
    [c.join(60) for c in children]
    assert [c.exitcode for c in children] == [0, 0]
    assert equal(segmenter.run(feeds), want), "and the parent goes on"


# --- inputs and outputs

def test_every_kind_of_tensor(mlp):
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    want = mlp(x.numpy())
    wide = torch.zeros(3, 8)
    wide[:, ::2] = x
    for given in (x.clone().requires_grad_(), wide[:, ::2], x.t().contiguous().t(), x[None][0], x.double().float()):
        got = mlp(given)
        assert isinstance(got, torch.Tensor) and not got.requires_grad and equal([got.numpy()], [want])
    frozen = x.numpy().copy()
    frozen.flags.writeable = False
    unaligned = np.frombuffer(b"-" + frozen.tobytes(), np.uint8)[1:].view(np.float32).reshape(3, 4)
    assert not unaligned.flags.aligned
    swapped = frozen.astype(">f4")
    for given in (frozen, unaligned, swapped, frozen.tolist(), np.asfortranarray(frozen)):
        assert equal([mlp(given)], [want])
    assert equal([frozen], [x.numpy()]), "inputs are never written"


def test_a_scalar_input():
    from onnx import TensorProto, helper
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, []) for n in "xy"]
    model = ge.compile(helper.make_model(helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", info[:1], info[1:]),
                                         opset_imports=[helper.make_opsetid("", 17)]))
    for given in (3.0, np.float32(3), np.array(3, np.float32), torch.tensor(3.0)):
        y = model(given)
        assert tuple(y.shape) == () and float(y) == -3


def test_outputs_outlive_everything(segmenter):
    feeds = fetch.feeds("khmer_segmenter")
    model = ge.compile(fetch.fetch("surfaces_mlp"))
    outputs = [model.run([np.full((2, 4), i, np.float32)])[0] for i in range(5)]
    copies = [o.copy() for o in outputs]
    segmenter.run(feeds)
    model.trim()
    del model
    gc.collect()
    assert equal(outputs, copies)
    outputs[0][:] = 7
    assert equal(outputs[1:], copies[1:]) and all(o.flags.writeable for o in outputs)


# --- silence

def test_the_library_prints_nothing(tmp_path, capfd):
    model = ge.compile(fetch.fetch("surfaces_mlp"), output=tmp_path / "m")
    model = ge.load(tmp_path / "m.om")
    model.run([np.ones((2, 4), np.float32)])
    assert model.explain() and model.report() and model.memory() and repr(model)
    for wrong in (lambda: model.run([np.ones((2, 5), np.float32)]), lambda: ge.load(b"x"), lambda: ge.compile(b"x")):
        with pytest.raises(ge.Error):
            wrong()
    assert capfd.readouterr() == ("", "")


SILENT = """
import sys
import ge, numpy as np
model = ge.compile(sys.argv[1])
model.run([np.ones((2, 4), np.float32)])
"""


def test_a_whole_process_prints_nothing():
    for program in (SILENT, "import ge, acl"):
        done = subprocess.run([sys.executable, "-X", "dev", "-c", program, fetch.fetch("surfaces_mlp")], capture_output=True,
                              text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr


def test_messages_go_to_the_logger(caplog):
    caplog.set_level(logging.DEBUG, logger="ge")
    ge.compile(fetch.fetch("surfaces_mlp"))
    assert any(r.name == "ge" and r.message.startswith("pass ") and "ms" in r.message for r in caplog.records)
    assert {r.name for r in caplog.records} == {"ge"}
    caplog.clear()
    caplog.set_level(logging.WARNING, logger="ge")
    ge.compile(fetch.fetch("surfaces_mlp"))
    assert not caplog.records


LOGGED = """
import atexit, logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, format="%(name)s %(levelname)s %(message)s")
import ge
ge.compile(sys.argv[1])
"""


def test_logging_in_a_process_that_ends():
    done = subprocess.run([sys.executable, "-c", LOGGED, fetch.fetch("surfaces_mlp")], capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout and all(line.startswith(("ge DEBUG pass ", "ge DEBUG lower: ", "ge DEBUG plan: ")) for line in done.stdout.strip().split("\n"))


# --- what the process had before

def test_denormal_numbers_are_left_to_the_caller(mlp):
    tiny = np.full(64, 1e-40, np.float32)
    before = (tiny * np.float32(0.5)).copy()
    assert before.all()
    mlp.run([np.full((1000, 4), 1e-40, np.float32)])
    assert equal([tiny * np.float32(0.5)], [before])
    seen = []
    other = threading.Thread(target=lambda: (mlp.run([np.zeros((2, 4), np.float32)]), seen.append((tiny * np.float32(0.5)).all())))
    other.start()
    other.join()
    assert seen == [True]


def test_affinity_signals_and_threads_of_the_process(mlp):
    import signal
    before = (os.sched_getaffinity(0), [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGSEGV)],
              os.environ.copy(), threading.active_count(), torch.get_num_threads())
    mlp.run([np.ones((500, 4), np.float32)])
    assert before == (os.sched_getaffinity(0), [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGSEGV)],
                      os.environ.copy(), threading.active_count(), torch.get_num_threads())


# --- torch beside it

def test_torch_and_ge_give_what_they_gave_alone():
    model = simple_attention.build()
    x = torch.from_numpy(simple_attention.feeds(512)["x"])
    with torch.no_grad():
        compiled, want = ge.compile(simple_attention.export(512)), model(x)
        alone = compiled(x)
        for _ in range(3):
            assert torch.equal(compiled(x), alone)
            torch.testing.assert_close(model(x), want, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(alone, want, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_torch_and_ge_in_turn_cost_their_sum(compiled):
    """Pools of both that spin while waiting would take each other's CPUs. A call takes some 20 ms or more."""
    sequence = 2048
    model, ours = simple_attention.build(), ge.load(compiled(simple_attention.export(sequence)))
    x = torch.from_numpy(simple_attention.feeds(sequence)["x"])

    def clock(*calls):
        start = time.perf_counter()
        for _ in range(4):
            for call in calls:
                call()
        return time.perf_counter() - start

    ratios = []
    with torch.no_grad():
        theirs, mine = lambda: model(x), lambda: ours(x)
        clock(theirs, mine)
        for _ in range(12):
            apart = clock(theirs) + clock(mine)
            ratios.append(clock(theirs, mine) / apart)
            if len(ratios) >= 3 and statistics.median(ratios) <= 1.1:
                return
    assert statistics.median(ratios) <= 1.1, ratios


def test_our_atc_is_reached_past_another_one(tmp_path):
    other = tmp_path / "atc"
    other.write_text("#!/bin/sh\necho another atc\n")
    other.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, "-m", "ge.atc", "--help"], capture_output=True, text=True, timeout=60, check=False,
                          env=environment)
    assert done.returncode == 0 and done.stdout.startswith("usage: atc"), done.stderr
