"""`lanewise`: a vmap that keeps the lanes in the last axis of every array.

`jax.vmap` moves the batch axis to the front as soon as an operand has none, so the loops of the
compiled program run over arms or features, which are too few to fill a vector register. With the
lanes in the last axis, each loop runs over lanes: additions, maxima, look-ups and the algebra of
small matrices all vectorise, whatever their shape. The function is written for one lane.
"""

from . import (  # noqa: F401
    control,
    indexing,
    randomness,
    reductions,
    rules,
    shared_call,
)
from .interpreter import lanewise, where
from .reductions import materialised

__all__ = ["lanewise", "materialised", "where"]
