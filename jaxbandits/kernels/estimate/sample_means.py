"""The average reward of each arm, for algorithms that do not use features.

It is read like a `least_squares.Ledger`: one of orthogonal arms, without a ridge.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...types import Scalar


class Averages(NamedTuple):
    """Counts and sums, exact whatever their order."""

    counts: Int[Array, " K"]
    sums: Float[Array, " K"]

    @property
    def means(self) -> Float[Array, " K"]:
        """Average rewards; 0 for arms not drawn yet."""
        return self.sums / jnp.maximum(self.counts, 1)

    @property
    def variances(self) -> Float[Array, " K"]:
        """Of the means, in units of a reward's variance; infinite for arms not drawn yet."""
        return jnp.where(self.counts > 0, 1.0 / jnp.maximum(self.counts, 1), jnp.inf)

    @property
    def logdet(self) -> Float[Array, ""]:
        """0, as no threshold for averages needs it."""
        return jnp.zeros((), self.sums.dtype)


def nothing(num_arms: int) -> Averages:
    """Before any draw."""
    return Averages(jnp.zeros(num_arms, int), jnp.zeros(num_arms))


def observe(stats: Averages, arm: Int[Array, ""], reward: Scalar) -> Averages:
    """One more draw of `arm` with this reward."""
    drawn = jnp.arange(stats.counts.size) == arm
    return Averages(stats.counts + drawn, stats.sums + jnp.where(drawn, reward, 0.0))
