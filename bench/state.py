"""Decoders with a KV cache: logits against PyTorch's, time and memory by position, beside ONNX Runtime without a state.

    python bench/state.py [NAME ...] [--positions 1,512,4096,16384] [--steps 8] [--threads 1] [--rounds 5]
    python bench/state.py [NAME ...] --stored f32,f16,int8

Each position is reached twice: by a prefill in pieces alone, and, from a fork, with the last steps one by one. Models are those of tests/models/decoders.py; the default are the two of 0.1 billion parameters.
ONNX Runtime runs the same file without a state, pasts in and presents out, in turns with GE.
--stored: instead, a token at each position with caches of random rows that are stored in these types, in turns; ratios
are those of the same round.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests", "models"))
import decoders  # noqa: E402

PIECE = 1024
PAUSE = 0.03   # lets the pool of the engine that has just run go to sleep


def resident():
    """Bytes of memory that this process holds, those of mapped files too."""
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def reference(name, ids, positions):
    """PyTorch's logits, kept in the model cache: one pass over 16,384 tokens takes a minute or more."""
    path = decoders.export(name).rpartition(".")[0] + f"_{len(ids[0])}_{'_'.join(map(str, positions))}.npz"
    if not os.path.isfile(path):
        partial = f"{path}.{os.getpid()}.npz"
        np.savez(partial, **{str(p): v for p, v in decoders.reference(name, ids, positions).items()})
        os.replace(partial, path)
    with np.load(path) as f:
        return {p: f[str(p)] for p in positions}


def worker(name, om, threads, positions, steps, rounds):
    """In a process of its own, which holds nothing but GE while memory is read: one line of JSON with what each
    position gave."""
    import ge
    ids = decoders.tokens(name, max(positions))
    base = resident()
    model = ge.load(om, threads=threads)
    state = model.new_state()
    out = {"token": decoders.sizes(name)["bytes_per_token"], "positions": {}}
    logits, forks, at = {}, {}, 0

    def run(until, piece, on):
        nonlocal at
        times = []
        while at < until:
            n = min(piece, until - at)
            begin = time.perf_counter()
            (y,) = model.run({"input_ids": ids[:, at:at + n]}, state=on)
            times.append(time.perf_counter() - begin)
            at += n
        return y, times

    for position in positions:   # each goes on where the one before it ended
        last = max(at, position - steps)
        begin, start = time.perf_counter(), at
        if last > at:
            run(last, PIECE, state)
        row = out["positions"][position] = {"prefill_ms": 1e3 * (time.perf_counter() - begin) / max(last - start, 1)}
        forks[position] = state.fork()
        logits[f"{position}_steps"], _ = run(position, 1, forks[position])
        at = last
        logits[f"{position}_prefill"], _ = run(position, PIECE, state)
        memory = model.memory()
        row["resident"] = resident() - base
        row["predicted"] = {k: memory[k] for k in ("weights", "arena", "pool", "state")}
    del state
    beside_onnxruntime(name, model, threads, forks, rounds, out["positions"])
    with tempfile.NamedTemporaryFile(suffix=".npz", delete=False) as f:
        np.savez(f, **logits)
    out["logits"] = f.name
    print(json.dumps(out))


