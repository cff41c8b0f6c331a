"""Says when somebody speaks, with the model that takes many frames at a time."""

import json

import numpy as np
from silero_vad import get_speech_timestamps_sequence, load_silero_vad
from speech import say

sound = np.concatenate([say("hello, what a nice day", 1), say("it is raining in the mountains today", 1)]).astype(np.float32) / 32768
model = load_silero_vad(sequence=True)
print(json.dumps({"scores": model.audio_forward(sound).tolist(), "speech": get_speech_timestamps_sequence(sound, model)}))
