"""Optimal designs on the simplex, each with a certificate `bound <= optimum <= value`."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from . import span


class Design(NamedTuple):
    """A design and how far from the optimum it can be."""

    weights: Array  # float [K] non-negative, sum 1
    value: Array  # float [] the objective at `weights`
    bound: Array  # float [] a lower bound on the optimum
    iterations: Array  # int []
    converged: Array  # bool [] value <= (1 + tol) bound


class _Ascent(NamedTuple):
    weights: Array
    variances: Array
    iterations: Array


def d_optimal(
    arms: Float[Array, "K d"],
    active: Bool[Array, " K"],
    *,
    tol: Float[Array, ""] | float = 0.01,
    max_iterations: int = 20_000,
) -> Design:
    """D-optimal, hence G-optimal, design on the active arms by the multiplicative update.

    `w_k <- w_k g_k / r` with `g_k = x_k^T A(w)^-1 x_k` and r the rank of the active arms
    (Silvey, Titterington, Torsney, 1978); monotone in log det A. `value = max_k g_k` and
    `bound = r`, the optimum itself (Kiefer and Wolfowitz, 1960).
    """
    space = span.of(arms, active)
    points = jnp.where(active[:, None], span.coordinates(space, arms), 0.0)
    rank = jnp.maximum(space.rank, 1).astype(arms.dtype)

    def variances(weights):
        matrix = span.fill(space, jnp.einsum("k,ki,kj->ij", weights, points, points))
        factor = jnp.linalg.cholesky(matrix)
        half = lax.linalg.triangular_solve(factor, points.T, left_side=True, lower=True)
        return (half**2).sum(0)

    def unfinished(ascent):
        above = ascent.variances.max() > (1.0 + tol) * rank
        return above & (ascent.iterations < max_iterations)

    def step(ascent):
        weights = ascent.weights * ascent.variances / rank
        weights = weights / weights.sum()  # sums to 1 in exact arithmetic
        return _Ascent(weights, variances(weights), ascent.iterations + 1)

    uniform = active / jnp.maximum(active.sum(), 1)
    begin = _Ascent(uniform, variances(uniform), jnp.zeros((), int))
    end = lax.while_loop(unfinished, step, begin)
    value = end.variances.max()
    converged = value <= (1.0 + tol) * rank
    return Design(end.weights, value, rank, end.iterations, converged)


class _Path(NamedTuple):
    scale: Array  # float [K] unnormalised design, every q_m(scale) < 1
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
    max_iterations: int = 200,
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
    num_arms = arms.shape[0]
    points, targets, fill, outside = _whitened(arms, directions, active)

    def geometry(scale):
        """`q [P]` and the products `B [K, P] = x_k^T A^-1 y_m`, `P [K, K] = x_k^T A^-1 x_l`."""
        factor = jnp.linalg.cholesky(jnp.einsum("k,ki,kj->ij", scale, points, points) + fill)
        solve = lambda v: lax.linalg.triangular_solve(  # noqa: E731
            factor, v.T, left_side=True, lower=True
        )
        half_points, half_targets = solve(points), solve(targets)
        norms = jnp.where(active, (half_targets**2).sum(0), 0.0)
        return norms, half_points.T @ half_targets, half_points.T @ half_points

    def certify(scale, dual):
        """Value and bound at the normalised design, with direction weights `dual [P]`."""
        norms, cross, _ = geometry(scale / scale.sum())
        dual = jnp.where(active, dual, 0.0)
        dual = dual / jnp.maximum(dual.sum(), jnp.finfo(arms.dtype).tiny)
        reached = dual @ norms
        return norms.max(), reached**2 / ((cross**2) @ dual).max()

    def newton(path):
        norms, cross, between = geometry(path.scale)
        pull = jnp.where(active, 1.0 / (1.0 - norms), 0.0)
        squares = cross**2
        gradient = 1.0 / path.barrier - 1.0 / path.scale - squares @ pull
        hessian = (
            jnp.diag(1.0 / path.scale**2)
            + 2.0 * between * ((cross * pull) @ cross.T)
            + (squares * pull**2) @ squares.T
        )
        # In units of the current point: the Hessian of -log becomes the identity, so a plain
        # Cholesky is safe however small some weights are.
        scaled = hessian * path.scale[:, None] * path.scale[None, :]
        # The shift is what rounding leaves of the largest entries; it only bends the direction.
        shift = 8.0 * jnp.finfo(arms.dtype).eps * jnp.trace(scaled)
        factor = jnp.linalg.cholesky(scaled + shift * jnp.eye(num_arms, dtype=arms.dtype))
        half = lax.linalg.triangular_solve(
            factor, (path.scale * gradient)[:, None], left_side=True, lower=True
        )
        move = lax.linalg.triangular_solve(
            factor, half, left_side=True, lower=True, transpose_a=True
        )[:, 0]
        decrement = jnp.sqrt((half**2).sum())
        return -path.scale * move, decrement, pull

    def merit(scale, barrier):
        norms, _, _ = geometry(jnp.abs(scale))
        inside = (scale.min() > 0) & (norms.max() < 1)
        logs = jnp.log(jnp.abs(scale)).sum() + jnp.log(jnp.maximum(1.0 - norms, 1e-300)).sum()
        return jnp.where(inside, scale.sum() / barrier - logs, jnp.inf)

    def step(path):
        move, decrement, _ = newton(path)
        here = merit(path.scale, path.barrier)
        slope = decrement**2
        size = lax.while_loop(
            lambda size: (merit(path.scale + size * move, path.barrier) > here - 0.1 * size * slope)
            & (size > 1e-8),
            lambda size: size / 2,
            jnp.ones((), arms.dtype),
        )
        moved = (size > 1e-8) & jnp.isfinite(move).all()
        scale = jnp.where(moved, path.scale + size * move, path.scale)
        norms, _, _ = geometry(scale)
        value, bound = certify(scale, 1.0 / (1.0 - jnp.where(active, norms, 0.0)))
        centred = (decrement < 0.5) | ~moved
        return _Path(
            scale,
            jnp.where(centred, path.barrier / 10.0, path.barrier),
            jnp.minimum(value, path.value),
            jnp.maximum(bound, path.bound),
            path.iterations + 1,
            jnp.where(moved, 0, path.failures + 1),
        )

    fine = 0.1 * tol  # what the path aims at leaves room for the weights dropped at the end

    def unfinished(path):
        going = (path.iterations < max_iterations) & (path.failures < 3)
        return (path.value > (1.0 + fine) * path.bound) & going

    uniform = jnp.full(num_arms, 1.0 / num_arms, arms.dtype)
    norms, _, _ = geometry(uniform)
    widest = jnp.maximum(norms.max(), jnp.finfo(arms.dtype).tiny)
    # Everything is scaled so that the optimum of sum(s) is at most 1 and the start sums to 2.
    targets = targets / jnp.sqrt(widest)
    begin = _Path(
        2.0 * uniform,
        jnp.ones((), arms.dtype) / (num_arms + active.sum()),
        jnp.ones((), arms.dtype),
        jnp.where(active.any(), 0.0, 1.0).astype(arms.dtype),
        jnp.zeros((), int),
        jnp.zeros((), int),
    )
    end = lax.while_loop(unfinished, step, begin)
    norms, _, _ = geometry(end.scale)
    weights = end.scale / end.scale.sum()
    kept = jnp.where(weights < 0.01 * tol, 0.0, weights)
    kept = kept / kept.sum()
    trimmed, _ = certify(kept, 1.0 / (1.0 - norms))
    whole, bound = certify(weights, 1.0 / (1.0 - norms))
    bound = jnp.maximum(bound, end.bound)
    trim = trimmed <= (1.0 + tol) * bound  # False for NaN: the trimmed design lost rank
    kept, value = jnp.where(trim, kept, weights), jnp.where(trim, trimmed, whole)
    some = active.any()
    value = jnp.where(outside, jnp.inf, jnp.where(some, value * widest, 0.0))
    bound = jnp.where(outside, jnp.inf, jnp.where(some, bound * widest, 0.0))
    good = ~outside & (value <= (1.0 + tol) * bound)
    weights = jnp.where(some, kept, uniform)
    return Design(weights, value, bound, end.iterations, good)


def _whitened(arms, directions, active):
    """Arms and directions in coordinates where the uniform design is the identity.

    Keeps the Newton systems well scaled. Coordinates outside the span of the arms are zero and
    `fill [d, d]` makes up for them; `outside` flags an active direction that leaves the span.
    """
    space = span.of(arms, jnp.ones(arms.shape[0], bool))
    raw = span.coordinates(space, arms)
    lengths = jnp.sqrt(jnp.where(space.kept, (raw**2).mean(0), 1.0))
    lost = (directions @ space.frame) * ~space.kept
    tiny = jnp.sqrt(jnp.finfo(arms.dtype).eps) * jnp.linalg.norm(directions, axis=1)
    outside = (active & (jnp.linalg.norm(lost, axis=1) > tiny)).any()
    fill = jnp.diag((~space.kept).astype(arms.dtype))
    return raw / lengths, span.coordinates(space, directions) / lengths, fill, outside


def pair_directions(targets):
    """All differences `z_a - z_b`, a < b, of `targets [M, d]`, and their index pairs."""
    first, second = jnp.triu_indices(targets.shape[0], 1)
    return targets[first] - targets[second], first, second
