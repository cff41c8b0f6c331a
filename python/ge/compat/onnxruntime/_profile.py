"""A session's profile as a trace of events that Chrome's viewer and ONNX Runtime's scripts read."""

import datetime
import json
import os
import threading
import time


class Profile:
    def __init__(self, prefix):
        now = datetime.datetime.now()
        self.path = f"{prefix}_{now:%Y-%m-%d_%H-%M-%S}_{now.microsecond // 1000:03d}.json"
        self.start_ns = time.time_ns()
        self._start = time.perf_counter_ns()
        self._events = []
        self._ended = False

    def now(self):
        """Microseconds since the session began."""
        return (time.perf_counter_ns() - self._start) / 1000

    def session(self, name, start):
        self._add("Session", name, start, self.now() - start, {})

    def tasks(self, entries, start, inputs, outputs):
        """One run's tasks: (task, kernel, start us, duration us, op), after `start`."""
        for index, (task, kernel, at, duration, op) in enumerate(entries):
            self._add("Node", f"{task}_kernel_time", start + at, duration,
                      {"op_name": op, "kernel": kernel, "provider": "CPUExecutionProvider", "node_index": str(index)})
        self._add("Session", "SequentialExecutor::Execute", start, self.now() - start,
                  {"inputs": [list(getattr(a, "shape", ())) for a in inputs], "outputs": [list(getattr(a, "shape", ())) for a in outputs]})

    def _add(self, category, name, start, duration, args):
        if self._ended:
            return
        self._events.append({"cat": category, "pid": os.getpid(), "tid": threading.get_native_id(), "dur": int(duration),
                             "ts": int(start), "ph": "X", "name": name, "args": args})

    def end(self):
        """Writes the file, once; its path."""
        self._ended = True
        with open(self.path, "w", encoding="utf-8") as f:
            json.dump(self._events, f)
        return self.path
