"""Writes the vowels into Arabic text, with each kind of model that the package has."""

import json

from text2tashkeel import Diacritizer

TEXTS = ["بسم الله الرحمن الرحيم", "ذهب الولد إلى المدرسة في الصباح", "اللغة العربية جميلة"]
MODELS = ("rawi-ensemble", "rawi-v3-int8", "bilstm-int8")
print(json.dumps({model: [Diacritizer(model).diacritize(t) for t in TEXTS] for model in MODELS}))
