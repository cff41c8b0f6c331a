"""Follows the pitch of a tone that climbs a scale, glides and stops, as a stream too."""

import json

import numpy as np
from swift_f0 import SwiftF0

RATE = 16000
NOTES = [220.0, 246.94, 277.18, 293.66, 329.63, 0.0]
hertz = np.concatenate([np.repeat(NOTES, RATE // 2), np.geomspace(220, 660, RATE)])
phase = 2 * np.pi * np.cumsum(hertz) / RATE
sound = sum(np.sin(k * phase) / k for k in range(1, 6)) * 0.2 * (hertz > 0)
sound += np.random.default_rng(0).normal(0, 1e-3, len(sound))
found = SwiftF0().detect(sound, RATE)
stream = SwiftF0().stream()
parts = [stream.push(sound[i:i + 5000], RATE) for i in range(0, len(sound), 5000)] + [stream.flush()]
sung = [float(found.pitch_hz[(found.timestamps > i / 2 + 0.1) & (found.timestamps < i / 2 + 0.4)].mean()) for i in range(5)]
print(json.dumps({"notes": NOTES[:5], "sung": sung, "pitch": found.pitch_hz.tolist(), "confidence": found.confidence.tolist(),
                  "streamed": np.concatenate([p.pitch_hz for p in parts]).tolist()}))