def beside_onnxruntime(name, model, threads, forks, rounds, rows):
    """A token at each position, in turns: GE with a state, ONNX Runtime without."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(decoders.export(name), options, providers=["CPUExecutionProvider"])
    token, names = decoders.tokens(name, 1), [o.name for o in session.get_outputs()]
    for position, state in forks.items():
        feeds = {"input_ids": token, **decoders.empty_past(name, length=position)}
        times = ([], [])
        for turn in range(rounds + 1):
            for which, run in enumerate((lambda: model.run({"input_ids": token}, state=state), lambda: session.run(names, feeds))):
                time.sleep(PAUSE)
                begin = time.perf_counter()
                run()
                if turn:   # the first warms up
                    times[which].append(1e3 * (time.perf_counter() - begin))
        rows[position] |= {"token_ms": statistics.median(times[0]), "peer_ms": statistics.median(times[1]),
                           "ratio": statistics.median(b / a for a, b in zip(*times))}


def measure(name, arguments, folder):
    import ge
    positions = [p for p in arguments.positions if p <= decoders.sizes(name)["places"]]
    om = os.path.join(folder, name + ".om")
    start = time.perf_counter()
    model = ge.compile(decoders.export(name), state=f"auto:{max(positions) + arguments.rounds + 2}", output=om)
    print(f"{name}: compiled in {time.perf_counter() - start:.1f} s; {model.report()['memory']['state_bytes_per_token']} bytes a token by the report")
    del model
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--worker", name, om,
                           *map(json.dumps, (arguments.threads, positions, arguments.steps, arguments.rounds))], stdout=subprocess.PIPE, text=True, check=True)
    got = json.loads(done.stdout)
    want = reference(name, decoders.tokens(name, max(positions)), positions)
    with np.load(got["logits"]) as f:
        logits = dict(f)
    os.unlink(got["logits"])
    print(f"{'position':>9} {'difference':>22} {'ms prefilled':>13} {'ms a token':>11} {'KV MB':>8} {'KV GB/s':>8} {'state MB':>9} {'resident MB':>12} {'predicted MB':>13} {'ORT ms':>8} {'ORT/GE':>7}")
    worst, first = 0, None
    for position in positions:
        row = got["positions"][str(position)]
        off = [float(np.abs(logits[f"{position}_{way}"] - want[position]).max() / np.abs(want[position]).max()) for way in ("prefill", "steps")]
        worst = max(worst, *off)
        first = row["token_ms"] if first is None else first
        read, extra = position * got["token"], row["token_ms"] - first
        speed = f"{read / extra / 1e6:8.1f}" if extra > 0 else f"{'':>8}"
        print(f"{position:9} {off[0]:10.1e} {off[1]:10.1e}  {row['prefill_ms']:13.2f} {row['token_ms']:11.2f} {read / 1e6:8.1f} {speed} {row['predicted']['state'] / 1e6:9.1f} "
              f"{row['resident'] / 1e6:12.1f} {sum(row['predicted'].values()) / 1e6:13.1f} {row['peer_ms']:8.1f} {row['ratio']:7.2f}", flush=True)
    print(f"largest difference over the largest logit: {worst:.1e}")
    return worst < 1e-3


def filled(name, kind, position, capacity):
    """A state that holds so many random rows, made by a model that only fills it."""
    import ge
    from onnx import TensorProto, helper
    s, (_, presents) = decoders.sizes(name), decoders.port_names(name)
    shape = ["batch", s["kv_heads"], "total", s["head_size"]]
    nodes = [helper.make_node("Mul", ["rows", "rows"], ["square"])] + [helper.make_node("Add", ["square", "rows"], [p]) for p in presents]
    graph = helper.make_graph(nodes, "fill", [helper.make_tensor_value_info("rows", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(p, TensorProto.FLOAT, shape) for p in presents])
    model = ge.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), state=f"auto:{capacity}", state_dtype=kind)
    state = model.new_state()
    model.run([np.random.default_rng(position).standard_normal((1, s["kv_heads"], position, s["head_size"]), np.float32)], state=state)
    return state


def compare(name, arguments):
    """A token at each position with each type of storage: CPU time of this process, the types in turns."""
    import ge
    kinds, token = arguments.stored, decoders.tokens(name, 1)
    positions = [p for p in arguments.positions if p <= decoders.sizes(name)["places"]]
    capacity = max(positions) + arguments.rounds + 2
    models = {k: ge.compile(decoders.export(name), state=f"auto:{capacity}", state_dtype=k, threads=arguments.threads) for k in kinds}
    print(f"{name}: bytes a token " + ", ".join(f"{k} {m.report()['memory']['state_bytes_per_token']}" for k, m in models.items()))
    for position in positions:
        states, times = {k: filled(name, k, position, capacity) for k in kinds}, {k: [] for k in kinds}
        for turn in range(arguments.rounds + 1):
            for k in kinds:
                begin = time.process_time()
                models[k].run({"input_ids": token}, state=states[k])
                if turn:
                    times[k].append(1e3 * (time.process_time() - begin))
        first = times[kinds[0]]
        print(f"{position:9} " + "  ".join(f"{k} {statistics.median(t):.2f} ms ({statistics.median(a / b for a, b in zip(first, t)):.2f}x)" for k, t in times.items()), flush=True)


def main():
    if sys.argv[1:2] == ["--worker"]:
        name, om, *numbers = sys.argv[2:]
        worker(name, om, *map(json.loads, numbers))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["llama_0.1b", "gpt2_0.1b"])
    parser.add_argument("--positions", type=lambda s: [int(x) for x in s.split(",")], default=[1, 512, 4096, 16384])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stored", type=lambda s: s.split(","))
    arguments = parser.parse_args()
    if arguments.stored:
        for name in arguments.names:
            compare(name, arguments)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        good = [measure(name, arguments, folder) for name in arguments.names]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
