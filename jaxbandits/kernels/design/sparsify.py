"""Designs on few arms that are as informative as designs on many."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ...types import Whole
from .. import selection
from ..linalg import spd, subspace, svec
from ..tracing import traced_once

DECIDED = 1e-9  # of the largest weight; smaller changes are rounding


@traced_once
def reduced(
    arms: Float[Array, "K d"], weights: Float[Array, " K"], most: Whole
) -> Float[Array, " K"]:
    """A design w' on at most `most` arms of the support, with `A(w') >= A(w)`.

    That is so up to rounding where `most` is at least `r (r + 1) / 2`, r the rank of the support
    (Caratheodory). Weights change by a v with `sum of v_i x_i x_i^T = 0` and `sum of v <= 0`,
    which leaves A as it is, until one of them is 0. Their sum may have fallen: A grows when they
    are scaled to sum to 1 again. With `s(x)` from `svec`, v is w times the residuals of arbitrary
    numbers in a weighted least squares regression on `s(x)`.

    Where rounding leaves no such v, or `most` is less, the smallest weights are dropped.
    """
    table = svec.of(subspace.whitened(arms, weights)[1])  # as well conditioned as may be
    negligible = table.size * float(jnp.finfo(arms.dtype).eps)

    def null(weights, step):
        numbers = selection.scattered(step, weights.size) / 2.0**30 - 1.0
        weighted = weights[:, None] * table
        inverse = spd.partial_inverse(table.T @ weighted, negligible).matrix
        for _ in range(2):  # the second pass removes what rounding left in the first
            numbers = numbers - table @ (inverse @ (numbers @ weighted))
        change = weights * numbers
        return jnp.where(change.sum() > 0, -change, change)

    def remove(state):
        weights, step = state
        change = null(weights, step)
        falls = change < -DECIDED * weights.max()
        ratio = jnp.where(falls, -weights / jnp.where(falls, change, 1.0), jnp.inf)
        first = selection.best(-ratio)
        found = first.value > -jnp.inf
        smallest = selection.best(jnp.where(weights > 0, -weights, -jnp.inf)).arm
        gone = jnp.arange(weights.size) == jnp.where(found, first.arm, smallest)
        after = jnp.maximum(weights - jnp.where(found, first.value * change, 0.0), 0.0)
        after = jnp.where(gone, 0.0, after)
        return after / after.sum(), step + 1

    def too_many(state):
        weights, step = state
        return ((weights > 0).sum() > most) & (step < weights.size)

    return lax.while_loop(too_many, remove, (weights, jnp.zeros((), int)))[0]
