"""Both engines of the package as contestants, where this machine has a C++ compiler."""

from functools import partial

import numpy as np

from jaxbandits.compilers.cpp import compiler

from ..contest import NATIVE, OURS


def both(work):
    """`{name: work(options)}` for the engines there are, `options` being those of `simulate`."""
    contestants = {OURS: work}
    if compiler():
        contestants[NATIVE] = partial(work, engine="native")
    return contestants


def alike(play, number, ours):
    """What is said of the native engine's numbers: the same as `ours`, or an error."""
    if not compiler():
        return "no C++ compiler, hence no native engine"
    runs = play(number, engine="native")
    np.testing.assert_array_equal(runs.arm_pulls, ours.arm_pulls)
    np.testing.assert_array_equal(runs.answer, ours.answer)
    return "both engines alike"
