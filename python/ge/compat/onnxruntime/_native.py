"""The session as ONNX Runtime's native module offers it; _session.py has what programs use."""

import threading
import weakref

import ge

from . import _feeds, _types
from ._bound import Bound
from ._device import OrtEpDevice, OrtMemoryInfo
from ._errors import InvalidArgument, failure, of_running
from ._models import Models
from ._options import SessionOptions
from ._profile import Profile
from ._providers import CPU, registered
from ._values import NativeValue, OrtValueVector
from ._version import __version__


def profiled_run(model, arrays):
    return model.run_profiled(arrays)


def plain_run(model, arrays):
    return model.run(arrays), ()


class InferenceSession(Bound):
    def __init__(self, session_options, path_or_bytes, is_path=True, read_config_from_model=False):
        self._options = session_options._copy()
        if not -1 <= self._options.log_severity_level <= 4:
            raise RuntimeError(f"log_severity_level is {self._options.log_severity_level}, not 0 to 4 or -1")
        self._profile = Profile(self._options.profile_file_prefix) if self._options.enable_profiling else None
        if self._profile:
            self._end = weakref.finalize(self, self._profile.end)  # also when nobody ends it
        start = self._profile.now() if self._profile else 0
        self._models = Models(path_or_bytes, self._options)
        if self._profile:
            self._profile.session("model_loading_uri" if is_path else "model_loading_array", start)

    def initialize_session(self, providers=(), provider_options=(), disabled_optimizers=()):
        self._providers = registered(providers)
        given = dict(zip(providers, provider_options))
        self._provider_options = {name: given.get(name, {}) for name in self._providers}
        start = self._profile.now() if self._profile else 0
        self._models.load()
        if self._profile:
            self._profile.session("session_initialization", start)
        self._describe()

    def _describe(self):
        about, model = self._models.about, self._models.plain
        declared = {p["name"]: p for key in ("inputs", "outputs") for p in about.get(key, [])}
        if model is not None:
            names = {size: name for p in model.inputs for size, name in zip(p.shape or (), declared.get(p.name, {}).get("shape") or p.shape or ())}
            self.inputs_meta = _types.ports(model.inputs, declared, names)
            self.outputs_meta = _types.ports(model.outputs, declared, names)
        else:
            self.inputs_meta, self.outputs_meta = ([_node_arg(p) for p in about[key]] for key in ("inputs", "outputs"))
        self._output_names = [a.name for a in self.outputs_meta]
        self.overridable_initializers = [_node_arg(p) for p in about.get("overridable", [])]
        self.model_meta = _types.ModelMetadata(about)
        self.session_options = self._options
        self.input_meminfos = [OrtMemoryInfo() for _ in self.inputs_meta]
        self.output_meminfos = [OrtMemoryInfo() for _ in self.outputs_meta]
        self.input_epdevices = [OrtEpDevice(__version__) for _ in self.inputs_meta]

    def get_providers(self):
        return list(self._providers)

    def get_provider_options(self):
        return {name: dict(options) for name, options in self._provider_options.items()}

    def is_webgpu_graph_capture_enabled(self):
        return False

    def _outputs(self, output_names, feed):
        """The arrays of these outputs, for a feed by name."""
        fed = [a for a in self.overridable_initializers if a.name in feed] if self.overridable_initializers else []
        args = self.inputs_meta + fed if fed else self.inputs_meta
        arrays = _feeds.in_order(feed, args)
        _feeds.check_shapes(args, arrays)
        known = self._output_names
        if output_names != known:
            for name in output_names:
                if name not in known:
                    raise failure(InvalidArgument, f"Invalid output name:{name}")
        start = self._profile.now() if self._profile else 0
        try:
            outputs, entries = self._models.run(profiled_run if self._profile else plain_run, arrays, [a.name for a in fed])
        except ge.Error as e:
            raise of_running(e) from None
        if self._profile:
            self._profile.tasks(entries, start, arrays, outputs)
            self._profile.session("model_run", start)
        return outputs if output_names == known else [outputs[known.index(name)] for name in output_names]

    def run(self, output_names, input_feed, run_options=None):
        return self._outputs(_feeds.check_arguments("run", output_names, input_feed, run_options), input_feed)

    def run_async(self, output_names, input_feed, callback, user_data, run_options=None):
        output_names = _feeds.check_arguments("run_async", output_names, input_feed, run_options)
        if self._options.intra_op_num_threads == 1:
            raise failure(InvalidArgument, "intra op thread pool must have at least one thread for RunAsync")

        def work():
            try:
                result, error = self._outputs(output_names, input_feed), ""
            except Exception as e:  # the callback is told
                result, error = [], getattr(e, "text", str(e))
            callback(result, user_data, error)

        threading.Thread(target=work, daemon=True).start()

    def run_with_ort_values(self, input_feed, output_names, run_options=None):
        output_names = _feeds.check_arguments("run_with_ort_values", output_names, input_feed, run_options)
        return OrtValueVector(NativeValue(a) for a in self._outputs(output_names, input_feed))

    def run_with_ortvaluevector(self, run_options, feed_names, feeds, fetch_names, fetches, fetch_devices):
        fetches.extend(self.run_with_ort_values(dict(zip(feed_names, feeds)), fetch_names, run_options))

    def run_with_iobinding(self, binding, run_options=None):
        try:
            _feeds.check_arguments("run_with_iobinding", list(binding.outputs), binding.inputs, run_options)
            if not binding.outputs:
                raise failure(InvalidArgument, "At least one output should be requested.")
            binding.take(self._outputs(list(binding.outputs), binding.inputs))
        except (ValueError, TypeError):
            raise
        except Exception as e:
            raise RuntimeError(f"Error in execution: {getattr(e, 'text', e)}") from e

    def create_ortvalue_from_shape_and_type(self, shape, element_type, device):
        return NativeValue.ortvalue_from_shape_and_type(shape, element_type, device)

    create_ortvalue_from_shape_and_onnx_type = create_ortvalue_from_shape_and_type

    @property
    def get_profiling_start_time_ns(self):
        return self._profile.start_ns if self._profile else 0

    def end_profiling(self):
        """The path of the profile; "" when there is none, or no longer."""
        return self._end() or "" if self._profile else ""

    def set_ep_dynamic_options(self, options):
        pass

    def get_tuning_results(self):
        return []

    def set_tuning_results(self, results, error_on_invalid=False):
        pass

    def release_captured_graph(self, graph_annotation_id=0):
        pass

    def get_provider_graph_assignment_info(self):
        return []


def _node_arg(port):
    return _types.NodeArg(port["name"], port["type"], port["shape"] or [])


def get_default_session_options():
    return SessionOptions()


def default_providers():
    return [CPU]
