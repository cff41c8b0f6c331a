"""Writes docs/operators.md from what `ge ops` prints: python tools/operators_doc.py [--check] GE, the command's path.

With --check nothing is written; the exit code says whether the file is what would be written.
"""

import os
import subprocess
import sys

DOC = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "operators.md")
DOMAINS = [("", "ai.onnx"), ("ai.onnx.ml.", "ai.onnx.ml"), ("com.microsoft.", "com.microsoft"), ("", "other domains")]
HEAD = """# Operators

Written by `./dev docs` from `ge ops`. "kernel": has kernels of its own; "vector": is computed in registers, alone or
among its neighbours; "reference": runs by the kernel that says what it means; "shape only": costs nothing in a run, or is
written as other operators. "types": the element types of the data input, the first one if no other is named. "float": f16,
bf16, f32, f64; "integer": i8 to i64 and u8 to u64; "number": both; "float8": its four types; "quantised": what QuantizeLinear
makes (u8, i8, u16, i16, float8, 2 and 4 bits); "complex": c64, c128.
"""


def rows(ge):
    lines = subprocess.run([*ge, "ops"], capture_output=True, text=True, check=True).stdout.splitlines()
    how, types = lines[0].index("runs as"), lines[0].index("types")
    doc = lines[0].index("meaning")
    for line in lines[1:]:
        yield *line[:how].split(), line[how:types].strip(), line[types:doc].strip(), line[doc:].strip()


def section_of(name):
    for prefix, domain in DOMAINS:
        if prefix and name.startswith(prefix):
            return domain
    return "ai.onnx" if "." not in name else "other domains"


def text(ge):
    table = [r for r in rows(ge) if not r[0].startswith("ge.")]
    out = HEAD
    for domain in dict.fromkeys(d for _, d in DOMAINS):
        part = [r for r in table if section_of(r[0]) == domain]
        if not part:
            continue
        out += f"\n## {domain}\n\n| operator | opsets | inputs | runs as | types | |\n|---|---|---|---|---|---|\n"
        for name, *rest in part:
            short = name.removeprefix(domain + ".")
            out += f"| {short} | {' | '.join(cell.replace('|', chr(92) + '|') for cell in rest)} |\n"
    return out


def main(arguments):
    check = "--check" in arguments
    made = text([a for a in arguments if a != "--check"])
    if check:
        with open(DOC) as f:
            return 0 if f.read() == made else "docs/operators.md is not what `ge ops` says: ./dev docs writes it"
    os.makedirs(os.path.dirname(DOC), exist_ok=True)
    with open(DOC, "w") as f:
        f.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
