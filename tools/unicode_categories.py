"""Writes src/kernels/reference/unicode_categories.inc: where each run of letters of one general category begins."""

import os
import sys
import unicodedata

CATEGORIES = ["Cc", "Cf", "Cn", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl", "No", "Pc", "Pd", "Pe",
              "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"]


def main():
    entries, before = [], None
    for code in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(code))
        if category != before:
            entries.append(f"{{{code:#x},{CATEGORIES.index(category)}}},")
            before = category
    path = os.path.join(os.path.dirname(__file__), "..", "src", "kernels", "reference", "unicode_categories.inc")
    with open(path, "w") as f:
        f.write(f"// Unicode {unicodedata.unidata_version}, by tools/unicode_categories.py. Categories: {', '.join(CATEGORIES[:15])},\n"
                f"// {', '.join(CATEGORIES[15:])}.\n// clang-format off\n")
        for i in range(0, len(entries), 10):
            f.write("".join(entries[i:i + 10]) + "\n")


if __name__ == "__main__":
    main()
