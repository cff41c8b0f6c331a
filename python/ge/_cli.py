"""Entry points of the `atc` and `ge` commands: the native programs that lie in the package."""

import os
import sys


def _become(name):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    os.execv(program, [name] + sys.argv[1:])


def atc():
    _become("atc")


def ge():
    _become("ge")
