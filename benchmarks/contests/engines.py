"""Both engines of the package as contestants; the native one needs a C++ compiler."""

from functools import partial

import numpy as np

from jaxbandits.compilers.cpp import compiler

from ..contest import NATIVE, OURS


def both(work):
    """`{name: work(options)}` for each engine of this machine, with its options of `simulate`."""
    contestants = {OURS: work}
    if compiler():
        contestants[NATIVE] = partial(work, engine="native")
    return contestants


def alike(play, number, ours):
    """Compare the native engine with `ours`: returns a text, or raises if they differ."""
    if not compiler():
        return "no C++ compiler, hence no native engine"
    runs = play(number, engine="native")
    np.testing.assert_array_equal(runs.arm_pulls, ours.arm_pulls)
    np.testing.assert_array_equal(runs.answer, ours.answer)
    return "both engines alike"
