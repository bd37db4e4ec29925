"""Newton's method for the likelihood of a generalised linear model, as `irls` puts it together.

`f(theta) = sum_k [n_k b(z_k) - s_k z_k] + ridge/2 ||theta||^2`, `z = X theta`. The length of a step
is searched for while far from the minimum; after each come steps with the Hessian it had, which
cost a fraction: products with X instead of a new Hessian and its inverse (Shamanskii, 1967).
"""

from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ...types import Scalar, Whole
from ..linalg import spd, svec
from . import chord
from .links import LINKS, Link

CONVERGED, CAPPED, STALLED, NONFINITE = range(4)
TRIES = 20  # sizes of a step
FLAT = 0.1  # a slope is flat below this part of the slope at the beginning of a step
LONGER = 10.0  # from one size of a step to the next, where orders of magnitude are searched
MARGIN = 0.1  # of a bracket, at either end: not tried
NEAR = 0.05  # a decrement below which Newton steps are taken whole
FEW_PLANES = 12  # dimensions, up to which Newton steps alone do as well as a path
PATIENCE, LOST = 4, 1.0  # after so many steps, a decrement above LOST calls for a path
SHARE = 0.01  # of the counts: the first ridge of a path
FALL = 10.0  # from one ridge of a path to the next
LOOSE = 50.0  # a decrement that is close enough to a point of a path


