"""ge.Error: what every failure of GE raises."""


class Error(Exception):
    """A failure with a code, the node concerned, its cause and what to do.

    Attributes: message, code (ATC's where ATC has the case, e.g. "E10001"), node, cause, fix, context
    (the chain of what was being done, innermost first). Empty strings where there is nothing to say.
    """

    def __init__(self, message, code="E19999", node="", cause="", fix="", context=()):
        self.message, self.code, self.node = message, code, node
        self.cause, self.fix, self.context = cause, fix, list(context)
        text = f"{code}: {message}"
        if node:
            text += f" [node {node}]"
        if cause:
            text += f"\n  Possible Cause: {cause}"
        if fix:
            text += f"\n  Solution: {fix}"
        for c in self.context:
            text += f"\n  in {c}"
        super().__init__(text)

    def __reduce__(self):
        return Error, (self.message, self.code, self.node, self.cause, self.fix, self.context)
