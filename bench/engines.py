"""One engine in one process, told over stdin what to do: the worker side of the benchmarks.

    engines.py ENGINE[:LABEL] THREADS MODEL FEEDS.npz OUTPUTS.npz

It makes the engine's model, runs it once, writes the outputs, prints one line of JSON about that,
then answers each line `N SECONDS` with the times of at least N runs that take at least SECONDS.
If the engine cannot run the model, that line of JSON is {"error"} and nothing follows.
Adding an engine: one function in ENGINES, which returns a function from feeds to outputs.
"""

import gc
import json
import os
import sys
import time

import numpy as np


def pin(threads):
    """This process to the last CPUs that it may use, as many as threads; before an engine's import."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) >= threads:
        os.sched_setaffinity(0, cpus[-threads:])


def ge(threads):
    import ge as engine

    def make(path):
        model = engine.load(path, threads=threads)
        return model.run
    return make


def onnxruntime(threads):
    import onnxruntime as engine

    def make(path):
        options = engine.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        session = engine.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return lambda feeds: session.run(None, feeds)
    return make


def openvino(threads, precision="f32"):
    """precision None: the one that it chooses."""
    import openvino as engine

    def make(path):
        core = engine.Core()
        config = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "ENABLE_CPU_PINNING": False}
        if precision:
            config["INFERENCE_PRECISION_HINT"] = precision
        compiled = core.compile_model(path, "CPU", config)
        request = compiled.create_infer_request()
        return lambda feeds: [np.array(v) for v in request.infer(feeds).values()]
    return make


def pytorch(threads):
    """Eager; the model's file is Python that defines it, as `ge export` takes it."""
    import torch
    from ge.export import find_model
    torch.set_num_threads(threads)

    def make(path):
        model = find_model(path).eval()

        def run(feeds):
            with torch.inference_mode():
                outputs = model(*map(torch.from_numpy, feeds.values()))
            return [v.numpy() for v in (outputs if isinstance(outputs, tuple) else (outputs,))]
        return run
    return make


ENGINES = {"ge": ge, "onnxruntime": onnxruntime, "openvino": openvino, "pytorch": pytorch,
           "openvino:default": lambda threads: openvino(threads, precision=None)}


def memory(key):
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key + ":"))


def main():
    engine, threads, path, feeds_file, outputs_file = sys.argv[1:6]
    if engine not in ENGINES:
        engine = engine.partition(":")[0]
    pin(int(threads))
    with np.load(feeds_file) as f:
        feeds = {k: f[k] for k in f.files}
    make = ENGINES[engine](int(threads))
    talk = sys.stdout
    before, start = memory("VmRSS"), time.perf_counter()
    try:
        run = make(path)
        created = time.perf_counter()
        outputs = run(feeds)
    except Exception as e:  # whatever the engine raises is its answer
        print(json.dumps({"error": " ".join(f"{type(e).__name__}: {e}".split())[:300]}), file=talk, flush=True)
        sys.exit(1)
    first = time.perf_counter()
    np.savez(outputs_file, **{f"o{i}": v for i, v in enumerate(outputs)})
    print(json.dumps({"create_ms": 1e3 * (created - start), "first_ms": 1e3 * (first - created),
                      "peak_mb": (memory("VmHWM") - before) / 1e6}), file=talk, flush=True)
    gc.disable()
    for line in sys.stdin:
        least, seconds = line.split()
        times, end = [], time.perf_counter() + float(seconds)
        while len(times) < int(least) or time.perf_counter() < end:
            start = time.perf_counter()
            run(feeds)
            times.append(time.perf_counter() - start)
        print(json.dumps(times), file=talk, flush=True)


if __name__ == "__main__":
    main()
