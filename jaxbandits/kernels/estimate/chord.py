"""Steps with an old Hessian's inverse (the chord method), on the way of `newton` to a fit."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

FEW = 10  # steps
READY = 0.1  # of the tolerance: what they aim at before a Newton step
FINE = 1e-3  # and where none follows


class Slope(NamedTuple):
    """The gradient of f where steps begin, as far as it is known without sums over the arms."""

    gradient: Array
    known: Any = True  # bool []; the gradient does not matter where it is False


class Followed(NamedTuple):
    """Where steps with an old inverse B have led."""

    theta: Array
    move: Array  # B g
    decrement: Array  # g^T B g / 2
    ahead: Array  # what the decrement will be after the move, if it shrinks as it did
    closing: Array  # bool []: whether the last step at least halved it

    def settled(self, tol):
        """Whether it is within the tolerance, and far within it after the move to come."""
        return (self.decrement <= tol) & (self.ahead <= FINE * tol)


def approach(problem, theta, inverse, tol, slope=None):
    """Where a Newton step is likely to be within the tolerance, by steps with an old inverse."""
    near = follow(problem, theta, inverse, lambda now: now.ahead <= READY * tol, FEW, slope)
    moved = jnp.where(near.closing, near.theta - near.move, near.theta)
    # Where any fit will do, all stay where they are: moves by old inverses are unlike each other.
    return jnp.where(jnp.isfinite(tol), moved, theta)


def follow(problem, theta, inverse, enough, most, slope=None):
    """Steps with an old inverse, until `enough`, while each at least halves the decrement.

    The first one is taken as the `slope` says, if any; what is seen after it is all that counts.
    """

    def look(theta, before):
        return judged(theta, problem.gradient(theta), before)

    def judged(theta, gradient, before):
        move = inverse @ gradient
        decrement = 0.5 * gradient @ move
        ratio = jnp.where(decrement < before, decrement / before, 1.0)
        closing = decrement <= 0.5 * before  # False for NaN
        return Followed(theta, move, decrement, decrement * ratio, closing)

    def step(carry):
        now, steps = carry
        there = look(now.theta - now.move, now.decrement)
        kept = jax.tree.map(lambda new, old: jnp.where(there.closing, new, old), there, now)
        return kept._replace(closing=there.closing), steps + 1

    def unfinished(carry):
        now, steps = carry
        return now.closing & ~enough(now) & (steps < most)

    def set_out():
        if slope is None:
            return look(theta, zero)._replace(closing=jnp.array(True))
        gradient = lax.cond(slope.known, lambda: slope.gradient, lambda: problem.gradient(theta))
        here = judged(theta, gradient, zero)
        there = look(theta - here.move, here.decrement)
        good = there.closing | enough(there)
        nowhere = Followed(theta, jnp.zeros_like(theta), jnp.inf, jnp.inf, False)
        there = there._replace(closing=jnp.array(True))
        return jax.tree.map(lambda new, old: jnp.where(good, new, old), there, nowhere)

    zero = jnp.zeros((), theta.dtype)
    return lax.while_loop(unfinished, step, (set_out(), jnp.zeros((), int)))[0]
