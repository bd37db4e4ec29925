"""Newton's method for the likelihood of a generalised linear model, as `irls` puts it together.

`f(theta) = sum_k [n_k b(z_k) - s_k z_k] + ridge/2 ||theta||^2`, `z = X theta`. The length of a step
is searched for while far from the minimum; after each come steps with the Hessian it had, which
cost a fraction: products with X instead of a new Hessian and its inverse (Shamanskii, 1967).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..linalg import spd, svec
from . import chord
from .links import LINKS

CONVERGED, CAPPED, STALLED, NONFINITE = range(4)
TRIES = 20  # sizes of a step
FLAT = 0.1  # times the slope at the beginning of a step is flat
LONGER = 10.0  # times as long or as short a step, where no end is in sight
MARGIN = 0.1  # of a bracket that is not tried
NEAR = 0.05  # a decrement below which Newton steps are taken whole
FEW_PLANES = 12  # dimensions in which Newton steps alone do as well
PATIENCE, LOST = 4, 1.0  # so many steps from the beginning a larger decrement is far from the end
SHARE = 0.01  # of the counts: the first ridge of a path
FALL = 10.0  # from one ridge of a path to the next
LOOSE = 50.0  # a decrement that is close enough to a point of a path


class Problem(NamedTuple):
    """What is minimised."""

    link: Any
    arms: Array  # float [K, d]
    columns: Array  # float [d, K] arms
    pairs: Array  # float [d (d + 1) / 2, K] of x x^T
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

    def gradient(self, theta):
        """Of f at theta."""
        return self._gradient(theta, self.link.mean(self.arms @ theta))

    def information(self, theta):
        """The Hessian of f at theta but for the ridge."""
        return self._information(self.link.variance(self.arms @ theta))

    def derivatives(self, theta):
        """`gradient` and `information`, for less than each by itself."""
        mean, variance = self.link.both(self.arms @ theta)
        return self._gradient(theta, mean), self._information(variance)

    def _gradient(self, theta, mean):
        return self.columns @ (self.counts * mean - self.sums) + self.ridge * theta

    def _information(self, variance):
        return svec.symmetric(self.pairs @ (self.counts * variance), self.arms.shape[1])


def problem_of(arms, counts, sums, family, ridge):
    """The `Problem` of these data."""
    # The barrier keeps products from reading the transposed tables by columns.
    columns, pairs = lax.optimization_barrier((arms.T, svec.pairs(arms).T))
    ridge = jnp.asarray(ridge, arms.dtype)
    return Problem(LINKS[family], arms, columns, pairs, counts, sums, ridge)


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
    ridge: Array  # more than the problem's while `path` lowers it
    eased: Array  # bool []: whether it was ever more


def search(problem, begin, tol, max_iterations):
    """Newton steps until the decrement is small."""

    def unfinished(now):
        running = (now.iterations < max_iterations) & (now.status == CONVERGED)
        return running & ((now.decrement > tol) | (now.ridge > problem.ridge))

    end = lax.while_loop(unfinished, partial(newton, problem, tol), begin)
    of_another = end.ridge > problem.ridge
    return end._replace(decrement=jnp.where(of_another, jnp.inf, end.decrement))


def look(problem, theta, iterations, before, eased=False):
    """All that a Newton step from theta needs; `before` is the decrement where it comes from."""
    gradient, information = problem.derivatives(theta)
    # The tiny shift keeps a flat likelihood factorisable.
    shift = 1e-12 if theta.dtype == jnp.float64 else 1e-7
    lift = shift * (jnp.diagonal(information).mean() + problem.ridge)
    eye = jnp.eye(theta.size, dtype=theta.dtype)
    found = spd.inverse(information + (problem.ridge + lift) * eye)
    move = found.matrix @ gradient
    decrement = 0.5 * gradient @ move
    finite = found.positive & jnp.isfinite(decrement)
    return Search(
        theta=theta,
        hessian=information + problem.ridge * eye,
        inverse=found.matrix,
        factor=found.factor,
        move=move,
        decrement=jnp.where(finite, decrement, jnp.inf),
        careful=~(decrement <= 0.5 * before),
        iterations=iterations,
        status=jnp.where(finite, CONVERGED, NONFINITE),
        ridge=jnp.asarray(problem.ridge, theta.dtype),
        eased=jnp.asarray(eased),
    )


def newton(problem, tol, now):
    """A Newton step, of another length where whole ones may not be trusted; old-Hessian steps.

    Or a step of `path`, where it takes one.
    """
    here = problem._replace(ridge=now.ridge)
    far = (now.decrement > NEAR) | now.careful
    size = lax.cond(far, partial(line_search, here, now), lambda: jnp.ones_like(now.decrement))
    moved = chord.approach(here, now.theta - size * now.move, now.inverse, tol)
    step = path(problem, now)
    after = look(
        problem._replace(ridge=step.ridge),
        jnp.where(step.taken, step.theta, moved),
        now.iterations + 1,
        jnp.where(step.taken, jnp.inf, now.decrement),
        step.eased,
    )
    stuck = now._replace(iterations=now.iterations + 1, status=jnp.full_like(now.status, STALLED))
    moves = (size > 0) | step.taken
    return jax.tree.map(lambda new, old: jnp.where(moves, new, old), after, stuck)


class Step(NamedTuple):
    """Another ridge, and where to begin with it."""

    taken: Array  # bool []
    ridge: Array
    eased: Array
    theta: Array


def path(problem, now):
    """Where Newton steps alone lead nowhere soon: minima for a large ridge, then for ever less.

    Sums beyond what counts allow put the minimum thousands of units out, where f is all but
    piecewise linear: Newton steps then find one plane of a kink after the other, 20 steps at most
    in 5 or 10 dimensions, up to 100 in 20. Minima as a function of the ridge r obey `d theta / dr =
    -H^-1 theta`, along which 1/r is made `FALL` times as large at a time; that takes some 20 steps
    in any dimension.
    """
    if now.theta.size <= FEW_PLANES:
        no = jnp.array(False)
        return Step(no, now.ridge, no, now.theta)
    most = SHARE * problem.counts.sum()
    lost = (now.iterations >= PATIENCE) & (now.decrement > LOST) & ~now.eased
    begins = lost & (problem.ridge > 0) & (most > problem.ridge)
    goes_on = (now.ridge > problem.ridge) & (now.decrement <= LOOSE)
    lower = jnp.maximum(now.ridge / FALL, problem.ridge)
    there = now.theta - now.move
    ahead = there + (now.ridge / lower - 1.0) * now.ridge * (now.inverse @ there)
    return Step(
        taken=begins | goes_on,
        ridge=jnp.where(begins, most, jnp.where(goes_on, lower, now.ridge)),
        eased=now.eased | begins,
        theta=jnp.where(begins, 0.0, ahead),
    )


class Bracket(NamedTuple):
    """Sizes of a step between which f is least."""

    low: Array
    below: Array  # the slope of f along the line there, negative
    high: Array  # infinite while f has only been seen to fall
    above: Array
    size: Array  # the one that is tried
    slope: Array
    tries: Array


def line_search(problem, now):
    """The size of a step to where f is nearly flat along it, by regula falsi; 0 if none lowers f.

    Newton steps are too long where the curvature vanishes ahead, and too short by orders of
    magnitude where it vanishes on the way, as it does where perturbed sums put the minimum far out:
    there a search that can lengthen steps takes half as many as one that can only halve them.
    """
    z, dz = problem.arms @ now.theta, problem.arms @ now.move
    norms = problem.ridge * (now.move @ now.theta), problem.ridge * (now.move @ now.move)

    def slope_at(size):
        residual = problem.counts * problem.link.mean(z - size * dz) - problem.sums
        return size * norms[1] - norms[0] - dz @ residual

    goal = FLAT * 2.0 * now.decrement

    def unfinished(at):
        return ~(jnp.abs(at.slope) <= goal) & (at.tries < TRIES)

    def retried(at):
        falls = at.slope < 0  # False for NaN
        low, below = (jnp.where(falls, *pair) for pair in ((at.size, at.low), (at.slope, at.below)))
        high, above = (
            jnp.where(falls, *pair) for pair in ((at.high, at.size), (at.above, at.slope))
        )
        share = below / (below - above)  # of the bracket, where a straight line has its root
        share = jnp.where(jnp.isfinite(share), jnp.clip(share, MARGIN, 1.0 - MARGIN), 0.5)
        # Where orders of magnitude lie between the ends, they are gone through one by one.
        far = (high > LONGER * low) & (at.tries > 0)
        leap = jnp.where(low > 0, jnp.sqrt(low * high), high / LONGER)
        size = jnp.where(far, leap, low + share * (high - low))
        size = jnp.where(jnp.isinf(high), LONGER * low, size)
        return Bracket(low, below, high, above, size, slope_at(size), at.tries + 1)

    one, zero, far = jnp.ones_like(now.decrement), jnp.zeros_like(now.decrement), jnp.inf
    begin = Bracket(zero, -2.0 * now.decrement, far * one, one, one, slope_at(one), zero)
    end = lax.while_loop(unfinished, retried, begin)
    return jnp.where((jnp.abs(end.slope) <= goal) | (end.slope < 0), end.size, end.low)
