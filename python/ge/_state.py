"""State: what a model keeps from run to run, e.g. the keys and values of a decoder."""

import os


class State:
    """The states of one sequence (or one batch of them). Made by Model.new_state(), given to Model.run(..., state=).

    Models whose states have the same names, types and sizes can run on one State: a prefill and a decode model.
    One call at a time may use it; a second one gets an error.
    """

    __slots__ = ("_native",)

    def __init__(self, native):
        self._native = native

    @property
    def length(self):
        """How many entries (tokens) it holds."""
        return self._native.length()

    @property
    def lengths(self):
        """{name: entries} of each of its tensors that grows."""
        return self._native.lengths()

    @property
    def shapes(self):
        """{name: shape} of what its tensors hold; None before the first run where the batch size is open."""
        return {name: tuple(dims) or None for name, dims in self._native.shapes()}

    def memory(self):
        """Bytes: committed (memory held), reserved (address space), bytes_per_token (what one more entry takes)."""
        return self._native.memory()

    def reset(self):
        """Empties it; its memory goes back to the system."""
        self._native.reset()

    def fork(self):
        """Another State with the same content, independent from then on."""
        return State(self._native.fork())

    def save(self, path=None):
        """Writes its content to a file, or returns it as bytes without a path."""
        if path is None:
            return self._native.to_bytes()
        self._native.save(os.fspath(path))
        return None

    def load(self, source):
        """Takes the content of a file or of bytes that save() made."""
        if isinstance(source, (bytes, bytearray, memoryview)):
            self._native.from_bytes(bytes(source))
        else:
            self._native.load(os.fspath(source))

    def __repr__(self):
        return f"ge.State(length {self.length}, {self.memory()['committed']} bytes)"
