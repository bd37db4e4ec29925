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
REACH = 0.3  # of norm times the arm's length: prices times slacks where a walk begins
WARM = 0.03  # the same for the least L, which begins near the last one
FALL, FALL_FREE = 0.1, 0.01  # of the aim after a whole step; and where L has no level
FALL_SHORT = 0.3  # after a shorter step
MOST_USED = 0.99  # of a price or a slack, by one step
NEAR = 0.1  # a part of the value that a slack is to reach: not far below it
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
    weights: Float[Array, " K"]  # of the arms in the Hessian of L
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
    value, gradient, weights = problem.expansion(theta)
    within = 0.5 * (goal.norm**2 - theta @ theta)
    below = jnp.ones_like(within) if goal.level is None else goal.level - value
    price = 1.0 if goal.level is None else prices[0]
    residual = goal.direction - price * gradient - prices[1] * theta
    slacks = jnp.stack([below, within])
    return Walk(theta, prices, slacks, gradient, weights, residual, aim, share, steps)


def _unmoved(product):
    """Aim, share and steps of a walk that begins with this product of its prices and slacks."""
    return product, jnp.ones_like(product), jnp.zeros((), int)


class _Direction(NamedTuple):
    """Newton's moves to where prices times slacks are the aim."""

    move: Float[Array, " d"]  # of theta
    change: Float[Array, " 2"]  # of the prices
    longest: Float[Array, ""]  # multiple of both that stays inside, as far as can be foreseen


def _direction(problem, goal, now, target):
    """The `_Direction` for a target of each price times its slack; without a level, for the ball.

    The slack of the ball is quadratic along the move, that of the level nearly so: what is foreseen
    with the Hessian rarely has to be corrected.
    """
    dim, held = now.theta.size, goal.level is not None
    ratio, aimed = now.prices / now.slacks, target / now.slacks
    hessian = problem.information_of(now.weights)
    rates = jnp.stack([now.gradient, now.theta])  # at which the slacks fall
    bent = (rates.T * ratio) @ rates + now.prices[1] * jnp.eye(dim, dtype=now.theta.dtype)
    matrix = (now.prices[0] if held else 1.0) * hessian + bent
    pull = aimed[0] if held else 1.0
    uphill = goal.direction - pull * now.gradient - aimed[1] * now.theta
    inverse = spd.inverse(matrix).matrix
    move = inverse @ uphill
    move = move + inverse @ (uphill - matrix @ move)  # flat directions make it ill-conditioned
    falls, bends = rates @ move, jnp.stack([move @ hessian @ move, move @ move])
    change = jnp.where(jnp.array([held, True]), aimed - now.prices + ratio * falls, 0.0)
    limits = jnp.minimum(_until_used(now, target, falls, bends), _until_low(now.prices, change))
    return _Direction(move, change, jnp.minimum(1.0, limits[0 if held else 1 :].min()))


def _until_used(now, target, falls, bends):
    """How far slacks last that fall by `falls t + bends t^2 / 2`: of each a part has to be left.

    A slack far below its target would stay there, and shorten all further steps; so where it would
    come below the part `NEAR` of the target, at most half of it may be used.
    """
    tiny = jnp.finfo(falls.dtype).tiny
    near = jnp.minimum(0.5 * now.slacks, NEAR * target / jnp.maximum(now.prices, tiny))
    used = now.slacks - jnp.maximum((1.0 - MOST_USED) * now.slacks, near)
    # This form of the root loses no digits where the slacks fall.
    return 2.0 * used / jnp.maximum(falls + jnp.sqrt(falls**2 + 2.0 * bends * used), tiny)


def _until_low(prices, change):
    """How far prices last, of which a part has to be left as well."""
    return jnp.where(change < 0, -MOST_USED * prices / jnp.where(change < 0, change, -1.0), 1.0)


def _step(problem, goal, now):
    """A step towards where each price times its slack is the aim, halved until it fits."""
    held = goal.level is not None
    active = jnp.array([1.0 if held else 0.0, 1.0])
    # Where the aim is met, each price adds that much to the excess. The next aim is lower, and
    # lowest after a step that was nearly whole.
    met = now.excess(goal.norm) <= 2 * (1 + held) * now.aim
    fall = jnp.where(now.share > 0.9, FALL if held else FALL_FREE, FALL_SHORT)
    aim = jnp.where(met, fall, 1.0) * now.aim
    way = _direction(problem, goal, now, active * aim)

    def missing(walk):
        off = active * (walk.prices * walk.slacks - aim)
        return jnp.sqrt(walk.residual @ walk.residual + off @ off)

    def trial(share):
        theta, prices = now.theta + share * way.move, now.prices + share * way.change
        return _evaluated(problem, goal, theta, prices, aim, share, now.steps + 1)

    before = missing(now)

    def refused(walk):
        good = (walk.slacks > 0).all() & (missing(walk) <= (1.0 - 0.01 * walk.share) * before)
        return ~good & (walk.share > TINY)

    there = lax.while_loop(refused, lambda walk: trial(0.5 * walk.share), trial(way.longest))
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
    product = jnp.full_like(within, WARM)
    prices = jnp.stack([jnp.zeros_like(within), product / within])
    begin = _evaluated(problem, goal, theta, prices, *_unmoved(product))
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
    excess: Float[Array, ""]  # by which its maximum may be above that
    missed: Bool[Array, ""]  # whether another may be larger by more than the accuracy


