"""What the baselines share: the shape of their results, Numba where it is there, C functions."""

import ctypes
from typing import NamedTuple

import numpy as np

from ..build import library

try:
    import numba
except ImportError:
    numba = None

REAL, WHOLE, SEED, TABLE = ctypes.c_double, ctypes.c_int64, ctypes.c_uint64, ctypes.c_void_p


class Outcome(NamedTuple):
    """What the replications did."""

    pulls: np.ndarray  # int [R]
    answer: np.ndarray  # int [R], or bool [R, K] for sets
    arm_pulls: np.ndarray  # int [R, K]


def jit(function):
    """Compile with Numba when first called; without Numba the loop is not a contestant.

    Division as NumPy does it, without a test for zero that would keep loops from vectorising.
    """
    return function if numba is None else numba.njit(function, error_model="numpy")


@jit
def largest(values):
    """The first index of the largest value; `argmax` looks for NaN besides."""
    best = 0
    for k in range(1, len(values)):
        if values[k] > values[best]:
            best = k
    return best


def blank(replications, num_arms, answer=()):
    """An `Outcome` to be filled by compiled loops, all of it int64."""
    shapes = ((), answer, (num_arms,))
    return Outcome(*(np.zeros((replications, *shape), np.int64) for shape in shapes))


def gather(done):
    """The `Outcome` of a list of triples."""
    return Outcome(*map(np.array, zip(*done, strict=True)))


def normals(rng, noise):
    """Standard normals: those handed in, or drawn a thousand at a time."""
    if noise is not None:
        yield from noise
        raise ValueError("the noise handed in is too short")
    while True:
        yield from rng.normal(size=1024)


def priorities(order, num_arms):
    """Priorities that break ties: those handed in, or by index."""
    return np.arange(num_arms)[::-1].copy() if order is None else np.asarray(order, np.int64)


def call_c(name, *arguments, **sizes):
    """Call the function of `name.c`: floats, ints and arrays as they are, None for no array."""
    kinds = [
        REAL if isinstance(x, float) else WHOLE if isinstance(x, int) else TABLE for x in arguments
    ]
    function = getattr(library(name, **sizes), name)
    function.argtypes, function.restype = kinds, None
    function(*(x.ctypes.data if isinstance(x, np.ndarray) else x for x in arguments))
