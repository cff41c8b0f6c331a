"""Reads a short code in an image that is drawn here, and finds where it stands."""

import io
import json

import ddddocr
from PIL import Image, ImageDraw, ImageFont


def drawn(text):
    image = Image.new("RGB", (160, 64), (250, 250, 250))
    ImageDraw.Draw(image).text((14, 10), text, font=ImageFont.load_default(38), fill=(30, 30, 90))
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


codes = ["8k3p", "wx57", "2a9d"]
reader, finder = ddddocr.DdddOcr(show_ad=False), ddddocr.DdddOcr(det=True, ocr=False, show_ad=False)
print(json.dumps({"codes": codes, "read": [reader.classification(drawn(c)) for c in codes], "boxes": [finder.detection(drawn(c)) for c in codes]}))