class _Race(NamedTuple):
    """Two arms at a time; a place without an arm has bounds of -inf."""

    walks: Walk  # `[2, ...]`
    arms: Int[Array, " 2"]
    low: Float[Array, " 2"]  # bounds of their maxima
    high: Float[Array, " 2"]
    ended: Bool[Array, " 2"]  # whether the bounds will come no closer
    waiting: Float[Array, " K"]  # bounds from above of arms that have not begun, else -inf
    missed: Bool[Array, ""]


def highest(
    problem: newton.Problem,
    likely: Likeliest,
    radius: Float[Array, ""],
    norm: Float[Array, ""],
    bounds: Float[Array, " K"],
    order: Int[Array, " K"],
) -> Highest:
    """The arm with the largest maximum of `x^T theta` where L is within `radius` of the least.

    Two arms race: the one with the higher bound from above takes a step, until one is beaten, its
    bound from above below the value of the other. The winner meets the arm with the highest of the
    `bounds` that are left, if that may be higher. So maxima are found only as closely as it takes
    to tell them apart. Where two agree to the accuracy, the arm of the larger `order` is higher.
    """
    arms, places, every = problem.arms, jnp.arange(2), jnp.arange(bounds.size)
    lengths = jnp.sqrt((arms**2).sum(1))
    level, close = likely.value + radius, CLOSE * norm * lengths.max()
    at_zero = problem.counts.sum() * problem.link.partition(jnp.zeros_like(level))
    far = jnp.maximum(at_zero - likely.value, 1e-9)
    theta = (1.0 - jnp.minimum(0.5, 0.5 * radius / far)) * likely.theta  # well inside
    middle, nothing = Goal(jnp.zeros_like(theta), level, norm), jnp.zeros_like(level)
    centre = _evaluated(problem, middle, theta, jnp.zeros(2, theta.dtype), *_unmoved(nothing))

    def begun(arm):
        product = REACH * norm * selection.at(lengths, arm)
        prices = product / centre.slacks
        residual = selection.at(arms, arm) - prices[0] * centre.gradient - prices[1] * theta
        return centre._replace(prices=prices, residual=residual, aim=product)

    def compared(race):
        """The place of the higher arm, and whether the other one is out of the race."""
        over = race.ended.all()
        tied = over & (jnp.abs(race.low[0] - race.low[1]) <= close)
        lead = jnp.where(tied, jnp.argmax(order[race.arms]), jnp.argmax(race.low))
        return lead, over | (race.high[1 - lead] <= race.low[lead] - close)

    def in_doubt(race, lead):
        """Whether the other arm may be higher by more than is put down to rounding."""
        return race.high[1 - lead] > race.low[lead] + LEEWAY * close

    def with_next_arm(race):
        """The race with another arm in place of one that is out; and the place to look at next."""
        lead, decided = compared(race)
        arm = selection.argmax(race.waiting, order)
        bound = selection.at(race.waiting, arm)
        higher = race.ended[lead] | (bound > race.high[lead])  # else the leader may overtake it
        enters = decided & higher & (bound > race.low[lead] + 2 * close)
        there = enters & (places != lead)
        entered = _Race(
            walks=_put(begun(arm), there, race.walks),
            arms=jnp.where(there, arm, race.arms),
            low=jnp.where(there, -jnp.inf, race.low),
            high=jnp.where(there, bound, race.high),
            ended=race.ended & ~there,
            waiting=jnp.where(enters & (every == arm), -jnp.inf, race.waiting),
            missed=race.missed | (enters & in_doubt(race, lead)),
        )
        most = jnp.argmax(jnp.where(entered.ended, -jnp.inf, entered.high))
        return entered, jnp.where(decided & ~enters, lead, most)

    def advance(race):
        race, place = with_next_arm(race)
        direction = selection.at(arms, race.arms[place])
        walk = Walk(*(x[place] for x in race.walks))
        walk = _step(problem, Goal(direction, level, norm), walk)
        value, excess, here = direction @ walk.theta, walk.excess(norm), places == place
        return race._replace(
            walks=_put(walk, here, race.walks),
            low=jnp.where(here, jnp.maximum(race.low, value), race.low),
            high=jnp.where(here, jnp.minimum(race.high, value + excess), race.high),
            ended=jnp.where(here, (excess <= close) | walk.stuck(), race.ended),
        )

    def going(race):
        lead, decided = compared(race)
        return ~decided | (race.waiting.max() > race.low[lead] + 2 * close)

    bounds = selection.fine(bounds)  # rounding breaks no tie
    first = selection.argmax(bounds, order)
    nobody, bound = jnp.full_like(level, -jnp.inf), selection.at(bounds, first)
    begin = _Race(
        walks=Walk(*(jnp.stack([x, x]) for x in begun(first))),
        arms=jnp.stack([first, first]),
        low=jnp.stack([nobody, nobody]),
        high=jnp.stack([bound, nobody]),
        ended=jnp.array([False, True]),
        waiting=jnp.where(every == first, -jnp.inf, bounds),
        missed=jnp.array(False),
    )
    end = lax.while_loop(going, advance, begin)
    lead, _ = compared(end)
    excess = end.high[lead] - end.low[lead]
    return Highest(end.arms[lead], end.low[lead], excess, end.missed | in_doubt(end, lead))


def _put(walk, here, walks):
    """Two walks, with this one in place of the one that a mask marks."""

    def one(new, old):
        return jnp.where(here.reshape(here.shape + (1,) * new.ndim), new, old)

    return Walk(*(one(new, old) for new, old in zip(walk, walks, strict=True)))


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
