"""Weights outside of the .om file: every way to ask for them, every way to load the result, and what goes wrong."""

import hashlib
import os
import shutil
import subprocess
import sys

import acl
import fetch
import ge
import numpy as np
import pytest
from conftest import equal

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def mlp():
    return fetch.fetch("surfaces_mlp")


@pytest.fixture(scope="module")
def want(mlp):
    return ge.compile(mlp, input_shape="input:3,4").run([X])


def command(program, folder, *arguments):
    return subprocess.run([sys.executable, "-c", f"from ge import _cli; _cli.{program}()", *map(str, arguments)], cwd=folder,
                          capture_output=True, text=True, timeout=120, check=False)


def atc(folder, mlp, *arguments):
    return command("atc", folder, f"--model={mlp}", "--framework=5", "--soc_version=cpu", "--input_shape=input:3,4", *arguments)


def weight_files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*weight_*"))


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_atc(mode, mlp, want, tmp_path):
    done = atc(tmp_path, mlp, "--output=m", f"--external_weight={mode}", "--display_model_info=1")
    assert done.returncode == 0, done.stdout + done.stderr
    files = weight_files(tmp_path)
    if mode == 0:
        assert files == []
    elif mode == 2:
        assert files == ["m_weight_combined"]
    else:
        assert len(files) > 2
        assert files == [f"weight/weight_{hashlib.sha256((tmp_path / f).read_bytes()).hexdigest()}" for f in files]
    assert equal(ge.load(tmp_path / "m.om", check="all").run([X]), want)
    assert not list(tmp_path.rglob("*.tmp"))
    shown = command("atc", tmp_path, "--mode=6", "--om=m.om").stdout
    weights, rest, inside = (int(shown.split(name + "[")[1].split(" ")[0]) for name in (" weight_size", "modeldef_size", "weight_data_size"))
    assert rest + inside == os.path.getsize(tmp_path / "m.om") and weights > 0 and inside == (0 if mode else weights)
    if mode != 1:  # there the gaps that align weights in one section are gone
        assert shown[shown.index("===="):shown.rindex("====")] in done.stdout
    inspected = command("ge", tmp_path, "inspect", "--check", "m.om")
    assert inspected.returncode == 0, inspected.stderr
    (line,) = [x for x in inspected.stdout.split("\n") if x.startswith("weights: ")]
    assert line.endswith({0: "B", 1: "...", 2: "B in m_weight_combined"}[mode]) and (mode != 1 or f"in {len(files)} files" in line)


def test_every_way_to_ask(mlp, tmp_path):
    ways = {"compile": lambda p: ge.compile(mlp, external_weight=2).save(p),
            "output": lambda p: ge.compile(mlp, external_weight="2", output=p),
            "raw": lambda p: ge.compile(mlp, output=p, raw_ge_options='{"compile options": {"global": {"ge.externalWeight": "2"}}}'),
            "graph": lambda p: ge.run(mlp, p, external_weight=2),
            "command": lambda p: command("ge", p.parent, "compile", mlp, "-o", p, "--external_weight=2")}
    made = {}
    for name, way in ways.items():
        (tmp_path / name).mkdir()
        way(tmp_path / name / "m.om")
        assert weight_files(tmp_path / name) == ["m_weight_combined"], name
        made[name] = (tmp_path / name / "m_weight_combined").read_bytes()
    assert len(set(made.values())) == 1
    assert (tmp_path / "compile" / "m.om").read_bytes() == (tmp_path / "output" / "m.om").read_bytes()


@pytest.mark.parametrize("value", ["3", "-1", "yes", ""])
def test_other_values(value, mlp, tmp_path):
    with pytest.raises(ge.Error) as e:
        ge.compile(mlp, external_weight=value)
    assert "external_weight" in str(e.value) and "0 to 2" in str(e.value)
    done = atc(tmp_path, mlp, "--output=m", f"--external_weight={value}")
    assert done.returncode != 0 and "external_weight" in done.stderr and not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [1, 2])
def test_every_way_to_load(mode, mlp, want, tmp_path):
    ge.compile(mlp, input_shape="input:3,4", external_weight=mode, output=tmp_path / "m.om")
    om = tmp_path / "m.om"
    for options in ({}, {"check": "all"}, {"weights": "huge"}):
        assert equal(ge.load(str(om), **options).run([X]), want)
    assert equal(ge.InferSession(0, str(om)).infer([X]), want)
    np.save(tmp_path / "x.npy", X)
    done = command("ge", tmp_path, "run", "m.om", "--input=input=x.npy", "--output=out")
    assert done.returncode == 0, done.stderr
    assert equal([np.load(next((tmp_path / "out").iterdir()))], want)
    assert acl.init() == 0
    try:
        model, ret = acl.mdl.load_from_file(str(om))
        assert ret == 0 and acl.mdl.unload(model) == 0
        work, weights, ret = acl.mdl.query_size(str(om))
        assert ret == 0 and work > 0 and 0 <= weights - ge.load(om).memory()["weights"] < 64 * 100
        data = om.read_bytes()
        _, ret = acl.mdl.load_from_mem(acl.util.bytes_to_ptr(data), len(data))
        assert ret != 0
        assert "load the model from its path" in str(acl.get_recent_err_msg())
    finally:
        acl.finalize()
    with pytest.raises(ge.Error) as e:
        ge.load(om.read_bytes())
    assert "outside of it" in e.value.message and "load the model from its path" in e.value.fix


