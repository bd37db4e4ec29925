"""What an algorithm remembers that knows nothing of features: the average reward of each arm.

It is read like a `least_squares.Ledger`: one of arms that are all orthogonal, without a ridge.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int


class Averages(NamedTuple):
    """Counts and sums, exact whatever their order."""

    counts: Array  # int [K]
    sums: Array  # float [K]

    @property
    def means(self):
        """Of arms not drawn yet: 0."""
        return self.sums / jnp.maximum(self.counts, 1)

    @property
    def variances(self):
        """In units of a reward's; of arms not drawn yet: infinite."""
        return jnp.where(self.counts > 0, 1.0 / jnp.maximum(self.counts, 1), jnp.inf)

    @property
    def logdet(self):
        """No threshold for averages needs it."""
        return jnp.zeros((), self.sums.dtype)


def nothing(num_arms: int) -> Averages:
    """Before any draw."""
    return Averages(jnp.zeros(num_arms, int), jnp.zeros(num_arms))


def observe(stats: Averages, arm: Int[Array, ""], reward) -> Averages:
    """One more draw of `arm` with this reward."""
    drawn = jnp.arange(stats.counts.size) == arm
    return Averages(stats.counts + drawn, stats.sums + jnp.where(drawn, reward, 0.0))