class Problem(NamedTuple):
    """The function f to be minimised."""

    link: Link
    arms: Float[Array, "K d"]
    columns: Float[Array, "d K"]  # arms
    pairs: Float[Array, "D K"]  # of x x^T
    counts: Float[Array, " K"]
    sums: Float[Array, " K"]
    ridge: Float[Array, ""]

    def objective(self, theta: Float[Array, " d"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The value and its rounding error, that of its terms: they may cancel to nearly 0."""
        z = self.arms @ theta
        partitions = jnp.where(self.counts > 0, self.counts * self.link.partition(z), 0.0)
        penalty = 0.5 * self.ridge * theta @ theta
        size = (jnp.abs(partitions) + jnp.abs(self.sums * z)).sum() + penalty
        resolution = 4.0 * jnp.finfo(z.dtype).eps
        return (partitions - self.sums * z).sum() + penalty, resolution * size

    def gradient(self, theta: Float[Array, " d"]) -> Float[Array, " d"]:
        """Of f at theta."""
        return self._gradient(theta, self.link.mean(self.arms @ theta))

    def information(self, theta: Float[Array, " d"]) -> Float[Array, "d d"]:
        """The Hessian of f at theta without the ridge."""
        return self._information(self.link.variance(self.arms @ theta))

    def derivatives(
        self, theta: Float[Array, " d"]
    ) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
        """`gradient` and `information`, faster than one by one."""
        mean, variance = self.link.both(self.arms @ theta)
        return self._gradient(theta, mean), self._information(variance)

    def expansion(
        self, theta: Float[Array, " d"]
    ) -> tuple[Float[Array, ""], Float[Array, " d"], Float[Array, " K"]]:
        """Value and gradient of f at theta, and the weights of `information_of`."""
        z = self.arms @ theta
        partition, mean, variance = self.link.jet(z)
        terms = jnp.where(self.counts > 0, self.counts * partition, 0.0) - self.sums * z
        value = terms.sum() + 0.5 * self.ridge * theta @ theta
        return value, self._gradient(theta, mean), self.counts * variance

    def information_of(self, weights: Float[Array, " K"]) -> Float[Array, "d d"]:
        """The sum of weights times `x x^T`."""
        return svec.symmetric(self.pairs @ weights, self.arms.shape[1])

    def _gradient(self, theta, mean):
        return self.columns @ (self.counts * mean - self.sums) + self.ridge * theta

    def _information(self, variance):
        return self.information_of(self.counts * variance)


def problem_of(
    arms: Float[Array, "K d"],
    counts: Float[Array, " K"],
    sums: Float[Array, " K"],
    family: str,
    ridge: Scalar,
) -> Problem:
    """The `Problem` of these data."""
    # Without the barrier, products would read the transposed tables by columns.
    columns, pairs = lax.optimization_barrier((arms.T, svec.pairs(arms).T))
    ridge = jnp.asarray(ridge, arms.dtype)
    return Problem(LINKS[family], arms, columns, pairs, counts, sums, ridge)


class Search(NamedTuple):
    """A point, and what the next step from it needs."""

    theta: Float[Array, " d"]
    hessian: Float[Array, "d d"]
    inverse: Float[Array, "d d"]
    factor: Float[Array, "d d"]
    move: Float[Array, " d"]  # H^-1 g
    decrement: Float[Array, ""]
    careful: Bool[Array, ""]  # whether the last step gained little
    iterations: Int[Array, ""]
    status: Int[Array, ""]
    ridge: Float[Array, ""]  # more than the problem's while `path` lowers it
    eased: Bool[Array, ""]  # whether it was ever more


def search(
    problem: Problem,
    begin: Search,
    tol: Scalar,
    max_iterations: Whole,
) -> Search:
    """Newton steps until the decrement is small."""

    def unfinished(now):
        running = (now.iterations < max_iterations) & (now.status == CONVERGED)
        return running & ((now.decrement > tol) | (now.ridge > problem.ridge))

    end = lax.while_loop(unfinished, partial(newton, problem, tol), begin)
    of_another = end.ridge > problem.ridge
    return end._replace(decrement=jnp.where(of_another, jnp.inf, end.decrement))


def evaluated(
    problem: Problem,
    theta: Float[Array, " d"],
    iterations: Int[Array, ""],
    before: Scalar,
    eased: Bool[Array, ""] | bool = False,
) -> Search:
    """All that a Newton step from theta needs; `before` is the decrement of the point before it."""
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
        status=jnp.where(finite, CONVERGED, NONFINITE).astype(int),
        ridge=jnp.asarray(problem.ridge, theta.dtype),
        eased=jnp.asarray(eased),
    )


def newton(problem: Problem, tol: Scalar, now: Search) -> Search:
    """A Newton step, then steps with the same Hessian; or a step of `path`, where it takes one.

    The length of the Newton step is searched for where a whole one may be too long or too short.
    """
    here = problem._replace(ridge=now.ridge)
    far = (now.decrement > NEAR) | now.careful
    size = lax.cond(far, partial(line_search, here, now), lambda: jnp.ones_like(now.decrement))
    moved = chord.approach(here, now.theta - size * now.move, now.inverse, tol)
    step = path(problem, now)
    after = evaluated(
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

    taken: Bool[Array, ""]
    ridge: Float[Array, ""]
    eased: Bool[Array, ""]
    theta: Float[Array, " d"]


def path(problem: Problem, now: Search) -> Step:
    """A step along the minima for smaller and smaller ridges, where Newton steps alone are slow.

    Sums beyond what counts allow put the minimum thousands of units out, where f is nearly
    piecewise linear. Newton steps then move from one linear piece to the next, at most 20 in 5 or
    10 dimensions, up to 100 in 20. Minima as a function of the ridge r obey `d theta / dr =
    -H^-1 theta`; along this path r falls by a factor of `FALL` at a time, which takes some 20 steps
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

    low: Float[Array, ""]
    below: Float[Array, ""]  # the slope of f along the line at `low`, negative
    high: Float[Array, ""]  # infinite as long as f falls at all sizes tried
    above: Float[Array, ""]  # the slope at `high`
    size: Float[Array, ""]  # the one that is tried
    slope: Float[Array, ""]
    tries: Float[Array, ""]


@runtime_checkable
class Direction(Protocol):
    """A point and a step `theta - size * move` from it."""

    @property
    def theta(self) -> Float[Array, " d"]:
        """The point."""
        ...

    @property
    def move(self) -> Float[Array, " d"]:
        """`H^-1 g`, at size 1."""
        ...

    @property
    def decrement(self) -> Float[Array, ""]:
        """`g^T H^-1 g / 2`."""
        ...


def line_search(problem: Problem, now: Direction) -> Float[Array, ""]:
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
        # Where orders of magnitude lie between the ends, the search is on a logarithmic scale.
        far = (high > LONGER * low) & (at.tries > 0)
        leap = jnp.where(low > 0, jnp.sqrt(low * high), high / LONGER)
        size = jnp.where(far, leap, low + share * (high - low))
        size = jnp.where(jnp.isinf(high), LONGER * low, size)
        return Bracket(low, below, high, above, size, slope_at(size), at.tries + 1)

    one, zero, far = jnp.ones_like(now.decrement), jnp.zeros_like(now.decrement), jnp.inf
    begin = Bracket(zero, -2.0 * now.decrement, far * one, one, one, slope_at(one), zero)
    end = lax.while_loop(unfinished, retried, begin)
    return jnp.where((jnp.abs(end.slope) <= goal) | (end.slope < 0), end.size, end.low)
