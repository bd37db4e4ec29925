"""D-optimal designs on the simplex, with a certificate `bound <= optimum <= value`."""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ...types import Scalar, Whole
from .. import selection
from ..estimate import least_squares
from ..linalg import spd, subspace
from ..tracing import traced_once


class Design(NamedTuple):
    """A design and how far from the optimum it can be.

    >>> import jaxbandits as jb
    >>> found = jb.design.d_optimal([[1.0, 0.0], [0.0, 1.0]])
    >>> found.weights, bool(found.converged)
    (array([0.5, 0.5]), True)
    """

    weights: Float[Array, " K"]  #: non-negative, sum 1
    value: Float[Array, ""]  #: the objective at `weights`
    bound: Float[Array, ""]  #: a lower bound on the optimum
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]  #: value <= (1 + tol) bound


MANY = 8  # more than so many times d arms are many


class Iterate(NamedTuple):
    """The design after some steps."""

    weights: Float[Array, " K"]
    inverse: Float[Array, "d d"]  # of A(weights) in the kept coordinates, zero elsewhere
    variances: Float[Array, " K"]  # x_k^T A^-1 x_k, 0 for inactive arms
    iterations: Int[Array, ""]


@traced_once
def d_optimal(
    arms: Float[Array, "K d"],
    active: Bool[Array, " K"],
    *,
    tol: Scalar = 0.01,
    max_iterations: Whole = 20_000,
) -> Design:
    """D-optimal, hence G-optimal, design on the active arms by vertex exchange.

    Weight moves from the arm of the support with the smallest `g_k = x_k^T A(w)^-1 x_k` to the
    arm with the largest, as much as raises det A most (Bohning, 1986): O(K d) a step.
    `value = max_k g_k` and `bound` is the rank of the active arms, the optimum itself (Kiefer
    and Wolfowitz, 1960). The inverse is updated by rank-one changes and computed afresh before
    a design is accepted.
    """
    space = subspace.of(arms, active)
    rank = jnp.maximum(space.rank, 1).astype(arms.dtype)

    def evaluated(weights, iterations):
        inverse = subspace.inverse(space, least_squares.gram(arms, weights)).matrix
        variances = jnp.where(active, spd.quadratic(arms, inverse), 0.0)
        return Iterate(weights, inverse, variances, iterations)

    def unfinished(now):
        above = now.variances.max() > (1.0 + tol) * rank
        return above & (now.iterations < max_iterations)

    def afresh(now):
        end = lax.while_loop(unfinished, partial(_exchange, arms), now)
        return evaluated(end.weights, end.iterations)

    begin = evaluated(_first_weights(arms, active), jnp.zeros((), int))
    return certified(space, lax.while_loop(unfinished, afresh, begin), tol)


def certified(space: subspace.Span, end: Iterate, tol: Scalar) -> Design:
    """The `Design` of the last iterate; where all arms are zero none counts as converged."""
    value, rank = end.variances.max(), space.rank.astype(end.variances.dtype)
    converged = (value <= (1.0 + tol) * rank) & (space.rank > 0)
    return Design(end.weights, value, rank, end.iterations, converged)


def _first_weights(arms, active):
    """Equal weights on the active arms; where arms are many, on a basis of arms far apart.

    With equal weights on all, nearly every arm that ends without weight costs an exchange.
    """
    if arms.shape[0] <= MANY * arms.shape[1]:
        return active.astype(arms.dtype) / jnp.maximum(active.sum(), 1)
    chosen = subspace.far_apart(arms, active)
    return chosen.astype(arms.dtype) / jnp.maximum(chosen.sum(), 1)


def _exchange(arms, now):
    """One exchange of weight between two arms."""
    weights, inverse, variances, iterations = now
    coarse = selection.coarse(variances)
    taker = selection.best(coarse).arm
    giver = selection.best(jnp.where(weights > 0, -coarse, -jnp.inf)).arm
    high, low = selection.at(variances, taker), selection.at(variances, giver)
    give, take = selection.at(arms, giver), selection.at(arms, taker)
    towards, away = inverse @ take, inverse @ give
    both = give @ towards
    curvature = high * low - both**2
    most = selection.at(weights, giver)
    wanted = jnp.where(curvature > 0, (high - low) / (2.0 * curvature), jnp.inf)
    amount = jnp.where(wanted > (1.0 - 2.0**-selection.COARSE) * most, most, wanted)
    # A + amount (x x^T - y y^T) by two rank-one changes of the inverse.
    gain = amount / (1.0 + amount * high)
    away = away - gain * both * towards
    loss = amount / (1.0 - amount * (low - gain * both**2))
    here, there = jnp.arange(weights.size) == giver, jnp.arange(weights.size) == taker
    left = jnp.where(here, most - amount, weights)
    change = loss * (arms @ away) ** 2 - gain * (arms @ towards) ** 2
    return Iterate(
        weights=jnp.where(there, left + amount, left),
        inverse=inverse + loss * jnp.outer(away, away) - gain * jnp.outer(towards, towards),
        variances=jnp.where(variances > 0, variances + change, 0.0),
        iterations=iterations + 1,
    )
