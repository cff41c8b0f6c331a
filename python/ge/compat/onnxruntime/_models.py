"""The compiled models of a session. Mostly there is one; feeds that depart from what the model declares, as ONNX
Runtime lets them, get others: sizes of one name that differ, inputs of open rank, inputs with a default that are fed.
So do models whose outputs have a rank that hangs on which sizes are 1 (Squeeze without axes): one for each such pattern.
"""

import json
import os

import ge
import numpy as np

from ... import _ge
from ._enums import GraphOptimizationLevel
from ._errors import Fail, InvalidProtobuf, ModelLoadCanceled, NotImplemented, failure, of_loading

_OM = b"GEOM"  # how an .om file starts


class Models:
    def __init__(self, source, options):
        """`source`: a path or bytes, of an ONNX or an .om file."""
        self._source, self._options = source, options
        self._path = None if isinstance(source, bytes) else source
        if options._canceled:
            raise failure(ModelLoadCanceled, "Loading was canceled by the session's options.")
        if options._initializers:
            raise failure(NotImplemented, f"GE takes initializers from the model alone, not {', '.join(options._initializers)}.")
        try:
            self.is_om = self._start() == _OM
            self.about = {} if self.is_om else json.loads(_ge.about_bytes(source) if self._path is None else _ge.about_file(source))
        except ge.Error as e:
            raise of_loading(e, self._path) from None
        self._others = {}
        self.plain = None

    def _start(self):
        if self._path is None:
            return self._source[:4]
        if self._path.endswith(".ort"):
            raise failure(NotImplemented, f"Load model from {self._path} failed:GE reads ONNX and .om files, not ONNX Runtime's own format.")
        if os.path.isdir(self._path):
            raise failure(InvalidProtobuf, f"Load model from {self._path} failed:Protobuf parsing failed.")
        try:
            with open(self._path, "rb") as f:
                return f.read(4)
        except OSError:
            return b""  # GE says what is wrong

    def load(self):
        """The model as it declares itself; later where an input's rank is open."""
        self.plain = None  # not while the new one is made
        if self.is_om:
            self.plain = self._made(lambda: ge.load(self._source, threads=self._threads()))
            self.about = self.plain.report().get("model", {})
        elif not any(p["shape"] is None and p["type"].startswith("tensor(") for p in self.about["inputs"]):
            shapes = {p["name"]: self._sizes(p) for p in self.about["inputs"] if self._overridden(p)}
            self.plain = self._compile(shapes, ())
            if self._options.optimized_model_filepath:
                self.plain.save(self._options.optimized_model_filepath)
        self._scalars = [i for i, p in enumerate(self.plain.inputs) if p.shape == ()] if self.plain else []
        declared = {p["name"]: p["shape"] for p in self.about.get("outputs", [])}
        self._by_ones = not self.is_om and self.plain is not None and any(
            declared.get(p.name) is not None and p.shape is not None and len(declared[p.name]) != len(p.shape) for p in self.plain.outputs)

    def run(self, function, arrays, fed=()):
        """function(model, arrays) with the model that takes these arrays; `fed` names inputs with a default, the
        last of the arrays."""
        ones = tuple(tuple(size == 1 for size in getattr(a, "shape", ())) for a in arrays) if self._by_ones else ()
        if self.plain is not None and not fed and not any(map(any, ones)):
            for i in self._scalars:  # one element of any rank is a scalar
                if isinstance(arrays[i], np.ndarray) and arrays[i].size == 1:
                    arrays[i] = arrays[i].reshape(())
            try:
                return function(self.plain, arrays)
            except ge.Error as e:
                if e.code != "E40001" or self.is_om or not self._conflict(arrays):
                    raise
        key = (tuple(getattr(a, "ndim", -1) for a in arrays), ones, tuple(fed))
        if key not in self._others:
            ports = self.about["inputs"] + [p for name in fed for p in self.about["overridable"] if p["name"] == name]
            shapes = {p["name"]: self._sizes(p, a.shape) for p, a in zip(ports, arrays) if isinstance(a, np.ndarray)}
            self._others[key] = self._compile(shapes, fed)
        model = self._others[key]
        given = dict(zip([p["name"] for p in self.about["inputs"]] + list(fed), arrays))
        return function(model, [given[p.name] for p in model.inputs])

    def _conflict(self, arrays):
        """Whether one name stands for two sizes in this feed."""
        seen = {}
        return any(seen.setdefault(name, size) != size for p, a in zip(self.about["inputs"], arrays) if isinstance(a, np.ndarray)
                   for name, size in zip(p["shape"] or (), a.shape) if isinstance(name, str))

    def _overridden(self, port):
        return any(self._override(port, i) is not None for i in range(len(port["shape"] or ())))

    def _override(self, port, axis):
        denotation = port.get("denotations", [])[axis:axis + 1]
        size = self._options._by_name.get(port["shape"][axis])
        return size if size is not None or not denotation else self._options._by_denotation.get(denotation[0])

    def _sizes(self, port, fed=None):
        """What --input_shape says of the input. For a feed of the shape `fed`, sizes of one name need not be one size."""
        if port["shape"] is None:
            return ["-1"] * len(fed)
        out = []
        for axis, size in enumerate(port["shape"]):
            override = self._override(port, axis)
            word = isinstance(size, str) and size.isascii() and size.isidentifier()
            if isinstance(size, int) or (fed is None and word and override is None):
                out.append(str(size))
            elif override is not None and override >= 0:
                out.append(str(override))
            else:
                out.append("1" if self._by_ones and fed and fed[axis] == 1 else "-1")
        return out

    def _threads(self):
        return max(self._options.intra_op_num_threads, 0) or None

    def _compile(self, shapes, fed):
        o = self._options
        options = {key[3:]: value for key, value in o._entries.items() if key.startswith("ge.")}
        options.setdefault("op_compiler_cache_mode", "enable")
        if o.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL:
            options.setdefault("disable_fusion", "all")
        if not o.enable_mem_reuse:
            options.setdefault("enable_mem_reuse", "0")
        if shapes:
            options["input_shape"] = shapes
        if fed:
            options["feed"] = list(fed)
        return self._made(lambda: ge.compile(self._source, threads=self._threads(), **options))

    def _made(self, make):
        try:
            return make()
        except ge.Error as e:
            raise of_loading(e, self._path) from None
        except MemoryError:
            raise failure(Fail, "Exception during initialization: std::bad_alloc") from None
