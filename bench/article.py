"""The article's four tables on this machine: `./dev bench article [--tables 1,2,3,4]`.

Latencies are taken in turns, each engine in a process of its own; ratios are medians over the rounds.
Arena: all memory that a run needs besides inputs, outputs and weights, scratch of the threads included.
"""

import argparse
import json
import logging
import os
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(os.path.dirname(HERE), "tests", "models")
sys.path[:0] = [HERE, MODELS]
import interleave  # noqa: E402
import simple_attention  # noqa: E402

NO_FUSION, NO_REUSE = {"disable_fusion": "all"}, {"disable_reuse_memory": 1}
WAYS = {"neither": {**NO_FUSION, **NO_REUSE}, "fusion only": NO_REUSE, "memory reuse only": NO_FUSION, "both": {}}
EAGER = """
import sys
sys.path.insert(0, {models!r})
import simple_attention
model = simple_attention.build()
"""


def threads():
    return len(os.sched_getaffinity(0))


def compile_to(path, om, options):
    """(the loaded model with its memory for all threads, seconds of compiling)."""
    import ge
    compiled = ge.compile(path, output=om, **options)
    return ge.load(om, threads=threads()), compiled.report()["times"]["compile_ms"] / 1e3


def arena(model):
    """Bytes for the model's fixed sizes and the threads of this machine."""
    return model._native.plan([list(p.shape) for p in model.inputs])["arena"]


def goal(text, value, least, unit="%"):
    said = "reached" if value >= least else f"missed by {least - value:.2g}{unit}"
    print(f"  {text}: {value:.3g}{unit}, wanted at least {least:g}{unit}: {said}")


def row(name, *cells):
    print(f"  {name:<22}" + "".join(f"{c:>13}" for c in cells))


def table1(a, folder):
    onnx, feeds = simple_attention.export(a.sequence), simple_attention.feeds(a.sequence)
    eager = os.path.join(folder, "eager.py")
    with open(eager, "w", encoding="utf-8") as f:
        f.write(EAGER.format(models=MODELS))
    made = {name: compile_to(onnx, os.path.join(folder, f"{name}.om"), options) for name, options in WAYS.items()}
    paths = {"ge:both": os.path.join(folder, "both.om"), "pytorch": eager, "onnxruntime": onnx}
    paths.update({f"ge:{name}": os.path.join(folder, f"{name}.om") for name in WAYS if name != "both"})
    result = interleave.compare(paths, threads(), feeds, folder, a.rounds, a.seconds)
    print(f"Table 1. SimpleAttention, 1 x {a.sequence} x {simple_attention.HIDDEN}, f32, {threads()} threads, "
          f"{a.rounds} rounds in turns")
    row("", "latency ms", "to eager", "arena MB", "process MB", "fused", "compile s")
    eager_ratios = result["pytorch"]["ratios"]

    row("PyTorch eager (no GE)", f"{result['pytorch']['ms']:.2f}", "", "unknown", f"{result['pytorch']['peak_mb']:.1f}", 0, "")
    for name in WAYS:
        model, seconds = made[name]
        r = result[f"ge:{name}"]
        change = statistics.median(mine / theirs for mine, theirs in zip(r["ratios"], eager_ratios)) - 1
        row(f"GE, {name}", f"{r['ms']:.2f}", f"{change:+.1%}", f"{arena(model) / 1e6:.1f}", f"{r['peak_mb']:.1f}",
            model.fused_operators(), f"{seconds:.2f}")
    worst = max(r["difference"] for r in result.values())
    arenas = {name: arena(made[name][0]) for name in WAYS}
    print(f"  process MB: growth of the process while loading and running once, weights included. "
          f"All agree within {worst:.1e}.")
    goal("both against neither, less arena", 100 * (1 - arenas["both"] / arenas["neither"]), 40)
    goal("both against eager, less time", 100 * (1 - 1 / statistics.median(eager_ratios)), 15.8)
    neither = statistics.median(o / n for o, n in zip(result["onnxruntime"]["ratios"], result["ge:neither"]["ratios"]))
    goal(f"neither against ONNX Runtime ({result['onnxruntime']['ms']:.2f} ms), speed", neither, 0.8, "x")