def test_the_weights_are_mapped(tmp_path):
    """Not copied: the file stands in the process's map, and a model of the same file adds no private memory."""
    big = tmp_path / "big.ir"
    big.write_text("graph main(%x: f32[1,4096]) -> (%y) {\n  %w: f32[4096,2048] = random(1)\n  %y = MatMul(%x, %w)\n}\n")
    done = command("ge", tmp_path, "compile", "big.ir", "-o", "big.om", "--external_weight=2")
    assert done.returncode == 0, done.stderr
    assert os.path.getsize(tmp_path / "big.om") < 1 << 20 < 1 << 24 < os.path.getsize(tmp_path / "big_weight_combined")
    model = ge.load(tmp_path / "big.om")
    model.run([np.ones((1, 4096), np.float32)])
    with open("/proc/self/maps", encoding="utf-8") as maps:
        assert any("big_weight_combined" in line and " r--s " in line for line in maps)
    assert model.memory()["weights"] >= 4096 * 2048 * 4


@pytest.mark.parametrize("mode", [1, 2])
def test_missing_cut_and_changed_weights(mode, mlp, tmp_path):
    ge.compile(mlp, external_weight=mode, output=tmp_path / "m.om")
    file = tmp_path / weight_files(tmp_path)[0]
    whole = file.read_bytes()

    def message(**options):
        with pytest.raises(ge.Error) as e:
            ge.load(tmp_path / "m.om", **options)
        done = command("ge", tmp_path, "inspect", "--check", tmp_path / "m.om")
        assert done.returncode == 1 and e.value.message in done.stderr
        assert str(file) in e.value.message and "m.om" in str(e.value) and "beside the .om file" in e.value.fix
        return e.value.message

    file.unlink()
    assert "does not exist" in message()
    file.write_bytes(whole[:-1])
    assert f"has {len(whole) - 1} bytes instead of {len(whole)}" in message()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert ge.load(tmp_path / "m.om").inputs
    assert "differs from its checksum" in message(check="all")
    file.write_bytes(whole)
    assert ge.load(tmp_path / "m.om", check="all").inputs


@pytest.mark.parametrize("mode", [1, 2])
def test_the_folder_moves_as_a_whole(mode, mlp, tmp_path):
    (tmp_path / "a").mkdir()
    ge.compile(mlp, external_weight=mode, output=tmp_path / "a" / "m.om")
    for file in (tmp_path / "a").rglob("*"):
        assert file.is_dir() or str(tmp_path).encode() not in file.read_bytes()
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert ge.load(tmp_path / "b" / "m.om", check="all").inputs


@pytest.mark.parametrize("mode", [1, 2])
def test_the_cache_serves_every_mode(mode, mlp, want, tmp_path):
    """An entry holds its weights; where they lie is a matter of writing."""
    options = {"op_compiler_cache_mode": "enable", "op_compiler_cache_dir": str(tmp_path / "cache"), "input_shape": "input:3,4"}
    ge.compile(mlp, output=tmp_path / "first.om", **options)
    model = ge.compile(mlp, external_weight=mode, output=tmp_path / "m.om", **options)
    assert model.report()["times"]["from_cache"] and weight_files(tmp_path)
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert equal(ge.load(tmp_path / "m.om", check="all").run([X]), want)
    again = ge.compile(mlp, **options)
    assert again.report()["times"]["from_cache"] and equal(again.run([X]), want)


LIMITED = """
import resource, sys
import ge
model = ge.compile(sys.argv[1], external_weight=int(sys.argv[2]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
try:
    model.save("x.om")
except ge.Error as e:
    print(e.code, e.message)
"""


@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize("limit", [100, 4000])
def test_a_full_disk_leaves_nothing(mode, limit, mlp, tmp_path):
    done = subprocess.run([sys.executable, "-c", LIMITED, mlp, str(mode), str(limit)], cwd=tmp_path, capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.stdout.startswith("E13004 File ") and "cannot be written" in done.stdout, done.stdout + done.stderr
    assert not list(tmp_path.iterdir())
