"""Writes src/kernels/reference/unicode_scripts.inc: where each run of letters of one script begins, as Perl's tables of
Unicode have it (Python's have no scripts)."""

import os
import subprocess

PERL = """
use Unicode::UCD qw(prop_invmap);
my ($first, $script) = prop_invmap("Script");
print Unicode::UCD::UnicodeVersion(), "\\n";
print "$first->[$_] $script->[$_]\\n" for 0 .. $#$first;
"""


def main():
    version, *lines = subprocess.run(["perl", "-e", PERL], capture_output=True, text=True, check=True).stdout.splitlines()
    runs = [(int(first), script) for first, script in map(str.split, lines)]
    # What is unknown comes first: it belongs to no script.
    names = ["Unknown", *sorted({script for _, script in runs} - {"Unknown"})]
    path = os.path.join(os.path.dirname(__file__), "..", "src", "kernels", "reference", "unicode_scripts.inc")
    with open(path, "w") as f:
        f.write(f"// Unicode {version}, by tools/unicode_scripts.py.\n// clang-format off\nconstexpr std::string_view kScripts[] = {{\n")
        for i in range(0, len(names), 8):
            f.write("".join(f'"{n}",' for n in names[i:i + 8]) + "\n")
        f.write("};\nconstexpr Run kScriptRuns[] = {\n")
        entries = [f"{{{first:#x},{names.index(script)}}}," for first, script in runs]
        for i in range(0, len(entries), 10):
            f.write("".join(entries[i:i + 10]) + "\n")
        f.write("};\n")


if __name__ == "__main__":
    main()
