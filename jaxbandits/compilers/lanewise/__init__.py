"""`lanewise`: a vmap that keeps the lanes in the last axis of every array.

`jax.vmap` moves a batch to the front as soon as it meets an operand without one, so the loops
of the compiled program run over arms or features, too short to fill a vector register. With
the lanes last, each loop runs over lanes: additions, maxima, look-ups and the algebra of small
matrices all vectorise, whatever their shape. The function itself knows nothing of lanes.
"""

from . import (  # noqa: F401
    control,
    indexing,
    logarithms,
    randomness,
    reductions,
    rules,
    shared_call,
)
from .interpreter import lanewise

__all__ = ["lanewise"]
