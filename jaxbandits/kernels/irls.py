"""Maximum likelihood of a generalised linear model from counts and reward sums.

Newton steps (iteratively reweighted least squares) on
`f(theta) = sum_k [n_k b(z_k) - s_k z_k] + ridge/2 ||theta||^2`, `z = X theta`, halved while far
from the minimum, and after each of them steps with the Hessian it had, which cost a fraction:
products with X instead of a new Hessian and its inverse (Shamanskii, 1967). The cost does not
depend on the number of draws.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from . import spd
from .links import LINKS

CONVERGED, CAPPED, STALLED, NONFINITE = range(4)
HALVINGS = 10
NEAR = 0.05  # a decrement below which Newton steps are taken whole
FEW = 10  # steps with an old Hessian
FINE = 1e-3  # of the tolerance: what they aim at


class Fit(NamedTuple):
    """A fit and its certificate."""

    theta: Array  # float [d]
    hessian: Array  # float [d, d] one last, short step before theta; ridge included
    iterations: Array  # int [] Newton steps, each with a new Hessian
    converged: Array  # bool []
    decrement: Array  # float [] g^T H^-1 g / 2 there, about f - min f and more than at theta
    status: Array  # int [] 0 converged, 1 cap reached, 2 no descent, 3 not finite
    inverse: Array  # float [d, d] of the Hessian
    factor: Array  # float [d, d] its lower Cholesky factor


class _Search(NamedTuple):
    theta: Array
    hessian: Array
    inverse: Array
    factor: Array
    move: Array  # H^-1 g
    decrement: Array
    careful: Array  # bool []: the last step gained little
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
    inverse: Float[Array, "d d"] | None = None,
    tol: Float[Array, ""] | float = 1e-6,
    max_iterations: Int[Array, ""] | int = 30,
) -> Fit:
    """Minimise f from `init`; a stop short of `tol` shows in `converged` and `status`.

    Args:
      sums: reward sums; perturbed sums outside [0, n_k] are welcome where `ridge > 0`.
      inverse: of a Hessian near `init`, such as that of the fit before one more draw. Steps
        with it come first, and usually no Newton step is needed after them.
      tol: largest Newton decrement of a converged fit (affine invariant, in units of f).
    """
    tables = (arms, arms.T, spd.outer_columns(arms))
    problem = _Problem(LINKS[family], *tables, counts, sums, ridge)
    zero = jnp.zeros((), int)
    if inverse is not None:
        init = _follow(problem, init, inverse, tol)
    begin = _look(problem, init, zero, jnp.full((), jnp.inf, arms.dtype))

    def unfinished(search):
        running = (search.iterations < max_iterations) & (search.status == CONVERGED)
        return running & (search.decrement > tol)

    def search(begin):
        return lax.while_loop(unfinished, partial(_newton, problem, tol), begin)

    # A choice, although the loop would do, for side by side few fits need the loop at all.
    end = lax.cond(unfinished(begin), search, lambda begin: begin, begin)
    converged = end.decrement <= tol
    capped = jnp.where(end.status == CONVERGED, CAPPED, end.status)
    status = jnp.where(converged, CONVERGED, capped)
    theta = jnp.where(converged, end.theta - end.move, end.theta)  # a step that is there for free
    certificate = (end.iterations, converged, end.decrement, status)
    return Fit(theta, end.hessian, *certificate, end.inverse, end.factor)


def without_data(dim: int, ridge: Float[Array, ""] | float, dtype) -> Fit:
    """The fit before any draw: theta is 0."""
    eye, zero = jnp.eye(dim, dtype=dtype), jnp.zeros((), int)
    certificate = (zero, jnp.array(True), jnp.zeros((), dtype), zero + CONVERGED)
    root = jnp.sqrt(jnp.asarray(ridge, dtype))
    return Fit(jnp.zeros(dim, dtype), ridge * eye, *certificate, eye / ridge, root * eye)


def after_draw(found: Fit, family: str, x: Float[Array, " d"]) -> Float[Array, "d d"]:
    """The inverse Hessian once an arm with features x has been drawn again, theta unchanged."""
    return spd.added(found.inverse, x, LINKS[family].variance(x @ found.theta))


class _Problem(NamedTuple):
    link: Any
    arms: Array
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


def _look(problem, theta, iterations, before):
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
    return _Search(
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


def _newton(problem, tol, search):
    """A Newton step, halved where whole ones may not be trusted, and old-Hessian steps."""

    def halved():
        value, slack = problem.objective(search.theta)

        def trial_of(size):
            there, slack = problem.objective(search.theta - size * search.move)
            return size, jnp.where(jnp.isnan(there), jnp.inf, there), slack

        def too_high(trial):
            size, there, _ = trial
            armijo = there <= value - 2e-4 * size * search.decrement + slack
            return ~armijo & (size > 2.0**-HALVINGS)

        size, there, later = lax.while_loop(
            too_high, lambda trial: trial_of(trial[0] / 2), trial_of(jnp.ones_like(value))
        )
        return jnp.where(there <= value + jnp.maximum(slack, later), size, 0.0)

    far = (search.decrement > NEAR) | search.careful
    size = lax.cond(far, halved, lambda: jnp.ones_like(search.decrement))
    theta = _follow(problem, search.theta - size * search.move, search.inverse, tol)
    after = _look(problem, theta, search.iterations + 1, search.decrement)
    stuck = search._replace(
        iterations=search.iterations + 1, status=jnp.full_like(search.status, STALLED)
    )
    return jax.tree.map(lambda new, old: jnp.where(size > 0, new, old), after, stuck)


def _follow(problem, theta, inverse, tol):
    """Steps with an old inverse, while each at least halves the decrement."""

    def look(theta):
        gradient = problem.gradient(theta, problem.arms @ theta)
        move = inverse @ gradient
        return theta, move, 0.5 * gradient @ move

    def step(carry):
        (theta, move, decrement), steps, _ = carry
        there = look(theta - move)
        better = there[2] <= 0.5 * decrement  # False for NaN
        kept = jax.tree.map(lambda new, old: jnp.where(better, new, old), there, carry[0])
        return kept, steps + 1, better

    def unfinished(carry):
        (_, _, decrement), steps, better = carry
        return better & (decrement > FINE * tol) & (steps < FEW)

    begin = (look(theta), jnp.zeros((), int), jnp.array(True))
    return lax.while_loop(unfinished, step, begin)[0][0]


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
