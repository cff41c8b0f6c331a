"""Reads the text in an image that is drawn here."""

import json

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR

LINES = ["Graph engine 2025", "reads 12,345 letters", "on the CPU: yes!", "What a nice day"]
image = Image.new("RGB", (640, 320), (250, 250, 245))
draw = ImageDraw.Draw(image)
for i, line in enumerate(LINES):
    draw.text((30, 20 + 72 * i), line, font=ImageFont.load_default(36), fill=(20, 20, 60))
result, _ = RapidOCR()(np.asarray(image))
print(json.dumps({"text": [r[1] for r in result], "boxes": [r[0] for r in result], "scores": [float(r[2]) for r in result], "drawn": LINES}))
