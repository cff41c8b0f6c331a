"""The package whose place this is."""

from .._version import __version__  # noqa: F401

package_name = "onnxruntime"
