"""Rates how good speech sounds after a call that lost some of its packets."""

import json

import numpy as np
from speech import say
from speechmos import plcmos

np.random.seed(7)  # it listens with ears of random taste
whole = say("hello, what a nice day. it is raining in the mountains").astype(np.float32) / 32768
torn = whole.copy()
for i in range(0, len(torn), 4000):
    torn[i:i + 1200] = 0
print(json.dumps({name: plcmos.run(sound, 16000, return_df=False)["plcmos"] for name, sound in (("whole", whole), ("torn", torn))}))
