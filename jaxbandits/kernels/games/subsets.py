"""Slots for sets of m arms out of K in a table of bounded length."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from .. import selection

MOST = 256  # slots; of more sets some share a slot


def num_slots(num_arms: int, m: int) -> tuple[int, bool]:
    """How long the table is, and whether some sets share a slot."""
    number = math.comb(num_arms, m)
    return (MOST, True) if number > MOST else (number, False)


def slot(members: Bool[Array, " K"], m: int) -> Int[Array, ""]:
    """The slot of a set: its rank in the combinatorial number system, or a sum of random words."""
    num_arms = members.size
    if num_slots(num_arms, m)[1]:
        words = selection.scattered(jnp.ones((), int), num_arms)
        return (jnp.where(members, words, 0).sum() % MOST).astype(int)
    ways = [[min(math.comb(a, k), MOST) for k in range(m + 1)] for a in range(num_arms)]
    ranks = jnp.asarray(np.array(ways))[jnp.arange(num_arms), jnp.cumsum(members)]
    return jnp.where(members, ranks, 0).sum()
