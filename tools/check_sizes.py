#!/usr/bin/env python3
"""Reports files over 500 lines and functions over 60. Soft limits: it never fails.

A function is what stands between a line that opens a brace in column 0 (or in a class body, two
columns) and the brace that closes it in the same column. Microkernels are excepted.
"""

import os
import re
import sys

FILE_LIMIT, FUNCTION_LIMIT = 500, 60
EXCEPTED = ("src/kernels/cube/", "src/kernels/vector/")
NOT_A_FUNCTION = re.compile(r"^\s*(namespace|class|struct|enum|union|extern|constexpr\b(?!.*\()|.*=\s*\{)")


def long_functions(lines):
    start = None
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip(" "))
        if start is None:
            if indent in (0, 2) and line.rstrip().endswith("{") and "(" in "".join(lines[max(0, i - 4):i + 1]) \
                    and not NOT_A_FUNCTION.match(line):
                start = (i, indent)
        elif line.startswith(" " * start[1] + "}"):
            if i - start[0] + 1 > FUNCTION_LIMIT:
                yield start[0] + 1, i - start[0] + 1, lines[start[0]].strip()
            start = None


def main():
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    total, over = {}, 0
    for top in ("src", "tools", "python", "tests"):
        for folder, _, names in os.walk(top):
            for name in sorted(n for n in names if n.endswith((".cc", ".h", ".inc", ".py"))):
                path = os.path.join(folder, name).replace(os.sep, "/")
                with open(path, encoding="utf-8") as f:
                    lines = f.read().split("\n")
                key = "/".join(path.split("/")[:2]) if top == "src" else top
                total[key] = total.get(key, 0) + len(lines)
                if "generated" in name or path.endswith(".py"):
                    continue
                if len(lines) > FILE_LIMIT:
                    over += 1
                    print(f"{path}: {len(lines)} lines (limit {FILE_LIMIT})")
                if not path.startswith(EXCEPTED):
                    for line, length, text in long_functions(lines):
                        over += 1
                        print(f"{path}:{line}: function of {length} lines (limit {FUNCTION_LIMIT}): {text}")
    print("lines: " + ", ".join(f"{k} {v}" for k, v in sorted(total.items())))
    print(f"src: {sum(v for k, v in total.items() if k.startswith('src'))} lines; {over} over a soft limit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
