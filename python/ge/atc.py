"""python -m ge.atc: GE's atc, whichever other atc is on the path."""

from ._cli import atc

if __name__ == "__main__":
    atc()
