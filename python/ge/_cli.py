"""Entry points of the `atc` and `ge` commands: the native programs that lie in the package.

`ge export` needs PyTorch, so it is Python.
"""

import os
import sys


def _become(name):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    os.execv(program, [name] + sys.argv[1:])


def atc():
    _become("atc")


def ge():
    if sys.argv[1:2] == ["export"]:
        from .export import main
        sys.exit(main(sys.argv[2:]))
    _become("ge")
