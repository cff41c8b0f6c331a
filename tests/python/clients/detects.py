"""Finds people in a photograph (one that Matplotlib's wheel carries)."""

import json
import sys

from nudenet import NudeDetector

found = NudeDetector().detect(sys.argv[1])
print(json.dumps({"classes": [d["class"] for d in found], "scores": [d["score"] for d in found], "boxes": [d["box"] for d in found]}))
