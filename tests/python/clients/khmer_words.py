"""Finds the words in Khmer text, which has no spaces between them."""

import json

import khmersm

TEXTS = ["ខ្ញុំស្រឡាញ់ប្រទេសកម្ពុជា", "ភាសាខ្មែរជាភាសាផ្លូវការរបស់ព្រះរាជាណាចក្រកម្ពុជា", "សួស្តី hello ពិភពលោក ២០២៤"]
segmenter = khmersm.Segmenter()
print(json.dumps({"words": [segmenter.segment(t) for t in TEXTS]}))
