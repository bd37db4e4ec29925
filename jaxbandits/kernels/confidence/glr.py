"""Is the best estimate really the best? Generalised likelihood ratios of a linear model.

The statistic of leader i against j is `(mu_i - mu_j)^2 / (2 sigma^2 ||x_i - x_j||^2)` in V^-1.
Stopping once it reaches `C^2 / 2` for every j is `mu_i - mu_j >= C sigma ||x_i - x_j||`, so every
radius C of `radius` is a threshold, with the same theorem.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ...types import Scalar
from .. import selection
from ..estimate import least_squares


class SetEvidence(NamedTuple):
    """How clearly the m arms of the largest estimates lead."""

    top: Bool[Array, " K"]
    ratio: Float[Array, ""]  # the least of any arm inside against any outside


class Evidence(NamedTuple):
    """How clearly the arm of the largest estimate leads."""

    leader: Int[Array, ""]
    rival: Int[Array, ""]  # whose ratio is least
    ratio: Float[Array, ""]  # that least ratio, infinite where there is no rival
    gaps: Float[Array, " K"]  # by how much the leader's estimate is larger
    from_leader: Float[Array, " K"]  # x_leader^T V^-1 x_k


def evidence(
    stats: least_squares.Ledger, arms: Float[Array, "K d"], *, arm_space: bool
) -> Evidence:
    """The leader, its closest rival and their ratio `gap^2 / ||x_i - x_j||^2`."""
    leader, highest = selection.best(stats.means)
    from_leader = least_squares.row(stats, arms, leader, arm_space=arm_space)
    gaps = highest - stats.means
    rival, ratio = closest(gaps, least_squares.sqdist(stats, from_leader, leader), leader)
    return Evidence(leader, rival, ratio, gaps, from_leader)


def evidence_of_set(
    stats: least_squares.Ledger,
    arms: Float[Array, "K d"],
    order: Int[Array, " K"],
    m: int,
    *,
    arm_space: bool,
) -> SetEvidence:
    """The m largest estimates, and the least `gap^2 / ||x_i - x_j||^2` of i inside, j outside."""
    top = selection.top(stats.means, order, m)
    products = least_squares.rows(stats, arms, arm_space=arm_space)
    return SetEvidence(top, closest_pair(stats.means, stats.variances, products, top)[2])


def closest_pair(
    means: Float[Array, " K"],
    norms: Float[Array, " K"],
    gram: Float[Array, "K K"],
    top: Bool[Array, " K"],
) -> tuple[Int[Array, ""], Int[Array, ""], Float[Array, ""]]:
    """`(i, j, ratio)` of the pair, i inside and j outside, whose ratio is least."""
    num_arms = means.size
    sqdist = least_squares.pairwise(norms, gram)
    safe = jnp.maximum(sqdist, jnp.finfo(sqdist.dtype).tiny)
    ratios = (means[:, None] - means[None, :]) ** 2 / safe
    ratios = jnp.where(top[:, None] & ~top[None, :], ratios, jnp.inf)
    found = selection.best(-ratios.reshape(-1))
    return found.arm // num_arms, found.arm % num_arms, -found.value


def closest(
    gaps: Float[Array, " K"], sqdist: Float[Array, " K"], leader: Int[Array, ""]
) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """The arm whose `gap^2 / ||x_i - x_j||^2` is least, and that ratio."""
    ratios = ratios_of(gaps, sqdist, leader)
    rival = selection.best(-ratios)
    return rival.arm, -rival.value


def ratios_of(
    gaps: Float[Array, " K"], sqdist: Float[Array, " K"], leader: Int[Array, ""]
) -> Float[Array, " K"]:
    """`gap^2 / ||x_i - x_j||^2` for every arm j but the leader, where it is infinite."""
    safe = jnp.maximum(sqdist, jnp.finfo(sqdist.dtype).tiny)
    return jnp.where(jnp.arange(gaps.size) == leader, jnp.inf, gaps**2 / safe)


def certain(found: Evidence | SetEvidence, width: Scalar) -> Bool[Array, ""]:
    """Whether the leader, or set, is ahead of all others by `width` times their distance."""
    return found.ratio >= width**2
