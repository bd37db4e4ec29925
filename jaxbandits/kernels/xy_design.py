"""Designs for differences of targets, with a certificate `bound <= optimum <= value`."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from . import span, spd
from .design import Design


class _Point(NamedTuple):
    """An unnormalised design s and what the barrier needs of it, with A = A(s)."""

    scale: Array  # float [K]
    norms: Array  # float [P] q_m = y_m^T A^-1 y_m, 0 for inactive directions
    cross: Array  # float [K, P] x_k^T A^-1 y_m
    between: Array  # float [K, K] x_k^T A^-1 x_l


class _Path(NamedTuple):
    point: _Point  # every q_m < 1
    barrier: Array  # float [] weight of the barrier
    value: Array  # float []
    bound: Array  # float []
    iterations: Array  # int []
    failures: Array  # int [] steps in a row that found no descent


def xy_optimal(
    arms: Float[Array, "K d"],
    directions: Float[Array, "P d"],
    active: Bool[Array, " P"],
    *,
    tol: Float[Array, ""] | float = 1e-3,
    max_iterations: Int[Array, ""] | int = 200,
) -> Design:
    """`min over w of max over active m of ||y_m||^2` in A(w)^-1, by an interior-point method.

    By homogeneity this is `min sum_k s_k` subject to `q_m(s) = y_m^T A(s)^-1 y_m <= 1`: Newton
    steps on `sum(s)/mu - sum log s_k - sum log(1 - q_m)`, mu shrinking. Certificate: for any
    weights v of sum 1 on the directions, with `f = sum_m v_m q_m` and
    `g_k = sum_m v_m (x_k^T A^-1 y_m)^2`, the optimum is at least `f^2 / max_k g_k`
    (Cauchy-Schwarz); the barrier supplies `v_m = 1/(1 - q_m)`. Weights below tol/100 are then
    set to zero, and `value` and `bound` are those of the design returned. An active direction
    outside the span of the arms gives `value = inf`; no active direction gives a uniform design.
    """
    num_arms, dim = arms.shape
    points, targets, fill, outside = _whitened(arms, directions, active)
    measured, wanted = spd.outer_columns(points), spd.outer(targets)
    # Everything is scaled so that the optimum of sum(s) is at most 1 and the start sums to 2;
    # the tables are not, for what does not depend on `active` is shared by all lanes.
    uniform = jnp.full(num_arms, 1.0 / num_arms, arms.dtype)

    def inverse(scale):
        return spd.inverse((measured @ scale).reshape(dim, dim) + fill)

    def squares_of(found):
        return jnp.where(active, wanted @ found.matrix.reshape(-1), 0.0)

    widest = jnp.maximum(squares_of(inverse(uniform)).max(), jnp.finfo(arms.dtype).tiny)

    def norms_of(found):
        """`q [P]`, infinite where the design loses rank."""
        return jnp.where(found.positive, squares_of(found) / widest, jnp.inf)

    def norms_at(scale):
        return norms_of(inverse(scale))

    def point_at(scale, found, norms):
        half = points @ found.matrix
        return _Point(scale, norms, half @ targets.T / jnp.sqrt(widest), half @ points.T)

    def look(scale):
        found = inverse(scale)
        return point_at(scale, found, norms_of(found))

    def certify(point):
        """Value and bound of the normalised design, by homogeneity."""
        dual = jnp.where(active, 1.0 / jnp.maximum(1.0 - point.norms, 1e-300), 0.0)
        dual = dual / jnp.maximum(dual.sum(), 1e-300)
        value = jnp.where(spd.all_finite(point.norms), point.norms.max(), jnp.inf)
        bound = (dual @ point.norms) ** 2 / jnp.maximum((point.cross**2 @ dual).max(), 1e-300)
        return value * point.scale.sum(), bound

    def newton(point, barrier):
        """Newton direction and decrement, in units of the current weights.

        In these units the Hessian of -log is the identity, so no pivoting is needed however
        small some weights are; the shift is what rounding leaves of the largest entries.
        """
        scale, cross = point.scale, point.cross
        pull = jnp.where(active, 1.0 / (1.0 - point.norms), 0.0)
        squares = cross**2
        gradient = scale * (1.0 / barrier - squares @ pull) - 1.0
        curvature = 2.0 * point.between * ((cross * pull) @ cross.T)
        curvature = curvature + (squares * pull**2) @ squares.T
        curvature = curvature * scale[:, None] * scale[None, :]
        shift = 1.0 + 8.0 * jnp.finfo(arms.dtype).eps * jnp.trace(curvature)
        found = spd.inverse(curvature + shift * jnp.eye(num_arms, dtype=arms.dtype))
        move = found.matrix @ gradient
        return -scale * move, jnp.sqrt(jnp.maximum(0.0, gradient @ move))

    def merit(scale, norms, barrier):
        # Said outright: compiled maxima may drop a NaN, so it cannot be left to fail `< 1`.
        inside = (scale.min() > 0) & (norms.max() < 1) & spd.all_finite(norms)
        logs = jnp.log(jnp.where(scale > 0, scale, 1.0)).sum()
        logs = logs + jnp.log(jnp.where(norms < 1, 1.0 - norms, 1.0)).sum()
        return jnp.where(inside, scale.sum() / barrier - logs, jnp.inf)

    def step(path):
        point, barrier = path.point, path.barrier
        move, decrement = newton(point, barrier)
        here = merit(point.scale, point.norms, barrier)

        def trial_of(size):
            found = inverse(point.scale + size * move)
            return size, found, norms_of(found)

        def too_high(trial):
            size, _, norms = trial
            there = merit(point.scale + size * move, norms, barrier)
            return ~(there <= here - 0.1 * size * decrement**2) & (size > 1e-8)

        size, found, norms = lax.while_loop(
            too_high, lambda trial: trial_of(trial[0] / 2), trial_of(jnp.ones((), arms.dtype))
        )
        moved = (size > 1e-8) & spd.all_finite(move)
        there = point_at(point.scale + size * move, found, norms)
        reached = _Point(
            *(jnp.where(moved, new, old) for new, old in zip(there, point, strict=True))
        )
        value, bound = certify(reached)
        return _Path(
            reached,
            jnp.where((decrement < 0.5) | ~moved, barrier / 10.0, barrier),
            jnp.minimum(value, path.value),
            jnp.maximum(bound, path.bound),
            path.iterations + 1,
            jnp.where(moved, 0, path.failures + 1),
        )

    fine = 0.1 * tol  # what the path aims at leaves room for the weights dropped at the end

    def unfinished(path):
        going = (path.iterations < max_iterations) & (path.failures < 3)
        return (path.value > (1.0 + fine) * path.bound) & going

    some, zero = active.any(), jnp.zeros((), int)
    barrier = jnp.ones((), arms.dtype) / (num_arms + active.sum())
    value, bound = jnp.ones((), arms.dtype), jnp.where(some, 0.0, 1.0).astype(arms.dtype)
    end = lax.while_loop(
        unfinished, step, _Path(look(2.0 * uniform), barrier, value, bound, zero, zero)
    )
    weights, value, bound = _trim(end, certify, norms_at, tol)
    value = jnp.where(outside, jnp.inf, jnp.where(some, value * widest, 0.0))
    bound = jnp.where(outside, jnp.inf, jnp.where(some, bound * widest, 0.0))
    converged = ~outside & (value <= (1.0 + tol) * bound)
    return Design(jnp.where(some, weights, uniform), value, bound, end.iterations, converged)


def _trim(end, certify, norms_at, tol):
    """Drop weights below tol/100 where the rest is still within `tol` and has full rank."""
    value, bound = certify(end.point)
    bound = jnp.maximum(bound, end.bound)
    weights = end.point.scale / end.point.scale.sum()
    kept = jnp.where(weights < 0.01 * tol, 0.0, weights)
    kept = kept / kept.sum()
    norms = norms_at(kept)
    trimmed = jnp.where(spd.all_finite(norms), norms.max(), jnp.inf)
    better = trimmed <= (1.0 + tol) * bound
    return jnp.where(better, kept, weights), jnp.where(better, trimmed, value), bound


def _whitened(arms, directions, active):
    """Arms and directions in coordinates where the uniform design is the identity.

    Keeps the Newton systems well scaled. Coordinates that the span of the arms does not need
    are zero and `fill [d, d]` makes up for them; `outside` flags an active direction that leaves
    the span.
    """
    space = span.of(arms, jnp.ones(arms.shape[0], bool))
    raw, aims = span.coordinates(space, arms), span.coordinates(space, directions)
    factor = spd.cholesky(span.fill(space, raw.T @ raw / arms.shape[0]))
    outside = (active & ~span.within(space, directions)).any()
    fill = jnp.diag((~space.kept).astype(arms.dtype))
    points = spd.forward_substitute(factor, raw.T).T
    return points, spd.forward_substitute(factor, aims.T).T, fill, outside


def pair_directions(targets):
    """All differences `z_a - z_b`, a < b, of `targets [M, d]`, and their index pairs."""
    first, second = jnp.triu_indices(targets.shape[0], 1)
    return targets[first] - targets[second], first, second
