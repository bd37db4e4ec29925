"""The largest `x^T theta` over a set of likely parameters, and the arm for which it is largest.

The set is `{theta: L(theta) <= level, ||theta|| <= norm}`, L a convex negative log-likelihood
from counts and sums. Both this and the least L in the ball are found by a primal-dual interior
point method (Boyd and Vandenberghe, "Convex optimization", section 11.7). Iterates stay strictly
inside, so that they are bounds from below; their multipliers give bounds from above.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .. import selection
from ..estimate import newton
from ..linalg import spd

MOST = 60  # steps for one maximum
CLOSE = 1e-7  # of norm times the longest arm, or of L: the accuracy of a maximum
LEEWAY = 100  # times the accuracy: the largest excess that is put down to rounding
TINY = 1e-6  # a share of a step below which there is no progress
RIDGE = 0.01  # of the radius: what a ridge may cost an outer bound
AIM = 0.05  # of the excess at first
REFINEMENTS = 4  # of an outer bound


class Goal(NamedTuple):
    """Maximise `direction^T theta`, where L is at most `level`; or -L, if `level` is None."""

    direction: Float[Array, " d"]
    level: Float[Array, ""] | None
    norm: Float[Array, ""]


class Walk(NamedTuple):
    """A point inside, its multipliers, and what they say about the distance to the maximum."""

    theta: Float[Array, " d"]
    prices: Float[Array, " 2"]  # multipliers of the level and of the ball
    slacks: Float[Array, " 2"]  # level - L, (norm^2 - ||theta||^2) / 2
    gradient: Float[Array, " d"]  # of L
    residual: Float[Array, " d"]  # of the Lagrangian's gradient
    aim: Float[Array, ""]  # the value that each price times its slack is to reach
    share: Float[Array, ""]  # of the last step
    steps: Int[Array, ""]

    def excess(self, norm: Float[Array, ""]) -> Float[Array, ""]:
        """The maximum exceeds the value here by this at most, because L is convex.

        The Lagrangian is concave with gradient r here, so over the ball it exceeds its value
        here by `norm ||r|| - r^T theta` at most; this value is above that of the objective by
        prices times slacks.
        """
        rest = norm * jnp.sqrt(self.residual @ self.residual) - self.residual @ self.theta
        return self.prices @ self.slacks + rest

    def stuck(self) -> Bool[Array, ""]:
        """Whether there is no more progress."""
        return (self.share <= TINY) | (self.steps >= MOST)


def _evaluated(problem, goal, theta, prices, aim, share, steps):
    """The `Walk` at a point."""
    gradient = problem.gradient(theta)
    within = 0.5 * (goal.norm**2 - theta @ theta)
    below = jnp.ones_like(within) if goal.level is None else _below(problem, goal.level, theta)
    weight = 1.0 if goal.level is None else prices[0]
    residual = goal.direction - weight * gradient - prices[1] * theta
    return Walk(theta, prices, jnp.stack([below, within]), gradient, residual, aim, share, steps)


def _at_first(like):
    """Aim, share and steps of a walk that begins: no aim yet, a whole step, no steps."""
    return jnp.zeros_like(like), jnp.ones_like(like), jnp.zeros((), int)


def _with_aim(walk, norm):
    """With the first aim, a part of the excess; a smaller one would keep a walk near the border."""
    return walk._replace(aim=AIM * walk.excess(norm))


def _below(problem, level, theta):
    return level - problem.objective(theta)[0]


def _toward(problem, goal, now, target):
    """Newton's moves of theta and the prices to where prices times slacks are the `target`."""
    dim, held = now.theta.size, goal.level is not None
    ratio, aimed = now.prices / now.slacks, target / now.slacks
    hessian = problem.information(now.theta)
    rates = jnp.stack([now.gradient, now.theta])  # at which the slacks fall
    bent = (rates.T * ratio) @ rates + now.prices[1] * jnp.eye(dim, dtype=now.theta.dtype)
    matrix = (now.prices[0] if held else 1.0) * hessian + bent
    pull = aimed[0] if held else 1.0
    uphill = goal.direction - pull * now.gradient - aimed[1] * now.theta
    inverse = spd.inverse(matrix).matrix
    move = inverse @ uphill
    move = move + inverse @ (uphill - matrix @ move)  # flat directions make it ill-conditioned
    return move, aimed - now.prices + ratio * (rates @ move)


