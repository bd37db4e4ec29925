"""Gap indices: `B[i, j]` bounds from above by how much arm i can be better than arm j.

Reda, Kaufmann and Delahaye-Duriez (2021), section 3.2. `Paired` indices use the distance of the
two arms; `Individual` ones add up an interval for each arm, and take K numbers instead of K^2.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ...types import Scalar
from .. import selection
from ..estimate import least_squares

MOST_COMPARED = 16  # arms; up to so many, comparing all pairs is faster than repeated maxima


class Paired(NamedTuple):
    """`B[i, j] = mu_i - mu_j + width ||x_i - x_j||`."""

    table: Float[Array, "K K"]

    def column(self, arm: Int[Array, ""]) -> Float[Array, " K"]:
        """`B[i, arm]` for every i."""
        return self.table[:, arm]

    def highest(self, among: Bool[Array, " K"]) -> Float[Array, " K"]:
        """`max of B[i, j]` over the i `among` those given, for every j."""
        return jnp.where(among[:, None], self.table, -jnp.inf).max(0)

    def nth(self, n: int) -> Float[Array, " K"]:
        """`D_j`, the n-th largest of `B[i, j]` over the i other than j."""
        own = jnp.eye(self.table.shape[0], dtype=bool)
        return nth_largest(jnp.where(own, -jnp.inf, self.table), n)


def paired(
    means: Float[Array, " K"],
    variances: Float[Array, " K"],
    gram: Float[Array, "K K"],
    width: Scalar,
) -> Paired:
    """From estimates, `||x_i||^2` and `x_i^T V^-1 x_j`."""
    lengths = jnp.sqrt(least_squares.pairwise(variances, gram))
    return Paired(means[:, None] - means[None, :] + width * lengths)


def column(
    stats: least_squares.Ledger, row: Float[Array, " K"], arm: Int[Array, ""], width: Scalar
) -> Float[Array, " K"]:
    """`Paired.column` without the rest of the table, from `row`, `x_arm^T V^-1 x_i`."""
    lengths = jnp.sqrt(least_squares.sqdist(stats, row, arm))
    return stats.means - selection.at(stats.means, arm) + width * lengths


class Individual(NamedTuple):
    """`B[i, j] = upper_i - lower_j`."""

    upper: Float[Array, " K"]
    lower: Float[Array, " K"]

    def column(self, arm: Int[Array, ""]) -> Float[Array, " K"]:
        """`B[i, arm]` for every i."""
        return self.upper - selection.at(self.lower, arm)

    def highest(self, among: Bool[Array, " K"]) -> Float[Array, " K"]:
        """`max of B[i, j]` over the i `among` those given, for every j."""
        return jnp.where(among, self.upper, -jnp.inf).max() - self.lower

    def nth(self, n: int) -> Float[Array, " K"]:
        """`D_j`, the n-th largest of `B[i, j]` over the i other than j."""
        if n == 1:
            return highest_of_others(self.upper) - self.lower
        ranks = selection.rank(self.upper, jnp.arange(self.upper.size))
        at, after = (jnp.where(ranks == r, self.upper, -jnp.inf).max() for r in (n - 1, n))
        return jnp.where(ranks < n, after, at) - self.lower


def individual(
    means: Float[Array, " K"], variances: Float[Array, " K"], width: Scalar
) -> Individual:
    """From estimates and `||x_i||^2`."""
    half = width * jnp.sqrt(variances)
    return Individual(means + half, means - half)


def highest_of_others(values: Float[Array, " K"]) -> Float[Array, " K"]:
    """`max of values_i over the i other than k`, for every k."""
    first = selection.best(values)
    here = jnp.arange(values.size) == first.arm
    return jnp.where(here, jnp.where(here, -jnp.inf, values).max(), first.value)


def nth_largest(table: Float[Array, "K M"], n: int) -> Float[Array, " M"]:
    """The n-th largest entry of each column; equal entries count one by one."""
    num = table.shape[0]
    if num <= MOST_COMPARED:
        table = selection.computed_once(table)
        at_least = sum((table[k] >= table).astype(jnp.int32) for k in range(num))
        return jnp.where(at_least >= n, table, -jnp.inf).max(0)

    def without_largest(_, table):
        return jnp.where(jnp.arange(num)[:, None] == table.argmax(0), -jnp.inf, table)

    return lax.fori_loop(0, n - 1, without_largest, table).max(0)
