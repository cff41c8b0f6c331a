#!/usr/bin/env python3
"""Checks that the files of src/ include only what their layer may see, and no cycle of headers.

The order of the layers is in ARCHITECTURE.md. A quoted include names a path from src/ (or from
include/, for ge.h); it may name a file of its own layer or of a layer in ALLOWED.
"""

import os
import re
import sys

ORDER = [["base"], ["tensor"], ["kernels", "om", "arena"], ["ir"], ["ops"],
         ["import", "passes", "plan"], ["lower"], ["driver"]]
# What the order alone does not say: om reads the table of kernel ids and signatures.
EXTRA = {"om": {"kernels/kernel.h"}}
RUNTIME = {"base", "tensor", "kernels", "om", "arena"}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def allowed_layers():
    """layer -> the layers that it may include, itself among them."""
    seen, allowed = set(), {}
    for group in ORDER:
        for layer in group:
            allowed[layer] = seen | {layer}
        seen = seen | set(group)
    allowed["runtime"] = RUNTIME | {"runtime"}
    allowed["driver"] = seen | {"runtime"}
    allowed["capi"] = RUNTIME | {"runtime", "capi"}
    return allowed


def sources(src):
    for folder, _, names in os.walk(src):
        for name in sorted(names):
            if name.endswith((".h", ".cc", ".inc")):
                yield os.path.relpath(os.path.join(folder, name), src).replace(os.sep, "/")


def quoted_includes(path):
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            m = INCLUDE.match(line)
            if m and m.group(1) == '"':
                yield number, m.group(2)


def check(src):
    """The violations under src, one sentence each."""
    allowed, problems, edges = allowed_layers(), [], {}
    files = set(sources(src))
    outside = os.path.join(os.path.dirname(os.path.abspath(src)), "include")
    for file in sorted(files):
        layer = file.split("/")[0]
        if layer not in allowed:
            problems.append(f"src/{file}: '{layer}' is not a layer")
            continue
        edges[file] = []
        for number, include in quoted_includes(os.path.join(src, file)):
            where = f"src/{file}:{number}"
            if include not in files:
                if not os.path.exists(os.path.join(outside, include)) and "generated" not in file:
                    problems.append(f'{where}: "{include}" is not a path from src/')
                continue
            edges[file].append(include)
            target = include.split("/")[0]
            if target not in allowed[layer] and include not in EXTRA.get(layer, ()):
                problems.append(f"{where}: {layer} may not include {target} ({include})")
    return problems + cycles(edges)


def cycles(edges):
    state, path, found = {}, [], []

    def visit(file):
        state[file] = "open"
        path.append(file)
        for target in edges.get(file, ()):
            if state.get(target) == "open":
                if target != file or not file.endswith((".cc", ".inc")):
                    found.append("cycle: " + " -> ".join(path[path.index(target):] + [target]))
            elif target not in state:
                visit(target)
        path.pop()
        state[file] = "done"

    for file in sorted(edges):
        if file not in state:
            visit(file)
    return found


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    src = sys.argv[1] if len(sys.argv) > 1 else os.path.join(root, "src")
    problems = check(src)
    for problem in problems:
        print(problem)
    print(f"layers: {sum(1 for _ in sources(src))} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