def _step(problem, goal, now):
    """A step towards where each price times its slack is the aim, halved until it fits."""
    held = goal.level is not None
    active = jnp.array([1.0 if held else 0.0, 1.0])
    # Where the aim is met, each price adds that much to the excess. The next aim is lower, and
    # lowest after a step that was nearly whole.
    met = now.excess(goal.norm) <= 2 * (1 + held) * now.aim
    aim = jnp.where(met, jnp.where(now.share > 0.9, 0.1, 0.3), 1.0) * now.aim
    move, change = _toward(problem, goal, now, active * aim)
    change = active * change
    room = jnp.where(change < 0, -0.99 * now.prices / jnp.where(change < 0, change, -1.0), 1.0)

    def missing(walk):
        off = active * (walk.prices * walk.slacks - aim)
        return jnp.sqrt(walk.residual @ walk.residual + off @ off)

    def trial(share):
        theta, prices = now.theta + share * move, now.prices + share * change
        return _evaluated(problem, goal, theta, prices, aim, share, now.steps + 1)

    before = missing(now)

    def refused(walk):
        good = (walk.slacks > 0).all() & (missing(walk) <= (1.0 - 0.01 * walk.share) * before)
        return ~good & (walk.share > TINY)

    first = trial(jnp.minimum(1.0, room.min()))
    there = lax.while_loop(refused, lambda walk: trial(0.5 * walk.share), first)
    stay = now._replace(aim=aim, share=there.share, steps=there.steps)
    inside = (there.slacks > 0).all() & (there.share > TINY)
    return Walk(*(jnp.where(inside, new, old) for new, old in zip(there, stay, strict=True)))


class Likeliest(NamedTuple):
    """The least L in the ball."""

    theta: Float[Array, " d"]  # inside
    value: Float[Array, ""]  # L there
    excess: Float[Array, ""]  # by which it may be above the least
    converged: Bool[Array, ""]


def likeliest(
    problem: newton.Problem, norm: Float[Array, ""], init: Float[Array, " d"]
) -> Likeliest:
    """Minimise L over `||theta|| <= norm` from `init` in the ball, such as the last minimiser."""
    goal = Goal(jnp.zeros_like(init), None, norm)
    theta = 0.95 * init
    within = 0.5 * (norm**2 - theta @ theta)
    prices = jnp.stack([jnp.zeros_like(within), 1.0 / within])
    begin = _with_aim(_evaluated(problem, goal, theta, prices, *_at_first(within)), norm)
    going = lambda now: (now.excess(norm) > CLOSE) & ~now.stuck()  # noqa: E731
    now = lax.while_loop(going, lambda now: _step(problem, goal, now), begin)
    excess = now.excess(norm)
    return Likeliest(now.theta, problem.objective(now.theta)[0], excess, excess <= LEEWAY * CLOSE)


def outer_bounds(
    problem: newton.Problem,
    theta: Float[Array, " d"],
    radius: Float[Array, ""],
    norm: Float[Array, ""],
    concordance: float,
) -> Float[Array, " K"]:
    """No `x^T theta'` of the set exceeds these; `theta` is the likeliest, `level = L + radius`.

    Where `|mu''| <= M mu'` (M is `concordance`), `L(theta') - L(theta) >= ||theta' - theta||_H^2 /
    (2 + M D)` if `|x^T (theta' - theta)| <= D` for all arms drawn: D follows from the radius, and
    the radius of the ellipsoid from D.
    """
    dim, lengths = theta.size, jnp.sqrt((problem.arms**2).sum(1))
    ridge = 0.5 * RIDGE * radius / norm**2  # times the squared diameter of the ball: 2 RIDGE radius
    hessian = problem.information(theta)
    inverse = spd.inverse(hessian + ridge * jnp.eye(dim, dtype=theta.dtype)).matrix
    norms = jnp.sqrt(spd.quadratic(problem.arms, inverse))

    def widths(reach):
        scale = jnp.sqrt((2.0 + concordance * reach + 2.0 * RIDGE) * radius * (1.0 + 1e-6))
        return jnp.minimum(scale * norms, 2.0 * norm * lengths)

    def refine(_, reach):
        return jnp.minimum(reach, jnp.where(problem.counts > 0, widths(reach), 0.0).max())

    reach = lax.fori_loop(0, REFINEMENTS, refine, 2.0 * norm * lengths.max())
    return jnp.minimum(problem.arms @ theta + widths(reach), norm * lengths)


