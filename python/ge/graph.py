"""Graph, GraphOptions and build_graph: a model built step by step, with GE's log lines on the terminal."""

import logging
import os
import sys
import time

from ._error import Error


def _say(line):
    print(f"[GE] {line}", flush=True)


class GraphOptions:
    """How build_graph compiles: atc's options as attributes, besides the ones below.

    mem_workspace_size counts bytes and is a limit of the arena (0: none).
    """

    def __init__(self, **options):
        self.graph_name = ""
        self.enable_mem_reuse = True
        self.op_backend = ""
        self.mem_workspace_size = 0
        self.mem_allocator_strategy = 2
        self.input_shape = None
        self.fusion_switch_file = None
        for name, value in options.items():
            setattr(self, name, value)

    def compiler_options(self):
        """As ge.compile takes them; attributes that are None or empty are left out."""
        return {k: v for k, v in vars(self).items() if v is not None and v != ""}


class Graph:
    """A named graph; build_graph fills it, export writes the .om file."""

    def __init__(self, name="graph"):
        self.name = name
        self.model = None

    def export(self, path):
        """Writes the .om file and returns its path; ".om" is added where it is missing."""
        if self.model is None:
            raise Error(f"Graph '{self.name}' is empty.", "E16001", fix="call ge.build_graph(graph, model, options) first")
        path = os.fspath(path)
        path = path if path.endswith(".om") else path + ".om"
        self.model.save(path)
        return path


def build_graph(graph, model, options=None, example_inputs=None, dynamic_shapes=None):
    """Compiles a traced, scripted, exported or plain torch module (or an ONNX model) into `graph`.

    A trace carries its shapes; other modules need example_inputs or options.input_shape.
    """
    import ge
    given = (options or GraphOptions()).compiler_options()
    given.setdefault("graph_name", graph.name)
    start = time.perf_counter()
    _say("Graph build started...")
    _say("Memory reuse enabled, planning..." if _reuses(given) else "Memory reuse disabled")
    graph.model = ge.compile(model, example_inputs=example_inputs, dynamic_shapes=dynamic_shapes, **given)
    if graph.model.report()["times"]["from_cache"]:
        _say("Compiled before: taken from the cache")
    _say(f"Planning completed, fusion {graph.model.fused_operators()} operators")
    _say(f"Graph compile completed in {time.perf_counter() - start:.2f}s")
    print(graph.model.warnings(), end="", flush=True)
    return graph


def _reuses(options):
    on = str(options.get("enable_mem_reuse", True)).lower() in ("1", "true", "on")
    return on and str(options.get("disable_reuse_memory", 0)).lower() not in ("1", "true", "on")


def run(model, output, example_inputs=None, dynamic_shapes=None, **options):
    """Compiles one part of a sharded model into the .om file `output`; it can be loaded again as it is."""
    graph = Graph(os.path.splitext(os.path.basename(os.fspath(output)))[0])
    build_graph(graph, model, GraphOptions(**options), example_inputs, dynamic_shapes)
    return graph.export(output)


def init(options=None):
    """Nothing has to be set up; there for programs that call it. Returns 0."""
    acl = sys.modules.get("acl")
    if acl is not None and not hasattr(acl, "_lend_npu"):
        logging.getLogger("ge").warning("module acl (%s) is not GE's and is left alone", getattr(acl, "__file__", "built in"))
    return 0


def finalize():
    """The counterpart of init. Returns 0."""
    return 0