def only(folder, name):
    """Options that leave one section of the article's switch file on, in real GE's spelling; None: all off."""
    if name is None:
        return NO_FUSION
    path = os.path.join(folder, f"{name}.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"Switch": {"GraphFusion": {"ALL": "off", name: "on"}, "UBFusion": {"ALL": "off"}}}, f)
    return {"fusion_switch_file": path}


def table2(a, folder):
    import article_models
    import numpy as np
    size = 64 if a.small else 224
    onnx = article_models.conv_attention(os.path.join(folder, "conv_attention.onnx"), size)
    feeds = {"picture": np.random.RandomState(0).standard_normal((1, 3, size, size)).astype(np.float32)}
    ways = {"all": {}, "none": only(folder, None), "MatMul+Add only": only(folder, "matmul_add_fusion"),
            "Conv+BN only": only(folder, "conv_bn_relu_fusion")}
    made, paths = {}, {}
    for name, options in ways.items():
        paths[f"ge:{name}"] = os.path.join(folder, f"{name}.om")
        made[name] = compile_to(onnx, paths[f"ge:{name}"], options)
    result = interleave.compare(paths, threads(), feeds, folder, a.rounds, a.seconds)
    print(f"Table 2. A convolutional stem and two attention blocks, 1 x 3 x {size} x {size}, f32")
    row("", "fused", "arena MB", "to none", "latency ms", "compile s")
    base = arena(made["none"][0])
    for name in ("none", "MatMul+Add only", "Conv+BN only", "all"):
        model, seconds = made[name]
        row(name, model.fused_operators(), f"{arena(model) / 1e6:.2f}", f"{arena(model) / base - 1:+.1%}",
            f"{result[f'ge:{name}']['ms']:.2f}", f"{seconds:.2f}")
    print(f"  Memory reuse is on in all rows. All agree within {max(r['difference'] for r in result.values()):.1e}.")


def table3(a, folder):
    """Compiles in turns, several times each; only GE's part, not PyTorch's export."""
    import article_models
    import ge
    print("Table 3. Compile time with memory reuse off and on, seconds (median; least and most)")
    print(f"  {'':<24}{'reuse off':>19}{'reuse on':>19}{'on / off':>10}{'arena off MB':>14}{'arena on MB':>13}")
    for name, layers in [("SimpleAttention", 0), ("GPT-2 shape, 12 layers", 12), ("GPT-2 shape, 48 layers", 48)]:
        layers = min(layers, 2) if a.small else layers
        onnx = simple_attention.export(a.sequence) if not layers else \
            article_models.decoder(os.path.join(folder, "decoder.onnx"), layers, 128)
        seconds, arenas = ([], []), [0, 0]
        for k in range(2 * (1 if a.small else 3)):
            package = ge._ge.compile_file(onnx, {"disable_reuse_memory": str(1 - k % 2)})
            seconds[k % 2].append(package.milliseconds() / 1e3)
            arenas[k % 2] = json.loads(package.notes())["memory"]["arena"]
            del package
        cells = [f"{statistics.median(s):.2f} ({min(s):.2f}-{max(s):.2f})" for s in seconds]
        print(f"  {name:<24}{cells[0]:>19}{cells[1]:>19}"
              f"{statistics.median(on / off for off, on in zip(*seconds)):>9.2f}x{arenas[0] / 1e6:>14.1f}{arenas[1] / 1e6:>13.1f}")
    print("  Width 768, 12 heads, 128 tokens, a vocabulary of 1,000; weights are packed while compiling. Arena: one thread.")


def table4(a, folder):
    import article_models
    layers, tokens = (2, 128) if a.small else (12, 4096)

    def package(n, **options):
        import ge
        path = article_models.decoder(os.path.join(folder, "prefill.onnx"), n, tokens, cache=True)
        notes = json.loads(ge._ge.compile_file(path, {k: str(v) for k, v in options.items()}).notes())
        return notes["memory"]["arena"], sum(f["rule"] == "attention" for f in notes["fused"])
    planned, fused = package(layers)
    apart, _ = package(layers, disable_reuse_memory=1)
    one, _ = package(1)
    cache = 2 * layers * tokens * 768 * 4
    print(f"Table 4. Prefill of a {layers}-layer decoder (width 768) at {tokens:,} tokens, f32, one thread; MB")
    row("", "cache", "the rest")
    row("every tensor its own", f"{cache / 1e6:.1f}", f"{apart / 1e6:.1f}")
    row("one set a layer", f"{cache / 1e6:.1f}", f"{layers * one / 1e6:.1f}")
    row("planned", f"{cache / 1e6:.1f}", f"{planned / 1e6:.1f}")
    print(f"  The cache ({2 * layers} outputs, keys and values of every layer) is read later: it is never shared between "
          f"layers.\n  The rest: all other buffers. One set a layer: {layers} times what one layer takes when it is planned. Attention is fused in "
          f"{fused} of {layers} layers.")


def main():
    parser = argparse.ArgumentParser(description="the article's tables")
    parser.add_argument("--tables", default="1,2,3,4")
    parser.add_argument("--sequence", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each engine's turn")
    parser.add_argument("--small", action="store_true", help="small models, to see that it works")
    a = parser.parse_args()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it tells of packages that are not needed here
    if a.small:
        a.sequence, a.rounds, a.seconds = 64, 1, 0.02
    for number in a.tables.split(","):
        with tempfile.TemporaryDirectory() as folder:
            {"1": table1, "2": table2, "3": table3, "4": table4}[number.strip()](a, folder)
        print(flush=True)


if __name__ == "__main__":
    main()
