"""`cpp`, the native engine: a function of one lane as a C++ program that plays several at a time.

XLA's programs for a CPU pass whole arrays from operation to operation. Here a function's jaxpr
becomes one C++ function in which as many lanes as a vector register holds doubles (eight with
AVX-512, four with AVX2) go through all of it before the next ones do, so that what they carry stays
in registers and the nearest cache, and their loops end when these lanes are done. The machine's C++
compiler builds it while the program is traced, and XLA calls it like an operation of its own.
Nobody who writes an algorithm knows.

The numbers are those of `lanewise` up to the last bits: products and sums are joined in another
order. Where a choice hangs on such a bit, a run may take another course.
"""

from . import (  # noqa: F401
    control,
    elementwise,
    indexing,
    layout,
    products,
    randomness,
    sorts,
    sums,
)
from .compiling import compiler, features
from .program import SIDE_BY_SIDE, natively, repeated
from .values import Unsupported

__all__ = ["SIDE_BY_SIDE", "Unsupported", "compiler", "features", "natively", "repeated"]
