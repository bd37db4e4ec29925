"""Maximum likelihood of a generalised linear model from counts and reward sums.

Damped Newton (iteratively reweighted least squares with step halving) on
`f(theta) = sum_k [n_k b(z_k) - s_k z_k] + ridge/2 ||theta||^2`, `z = X theta`. The cost of an
iteration does not depend on the number of draws.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from . import spd
from .links import LINKS

CONVERGED, CAPPED, STALLED, NONFINITE = range(4)
HALVINGS = 10


class Fit(NamedTuple):
    """A fit and its certificate."""

    theta: Array  # float [d]
    hessian: Array  # float [d, d] at theta, ridge included
    iterations: Array  # int []
    converged: Array  # bool []
    decrement: Array  # float [] Newton decrement g^T H^-1 g / 2, about f - min f
    status: Array  # int [] 0 converged, 1 cap reached, 2 no descent, 3 not finite


class _Search(NamedTuple):
    theta: Array
    value: Array
    slack: Array  # what rounding leaves undecided in `value`
    decrement: Array
    iterations: Array
    status: Array


def fit(
    arms: Float[Array, "K d"],
    counts: Float[Array, " K"],
    sums: Float[Array, " K"],
    *,
    family: str,
    ridge: Float[Array, ""] | float,
    init: Float[Array, " d"],
    tol: Float[Array, ""] | float = 1e-6,
    max_iterations: Int[Array, ""] | int = 30,
) -> Fit:
    """Minimise f from `init`; a stop short of `tol` shows in `converged` and `status`.

    Args:
      sums: reward sums; perturbed sums outside [0, n_k] are welcome where `ridge > 0`.
      tol: largest Newton decrement of a converged fit (affine invariant, in units of f).
    """
    link, dim = LINKS[family], arms.shape[1]
    resolution = 4.0 * jnp.finfo(arms.dtype).eps

    def objective(theta):
        """The value and its rounding error, that of its terms: they may cancel to nearly 0."""
        z = arms @ theta
        partitions = jnp.where(counts > 0, counts * link.partition(z), 0.0)
        penalty = 0.5 * ridge * theta @ theta
        size = (jnp.abs(partitions) + jnp.abs(sums * z)).sum() + penalty
        return (partitions - sums * z).sum() + penalty, resolution * size

    def derivatives(theta):
        z = arms @ theta
        gradient = arms.T @ (counts * link.mean(z) - sums) + ridge * theta
        curvature = counts * link.variance(z)
        hessian = jnp.einsum("k,ki,kj->ij", curvature, arms, arms)
        return gradient, hessian + ridge * jnp.eye(dim, dtype=arms.dtype)

    def direction(gradient, hessian):
        """Newton direction; the tiny shift keeps a flat likelihood factorisable."""
        shift = 1e-12 if arms.dtype == jnp.float64 else 1e-7
        shifted = hessian + shift * (jnp.trace(hessian) / dim) * jnp.eye(dim, dtype=arms.dtype)
        found = spd.inverse(shifted)
        return jnp.where(found.positive, found.matrix @ gradient, jnp.nan)

    def step(search):
        gradient, hessian = derivatives(search.theta)
        move = direction(gradient, hessian)
        slope = gradient @ move

        def trial_of(size):
            value, slack = objective(search.theta - size * move)
            return size, jnp.where(jnp.isnan(value), jnp.inf, value), slack

        def too_high(trial):
            size, value, _ = trial
            armijo = value <= search.value - 1e-4 * size * slope + search.slack
            return ~armijo & (size > 2.0**-HALVINGS)

        size, value, slack = lax.while_loop(
            too_high, lambda trial: trial_of(trial[0] / 2), trial_of(jnp.ones((), arms.dtype))
        )
        finite = jnp.isfinite(slope)
        lower = value <= search.value + search.slack
        good = finite & lower
        status = jnp.where(finite, jnp.where(lower, search.status, STALLED), NONFINITE)
        return _Search(
            theta=jnp.where(good, search.theta - size * move, search.theta),
            value=jnp.where(good, value, search.value),
            slack=jnp.where(good, slack, search.slack),
            decrement=jnp.where(finite, 0.5 * slope, jnp.inf),
            iterations=search.iterations + 1,
            status=status,
        )

    def unfinished(search):
        running = (search.iterations < max_iterations) & (search.status == CONVERGED)
        return running & (search.decrement > tol)

    infinite = jnp.full((), jnp.inf, arms.dtype)
    zero = jnp.zeros((), int)
    begin = _Search(init, *objective(init), infinite, zero, zero)
    end = lax.while_loop(unfinished, step, begin)
    converged = end.decrement <= tol
    capped = jnp.where(end.status == CONVERGED, CAPPED, end.status)
    status = jnp.where(converged, CONVERGED, capped)
    _, hessian = derivatives(end.theta)
    return Fit(end.theta, hessian, end.iterations, converged, end.decrement, status)


def determined(
    arms: Float[Array, "K d"], counts: Float[Array, " K"], hessian: Float[Array, "d d"]
) -> Bool[Array, ""]:
    """Whether the data pin down every drawn arm's predictor: standard errors below 100.

    On separable data without ridge f falls forever, ever more slowly: the Newton decrement
    passes any tolerance while the curvature vanishes.
    """
    found = spd.inverse(hessian)
    variances = jnp.where(counts > 0, spd.quadratic(arms, found.matrix), 0.0)
    return found.positive & (variances < 1e4).all()
