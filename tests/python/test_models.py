"""Real models: compiled, saved, loaded and run, beside ONNX Runtime on the same inputs."""

import fetch
import ge
import pytest
import simple_attention
from conftest import difference, equal, reference

TOLERANCE = 1e-4
CASES = [(name, case) for name, model in fetch.catalogue().items() for case in model["feeds"]]
NAMES = list(fetch.catalogue())


@pytest.mark.parametrize("name,case", CASES)
def test_agrees_with_onnx_runtime(name, case, compiled):
    path, feeds = fetch.fetch(name), fetch.feeds(name, case)
    got = ge.load(compiled(path)).run(feeds)
    assert difference(got, reference(path, feeds)) <= TOLERANCE


@pytest.mark.parametrize("name", NAMES)
def test_agrees_without_fusion_and_reuse(name, compiled):
    path, feeds = fetch.fetch(name), fetch.feeds(name)
    plain = ge.load(compiled(path, disable_fusion="all", disable_reuse_memory=1))
    assert not plain.report()["fused"]
    assert difference(plain.run(feeds), reference(path, feeds)) <= TOLERANCE


def test_one_om_runs_every_sequence_length(compiled):
    path = fetch.fetch("paraphrase_minilm_l3")
    model = ge.load(compiled(path))
    cases = list(fetch.catalogue()["paraphrase_minilm_l3"]["feeds"])
    assert len(cases) == 3
    for case in cases + cases[::-1]:  # back to a shape seen before, too
        feeds = fetch.feeds("paraphrase_minilm_l3", case)
        assert difference(model.run(feeds), reference(path, feeds)) <= TOLERANCE


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


@pytest.mark.parametrize("name", NAMES)
def test_compiling_twice_gives_the_same_bytes(name, tmp_path, monkeypatch):
    path = fetch.fetch(name)
    a, b = tmp_path / "a.om", tmp_path / "elsewhere" / "b.om"
    b.parent.mkdir()
    ge.compile(path).save(str(a))
    monkeypatch.setenv("GE_NUM_THREADS", "1")
    monkeypatch.chdir(b.parent)
    ge.compile(path).save(str(b))
    assert a.read_bytes() == b.read_bytes()


@pytest.mark.parametrize("name", NAMES)
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
