"""Real models: compiled, saved, loaded and run, beside ONNX Runtime on the same inputs.

What continuous integration would have to download too much for is marked `models`: `./dev test --models`.
"""

import clients
import fetch
import ge
import numpy as np
import onnxruntime
import pytest
import simple_attention
import torch
import torch_models
from conftest import difference, equal, reference

TOLERANCE = 1e-4  # of the output's largest value; a model may state a wider one, 1e-3 at most
ROUNDED = 3e-2  # int8 and fp16 models: a value between two steps falls to either side
UNEQUAL = 0.01  # of their integers
DOWNLOAD = 150e6  # bytes that continuous integration may fetch


def parameters(names, cases=False):
    """One parameter set for each model or each of its cases; the large ones are marked."""
    sets = []
    for name in names:
        model = fetch.catalogue()[name]
        marks = [pytest.mark.models] if model.get("large") else []
        for case in model["feeds"] if cases else ["default"]:
            sets.append(pytest.param(*([name, case] if cases else [name]), marks=marks, id=f"{name}-{case}" if cases else name))
    return sets


def assert_agrees(name, got, want):
    model = fetch.catalogue()[name]
    if model.get("rounded"):
        assert difference(got, want, UNEQUAL) <= ROUNDED
    else:
        assert difference(got, want) <= model.get("tolerance", TOLERANCE) <= 1e-3


def is_flat(value):
    """Of no more than one number, so that it would show few errors."""
    finite = value[np.isfinite(value)]
    return value.size != 1 and not (finite.size and np.ptp(finite) > 0)


@pytest.mark.parametrize("name,case", parameters(fetch.catalogue(), cases=True))
def test_agrees_with_onnx_runtime(name, case, compiled):
    path, feeds = fetch.fetch(name), fetch.feeds(name, case)
    got = ge.load(compiled(path)).run(feeds)
    want = reference(path, feeds)
    assert fetch.catalogue()[name].get("flat") or not any(is_flat(w) for w in want if w.dtype.kind == "f")
    assert_agrees(name, got, want)


@pytest.mark.parametrize("name", parameters(fetch.catalogue()))
def test_agrees_without_fusion_and_reuse(name, compiled):
    path, feeds = fetch.fetch(name), fetch.feeds(name)
    plain = ge.load(compiled(path, disable_fusion="all", disable_reuse_memory=1))
    assert not plain.report()["fused"]
    assert_agrees(name, plain.run(feeds), reference(path, feeds))


@pytest.mark.parametrize("name", parameters(fetch.catalogue()))
def test_models_of_open_sizes_have_three_cases(name):
    """ONNX Runtime's view of the inputs: a size that is a number holds in each case."""
    inputs = onnxruntime.InferenceSession(fetch.fetch(name), providers=["CPUExecutionProvider"]).get_inputs()
    shapes = {case: {k: v.shape for k, v in fetch.feeds(name, case).items()} for case in fetch.catalogue()[name]["feeds"]}
    is_open = any(not isinstance(d, int) or d < 0 for i in inputs for d in i.shape)
    assert len({str(s) for s in shapes.values()}) == len(shapes)
    assert len(shapes) >= 3 if is_open else len(shapes) == 1


def test_the_download_of_continuous_integration_is_bounded():
    every_time = [name for name, model in fetch.catalogue().items() if not model.get("large")]
    assert fetch.download_bytes(every_time, clients.every_time()) <= DOWNLOAD


@pytest.mark.parametrize("name", parameters([n for n in fetch.catalogue() if len(fetch.catalogue()[n]["feeds"]) > 1]))
def test_one_om_runs_every_size(name, compiled):
    path = fetch.fetch(name)
    model = ge.load(compiled(path))
    feeds = {case: fetch.feeds(name, case) for case in fetch.catalogue()[name]["feeds"]}
    first = {case: model.run(f) for case, f in feeds.items()}
    for case in list(feeds)[::-1]:  # back to a size seen before
        assert equal(model.run(feeds[case]), first[case])
        assert_agrees(name, first[case], reference(path, feeds[case]))


@pytest.mark.parametrize("sequence", simple_attention.SEQUENCES)
@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "script"])
def test_simple_attention(sequence, dynamo, compiled):
    path, feeds = simple_attention.export(dynamo=dynamo), simple_attention.feeds(sequence)
    model = ge.load(compiled(path))
    assert difference(model.run(feeds), reference(path, feeds)) <= TOLERANCE
    assert any("attention" in f["rule"].lower() for f in model.report()["fused"])


def test_simple_attention_of_fixed_size(compiled):
    path, feeds = simple_attention.export(512), simple_attention.feeds(512)
    assert difference(ge.load(compiled(path)).run(feeds), reference(path, feeds)) <= TOLERANCE


@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "script"])
@pytest.mark.parametrize("name", ["gpt2_small", "llama_small", "vit_small"])
def test_transformers_of_pytorch(name, dynamo, compiled):
    path, module = torch_models.export(name, dynamo), torch_models.build(name)
    model = ge.load(compiled(path))
    for batch, length in ((1, 16), (3, 7), (2, 63), (1, 1), (1, 16)):
        feeds = torch_models.feeds(name, batch, length)
        got = model.run(feeds)
        with torch.inference_mode():
            want = module(*map(torch.from_numpy, feeds.values())).numpy()
        assert difference(got, [want]) <= 1e-5
        assert difference(got, reference(path, feeds)) <= 1e-5
    assert model.fused_operators() > 0


@pytest.mark.models
@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "script"])
@pytest.mark.parametrize("name,length", [("gpt2", 512), ("vit", 0)])
def test_transformers_of_full_size(name, length, dynamo, compiled):
    path, feeds = torch_models.export(name, dynamo), torch_models.feeds(name, length=length)
    assert difference(ge.load(compiled(path)).run(feeds), reference(path, feeds)) <= TOLERANCE


@pytest.mark.parametrize("name", parameters(fetch.catalogue()))
def test_compiling_twice_gives_the_same_bytes(name, tmp_path, monkeypatch):
    path = fetch.fetch(name)
    a, b = tmp_path / "a.om", tmp_path / "elsewhere" / "b.om"
    b.parent.mkdir()
    ge.compile(path).save(str(a))
    monkeypatch.setenv("GE_NUM_THREADS", "1")
    monkeypatch.chdir(b.parent)
    ge.compile(path).save(str(b))
    assert a.read_bytes() == b.read_bytes()


@pytest.mark.parametrize("name", parameters(fetch.catalogue()))
def test_one_and_two_threads_give_the_same_bits(name, compiled):
    om, feeds = compiled(fetch.fetch(name)), fetch.feeds(name)
    one, two = ge.load(om, threads=1), ge.load(om, threads=2)
    first = one.run(feeds)
    for _ in range(3):
        assert equal(first, two.run(feeds))
        assert equal(first, one.run(feeds))


def test_one_and_two_threads_give_the_same_bits_attention(compiled):
    om, feeds = compiled(simple_attention.export()), simple_attention.feeds(2048)
    first = ge.load(om, threads=1).run(feeds)
    assert equal(first, ge.load(om, threads=2).run(feeds))
