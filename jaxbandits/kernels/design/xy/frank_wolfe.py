"""Designs for given directions by Frank-Wolfe steps, as RAGE's experiments compute them."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ....types import Scalar, Whole
from ... import selection
from ...estimate import least_squares
from ...linalg import spd, subspace
from ...tracing import traced_once
from ..d_optimal import Design
from ..directions import Listed, Pairs


class _Iterate(NamedTuple):
    weights: Float[Array, " K"]
    seen: Float[Array, "d d"]  # sum of y y^T over the directions met, weighted as the arms are
    change: Float[Array, ""]  # length of the last step over that of the weights
    iterations: Int[Array, ""]


@traced_once
def xy_frank_wolfe(
    arms: Float[Array, "K d"],
    directions: Float[Array, "P d"] | Pairs,
    active: Bool[Array, " P"],
    *,
    tol: Scalar = 0.01,
    max_iterations: Whole = 5000,
    negligible: Scalar = 1e-5,
) -> Design:
    """`min over w of max over active m of ||y_m||^2` in A(w)^-1 by steps of `2 / (k + 2)`.

    From the uniform design, step k goes to the arm with the largest `(x_i^T A^-1 y)^2`, where y
    is the direction of the largest norm. It ends when the weights change by less than tol of
    their length; this says nothing about the optimum, because the maximum has kinks. Weights below
    `negligible` are then dropped, where the rest still has full rank. `value` is that of the
    design returned and `bound` comes from the directions met, as in `interior_point`; `converged`
    says whether the steps became as small as asked.
    """
    num_arms, dim = arms.shape
    table = directions if isinstance(directions, Pairs) else Listed(directions)
    active = active & (table.vectors != 0).any(1)
    space = subspace.of(arms, jnp.ones(num_arms, bool))
    outside = (active & ~subspace.within(space, table.vectors)).any()
    raw = subspace.coordinates(space, arms)
    whitened = subspace.whitening(space, raw.T @ raw / num_arms)
    points, aims = whitened(arms), table.mapped(whitened)
    vectors, some = aims.vectors, active.any()

    def inverse_of(weights):
        information = subspace.fill(space, least_squares.gram(points, weights))
        return spd.inverse(information, may_lack_rank=True)

    def norms_of(inverse):
        return jnp.where(active, aims.sqnorms(inverse), -jnp.inf)

    def step(now):
        inverse = inverse_of(now.weights).matrix
        y = selection.at(vectors, selection.best(selection.coarse(norms_of(inverse))).arm)
        towards = selection.best(selection.coarse((points @ (inverse @ y)) ** 2)).arm
        size = 2.0 / (now.iterations + 3.0)
        moved = size * ((jnp.arange(num_arms) == towards) - now.weights)
        change = jnp.sqrt((moved**2).sum() / (now.weights**2).sum())
        seen = now.seen + size * (y[:, None] * y[None, :] - now.seen)
        return _Iterate(now.weights + moved, seen, change, now.iterations + 1)

    def unfinished(now):
        return some & (now.change >= tol) & (now.iterations < max_iterations)

    uniform = jnp.full(num_arms, 1.0 / num_arms, arms.dtype)
    blank, far = jnp.zeros((dim, dim), arms.dtype), jnp.full((), jnp.inf, arms.dtype)
    end = lax.while_loop(unfinished, step, _Iterate(uniform, blank, far, jnp.zeros((), int)))
    kept = jnp.where(end.weights < negligible, 0.0, end.weights)
    weights = jnp.where(inverse_of(kept).positive, kept / kept.sum(), end.weights)
    inverse = inverse_of(weights).matrix
    value = norms_of(inverse).max()
    bound = _bound(points, inverse, end.seen, end.iterations)
    value = jnp.where(outside, jnp.inf, jnp.where(some, value, 0.0))
    bound = jnp.where(outside, jnp.inf, jnp.where(some, bound, 0.0))
    converged = ~outside & (~some | (end.change < tol))
    return Design(jnp.where(some, weights, uniform), value, bound, end.iterations, converged)


def _bound(points, inverse, seen, iterations):
    """`f^2 / max g` of the directions met; their weights sum to a little less than 1."""
    total = seen / (1.0 - 2.0 / ((iterations + 1.0) * (iterations + 2.0)))
    half = points @ inverse
    return (inverse * total).sum() ** 2 / (half @ total * half).sum(1).max()
