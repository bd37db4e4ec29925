"""Steps with an old Hessian's inverse (the chord method), which come before Newton steps."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from ...types import Scalar, Whole

FEW = 10  # steps
READY = 0.1  # of the tolerance: the aim before a Newton step
FINE = 1e-3  # of the tolerance: the aim where no Newton step follows


class Slope(NamedTuple):
    """The gradient of f where steps begin, if it is known without sums over the arms."""

    gradient: Float[Array, " d"]
    known: Bool[Array, ""] | bool = True  # where it is False, the gradient does not matter


class Followed(NamedTuple):
    """The end of some steps with an old inverse B."""

    theta: Float[Array, " d"]
    move: Float[Array, " d"]  # B g
    decrement: Float[Array, ""]  # g^T B g / 2
    ahead: Float[Array, ""]  # the decrement after the move, if it shrinks at the same rate
    closing: Bool[Array, ""]  # whether the last step at least halved the decrement

    def settled(self, tol: Scalar) -> Bool[Array, ""]:
        """Whether it is within the tolerance, and far within it after the move to come."""
        return (self.decrement <= tol) & (self.ahead <= FINE * tol)


@runtime_checkable
class Problem(Protocol):
    """A function f to be minimised."""

    def gradient(self, theta: Float[Array, " d"]) -> Float[Array, " d"]:
        """Of f at theta."""
        ...


def approach(
    problem: Problem,
    theta: Float[Array, " d"],
    inverse: Float[Array, "d d"],
    tol: Scalar,
    slope: Slope | None = None,
) -> Float[Array, " d"]:
    """A point from which a Newton step is likely to reach the tolerance."""
    near = follow(problem, theta, inverse, lambda now: now.ahead <= READY * tol, FEW, slope)
    moved = jnp.where(near.closing, near.theta - near.move, near.theta)
    # With an infinite tolerance theta stays: the result may not depend on the old inverse then.
    return jnp.where(jnp.isfinite(tol), moved, theta)


def follow(
    problem: Problem,
    theta: Float[Array, " d"],
    inverse: Float[Array, "d d"],
    enough: Callable[[Followed], Bool[Array, ""]],
    most: Whole,
    slope: Slope | None = None,
) -> Followed:
    """Steps with an old inverse, until `enough`, while each at least halves the decrement.

    At most `most` steps. A `slope` that is known gives the gradient of the first one, which is then
    judged by what comes after it alone.
    """

    def evaluated(theta, before):
        return judged(theta, problem.gradient(theta), before)

    def judged(theta, gradient, before):
        move = inverse @ gradient
        decrement = 0.5 * gradient @ move
        ratio = jnp.where(decrement < before, decrement / before, 1.0)
        closing = decrement <= 0.5 * before  # False for NaN
        return Followed(theta, move, decrement, decrement * ratio, closing)

    def step(carry):
        now, steps = carry
        there = evaluated(now.theta - now.move, now.decrement)
        kept = jax.tree.map(lambda new, old: jnp.where(there.closing, new, old), there, now)
        return kept._replace(closing=there.closing), steps + 1

    def unfinished(carry):
        now, steps = carry
        return now.closing & ~enough(now) & (steps < most)

    def begin():
        if slope is None:
            return evaluated(theta, zero)._replace(closing=jnp.array(True))
        gradient = lax.cond(slope.known, lambda: slope.gradient, lambda: problem.gradient(theta))
        here = judged(theta, gradient, zero)
        there = evaluated(theta - here.move, here.decrement)
        good = there.closing | enough(there)
        far = jnp.full_like(zero, jnp.inf)
        stay = Followed(theta, jnp.zeros_like(theta), far, far, jnp.array(False))
        there = there._replace(closing=jnp.array(True))
        return jax.tree.map(lambda new, old: jnp.where(good, new, old), there, stay)

    zero = jnp.zeros((), theta.dtype)
    return lax.while_loop(unfinished, step, (begin(), jnp.zeros((), int)))[0]
