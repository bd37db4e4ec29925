"""`cpp`, the native engine: a function of one lane becomes a C++ program for several lanes.

XLA's programs for a CPU pass whole arrays from operation to operation. Here a function's jaxpr
becomes one C++ function. As many lanes as a vector register holds doubles (eight with AVX-512, four
with AVX2) go through the whole function before the next lanes do, so that their values stay in
registers and the nearest cache, and their loops end when these lanes are done. The machine's C++
compiler builds the program while JAX traces, and XLA calls it like one of its own operations.
Authors of algorithms need not know of this.

The numbers are those of `lanewise` up to the last bits, because products and sums are added in
another order. Where a choice depends on such a bit, a run may continue differently.
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
from .build import library_at_hand
from .compiling import compiler, warn_of_missing
from .program import ONE_LANE, VECTORS, Target, natively, renewed, repeated
from .values import Unsupported

__all__ = [
    "ONE_LANE",
    "VECTORS",
    "Target",
    "Unsupported",
    "compiler",
    "library_at_hand",
    "natively",
    "renewed",
    "repeated",
    "warn_of_missing",
]
