"""ge.Error, in a file of its own so that the native module can find it while `ge` is being imported."""


class Error(RuntimeError):
    """What went wrong: code (ATC's where one exists), node, cause, and what to do (fix)."""

    def __init__(self, message, code="", node="", cause="", fix="", context=()):
        self.message, self.code, self.node, self.cause, self.fix = message, code, node, cause, fix
        self.context = list(context)
        super().__init__(message)

    def __str__(self):
        parts = [f"{self.code}: {self.message}" if self.code else self.message]
        for label, text in (("node", self.node), ("cause", self.cause), ("fix", self.fix)):
            if text:
                parts.append(f"  {label}: {text}")
        parts += [f"  while: {text}" for text in self.context]
        return "\n".join(parts)

    def __reduce__(self):
        return type(self), (self.message, self.code, self.node, self.cause, self.fix, self.context)
