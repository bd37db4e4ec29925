"""Designs for given directions, with a certificate `bound <= optimum <= value`."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ....types import Scalar, Whole
from ...tracing import traced_once
from ..d_optimal import Design
from ..directions import Listed, Pairs
from . import barrier, newton

FRACTION = 0.9  # of the way to the boundary


class _Path(NamedTuple):
    point: barrier.Point
    weights: Float[Array, " K"]  # of the best design so far
    value: Float[Array, ""]
    bound: Float[Array, ""]
    iterations: Int[Array, ""]
    moving: Bool[Array, ""]  # the last step was possible


def xy_optimal(
    arms: Float[Array, "K d"],
    directions: Float[Array, "P d"] | Pairs,
    active: Bool[Array, " P"],
    *,
    tol: Scalar = 1e-3,
    max_iterations: Whole = 200,
) -> Design:
    """`min over w of max over active m of ||y_m||^2` in A(w)^-1, by an interior-point method.

    By homogeneity this is `min sum_k s_k` subject to `q_m(s) = y_m^T A(s)^-1 y_m <= 1`, solved by
    Mehrotra's predictor and corrector with slacks and multipliers; a tenth of tol of the uniform
    design is mixed in, so that A keeps its rank. Certificate: for any weights v of sum 1 on the
    directions, with `f = sum_m v_m q_m` and `g_k = sum_m v_m (x_k^T A^-1 y_m)^2`, the optimum is
    at least `f^2 / max_k g_k` (Cauchy-Schwarz); the multipliers supply v. Weights below tol/100
    are then set to zero, and `value` and `bound` are those of the design returned. An active
    direction outside the span of the arms gives `value = inf`; a uniform design is returned where
    no active direction differs from zero. Differences of some hundred targets were solved to 1e-4,
    everything else to 1e-6.
    """
    return saddle(arms, directions, active, tol=tol, max_iterations=max_iterations)[0]


@traced_once
def saddle(
    arms: Float[Array, "K d"],
    directions: Float[Array, "P d"] | Pairs,
    active: Bool[Array, " P"],
    *,
    tol: Scalar,
    max_iterations: Whole = 200,
) -> tuple[Design, Float[Array, " P"]]:
    """The same, and the multipliers of the directions, up to a factor."""
    num_arms = arms.shape[0]
    table = directions if isinstance(directions, Pairs) else Listed(directions)
    active = active & (table.vectors != 0).any(1)
    problem, outside = barrier.problem(arms, table, active, 0.1 * tol)
    uniform = jnp.full(num_arms, 1.0 / num_arms, arms.dtype)
    some = active.any()
    fine = 0.3 * tol  # leaves room for the weights dropped at the end

    def unfinished(path):
        going = (path.iterations < max_iterations) & path.moving
        return (path.value > (1.0 + fine) * path.bound) & going

    value, bound = jnp.ones((), arms.dtype), jnp.where(some, 0.0, 1.0).astype(arms.dtype)
    begin = _Path(problem.begin(), uniform, value, bound, jnp.zeros((), int), jnp.array(True))
    end = lax.while_loop(unfinished, lambda path: _step(problem, path), begin)
    weights, value = _trim(problem, end, tol)
    value = jnp.where(outside, jnp.inf, jnp.where(some, value * problem.widest, 0.0))
    bound = jnp.where(outside, jnp.inf, jnp.where(some, end.bound * problem.widest, 0.0))
    converged = ~outside & (value <= (1.0 + tol) * bound)
    found = Design(jnp.where(some, weights, uniform), value, bound, end.iterations, converged)
    return found, jnp.where(active, end.point.dual, 0.0)


def _step(problem, path):
    """A step to the boundary shows how far to aim at the centre instead (Mehrotra, 1992)."""
    point = path.point
    scale, slack, dual, price = point[:4]
    number = scale.size + problem.active.sum()
    safe = jnp.where(problem.active, slack, 1.0)
    lost = jnp.where(problem.active, point.norms + slack - 1.0, 0.0)
    rows = problem.rows(point)
    solve = newton.system(problem, point, rows)

    def direction(directions, arms):
        """Changes of s, slack, dual and price towards `slack * dual` and `s * price`."""
        aims = jnp.where(problem.active, (directions + dual * lost) / safe, 0.0)
        step = solve(rows @ problem.sum_of(aims) - 1.0 + arms / scale)
        there = problem.forms(rows.T @ step) - lost
        there = jnp.where(problem.active, there, 0.0)
        change = jnp.where(problem.active, (directions - dual * there) / safe - dual, 0.0)
        return step, there, change, (arms - price * step) / scale - price

    def lengths(changes):
        """How far s and slack, and how far the multipliers, may go to stay positive."""
        s, t, v, u = changes
        return (
            jnp.minimum(_room(scale, s), _room(safe, t)),
            jnp.minimum(_room(jnp.where(problem.active, dual, 1.0), v), _room(price, u)),
        )

    def moved(changes, lengths):
        primal, other = lengths
        sizes = (primal, primal, other, other)
        return [x + size * c for x, size, c in zip(point[:4], sizes, changes, strict=True)]

    def distance(scale, slack, dual, price):
        return (dual @ slack + scale @ price) / number

    here = distance(scale, slack, dual, price)
    predicted = direction(jnp.zeros_like(slack), jnp.zeros_like(scale))
    far = distance(*moved(predicted, [jnp.minimum(1.0, x) for x in lengths(predicted)]))
    unmet = jnp.abs(scale * (1.0 - rows @ problem.sum_of(dual) - price)).sum()
    unmet = (unmet + jnp.abs(dual * lost).sum()) / number
    # The aim is never far ahead of the constraints, which bend sharply where A is near singular.
    aim = jnp.maximum(here * jnp.clip((far / here) ** 3, 0.03, 1.0), 0.1 * unmet)
    s, t, v, u = predicted
    changes = direction(aim - t * v, aim - s * u)
    sizes = [jnp.minimum(1.0, FRACTION * x) for x in lengths(changes)]
    reached = problem.at(*moved(changes, sizes))
    good = jnp.isfinite(reached.inverse).all() & jnp.isfinite(reached.dual).all()
    good = good & jnp.isfinite(reached.price).all() & (sizes[0] > 0)
    return _kept(problem, path, reached, good)


def _kept(problem, path, reached, good):
    """The path after a step, with the best design and bound so far."""
    pairs = zip(reached, path.point, strict=True)
    point = barrier.Point(*(jnp.where(good, new, old) for new, old in pairs))
    total = point.scale.sum()
    value = point.norms.max() * total * (1.0 + problem.mixed)
    better = value < path.value
    weights = (point.scale / total + problem.mixed / point.scale.size) / (1.0 + problem.mixed)
    return _Path(
        point,
        jnp.where(better, weights, path.weights),
        jnp.where(better, value, path.value),
        jnp.maximum(path.bound, problem.bound(point)),
        path.iterations + 1,
        good,
    )


def _room(values, changes):
    """The largest multiple of `changes` after which positive values are not negative."""
    falling = changes < 0
    return jnp.where(falling, -values / jnp.where(falling, changes, 1.0), jnp.inf).min()


def _trim(problem, end, tol):
    """Drop weights below tol/100 where the rest is still within `tol` and has full rank."""
    kept = jnp.where(end.weights < 0.01 * tol, 0.0, end.weights)
    kept = kept / kept.sum()
    trimmed = problem.value(kept)
    # No design is better than the bound, unless its inverse is wrong.
    better = (trimmed <= (1.0 + tol) * end.bound) & (trimmed >= (1.0 - tol) * end.bound)
    return jnp.where(better, kept, end.weights), jnp.where(better, trimmed, end.value)