class Highest(NamedTuple):
    """The arm of the largest maximum."""

    arm: Int[Array, ""]
    value: Float[Array, ""]  # a value it takes in the set
    missed: Bool[Array, ""]  # whether another may be larger by more than the accuracy


class _Search(NamedTuple):
    walk: Walk  # for the arm at hand
    arm: Int[Array, ""]
    open: Float[Array, " K"]  # bounds from above of arms that are not done with, else -inf
    best: Highest


def highest(
    problem: newton.Problem,
    likely: Likeliest,
    radius: Float[Array, ""],
    norm: Float[Array, ""],
    bounds: Float[Array, " K"],
    order: Int[Array, " K"],
) -> Highest:
    """The arm with the largest maximum of `x^T theta` where L is within `radius` of the least.

    Arms are tried one by one, that of the highest of the `bounds` first, each until its own upper
    bound is below the value of another, or its maximum is known. Where maxima agree to the accuracy
    the arm that was tried first is returned; bounds tie to the larger `order`.
    """
    arms = problem.arms
    lengths = jnp.sqrt((arms**2).sum(1))
    level, close = likely.value + radius, CLOSE * norm * lengths.max()
    far = jnp.maximum(problem.objective(jnp.zeros_like(likely.theta))[0] - likely.value, 1e-9)
    theta = (1.0 - jnp.minimum(0.5, 0.5 * radius / far)) * likely.theta  # well inside
    middle = Goal(jnp.zeros_like(theta), level, norm)
    centre = _evaluated(problem, middle, theta, jnp.zeros(2, theta.dtype), *_at_first(level))

    def begin(arm):
        prices = 0.25 * norm * selection.at(lengths, arm) / centre.slacks
        residual = selection.at(arms, arm) - prices[0] * centre.gradient - prices[1] * theta
        return _with_aim(centre._replace(prices=prices, residual=residual), norm)

    def advance(now):
        direction = selection.at(arms, now.arm)
        walk = _step(problem, Goal(direction, level, norm), now.walk)
        value, excess, best = direction @ walk.theta, walk.excess(norm), now.best
        better = value > best.value + close  # else it is a tie: its own maximum is as uncertain
        most = jnp.where(better, value, best.value)
        known = (excess <= close) | (value + excess <= most)
        done = known | walk.stuck()
        missed = best.missed | (done & ~known & (value + excess > most + LEEWAY * close))
        open_ = jnp.where(done & (jnp.arange(bounds.size) == now.arm), -jnp.inf, now.open)
        arm = jnp.where(done, selection.argmax(open_, order), now.arm)
        fresh = begin(arm)
        walk = Walk(*(jnp.where(done, new, old) for new, old in zip(fresh, walk, strict=True)))
        return _Search(
            walk, arm, open_, Highest(jnp.where(better, now.arm, best.arm), most, missed)
        )

    bounds = selection.fine(bounds)  # rounding breaks no tie
    first = selection.argmax(bounds, order)
    nothing = Highest(first, jnp.full_like(level, -jnp.inf), jnp.zeros((), bool))
    going = lambda now: selection.at(now.open, now.arm) > now.best.value + 2 * close  # noqa: E731
    return lax.while_loop(going, advance, _Search(begin(first), first, bounds, nothing)).best


def steepness(problem: newton.Problem, norm: Float[Array, ""]) -> Float[Array, ""]:
    """An upper bound on the length of L's gradient in the ball: each arm's term at its worst."""
    lengths = jnp.sqrt((problem.arms**2).sum(1))
    above = problem.counts * problem.link.mean(norm * lengths) - problem.sums
    below = problem.sums - problem.counts * problem.link.mean(-norm * lengths)
    return (lengths * jnp.maximum(jnp.maximum(above, below), 0.0)).sum()


def contains(
    problem: newton.Problem, likely: Likeliest, radius: Float[Array, ""], theta: Float[Array, " d"]
) -> Bool[Array, ""]:
    """Whether a theta in the ball is in the set."""
    return problem.objective(theta)[0] <= likely.value + radius
