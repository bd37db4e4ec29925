"""Likelihood fits where the weights of arms differ by many orders of magnitude.

Newton's method as in `newton`, but each step is a least squares problem that is solved by
orthogonal factors of the weighted rows, the heaviest first: the condition of the problem is not
squared, and light rows are not lost beside heavy ones (Cox, Higham, "Stability of Householder QR
factorization for weighted least squares problems", 1998). It begins at the least squares fit of
what each arm alone would tell. Slower than `irls`, which comes first.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import ndtri
from jaxtyping import Array, Bool, Float, Int

from ...types import Scalar
from . import newton
from .irls import Fit
from .links import UNCLIPPED
from .newton import CAPPED, CONVERGED, NONFINITE

MAX_STEPS = 100
ROUNDINGS = 16.0  # squared ones of each predictor and sum, which a decrement may be
FAR = 1e4  # standard deviations of a sum
RANK = 100.0  # roundings of a column that are no direction of their own
SYMMETRIC = ("logistic", "probit")  # whose mean at -z is 1 less that at z
CERTIFIED = 0.1  # below 0.9 / (2 e^1.5), see `exists`


class Step(NamedTuple):
    """A point, and the Newton step there."""

    theta: Float[Array, " d"]
    factor: Float[Array, "d d"]  # R, upper: R^T R is the Hessian
    move: Float[Array, " d"]  # H^-1 g
    decrement: Float[Array, ""]
    iterations: Int[Array, ""]


def fit(
    arms: Float[Array, "K d"],
    counts: Float[Array, " K"],
    sums: Float[Array, " K"],
    *,
    family: str,
    ridge: Scalar,
    tol: Scalar,
) -> Fit:
    """The minimum of `irls.fit`; converged only where one is certain to exist, see `exists`.

    Poisson means are not clipped.
    """
    problem = problem_of(arms, counts, sums, family, ridge)
    arms = problem.arms

    def settled(now):
        return now.decrement <= jnp.maximum(tol, _resolution(problem, now.theta))

    def unfinished(now):
        return ~settled(now) & jnp.isfinite(now.decrement) & (now.iterations < MAX_STEPS)

    def advanced(now):
        size = newton.line_search(problem, now)
        return _step_at(problem, family, now.theta - size * now.move, now.iterations + 1)

    end = lax.while_loop(unfinished, advanced, _begin(problem, family))
    finite = jnp.isfinite(end.decrement) & jnp.isfinite(end.move).all()
    inverse = solve_triangular(end.factor, jnp.eye(end.theta.size, dtype=arms.dtype))
    deviations = jnp.sqrt(((arms @ inverse) ** 2).sum(1))
    certain = exists(problem, family, end.theta, end.decrement, deviations)
    converged = finite & settled(end) & certain & _has_full_rank(end.factor)
    return Fit(
        theta=end.theta - end.move,
        hessian=end.factor.T @ end.factor,
        iterations=end.iterations,
        converged=converged,
        decrement=end.decrement,
        status=jnp.where(converged, CONVERGED, jnp.where(finite, CAPPED, NONFINITE)).astype(int),
        inverse=inverse @ inverse.T,
        factor=end.factor.T,
    )


def problem_of(
    arms: Float[Array, "K d"],
    counts: Float[Array, " K"],
    sums: Float[Array, " K"],
    family: str,
    ridge: Scalar,
) -> newton.Problem:
    """The problem of these data without arms that were not drawn, Poisson means unclipped."""
    drawn = counts > 0
    arms, sums = jnp.where(drawn[:, None], arms, 0.0), jnp.where(drawn, sums, 0.0)
    return newton.problem_of(arms, counts, sums, family, ridge)._replace(link=UNCLIPPED[family])


def _resolution(problem, theta):
    """The decrement that rounding leaves: that of predictors, hence of means, and of sums."""
    size = 1.0 + jnp.abs(problem.arms) @ jnp.abs(theta)
    weights = problem.counts + jnp.abs(problem.sums)
    return ROUNDINGS * jnp.finfo(theta.dtype).eps ** 2 * (weights * size**2).sum()


def _begin(problem, family):
    """The first point: least squares on the predictors that the arms would have one by one."""
    z = _alone(problem, family)
    weights = problem.counts * problem.link.variance(z)
    factor, rotated = _factored(problem, weights, jnp.sqrt(weights) * z, 0.0)
    return _step_at(problem, family, solve_triangular(factor, rotated), jnp.zeros((), int))


def _alone(problem, family):
    """Predictors of each arm alone, from half a success more and half a failure more."""
    counts, sums = problem.counts, problem.sums
    if family == "gaussian":
        return sums / jnp.maximum(counts, 1.0)
    if family == "poisson":
        return jnp.log((jnp.maximum(sums, 0.0) + 0.5) / jnp.maximum(counts, 1.0))
    share = (jnp.clip(sums, 0.0, counts) + 0.5) / (counts + 1.0)
    return ndtri(share) if family == "probit" else jnp.log(share) - jnp.log1p(-share)


def _step_at(problem, family, theta, iterations):
    z = problem.arms @ theta
    weights = problem.counts * problem.link.variance(z)
    roots = jnp.sqrt(weights)
    residuals = _residuals(problem, family, z)
    # A residual that is large beside its weight would drown in the rounding of the rotated rows.
    near = jnp.abs(residuals) <= FAR * roots
    scaled = jnp.where(near, residuals / jnp.where(roots > 0, roots, 1.0), 0.0)
    factor, rotated = _factored(problem, weights, scaled, -theta)
    rest = problem.columns @ jnp.where(near, 0.0, residuals)
    rotated = rotated + solve_triangular(factor, rest, trans=1)
    move = -solve_triangular(factor, rotated)
    return Step(theta, factor, move, 0.5 * rotated @ rotated, iterations)


def _residuals(problem, family, z):
    """What sums exceed their expectations by; near a mean of 1, what failures fall short by."""
    counts, sums = problem.counts, problem.sums
    above = sums - counts * problem.link.mean(z)
    if family not in SYMMETRIC:
        return above
    return jnp.where(z > 0, counts * problem.link.mean(-z) - (counts - sums), above)


def _factored(problem, weights, right, ridge_right):
    """`(R, Q^T b)` of the weighted rows and those of the ridge; R has a positive diagonal."""
    dim = problem.arms.shape[1]
    root = jnp.sqrt(problem.ridge)
    rows = jnp.concatenate(
        [jnp.sqrt(weights)[:, None] * problem.arms, root * jnp.eye(dim, dtype=weights.dtype)]
    )
    right = jnp.concatenate([right, jnp.broadcast_to(root * ridge_right, (dim,))])
    order = jnp.argsort(-jnp.abs(rows).max(1))
    orthogonal, factor = jnp.linalg.qr(rows[order])
    signs = jnp.where(jnp.diagonal(factor) < 0, -1.0, 1.0)
    return signs[:, None] * factor, signs * (right[order] @ orthogonal)


def _has_full_rank(factor):
    """Whether no column is given by those before it, up to rounding."""
    lengths = jnp.sqrt((factor**2).sum(0))
    return (jnp.diagonal(factor) > RANK * jnp.finfo(factor.dtype).eps * lengths).all()


def exists(
    problem: newton.Problem,
    family: str,
    theta: Float[Array, " d"],
    decrement: Scalar,
    deviations: Float[Array, " K"],
) -> Bool[Array, ""]:
    """Whether f has a minimum near theta, where its Newton decrement is known.

    Args:
      deviations: `s_k`, with `s_k^2 = x_k^T H^-1 x_k`.

    Let `r_k` bound `|d log variance / dz|`. For `h^T H h = t^2` with `t = 1 / max r_k s_k`, the
    Hessian between theta and `theta + h` is at least `e^-1.5` times that at theta, so that
    `f(theta + h) - f(theta) >= -lambda t + e^-1.5 t^2 / 2` with the decrement `lambda^2 / 2`. Where
    `lambda < t e^-1.5 / 2` this is positive on the whole ellipsoid, and f, which is convex, has its
    minimum inside. Arms whose leverages sum to less than 0.1 may be left out. On data without a
    maximum `lambda / t` stays near 1, however far out theta is, unless rounding makes the gradient
    0: its error is a part of lambda here.
    """
    z = problem.arms @ theta
    if family == "gaussian":
        return jnp.isfinite(deviations).all()
    # Of Phi' it is |z|, which moves by at most 1 meanwhile.
    rates = 1.0 + jnp.abs(z) if family == "probit" else jnp.ones_like(z)
    leverages = problem.counts * problem.link.variance(z) * deviations**2
    rates = jnp.where(leverages > 0.1 / leverages.size, rates, 0.0)
    terms = problem.counts * problem.link.mean(z) + jnp.abs(problem.sums)
    lost = jnp.finfo(z.dtype).eps * (terms * deviations).sum()
    size = jnp.sqrt(2.0 * decrement) + lost
    return size * (rates * deviations).max() < CERTIFIED  # False for NaN
