"""Frank-Wolfe on the G-objective, as the program of a paper runs it; for good designs, `design`."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .. import selection
from ..linalg import subspace
from . import vertex_directions
from .d_optimal import Design, Place

SMALLEST = 1e-5  # weights below it are dropped in the end


class _State(NamedTuple):
    place: Place
    near: Array  # bool [] the largest variance was close to the goal before the last step


def g_optimal(
    arms: Float[Array, "K d"],
    active: Bool[Array, " K"],
    goal: Float[Array, ""] | Int[Array, ""],
    *,
    tol: Float[Array, ""] | float = 0.01,
    max_iterations: Int[Array, ""] | int = 4999,
) -> Design:
    """Frank-Wolfe from uniform weights on the active arms, one step before every test.

    Step k moves `2 / (k + 2)` of the weight to the arm with the largest `g = x^T A(w)^-1 x`, the
    first of those that are equal up to rounding. It is the last one if `max g` was within `tol`
    of `goal` before it: a uniform design that was optimal ends far from it. Weights below 1e-5
    are then given to the largest one.
    `value` and `bound` are those of the weights returned; `converged` is that `value` is within
    `tol` of `bound`, the rank of the active arms.
    """
    space = subspace.of(arms, active)

    def step(state):
        now = state.place
        arm = vertex_directions.highest(now.variances)
        taken = vertex_directions.Step(arm, 2.0 / (now.iterations + 3.0))
        near = jnp.abs(selection.at(now.variances, arm) - goal) < tol
        return _State(vertex_directions.moved(arms, active, now, taken), near)

    def unfinished(state):
        return ~state.near & (state.place.iterations < max_iterations)

    begin = _State(vertex_directions.start(space, arms, active), jnp.array(False))
    end = lax.while_loop(unfinished, step, begin).place
    end = vertex_directions.look(space, arms, active, _trimmed(end.weights), end.iterations)
    value = end.variances.max()
    rank = jnp.maximum(space.rank, 1).astype(arms.dtype)
    return Design(end.weights, value, rank, end.iterations, value <= rank + tol)


def _trimmed(weights):
    kept = jnp.where(weights < SMALLEST, 0.0, weights)
    here = jnp.arange(weights.size) == selection.best(weights).arm
    return kept + jnp.where(here, 1.0 - kept.sum(), 0.0)
