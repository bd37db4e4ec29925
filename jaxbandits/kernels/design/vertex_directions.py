"""Designs by steps between a design and one arm: towards it, or away from it.

With `A((1 - g) w + g e_j) = (1 - g) A(w) + g x_j x_j^T` a step costs O(K d) and no factorisation.
Methods differ in their `Rule`: which arm, and how far.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ...types import Scalar, Whole
from .. import selection
from ..estimate import least_squares
from ..linalg import spd, subspace
from ..tracing import traced_once
from .d_optimal import Design, Iterate, certified

TRUSTED = 100  # steps after which the inverse is computed afresh
NOTHING = 1e-12  # a weight below it is a rounded zero
FARTHEST = 1.0 - 2.0**-20  # the longest step: a whole one would leave A singular
SECTIONS = 60  # golden sections, which find the step to 3e-13
GAIN = 1e-9  # the maximum has not fallen if it fell by a smaller part of itself
GOLDEN = 0.6180339887498949
STARTS = ("uniform", "kumar_yildirim")


class Step(NamedTuple):
    """The step of a rule, to `(1 - rate) w + rate e_arm`."""

    arm: Int[Array, ""]
    rate: Float[Array, ""]  # below 0: away from the arm; 0 ends the walk


Rule: TypeAlias = Callable[[Array, Iterate, Array], Step]  # (arms, now, rank []) -> Step


def evaluated(
    space: subspace.Span,
    arms: Float[Array, "K d"],
    active: Bool[Array, " K"],
    weights: Float[Array, " K"],
    iterations: Int[Array, ""],
) -> Iterate:
    """The iterate of these weights, computed afresh; variances are infinite where A is singular."""
    inverse = subspace.inverse(space, least_squares.gram(arms, weights))
    variances = jnp.where(active, spd.quadratic(arms, inverse.matrix), 0.0)
    variances = jnp.where(inverse.positive, variances, jnp.inf)
    return Iterate(weights, inverse.matrix, variances, iterations)


def start(
    space: subspace.Span,
    arms: Float[Array, "K d"],
    active: Bool[Array, " K"],
    name: str = "uniform",
) -> Iterate:
    """Equal weights on the active arms, or on as many of them as their rank.

    "kumar_yildirim" (Kumar and Yildirim, 2005): each arm is the farthest one in a direction that
    is orthogonal to those before it. The direction is free; here it is that of the longest
    remainder. The determinant is then within a factor of the optimum that depends on d alone.
    """
    chosen = active
    if name == "kumar_yildirim":
        apart = subspace.far_apart(arms, active)
        # It calls lengths zero by another measure: what does not span is no start.
        chosen = jnp.where(apart.sum() < jnp.maximum(space.rank, 1), active, apart)
    equal = chosen.astype(arms.dtype) / jnp.maximum(chosen.sum(), 1)
    return evaluated(space, arms, active, equal, jnp.zeros((), int))


def moved(
    arms: Float[Array, "K d"], active: Bool[Array, " K"], now: Iterate, step: Step
) -> Iterate:
    """The iterate after a step, by rank-one changes."""
    arm, rate = step
    towards = now.inverse @ selection.at(arms, arm)
    loss = rate / (1.0 - rate + rate * selection.at(now.variances, arm))
    inverse = now.inverse - loss * jnp.outer(towards, towards)
    variances = now.variances - loss * jnp.where(active, arms @ towards, 0.0) ** 2
    here = jnp.arange(active.size) == arm
    weights = (1.0 - rate) * now.weights + jnp.where(here, rate, 0.0)
    return Iterate(
        weights=jnp.where(here & (weights < selection.at_least(NOTHING, weights)), 0.0, weights),
        inverse=inverse / (1.0 - rate),
        variances=variances / (1.0 - rate),
        iterations=now.iterations + (rate != 0),
    )


def highest(variances: Float[Array, " K"]) -> Int[Array, ""]:
    """The arm of the largest variance, the first of those that are equal up to rounding."""
    return selection.best(selection.fine(variances)).arm


def _walk(arms, active, rule, first, *, tol, enough, max_iterations):
    """Steps of the rule from the start `first` until `max g_k <= (1 + enough) rank`."""
    space = subspace.of(arms, active)
    rank = jnp.maximum(space.rank, 1).astype(arms.dtype)

    def unfinished(state):
        now, rate = state
        above = now.variances.max() > (1.0 + enough) * rank
        return above & (rate != 0) & (now.iterations < max_iterations)

    def step(state):
        now, _ = state
        taken = rule(arms, now, rank)
        rate = jnp.minimum(taken.rate, FARTHEST).astype(arms.dtype)
        taken = taken._replace(rate=rate)
        return moved(arms, active, now, taken), taken.rate

    def afresh(state):
        last = state[0].iterations + TRUSTED
        going = lambda state: unfinished(state) & (state[0].iterations < last)  # noqa: E731
        now, rate = lax.while_loop(going, step, state)
        return evaluated(space, arms, active, now.weights, now.iterations), rate

    begin = start(space, arms, active, first), jnp.ones((), arms.dtype)
    return certified(space, lax.while_loop(unfinished, afresh, begin)[0], tol)


@traced_once
def g_optimal_fw(
    arms: Float[Array, "K d"],
    active: Bool[Array, " K"],
    *,
    tol: Scalar = 0.01,
    max_iterations: Whole = 100,
    start: str = "uniform",
) -> Design:
    """Frank-Wolfe on `max_k g_k` with exact line search, as printed (Azizi et al., 2022).

    With m the arm of the largest `g_k = x_k^T A(w)^-1 x_k`, weight moves to the arm with the
    largest `(x_j^T A^-1 x_m)^2`, which is m itself by Cauchy and Schwarz; the step minimises the
    maximum, a convex function, by golden sections. It ends after `max_iterations`, or with a step
    of 0.

    The method stalls: where several arms attain the maximum it has no gradient, and a step towards
    one of them raises another. From the uniform design on (2, 1), (0, -1), (-1, -2) one step leads
    from 39/14 to 26/11 and none further, though the optimum is 2; where two of the largest tie at
    the outset, the design stays uniform. A fall of the maximum by less than 1e-9 of itself counts
    as none, so that rounding does not decide whether it goes on. `converged` says whether `value`
    is within `tol` of `bound`, the rank; mostly it is not.
    """
    options = {"tol": tol, "enough": 0.0, "max_iterations": max_iterations}
    return _walk(arms, active, _line_search, start, **options)


@traced_once
def wynn(
    arms: Float[Array, "K d"],
    active: Bool[Array, " K"],
    *,
    tol: Scalar = 0.01,
    max_iterations: Whole = 20_000,
    start: str = "uniform",
) -> Design:
    """Step k moves `1 / (k + 1)` of the weight to the arm of the largest variance (Wynn, 1970)."""
    options = {"tol": tol, "enough": tol, "max_iterations": max_iterations}
    return _walk(arms, active, _wynn, start, **options)


@traced_once
def fedorov(
    arms: Float[Array, "K d"],
    active: Bool[Array, " K"],
    *,
    tol: Scalar = 0.01,
    max_iterations: Whole = 20_000,
    start: str = "uniform",
) -> Design:
    """Steps to the arm of the largest variance g that raise det A most (Fedorov, 1972).

    Their length is `(g / d - 1) / (g - 1)`, with d the rank.
    """
    options = {"tol": tol, "enough": tol, "max_iterations": max_iterations}
    return _walk(arms, active, _fedorov, start, **options)


@traced_once
def wolfe_atwood(
    arms: Float[Array, "K d"],
    active: Bool[Array, " K"],
    *,
    tol: Scalar = 0.01,
    max_iterations: Whole = 20_000,
    start: str = "uniform",
) -> Design:
    """The same with steps away from the supported arm of the smallest variance (Atwood, 1973).

    Of the two steps, the one is taken whose arm has a variance farther from d; a step away takes
    at most the whole weight of its arm. Convergence is linear in the end (Ahipasaoglu, Sun and
    Todd, 2008).
    """
    options = {"tol": tol, "enough": tol, "max_iterations": max_iterations}
    return _walk(arms, active, _wolfe_atwood, start, **options)


def _best_rate(variance, rank):
    """The step length that raises det A most; 1 where the rank is 1."""
    above = variance > 1.0
    return jnp.where(above, (variance / rank - 1.0) / jnp.where(above, variance - 1.0, 1.0), -1.0)


def _wynn(arms, now, rank):
    return Step(highest(now.variances), 1.0 / (now.iterations + 2.0))


def _fedorov(arms, now, rank):
    arm = highest(now.variances)
    return Step(arm, _best_rate(selection.at(now.variances, arm), rank))


def _wolfe_atwood(arms, now, rank):
    up = highest(now.variances)
    supported = now.weights > 0
    down = highest(jnp.where(supported, -now.variances, -jnp.inf))
    high, low = selection.at(now.variances, up), selection.at(now.variances, down)
    weight = selection.at(now.weights, down)
    most = -weight / jnp.where(weight < 1.0, 1.0 - weight, 1.0)
    away = jnp.where(low > 1.0, jnp.maximum(_best_rate(low, rank), most), most)
    forth = (high - rank >= rank - low) | (weight >= 1.0)
    return Step(jnp.where(forth, up, down), jnp.where(forth, _best_rate(high, rank), away))


def _line_search(arms, now, rank):
    arm = highest(now.variances)
    square = jnp.where(now.variances > 0, arms @ (now.inverse @ selection.at(arms, arm)), 0.0) ** 2
    variance = selection.at(now.variances, arm)

    def value(rate):
        after = now.variances - square * (rate / (1.0 - rate + rate * variance))
        return after.max() / (1.0 - rate)

    def section(_, state):
        low, high, left, at_left, right, at_right = state
        first = at_left < at_right
        low, high = jnp.where(first, low, left), jnp.where(first, right, high)
        rate = jnp.where(first, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        here = rate, value(rate)
        inner = (*here, left, at_left), (right, at_right, *here)
        inner = [jnp.where(first, one, two) for one, two in zip(*inner, strict=True)]
        return low, high, *inner

    zero, one = jnp.zeros((), arms.dtype), jnp.full((), FARTHEST, arms.dtype)
    left, right = one - GOLDEN * one, GOLDEN * one
    begin = (zero, one, left, value(left), right, value(right))
    low, high, *_ = lax.fori_loop(0, SECTIONS, section, begin)
    rate, gain = 0.5 * (low + high), selection.at_least(GAIN, now.variances)
    return Step(arm, jnp.where(value(rate) < (1.0 - gain) * now.variances.max(), rate, 0.0))
