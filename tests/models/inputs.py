"""Inputs of the models, made from recipes: the same arrays everywhere, each from a seed of its own.

A recipe is {"kind", "dtype", "shape", ...}; with "repeat": n its name holds "{i}" and it stands for n inputs.
"""

import hashlib

import numpy as np


def seeded(*words):
    """A stream of its own for each name; RandomState's streams are frozen across NumPy versions."""
    seed = hashlib.sha256("/".join(words).encode()).digest()[:4]
    return np.random.RandomState(int.from_bytes(seed, "big"))


def normalised(images, recipe):
    """[count, channels, height, width] in 0..1 to the recipe's scale, mean, deviation and axis of channels."""
    axis = recipe["channel_axis"]
    images = np.moveaxis(images * recipe.get("scale", 1), 1, axis)
    along = [-1 if i == axis else 1 for i in range(4)]
    return (images - np.reshape(recipe.get("mean", 0), along)) / np.reshape(recipe.get("std", 1), along)


def image_sizes(recipe):
    """count, channels, height, width."""
    shape = list(recipe["shape"])
    channels = shape.pop(recipe["channel_axis"])
    return shape[0], channels, shape[1], shape[2]


def picture(random, recipe):
    """Smooth gradients, a few flat patches and some noise, as a photograph has."""
    count, channels, height, width = image_sizes(recipe)
    y, x = np.linspace(0, 1, height)[:, None], np.linspace(0, 1, width)[None, :]
    out = np.empty((count, channels, height, width))
    for plane in out.reshape(-1, height, width):
        a, b, c, d = random.uniform(-1, 1, 4)
        plane[:] = 0.5 + 0.25 * (a * x + b * y + c * x * y + d * (x - y) ** 2)
        for _ in range(8):
            top, left = random.randint(0, height), random.randint(0, width)
            plane[top:top + height // 4, left:left + width // 4] = random.uniform(0, 1)
    return normalised(np.clip(out + 0.04 * random.standard_normal(out.shape), 0, 1), recipe)


def film(random, recipe):
    """Pictures one after the other: [count, channels, frames, height, width]."""
    count, channels, frames, height, width = recipe["shape"]
    still = {**recipe, "shape": [count, channels, height, width]}
    return np.stack([picture(random, still) for _ in range(frames)], axis=2)


def writing(random, recipe):
    """Lines of made-up glyphs (5 x 7 dots, most of them drawn), dark on light paper, the same in every channel."""
    count, channels, height, width = image_sizes(recipe)
    lines = recipe["lines"]
    dot = max(1, height // (lines * 10))
    out = np.full((count, height, width), 0.93)
    for page in out:
        for line in range(lines):
            top, left = line * height // lines + dot, 2 * dot
            while left + 6 * dot < width - 2 * dot:
                if random.uniform() > 0.15:  # else a space
                    glyph = np.kron(random.uniform(size=(7, 5)) < 0.55, np.ones((dot, dot)))
                    part = page[top:top + 7 * dot, left:left + 5 * dot]
                    part -= 0.8 * glyph[:part.shape[0], :part.shape[1]]
                left += 6 * dot
    out += 0.01 * random.standard_normal(out.shape)
    return normalised(np.repeat(np.clip(out, 0, 1)[:, None], channels, axis=1), recipe)


def sound(random, recipe):
    """A voice-like tone: harmonics of one pitch that swell and fade, and a little noise; 16,000 samples a second."""
    shape = tuple(recipe["shape"])
    time = np.arange(shape[-1]) / 16000.0
    out = 0.005 * random.standard_normal(shape)
    for row in out.reshape(-1, shape[-1]):
        pitch, swell = random.uniform(100, 300), 0.1 + 0.05 * np.sin(2 * np.pi * random.uniform(2, 5) * time)
        for harmonic in range(1, 10):
            row += swell / harmonic * np.sin(2 * np.pi * pitch * harmonic * time + random.uniform(0, 6))
    return out


def integers(random, recipe):
    """low <= value < high; `first` stands at the start of each row."""
    value = random.randint(recipe["low"], recipe["high"], tuple(recipe["shape"]))
    if "first" in recipe:
        value[..., 0] = recipe["first"]
    return value


def mask(random, recipe):
    """Row i starts with lengths[i] ones."""
    del random
    return np.arange(recipe["shape"][1])[None, :] < np.array(recipe["lengths"])[:, None]


def uniform(random, recipe):
    return random.uniform(recipe["low"], recipe["high"], tuple(recipe["shape"]))


def normal(random, recipe):
    return recipe.get("mean", 0) + recipe.get("std", 1) * random.standard_normal(tuple(recipe["shape"]))


def zeros(random, recipe):
    del random
    return np.zeros(tuple(recipe["shape"]))


def constant(random, recipe):
    del random
    return np.full(tuple(recipe["shape"]), recipe["value"])


def values(random, recipe):
    """The recipe's `values` row by row, from the start again where more are needed."""
    del random
    return np.resize(recipe["values"], tuple(recipe["shape"]))


def chance(random, recipe):
    """True with the probability `chance`."""
    return random.uniform(size=tuple(recipe["shape"])) < recipe["chance"]


def edges(random, recipe):
    """[2, edges]: from one of `nodes` nodes to another one."""
    count, nodes = recipe["shape"][1], recipe["nodes"]
    start = random.randint(0, nodes, count)
    return np.stack([start, (start + random.randint(1, nodes, count)) % nodes])


KINDS = {f.__name__: f for f in (picture, film, writing, sound, integers, mask, uniform, normal, zeros, constant, values,
                                 chance, edges)}


def recipes_of(cases, case):
    """{input name: recipe} of one case: what it does not state is as in "default"."""
    return {name: {**recipe, **cases[case].get(name, {})} for name, recipe in cases["default"].items()}


def make(model, recipes):
    """{input name: array} of one case."""
    out = {}
    for pattern, recipe in recipes.items():
        names = [pattern.format(i=i) for i in range(recipe["repeat"])] if "repeat" in recipe else [pattern]
        for name in names:
            value = KINDS[recipe["kind"]](seeded("feed", model, name), recipe)
            out[name] = np.array(value, dtype=recipe["dtype"], order="C")  # also of rank 0
    return out
