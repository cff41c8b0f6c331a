"""Execution providers: there is one, the CPU. The others are known by name, as programs ask for them first."""

import warnings
from collections.abc import Sequence

CPU = "CPUExecutionProvider"
ALL_PROVIDERS = [name + "ExecutionProvider" for name in (
    "Tensorrt", "CUDA", "MIGraphX", "OpenVINO", "Dnnl", "VitisAI", "QNN", "Nnapi", "VSINPU", "Js", "CoreML", "Dml",
    "Rknpu", "WebNN", "WebGpu", "Xnnpack", "CANN", "Azure", "CPU")]


def get_all_providers():
    return list(ALL_PROVIDERS)


def get_available_providers():
    return [CPU]


def check_and_normalize_provider_args(providers, provider_options, available_provider_names):
    """(names, options), without duplicates; what is not available is warned of."""
    if providers is None:
        return [], []
    named = {}
    for name, options in _pairs(providers, provider_options):
        if name not in available_provider_names:
            warnings.warn(f"Specified provider '{name}' is not in available provider names."
                          f"Available providers: '{', '.join(available_provider_names)}'", stacklevel=4)
        if name in named:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
            continue
        named[name] = {str(k): str(v) for k, v in options.items()}
    return list(named), list(named.values())


def _pairs(providers, provider_options):
    if not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    if provider_options is None:
        pairs = [(p, {}) if isinstance(p, str) else p for p in providers]
        for p in pairs:
            if not (isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) and isinstance(p[1], dict)):
                raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        return pairs
    if not isinstance(provider_options, Sequence):
        raise ValueError("'provider_options' should be a sequence.")
    if len(providers) != len(provider_options):
        raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
    if not all(isinstance(p, str) for p in providers):
        raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
    if not all(isinstance(o, dict) for o in provider_options):
        raise ValueError("'provider_options' values must be dicts.")
    return list(zip(providers, provider_options))


def registered(names):
    """The providers of a session that asked for `names`: the CPU is always the last."""
    for name in names:
        if name not in ALL_PROVIDERS:
            raise RuntimeError(f"Unknown Provider Type: {name}")
    return [CPU]
