"""Greedy XY designs, draw by draw; which arm is next never depends on a reward.

Arms and targets are in one table, the arms first; only arms are drawn.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ...types import Scalar
from .. import selection
from ..estimate import least_squares
from . import greedy

IN_ARMS = {"arm_space": True}


class Draws(NamedTuple):
    """What has been drawn."""

    stats: least_squares.Ledger  # of the table
    draws: Int[Array, ""]


class Contest(NamedTuple):
    """The empirical best target against each target."""

    best: Int[Array, ""]
    leads: Float[Array, " M"]  # by how much it is ahead
    sqdist: Float[Array, " M"]  # ||z_best - z||^2 in A^-1
    others: Bool[Array, " M"]  # all but itself


def begin(points: Float[Array, "N d"], num_arms: int, v0: Scalar) -> Draws:
    """Before the first draw: A already holds one draw of each arm, besides v0 I."""
    once = (jnp.arange(points.shape[0]) < num_arms).astype(int)
    return Draws(least_squares.foreseen(points, once, v0, **IN_ARMS), jnp.zeros((), int))


def next_arm(state: Draws, num_arms: int) -> Int[Array, ""]:
    """Each arm once, then the one that makes `max ||z - z'||^2_{A^-1}` smallest."""
    stats, first = state.stats, state.draws < num_arms
    cross = stats.core[:num_arms, num_arms:]
    arm = greedy.min_max_one(
        stats.variances[:num_arms], cross, _sqdist(stats, num_arms), state.draws
    )
    return jnp.where(first, jnp.minimum(state.draws, num_arms - 1), arm)


def contest(state: Draws, num_arms: int) -> Contest:
    """The empirical best target against each, by the estimates so far."""
    means = state.stats.means[num_arms:]
    best = selection.best(means)
    others: Bool[Array, " M"] = jnp.arange(means.size) != best.arm
    row = selection.at(state.stats.core, num_arms + best.arm)
    sqdist = least_squares.sqdist(state.stats, row, num_arms + best.arm)[num_arms:]
    return Contest(best.arm, best.value - means, sqdist, others)


def drawn(
    state: Draws, points: Float[Array, "N d"], num_arms: int, arm: Int[Array, ""], reward: Scalar
) -> Draws:
    """After one more draw; A holds the first draw of each arm from the start."""
    known = state.draws < num_arms
    stats = least_squares.observe(state.stats, points, arm, reward, known=known, **IN_ARMS)
    return Draws(stats, state.draws + 1)


def _sqdist(stats, num_arms):
    own, among = stats.variances[num_arms:], stats.core[num_arms:, num_arms:]
    return jnp.maximum(0.0, own[:, None] + own[None, :] - 2.0 * among)
