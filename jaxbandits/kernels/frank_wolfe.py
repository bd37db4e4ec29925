"""Frank-Wolfe on the G-objective, as the program of a paper runs it; for good designs, `design`."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from . import ledger, pick, span, spd
from .design import Design

SMALLEST = 1e-5  # weights below it are dropped in the end
ROUNDED = 12  # bits of a variance that are left to rounding when arms are compared


class _Step(NamedTuple):
    weights: Array  # float [K]
    inverse: Array  # float [d, d] of A(weights) in the kept coordinates, zero elsewhere
    variances: Array  # float [K] x_k^T A^-1 x_k, 0 for inactive arms
    iterations: Array  # int []
    near: Array  # bool [] the largest variance was close to the goal before the last step


def g_optimal(
    arms: Float[Array, "K d"],
    active: Bool[Array, " K"],
    goal: Float[Array, ""] | Int[Array, ""],
    *,
    tol: Float[Array, ""] | float = 0.01,
    max_iterations: Int[Array, ""] | int = 4999,
) -> Design:
    """Frank-Wolfe from uniform weights on the active arms, one step before every test.

    Step k moves `2 / (k + 2)` of the weight to the arm with the largest `g = x^T A(w)^-1 x`, the
    first of those that are equal up to rounding. It is the last one if `max g` was within `tol`
    of `goal` before it: a uniform design that was optimal ends far from it. Weights below 1e-5
    are then given to the largest one.
    `value` and `bound` are those of the weights returned; `converged` is that `value` is within
    `tol` of `bound`, the rank of the active arms.
    """
    space = span.of(arms, active)

    def look(weights):
        inverse = span.inverse(space, ledger.gram(arms, weights))
        variances = jnp.where(active, spd.quadratic(arms, inverse.matrix), 0.0)
        return inverse.matrix, jnp.where(inverse.positive, variances, jnp.inf)

    def step(now):
        iterations = now.iterations + 1
        rate = 2.0 / (iterations + 2.0)
        kind = jnp.finfo(arms.dtype)
        coarse = lax.reduce_precision(now.variances, kind.nexp, kind.nmant - ROUNDED)
        arm = pick.best(coarse).arm
        highest = pick.at(now.variances, arm)
        towards = now.inverse @ pick.at(arms, arm)
        # (1 - rate) A + rate x x^T by a rank-one change of the inverse.
        loss = rate / (1.0 - rate + rate * highest)
        inverse = now.inverse - loss * jnp.outer(towards, towards)
        variances = now.variances - loss * jnp.where(active, arms @ towards, 0.0) ** 2
        here = jnp.arange(active.size) == arm
        return _Step(
            weights=(1.0 - rate) * now.weights + jnp.where(here, rate, 0.0),
            inverse=inverse / (1.0 - rate),
            variances=variances / (1.0 - rate),
            iterations=iterations,
            near=jnp.abs(highest - goal) < tol,
        )

    def unfinished(now):
        return ~now.near & (now.iterations < max_iterations)

    uniform = active.astype(arms.dtype) / jnp.maximum(active.sum(), 1)
    begin = _Step(uniform, *look(uniform), jnp.zeros((), int), jnp.array(False))
    end = lax.while_loop(unfinished, step, begin)
    weights = _trimmed(end.weights)
    value = look(weights)[1].max()
    rank = jnp.maximum(space.rank, 1).astype(arms.dtype)
    return Design(weights, value, rank, end.iterations, value <= rank + tol)


def _trimmed(weights):
    kept = jnp.where(weights < SMALLEST, 0.0, weights)
    here = jnp.arange(weights.size) == pick.best(weights).arm
    return kept + jnp.where(here, 1.0 - kept.sum(), 0.0)
