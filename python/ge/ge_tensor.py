"""Tensors as ge.run's programs name them: NumPy arrays, with conversions to and from torch."""

import numpy as np

from . import _arrays


class GeTensor:
    """An array with a name, for feeding sessions by name."""

    def __init__(self, data, name=""):
        self.data = data.detach().cpu().numpy() if _arrays.is_torch(data) else np.asarray(data)
        self.name = name

    @property
    def shape(self):
        return self.data.shape

    @property
    def dtype(self):
        return self.data.dtype

    def numpy(self):
        return self.data

    def torch(self):
        return _arrays.to_torch(self.data)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.data, dtype)


def from_torch(tensor, name=""):
    return GeTensor(tensor, name)


def from_numpy(array, name=""):
    return GeTensor(array, name)
