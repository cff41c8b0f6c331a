"""python -m ge.compat.onnxruntime (script.py | -m module | -c code) [arguments]"""

import os
import runpy
import sys

from . import install

USAGE = "usage: python -m ge.compat.onnxruntime (script.py | -m module | -c code) [arguments]"


def main():
    args = sys.argv[1:]
    if not args or args[0] in ("-h", "--help") or (args[0] in ("-m", "-c") and len(args) < 2):
        print(USAGE)
        return 0 if args[:1] in (["-h"], ["--help"]) else 2
    install()
    if args[0] == "-m":
        sys.argv = args[1:]
        runpy.run_module(args[1], run_name="__main__", alter_sys=True)
    elif args[0] == "-c":
        sys.argv = ["-c"] + args[2:]
        module = type(sys)("__main__")
        sys.modules["__main__"] = module
        exec(compile(args[1], "<string>", "exec"), module.__dict__)  # as `python -c` does
    else:
        if not os.path.exists(args[0]):
            print(f"{sys.executable}: can't open file '{args[0]}': no such file", file=sys.stderr)
            return 2
        sys.argv = args
        sys.path[0] = os.path.dirname(os.path.abspath(args[0]))
        runpy.run_path(args[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
