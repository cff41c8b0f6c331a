"""What a run is fed with, checked as ONNX Runtime does before it runs: names, types, ranks, fixed sizes."""

from collections.abc import Generator, ItemsView, KeysView, Mapping, Sequence, Set, ValuesView

import numpy as np

from ._errors import Fail, InvalidArgument, failure
from ._options import RunOptions, wrong_type
from ._types import PLAIN, name_of
from ._values import NativeValue, OrtValue


# What may hold names, as in the native module's bindings.
_LISTS = (Sequence, Set, KeysView, ValuesView, ItemsView, Generator, map, zip)


def check_arguments(function, output_names, feed, run_options):
    """The names of the outputs as a list, once all of it has the right types."""
    listed = isinstance(output_names, _LISTS) and not isinstance(output_names, (str, bytes))
    names = list(output_names) if listed else [None]
    if not all(isinstance(n, str) for n in names) or not isinstance(feed, Mapping) or not all(isinstance(n, str) for n in feed) or \
            not isinstance(run_options, (RunOptions, type(None))):
        raise wrong_type(function, output_names, feed, run_options)
    if run_options is not None and run_options.terminate:
        raise failure(Fail, "Exiting due to terminate flag being set to true.")
    return names


def in_order(feed, args):
    """The feed's values as arrays, in the order of `args`."""
    names = [a.name for a in args]
    if len(feed) > len(names) or any(name not in names for name in feed):
        raise failure(InvalidArgument, f"Invalid input name: {next(name for name in feed if name not in names)}")
    return [_array(a, feed.get(a.name)) for a in args]


def _array(arg, value):
    if value.__class__ is np.ndarray and value.dtype is arg._plain:
        return value  # the rule, and the fast way
    if isinstance(value, (OrtValue, NativeValue)):
        value = value._get_c_value() if isinstance(value, OrtValue) else value
        value = value._data
    wanted = arg.type
    if wanted.startswith("optional("):
        if value is None:
            return None
        wanted = wanted[len("optional("):-1]
    if value is None:
        raise failure(Fail, f"Non-zero status code returned while running: Missing Input: {arg.name}")
    if wanted.startswith("map("):
        if not isinstance(value, dict):
            raise RuntimeError(f"Unable to handle object of type {type(value)} for the map '{arg.name}'")
        return value
    if wanted.startswith("seq("):
        return _sequence(arg, wanted[len("seq("):-1], value)
    if isinstance(value, list):
        value = _from_list(arg, wanted, value)
    if not isinstance(value, np.ndarray):
        if isinstance(value, (tuple, str, bytes)) or (hasattr(value, "__array__") and not isinstance(value, np.generic)):
            raise RuntimeError(f"Input must be a list of dictionaries or a single numpy array for input '{arg.name}'.")
        raise RuntimeError(f"Unable to handle object of type {type(value)}")
    if not value.dtype.isnative and value.dtype.kind in "biufc":
        value = value.astype(value.dtype.newbyteorder("="))
    given = name_of(value.dtype)
    if given != wanted:
        raise failure(InvalidArgument, f"Unexpected input data type. Actual: ({given}) , expected: ({wanted}) for input: {arg.name}")
    return _texts(value)


def _texts(array):
    """Strings as objects; what else stands among objects is told as text."""
    if array.dtype.kind in "US":
        return array.astype(object)
    if array.dtype.kind != "O" or all(isinstance(v, str) for v in array.flat):
        return array
    told = np.empty(array.shape, object)
    for i, v in enumerate(array.flat):
        told.flat[i] = str(v)
    return told


def _sequence(arg, element, value):
    if isinstance(value, np.ndarray):
        raise failure(InvalidArgument, f"input with name: '{arg.name}' expected to be of type: 3 but received a tensor")
    if not isinstance(value, list):
        raise RuntimeError(f"Unable to handle object of type {type(value)} for the sequence '{arg.name}'")
    arrays = [np.asarray(v) for v in value]
    for a in arrays:
        if name_of(a.dtype) != element:
            raise failure(InvalidArgument, f"Unexpected input data type. Actual: (seq({name_of(a.dtype)})) , expected: ({arg.type}) for input: {arg.name}")
    return [_texts(a) for a in arrays]


def _from_list(arg, wanted, value):
    """A list has no element type: it takes the input's."""
    try:
        array = np.asarray(value)
    except ValueError as e:
        raise RuntimeError(f"Could not create tensor from given input list for input '{arg.name}': {e}") from None
    if array.dtype.kind not in "biuf" and wanted != "tensor(string)":
        raise RuntimeError(f"Could not create tensor from given input list for input '{arg.name}'")
    dtype = PLAIN.get(wanted)
    return array.astype(dtype) if dtype and array.dtype.kind in "biuf" and array.dtype != dtype else array


def check_shapes(args, arrays):
    """Ranks, and the sizes that the model fixes."""
    for arg, array in zip(args, arrays):
        if not arg._shape or not isinstance(array, np.ndarray):
            continue  # the rank is open, or it is a scalar, where one element of any rank will do
        shape = array.shape
        if len(shape) == len(arg._shape) and all(shape[i] == size for i, size in arg._fixed):
            continue
        if array.ndim != len(arg.shape):
            raise failure(InvalidArgument, f"Invalid rank for input: {arg.name} Got: {array.ndim} Expected: {len(arg.shape)} "
                                           "Please fix either the inputs/outputs or the model.")
        wrong = "".join(f" index: {i} Got: {shape[i]} Expected: {size}\n" for i, size in arg._fixed if shape[i] != size)
        raise failure(InvalidArgument, f"Got invalid dimensions for input: {arg.name} for the following indices\n{wrong}"
                                       " Please fix either the inputs/outputs or the model.")
