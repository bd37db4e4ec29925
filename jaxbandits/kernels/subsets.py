"""Places for sets of m arms out of K in a table of bounded length."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from . import pick

MOST = 256  # places; of more sets some share one


def num_places(num_arms: int, m: int) -> int:
    """How long the table is."""
    return min(math.comb(num_arms, m), MOST)


def all_fit(num_arms: int, m: int) -> bool:
    """Whether each set has a place of its own."""
    return math.comb(num_arms, m) <= MOST


def place(members: Bool[Array, " K"], m: int) -> Int[Array, ""]:
    """The place of a set: its rank in the combinatorial number system, or a sum of random words."""
    num_arms = members.size
    if not all_fit(num_arms, m):
        words = pick.scattered(jnp.ones((), int), num_arms)
        return (jnp.where(members, words, 0).sum() % MOST).astype(int)
    ways = np.array([[math.comb(a, k) for k in range(num_arms + 1)] for a in range(num_arms)])
    ranks = jnp.asarray(ways)[jnp.arange(num_arms), jnp.cumsum(members)]
    return jnp.where(members, ranks, 0).sum()
