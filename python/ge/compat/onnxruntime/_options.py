"""SessionOptions and RunOptions. What GE has no meaning for is kept and has no effect."""

import operator

from ._bound import Bound
from ._enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, OrtExecutionProviderDevicePolicy
from ._errors import Fail, InvalidArgument, NotImplemented, failure
from ._providers import ALL_PROVIDERS, CPU


def wrong_type(function, *given):
    return TypeError(f"{function}(): incompatible function arguments. Invoked with: {', '.join(map(repr, given))}")


_LONGEST_KEY, _LONGEST_VALUE = 1024, 8192


class _Field:
    """An attribute of one type."""

    def __init__(self, default):
        self.default, self.type = default, type(default)

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, options, owner=None):
        return self if options is None else options._values.get(self.name, self.default)

    def __set__(self, options, value):
        options._values[self.name] = self._checked(value)

    def _checked(self, value):
        if self.type is bool:
            return bool(value)
        if self.type is not int:
            if not isinstance(value, self.type):
                raise wrong_type(self.name, value)
            return value
        try:
            number = operator.index(value)
        except TypeError:
            raise wrong_type(self.name, value) from None
        if not -2**31 <= number < 2**31:
            raise wrong_type(self.name, value)
        return number


class _Options(Bound):
    __slots__ = ("_values", "_entries", "__weakref__")
    _owner = "SessionOptions"

    def __init__(self):
        self._values, self._entries = {}, {}

    def _add_entry(self, key, value):
        if not isinstance(key, str) or not isinstance(value, str):
            raise wrong_type("add_config_entry", key, value)
        if not 0 < len(key) <= _LONGEST_KEY:
            raise RuntimeError(f"Config key is empty or longer than maximum length {_LONGEST_KEY}")
        if len(value) > _LONGEST_VALUE:
            raise RuntimeError(f"Config value is longer than maximum length: {_LONGEST_VALUE}")
        self._entries[key] = value

    def _entry(self, key):
        if key not in self._entries:
            raise RuntimeError(f"{self._owner} does not have configuration with key: {key}")
        return self._entries[key]


class SessionOptions(_Options):
    """How a session is made. Entries whose key starts with "ge." are options of ge.compile."""

    __slots__ = ("_by_name", "_by_denotation", "_initializers", "_providers", "_canceled")

    enable_cpu_mem_arena = _Field(True)
    enable_mem_pattern = _Field(True)
    enable_mem_reuse = _Field(True)
    enable_profiling = _Field(False)
    execution_mode = _Field(ExecutionMode.ORT_SEQUENTIAL)
    execution_order = _Field(ExecutionOrder.DEFAULT)
    graph_optimization_level = _Field(GraphOptimizationLevel.ORT_ENABLE_ALL)
    inter_op_num_threads = _Field(0)
    intra_op_num_threads = _Field(0)
    log_severity_level = _Field(-1)
    log_verbosity_level = _Field(0)
    logid = _Field("")
    optimized_model_filepath = _Field("")
    profile_file_prefix = _Field("onnxruntime_profile_")
    use_deterministic_compute = _Field(False)
    use_per_session_threads = _Field(True)

    def __init__(self):
        super().__init__()
        self._by_name, self._by_denotation, self._initializers = {}, {}, []
        self._providers, self._canceled = [], False

    def _copy(self):
        """What a session keeps: later changes are not its own."""
        other = SessionOptions()
        other._values, other._entries = dict(self._values), dict(self._entries)
        other._by_name, other._by_denotation = dict(self._by_name), dict(self._by_denotation)
        other._initializers, other._providers = list(self._initializers), list(self._providers)
        other._canceled = self._canceled
        return other

    def add_session_config_entry(self, key, value):
        self._add_entry(key, value)

    def get_session_config_entry(self, key):
        return self._entry(key)

    def add_free_dimension_override_by_name(self, name, size):
        self._by_name[name] = operator.index(size)

    def add_free_dimension_override_by_denotation(self, denotation, size):
        self._by_denotation[denotation] = operator.index(size)

    def add_initializer(self, name, value):
        if not hasattr(value, "_get_c_value"):
            raise RuntimeError("The provided Python object must be an OrtValue")
        self._initializers.append(name)

    def add_external_initializers(self, names, values):
        self._initializers.extend(names)

    def add_external_initializers_from_files_in_memory(self, names, buffers, sizes):
        self._initializers.extend(names)

    def register_custom_ops_library(self, path):
        raise failure(Fail, f"Failed to load library {path} with error: GE runs no kernels made for ONNX Runtime")

    def has_providers(self):
        return bool(self._providers)

    def add_provider(self, name, options):
        if name not in ALL_PROVIDERS:
            raise RuntimeError(f"Unknown Provider Type: {name}")
        if name != CPU:
            raise failure(InvalidArgument, f"Failed to add provider of type '{name}' to SessionOptions. "
                                           "Provider configuration is not supported.")
        self._providers.append(name)

    def add_provider_for_devices(self, devices, options):
        self._providers.extend(d.ep_name for d in devices)

    def set_provider_selection_policy(self, policy):
        if not isinstance(policy, OrtExecutionProviderDevicePolicy):
            raise wrong_type("set_provider_selection_policy", policy)

    def set_provider_selection_policy_delegate(self, delegate):
        pass

    def set_ep_context_data_read_func(self, read_func, max_data_size):
        pass

    def clear_ep_context_data_read_func(self):
        pass

    def set_load_cancellation_flag(self, value):
        self._canceled = bool(value)


class RunOptions(_Options):
    """How one run is made."""

    __slots__ = ()
    _owner = "RunOptions"

    log_severity_level = _Field(-1)
    log_verbosity_level = _Field(0)
    logid = _Field("")
    only_execute_path_to_fetches = _Field(False)
    terminate = _Field(False)

    def add_run_config_entry(self, key, value):
        self._add_entry(key, value)

    def get_run_config_entry(self, key):
        return self._entry(key)

    def add_active_adapter(self, adapter):
        raise failure(NotImplemented, "GE has no LoRA adapters.")
