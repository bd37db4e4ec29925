"""Newton's method for the likelihood of a generalised linear model, as `irls` puts it together.

`f(theta) = sum_k [n_k b(z_k) - s_k z_k] + ridge/2 ||theta||^2`, `z = X theta`. Steps are halved
while far from the minimum; after each come steps with the Hessian it had, which cost a fraction:
products with X instead of a new Hessian and its inverse (Shamanskii, 1967).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from . import spd
from .links import LINKS

CONVERGED, CAPPED, STALLED, NONFINITE = range(4)
HALVINGS = 10
NEAR = 0.05  # a decrement below which Newton steps are taken whole
FEW = 10  # steps with an old Hessian
FINE = 1e-3  # of the tolerance: what they aim at


class Problem(NamedTuple):
    """What is minimised."""

    link: Any
    arms: Array  # float [K, d]
    columns: Array  # float [d, K] arms
    products: Array  # float [d d, K] x x^T
    counts: Array
    sums: Array
    ridge: Any

    def objective(self, theta):
        """The value and its rounding error, that of its terms: they may cancel to nearly 0."""
        z = self.arms @ theta
        partitions = jnp.where(self.counts > 0, self.counts * self.link.partition(z), 0.0)
        penalty = 0.5 * self.ridge * theta @ theta
        size = (jnp.abs(partitions) + jnp.abs(self.sums * z)).sum() + penalty
        resolution = 4.0 * jnp.finfo(z.dtype).eps
        return (partitions - self.sums * z).sum() + penalty, resolution * size

    def gradient(self, theta, z):
        """Of f at theta, `z = X theta`."""
        return self.columns @ (self.counts * self.link.mean(z) - self.sums) + self.ridge * theta


def problem_of(arms, counts, sums, family, ridge):
    """The `Problem` of these data."""
    # The barrier keeps products from reading the transposed table by columns.
    columns = lax.optimization_barrier(arms.T)
    return Problem(LINKS[family], arms, columns, spd.outer_columns(arms), counts, sums, ridge)


class Search(NamedTuple):
    """Where a search stands, and what its next step needs."""

    theta: Array
    hessian: Array
    inverse: Array
    factor: Array
    move: Array  # H^-1 g
    decrement: Array
    careful: Array  # bool []: the last step gained little
    iterations: Array
    status: Array


def search(problem, begin, tol, max_iterations):
    """Newton steps until the decrement is small."""

    def unfinished(now):
        running = (now.iterations < max_iterations) & (now.status == CONVERGED)
        return running & (now.decrement > tol)

    return lax.while_loop(unfinished, partial(newton, problem, tol), begin)


def look(problem, theta, iterations, before):
    """All that a Newton step from theta needs; `before` is the decrement where it comes from."""
    dim = theta.size
    z = problem.arms @ theta
    curvature = problem.counts * problem.link.variance(z)
    eye = jnp.eye(dim, dtype=theta.dtype)
    hessian = (problem.products @ curvature).reshape(dim, dim) + problem.ridge * eye
    # The tiny shift keeps a flat likelihood factorisable.
    shift = 1e-12 if theta.dtype == jnp.float64 else 1e-7
    found = spd.inverse(hessian + shift * (jnp.trace(hessian) / dim) * eye)
    gradient = problem.gradient(theta, z)
    move = found.matrix @ gradient
    decrement = 0.5 * gradient @ move
    finite = found.positive & jnp.isfinite(decrement)
    return Search(
        theta=theta,
        hessian=hessian,
        inverse=found.matrix,
        factor=found.factor,
        move=move,
        decrement=jnp.where(finite, decrement, jnp.inf),
        careful=~(decrement <= 0.5 * before),
        iterations=iterations,
        status=jnp.where(finite, CONVERGED, NONFINITE),
    )


def newton(problem, tol, now):
    """A Newton step, halved where whole ones may not be trusted, and old-Hessian steps."""

    def halved():
        value, slack = problem.objective(now.theta)

        def trial_of(size):
            there, slack = problem.objective(now.theta - size * now.move)
            return size, jnp.where(jnp.isnan(there), jnp.inf, there), slack

        def too_high(trial):
            size, there, _ = trial
            armijo = there <= value - 2e-4 * size * now.decrement + slack
            return ~armijo & (size > 2.0**-HALVINGS)

        size, there, later = lax.while_loop(
            too_high, lambda trial: trial_of(trial[0] / 2), trial_of(jnp.ones_like(value))
        )
        return jnp.where(there <= value + jnp.maximum(slack, later), size, 0.0)

    far = (now.decrement > NEAR) | now.careful
    size = lax.cond(far, halved, lambda: jnp.ones_like(now.decrement))
    theta = follow(problem, now.theta - size * now.move, now.inverse, tol).theta
    after = look(problem, theta, now.iterations + 1, now.decrement)
    stuck = now._replace(iterations=now.iterations + 1, status=jnp.full_like(now.status, STALLED))
    return jax.tree.map(lambda new, old: jnp.where(size > 0, new, old), after, stuck)


class Followed(NamedTuple):
    """Where steps with an old inverse B have led."""

    theta: Array
    move: Array  # B g
    decrement: Array  # g^T B g / 2
    ratio: Array  # of it to the one before

    def settled(self, tol):
        """Whether it is within the tolerance, and far within it after the move to come."""
        return (self.decrement <= tol) & (self.decrement * self.ratio <= FINE * tol)


def follow(problem, theta, inverse, tol, most=FEW):
    """Steps with an old inverse, while each at least halves the decrement."""

    def look(theta, before):
        gradient = problem.gradient(theta, problem.arms @ theta)
        move = inverse @ gradient
        decrement = 0.5 * gradient @ move
        return Followed(theta, move, decrement, jnp.minimum(decrement / before, 1.0))

    def step(carry):
        now, steps, _ = carry
        there = look(now.theta - now.move, now.decrement)
        better = there.decrement <= 0.5 * now.decrement  # False for NaN
        kept = jax.tree.map(lambda new, old: jnp.where(better, new, old), there, now)
        return kept, steps + 1, better

    def unfinished(carry):
        now, steps, better = carry
        return better & ~now.settled(tol) & (steps < most)

    begin = (look(theta, jnp.zeros((), theta.dtype)), jnp.zeros((), int), jnp.array(True))
    return lax.while_loop(unfinished, step, begin)[0]
