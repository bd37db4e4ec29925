"""The state of least squares: V = v0 I + sum of x x^T and what follows from it.

Two exact forms behind one interface. Arm space keeps `G = X V^-1 X^T [K, K]`, O(K^2) a draw
whatever d; feature space keeps `V^-1 [d, d]`, O(d^2 + K d). Both carry what every rule reads:
the estimated means, the variances `x_k^T V^-1 x_k` and the log-determinant.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from ...types import Scalar, Table
from .. import selection
from ..linalg import blocks, spd
from ..tracing import traced_once


class Ledger(NamedTuple):
    """Ridge least squares on a fixed table of arms."""

    core: Float[Array, "n n"]  # X V^-1 X^T [K, K] in arm space, V^-1 [d, d] in feature space
    means: Float[Array, " K"]  # estimated means
    variances: Float[Array, " K"]  # x_k^T V^-1 x_k
    logdet: Float[Array, ""]  # log det V - d log v0


def prefers_arm_space(arms: Float[Table, "K d"]) -> bool:
    """Whether arm space was measured to be faster: up to K = 2 d."""
    num_arms, dim = arms.shape
    return num_arms <= 2 * dim


def ridge(arms: Float[Array, "K d"], v0: Scalar, *, arm_space: bool) -> Ledger:
    """The ledger before any draw: V = v0 I."""
    num_arms, dim = arms.shape
    core = arms @ arms.T / v0 if arm_space else jnp.eye(dim, dtype=arms.dtype) / v0
    zeros = jnp.zeros(num_arms, arms.dtype)
    return Ledger(core, zeros, (arms**2).sum(1) / v0, jnp.zeros((), arms.dtype))


def gaussian_process(prior: Float[Array, "K K"], noise_var: Scalar) -> Ledger:
    """The ledger in arm space of means with this prior covariance, before any draw.

    Variances and products are in units of `noise_var`, the variance of a reward.
    """
    core, num_arms = prior / noise_var, prior.shape[0]
    zeros = jnp.zeros(num_arms, prior.dtype)
    return Ledger(core, zeros, jnp.diagonal(core), jnp.zeros((), prior.dtype))


def foreseen(
    arms: Float[Array, "K d"], counts: Shaped[Array, " K"], v0: Scalar = 0.0, *, arm_space: bool
) -> Ledger:
    """The ledger of draws that are planned: V = v0 I + sum of counts x x^T, no reward yet.

    Counts may be weights. With `v0 = 0` the arms to be drawn must span. `logdet` is that of V.
    """
    found = spd.inverse(gram(arms, counts) + v0 * jnp.eye(arms.shape[1], dtype=arms.dtype))
    core = arms @ found.matrix @ arms.T if arm_space else found.matrix
    zeros = jnp.zeros(arms.shape[0], arms.dtype)
    return Ledger(core, zeros, spd.quadratic(arms, found.matrix), found.logdet)


def row(
    ledger: Ledger, arms: Float[Array, "K d"], arm: Int[Array, ""], *, arm_space: bool
) -> Float[Array, " K"]:
    """`x_arm^T V^-1 x_k` for every k."""
    return (
        selection.at(ledger.core, arm)
        if arm_space
        else arms @ (ledger.core @ selection.at(arms, arm))
    )


def rows(ledger: Ledger, arms: Float[Array, "K d"], *, arm_space: bool) -> Float[Array, "K K"]:
    """`x_i^T V^-1 x_k` for every pair."""
    return ledger.core if arm_space else arms @ ledger.core @ arms.T


@traced_once
def observe(
    ledger: Ledger,
    arms: Float[Array, "K d"],
    arm: Int[Array, ""],
    reward: Scalar,
    *,
    arm_space: bool,
    known: Bool[Array, ""] | None = None,
) -> Ledger:
    """One more draw of `arm` with this reward (Sherman-Morrison).

    Where the draw is `known`, as one of those `foreseen`, V stays and only the reward is new.
    """
    if arm_space:
        column = direction = selection.at(ledger.core, arm)
    else:
        direction = ledger.core @ selection.at(arms, arm)
        column = arms @ direction
    growth = selection.at(column, arm)
    scale = 1.0 / (1.0 + growth)
    step = scale * (reward - selection.at(ledger.means, arm))
    if known is not None:
        growth, scale = jnp.where(known, 0.0, growth), jnp.where(known, 0.0, scale)
        step = jnp.where(known, reward, step)
    return Ledger(
        core=ledger.core - scale * direction[:, None] * direction[None, :],
        means=ledger.means + step * column,
        variances=ledger.variances - scale * column**2,
        logdet=ledger.logdet + jnp.log1p(growth),
    )


def sqdist(ledger: Ledger, from_row: Float[Array, " K"], arm: Int[Array, ""]) -> Float[Array, " K"]:
    """`||x_arm - x_k||^2` in V^-1 for every k, from `row(arm)`; rounding is clipped at 0."""
    return jnp.maximum(0.0, selection.at(ledger.variances, arm) + ledger.variances - 2.0 * from_row)


def pairwise(norms: Float[Array, " K"], products: Float[Array, "K K"]) -> Float[Array, "K K"]:
    """`||x_i - x_j||^2` for every pair, from `||x_i||^2` and `rows`; rounding is clipped at 0."""
    return jnp.maximum(0.0, norms[:, None] + norms[None, :] - 2.0 * products)


def gram(arms: Float[Array, "K d"], counts: Shaped[Array, " K"]) -> Float[Array, "d d"]:
    """`X^T diag(counts) X`."""
    dim, weights = arms.shape[1], counts.astype(arms.dtype)
    if blocks.are_many(arms):
        return blocks.sum_of_squares(arms, weights)
    return (weights @ spd.outer(arms)).reshape(dim, dim)


def batch(
    arms: Float[Array, "K d"],
    counts: Int[Array, " K"],
    sums: Float[Array, " K"],
    v0: Scalar = 0.0,
) -> tuple[Float[Array, "d d"], Float[Array, " d"], Float[Array, ""]]:
    """A whole batch at once: `(V^-1, theta, log det V)` from counts and reward sums.

    With `v0 = 0` the drawn arms must span; otherwise `V^-1` and theta are NaN.
    """
    dim = arms.shape[1]
    matrix = gram(arms, counts) + v0 * jnp.eye(dim, dtype=arms.dtype)
    found = spd.inverse(matrix, may_lack_rank=True)
    inverse = jnp.where(found.positive, found.matrix, jnp.nan)
    return inverse, inverse @ (arms.T @ sums), jnp.where(found.positive, found.logdet, -jnp.inf)
