"""Finds text and tables on a page that is drawn here."""

import json

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rapid_layout import RapidLayout

image = Image.new("RGB", (800, 1000), (255, 255, 255))
draw = ImageDraw.Draw(image)
draw.text((200, 40), "The title of a page", font=ImageFont.load_default(44), fill=(0, 0, 0))
for i in range(14):
    draw.text((60, 140 + 28 * i), "Words in a row, as they stand in any text that fills a page", font=ImageFont.load_default(22), fill=(0, 0, 0))
for i in range(6):
    draw.line((60, 600 + 50 * i, 740, 600 + 50 * i), fill=(0, 0, 0), width=2)
    draw.line((60 + 136 * i, 600, 60 + 136 * i, 850), fill=(0, 0, 0), width=2)
found = RapidLayout()(np.asarray(image))
print(json.dumps({"classes": list(found.class_names), "scores": np.asarray(found.scores).tolist(), "boxes": np.asarray(found.boxes).tolist()}))
