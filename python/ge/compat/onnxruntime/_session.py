"""InferenceSession as programs use it."""

import os
import warnings

from . import _native
from ._binding import IOBinding
from ._device import OrtDevice
from ._options import SessionOptions
from ._providers import CPU, check_and_normalize_provider_args, get_available_providers
from ._values import OrtValue


class Session:
    def __init__(self, enable_fallback=True):
        self._sess, self._enable_fallback = None, enable_fallback

    def get_session_options(self):
        return self._sess_options

    def get_inputs(self):
        """NodeArgs: name, type, shape."""
        return self._inputs_meta

    def get_outputs(self):
        return self._outputs_meta

    def get_overridable_initializers(self):
        """The inputs that have a default."""
        return self._overridable_initializers

    def get_modelmeta(self):
        return self._model_meta

    def get_input_memory_infos(self):
        return self._input_meminfos

    def get_output_memory_infos(self):
        return self._output_meminfos

    def get_input_epdevices(self):
        return self._input_epdevices

    def get_providers(self):
        return self._providers

    def get_provider_options(self):
        return self._provider_options

    def get_provider_graph_assignment_info(self):
        return self._sess.get_provider_graph_assignment_info()

    def set_providers(self, providers=None, provider_options=None):
        """Makes the session anew for these providers."""
        self._create(self._initial_options, providers, provider_options)

    def disable_fallback(self):
        self._enable_fallback = False

    def enable_fallback(self):
        self._enable_fallback = True

    def _prepared(self, output_names, feed):
        """The names that are meant, once all inputs are there."""
        given = feed.keys()
        missing = [a.name for a in self._inputs_meta if a.name not in given and not a.type.startswith("optional")]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(given)}).")
        return output_names or [a.name for a in self._outputs_meta]

    def run(self, output_names, input_feed, run_options=None):
        """The outputs of these names (None: all), for {name: array}."""
        return self._sess.run(self._prepared(output_names, input_feed), input_feed, run_options)

    def run_async(self, output_names, input_feed, callback, user_data, run_options=None):
        """Returns at once; callback(outputs, user_data, error) is called by another thread."""
        names = self._prepared(output_names, input_feed)
        return self._sess.run_async(names, input_feed, callback, user_data, run_options)

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        names = self._prepared(output_names, input_dict_ort_values)
        feed = {name: value._get_c_value() for name, value in input_dict_ort_values.items()}
        return [OrtValue(v) for v in self._sess.run_with_ort_values(feed, names, run_options)]

    def run_with_ortvaluevector(self, run_options, feed_names, feeds, fetch_names, fetches, fetch_devices):
        self._sess.run_with_ortvaluevector(run_options, feed_names, feeds, fetch_names, fetches, fetch_devices)

    def io_binding(self):
        return IOBinding(self)

    def run_with_iobinding(self, iobinding, run_options=None):
        if iobinding._session is not self._sess:
            raise ValueError("IOBinding must be used with the session that created it.")
        self._sess.run_with_iobinding(iobinding._iobinding, run_options)

    def create_ortvalue_from_shape_and_type(self, shape, element_type, device_type, device_id=0, vendor_id=-1):
        device = OrtDevice.make(device_type, device_id, vendor_id)._get_c_device()
        return OrtValue(self._sess.create_ortvalue_from_shape_and_type(shape, element_type, device), session=self._sess)

    def end_profiling(self):
        """Writes the profile; its path."""
        return self._sess.end_profiling()

    def get_profiling_start_time_ns(self):
        return self._sess.get_profiling_start_time_ns

    def set_ep_dynamic_options(self, options):
        self._sess.set_ep_dynamic_options(options)

    def get_tuning_results(self):
        return self._sess.get_tuning_results()

    def set_tuning_results(self, results, *, error_on_invalid=False):
        self._sess.set_tuning_results(results, error_on_invalid)

    def release_captured_graph(self, graph_annotation_id=0):
        self._sess.release_captured_graph(graph_annotation_id)


class InferenceSession(Session):
    """One model: an ONNX or .om file by path, or its bytes."""

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **kwargs):
        super().__init__(int(kwargs.get("enable_fallback", 1)) == 1)
        if isinstance(path_or_bytes, (str, os.PathLike)):
            self._model_path, self._model_bytes = os.fspath(path_or_bytes), None
        elif isinstance(path_or_bytes, bytes):
            self._model_path, self._model_bytes = None, path_or_bytes
        else:
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        self._initial_options, self._fallback_providers = sess_options, [CPU]
        try:
            self._create(sess_options, providers, provider_options)
        except (ValueError, RuntimeError) as e:
            if not self._enable_fallback:
                raise
            print("*************** EP Error ***************")
            print(f"EP Error {e} when using {providers}")
            print(f"Falling back to {self._fallback_providers} and retrying.")
            print("****************************************")
            self._create(sess_options, self._fallback_providers, None)
            self.disable_fallback()

    def _create(self, options, providers, provider_options):
        names, settings = check_and_normalize_provider_args(providers, provider_options, get_available_providers())
        options = options or SessionOptions()
        if names and options.has_providers():
            warnings.warn("Specified 'providers'/'provider_options' when creating InferenceSession but SessionOptions has "
                          "already been configured with providers. InferenceSession will only use the providers "
                          "passed to InferenceSession().", stacklevel=3)
        source = self._model_bytes if self._model_path is None else self._model_path
        session = _native.InferenceSession(options, source, self._model_path is not None)
        session.initialize_session(names, settings)
        self._sess, self._sess_options = session, session.session_options
        self._inputs_meta, self._outputs_meta = session.inputs_meta, session.outputs_meta
        self._overridable_initializers = session.overridable_initializers
        self._input_meminfos, self._output_meminfos = session.input_meminfos, session.output_meminfos
        self._input_epdevices, self._model_meta = session.input_epdevices, session.model_meta
        self._providers, self._provider_options = session.get_providers(), session.get_provider_options()
        self._profiling_start_time_ns = session.get_profiling_start_time_ns
