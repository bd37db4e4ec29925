"""The rule for calls of `once_for_equal` functions: lanes with equal arguments share a result.

See `kernels.shared_call`.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import JaxprEqn
from jaxtyping import Array, Int, UInt32

from ...kernels.shared_call import ONCE_FOR_EQUAL
from ..jaxprs import dtype_of, largest_table, shape_of
from ..keys import is_key
from .interpreter import LaneContext, PerLane, evaluate, rule
from .narrowing import BLOCK, evaluate_alone, evaluate_for

WORD: int = 4  # bytes
# Of the largest table of a call: groups of more compute one after the other, by the operations for
# one lane. Side by side they gain nothing there, and where groups are few most of a block is
# computed for nothing: with 200 arms in 20 dimensions RAGE's design for eight lanes took 0.17
# seconds of a processor instead of 1.3 where all were equal, 1.3 instead of 1.2 where all differed,
# and compiled in a third of the time. Neither lanes nor groups decide, so that no result changes.
ALONE_BYTES: int = 2**18


@rule(ONCE_FOR_EQUAL)
def compute_per_group(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """The lanes are put into groups of equal arguments, and one lane of each group computes.

    Some groups do it side by side, or one after the other where their tables are large.
    """
    closed = eqn.params["jaxpr"]
    if any(is_key(dtype_of(v)) for v in eqn.invars):
        return evaluate(closed.jaxpr, closed.consts, operands, lanes)  # keys cannot be compared
    group, first = groups(
        jnp.concatenate([_words(x.value) for x in operands if isinstance(x, PerLane)])
    )
    alone = largest_table(closed.jaxpr) > ALONE_BYTES
    block = 1 if alone else math.gcd(BLOCK, lanes.number)
    results_for = evaluate_alone if alone else evaluate_for

    def fill(carry):
        done, tables = carry
        members = lax.dynamic_slice_in_dim(first, done, block)
        found = results_for(closed, operands, members, lanes)
        pairs = zip(tables, found, strict=True)
        return done + block, [lax.dynamic_update_slice_in_dim(t, x, done, -1) for t, x in pairs]

    tables = [jnp.zeros((*shape_of(v), lanes.number), dtype_of(v)) for v in eqn.outvars]
    number = group.max() + 1
    _, tables = lax.while_loop(
        lambda carry: carry[0] < number, fill, (jnp.zeros_like(number), tables)
    )
    return [PerLane(x[..., group]) for x in tables]


def _words(x):
    """The bits of each lane's values as integers of 32 bits, `[n, L]`."""
    if x.dtype.itemsize < WORD:
        return x.reshape(-1, x.shape[-1]).astype(jnp.uint32)
    words = lax.bitcast_convert_type(x, jnp.uint32)
    return jnp.moveaxis(words.reshape(*x.shape, -1), -1, 0).reshape(-1, x.shape[-1])


def groups(words: UInt32[Array, "n L"]) -> tuple[Int[Array, " L"], Int[Array, " L"]]:
    """For each lane the number of its group, and for each group one of its lanes.

    The lanes of a group have equal `words [n, L]`. Lanes with equal words are in one group unless
    hashes collide.
    """
    number = words.shape[1]
    factors = np.random.default_rng(0).integers(1, 2**31, words.shape[0], dtype=np.uint32)
    hashes = (words * (factors[:, None] * 2 + 1)).sum(0, dtype=jnp.uint32)
    order = jnp.argsort(hashes)
    ordered = words[:, order]
    new = (ordered[:, 1:] != ordered[:, :-1]).any(0)
    of_ordered = jnp.concatenate([jnp.zeros(1, int), jnp.cumsum(new)])
    group = jnp.zeros(number, int).at[order].set(of_ordered)
    return group, jnp.zeros(number, int).at[of_ordered].set(order)
