"""Speech for the programs here: a sentence, spoken by eSpeak NG, at 16 kHz."""

import ctypes

import espeakng_loader
import numpy as np

_SYNCHRONOUS, _UTF8 = 2, 1


def say(text, seconds_around=0.5, speed=150):
    """16-bit samples of the text, with silence before and after."""
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, espeakng_loader.get_data_path().encode(), 0)
    assert rate > 0, rate
    heard = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
    def samples(data, count, events):
        del events
        if data and count > 0:
            heard.append(np.ctypeslib.as_array(data, (count,)).copy())
        return 0

    library.espeak_SetSynthCallback(samples)
    library.espeak_SetVoiceByName(b"en-us")
    library.espeak_SetParameter(1, speed, 0)
    spoken = text.encode() + b"\0"
    assert library.espeak_Synth(spoken, len(spoken), 0, 0, 0, _UTF8, None, None) == 0
    library.espeak_Synchronize()
    sound = np.concatenate(heard).astype(np.float64)
    at = np.arange(int(len(sound) * 16000 / rate)) * rate / 16000
    silence = np.zeros(int(seconds_around * 16000), np.int16)
    return np.concatenate([silence, np.interp(at, np.arange(len(sound)), sound).astype(np.int16), silence])
