"""Designs without their smallest weights, as RAGE's experiments cut them."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from ....types import Scalar
from ...linalg import blocks, pairwise, subspace
from ...tracing import traced_once
from .. import directions
from ..d_optimal import Design

NEGLIGIBLE = 1e-5  # Fiez et al. (2019), Appendix F


class _Cut(NamedTuple):
    below: Float[Array, ""]  # weights below it are to be cut next
    design: Design
    done: Bool[Array, ""]


@traced_once
def cut(
    arms: Float[Array, "K d"],
    targets: Float[Array, "M d"],
    alive: Bool[Array, " M"],
    design: Design,
    *,
    most: Scalar,
    first: Scalar = NEGLIGIBLE,
) -> Design:
    """The design without its weights below 1e-5, for all differences of the targets alive.

    The arms that are left may lack rank. They must span all these differences, and the largest
    `||z - z'||^2` in the pseudo-inverse of `A(w)` must be at most `most`; otherwise weights are
    cut at less, or none is. `value` is that of the design returned.

    An interior-point method leaves arms that no optimum needs with about `tol / K`, which can be
    above 1e-5. So weights below `first` are cut where this is allowed, then below a tenth of it,
    and so on. The last attempt is at the smaller of `first` and 1e-5.
    """
    first = jnp.asarray(first, arms.dtype)
    last = 0.5 * jnp.minimum(first, NEGLIGIBLE)
    # Around their centre no point is farther from it than two are apart: no digits are lost.
    total = blocks.weighted_sum(targets, alive.astype(targets.dtype))
    points = targets - total / jnp.maximum(alive.sum(), 1)

    def small(state):
        return (design.weights > 0) & (design.weights < state.below)

    def unfinished(state):
        return ~state.done & (state.below > last) & small(state).any()

    def attempt(state):
        weights = jnp.where(small(state), 0.0, design.weights)
        weights = weights / jnp.maximum(weights.sum(), NEGLIGIBLE)
        space, inverse = subspace.of_weighted(arms, weights)
        value = _largest(points, alive, inverse)
        # No design is better than the bound, unless its inverse is wrong.
        good = (value <= most) & (value >= 2.0 * design.bound - most)
        good = good & subspace.differences_within(space, targets, alive, strict=True)
        found = design._replace(
            weights=jnp.where(good, weights, design.weights),
            value=jnp.where(good, value, design.value),
        )
        return _Cut(0.1 * state.below, found, good)

    begin = _Cut(jnp.maximum(first, NEGLIGIBLE), design, jnp.array(False))
    return lax.while_loop(unfinished, attempt, begin).design


def _largest(points, alive, inverse):
    """The largest `||z - z'||^2` of points alive."""
    if points.shape[0] > pairwise.FEW:
        return pairwise.farthest(points, alive, inverse, 1).sqdist[0]
    both = alive[:, None] & alive
    return jnp.where(both, directions.sqdist(points, inverse), 0.0).max()
