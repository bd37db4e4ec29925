"""Frank-Wolfe on the G-objective, as a paper's program runs it; `d_optimal` is more accurate."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ...types import Scalar, Whole
from .. import selection
from ..linalg import subspace
from . import vertex_directions
from .d_optimal import Design, Iterate

SMALLEST = 1e-5  # weights below it are dropped in the end


class _State(NamedTuple):
    design: Iterate
    near: Bool[Array, ""]  # the largest variance was close to the goal before the last step


def g_optimal(
    arms: Float[Array, "K d"],
    active: Bool[Array, " K"],
    goal: Float[Array, ""] | Int[Array, ""],
    *,
    tol: Scalar = 0.01,
    max_iterations: Whole = 4999,
) -> Design:
    """Frank-Wolfe from uniform weights on the active arms, one step before every test.

    Step k moves `2 / (k + 2)` of the weight to the arm with the largest `g = x^T A(w)^-1 x`, the
    first of those that are equal up to rounding. A step is the last one if `max g` was within
    `tol` of `goal` before it: even an optimal uniform design makes one step, far away from the
    optimum. Weights below 1e-5 are then given to the largest one.
    `value` and `bound` are those of the weights returned; `converged` says whether `value` is
    within `tol` of `bound`, the rank of the active arms.
    """
    space = subspace.of(arms, active)

    def step(state):
        now = state.design
        arm = vertex_directions.highest(now.variances)
        taken = vertex_directions.Step(arm, 2.0 / (now.iterations + 3.0))
        near = jnp.abs(selection.at(now.variances, arm) - goal) < tol
        return _State(vertex_directions.moved(arms, active, now, taken), near)

    def unfinished(state):
        return ~state.near & (state.design.iterations < max_iterations)

    begin = _State(vertex_directions.start(space, arms, active), jnp.array(False))
    end = lax.while_loop(unfinished, step, begin).design
    end = vertex_directions.evaluated(space, arms, active, _trimmed(end.weights), end.iterations)
    value = end.variances.max()
    rank = jnp.maximum(space.rank, 1).astype(arms.dtype)
    return Design(end.weights, value, rank, end.iterations, value <= rank + tol)


def _trimmed(weights):
    kept = jnp.where(weights < SMALLEST, 0.0, weights)
    here = jnp.arange(weights.size) == selection.best(weights).arm
    return kept + jnp.where(here, 1.0 - kept.sum(), 0.0)
