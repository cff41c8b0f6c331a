"""Waits for the words that wake an assistant."""

import json

import openwakeword
from speech import say

WORDS = ("alexa", "weather", "hey_mycroft", "timer", "hey_jarvis")
SAID = {"hey_jarvis": "hey jarvis", "alexa": "alexa", "weather": "what is the weather", "hey_mycroft": "hey mycroft", "timer": "set a 5 minute timer"}
model = openwakeword.Model([openwakeword.models[w]["model_path"] for w in WORDS])
heard = {}
for word, text in SAID.items():
    model.reset()
    sound = say(text, 1.5, 120)
    frames = [model.predict(sound[i:i + 1280]) for i in range(0, len(sound) - 1279, 1280)]
    heard[word] = {k: max(float(f[k]) for f in frames) for k in frames[0]}
print(json.dumps({"heard": heard, "features": model.preprocessor.get_features(16).ravel().tolist()}))
