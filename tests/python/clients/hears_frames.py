"""Says when somebody speaks, frame by frame, at both rates of the model, which has a branch for each."""

import json

import numpy as np
import torch
from silero_vad import get_speech_timestamps, load_silero_vad
from speech import say

sound = np.concatenate([say("hello, what a nice day", 1), say("it is raining in the mountains today", 1)]).astype(np.float32) / 32768
answers = {}
for rate, samples in ((16000, sound), (8000, np.ascontiguousarray((sound[0:-1:2] + sound[1::2]) / 2))):
    model = load_silero_vad(onnx=True)
    scores = model.audio_forward(torch.from_numpy(samples), rate)
    answers[str(rate)] = {"scores": scores.tolist(), "speech": get_speech_timestamps(torch.from_numpy(samples), model, sampling_rate=rate)}
print(json.dumps(answers))
