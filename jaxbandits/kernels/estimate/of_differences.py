"""Least squares where nothing but differences of targets has to be known."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ..linalg import spd, subspace
from ..tracing import traced_once
from . import least_squares


@traced_once
def inverse(
    arms: Float[Array, "K d"],
    counts: Int[Array, " K"],
    targets: Float[Array, "M d"],
    alive: Bool[Array, " M"],
) -> tuple[Float[Array, "d d"], Bool[Array, ""]]:
    """What draws of each arm tell of the targets alive: `(V^-, known)`, V the sum of `x x^T`.

    Where the drawn arms span, `V^-` is the inverse of `least_squares.batch`. Where they do not, it
    is a generalised one: with `theta = V^- X^T sums`, `(z - z')^T theta` and `||z - z'||^2` in
    `V^-` are right for vectors of their span alone. `known` says whether all differences of targets
    alive are; otherwise `V^-` is NaN.
    """
    found = spd.inverse(least_squares.gram(arms, counts), may_lack_rank=True)

    def on_the_span():
        space, part = subspace.of_weighted(arms, counts)
        inside = subspace.differences_within(space, targets, alive, strict=True)
        return jnp.where(inside, part, jnp.nan), inside

    # The rare case costs more than all else; a branch that no lane takes is skipped.
    return lax.cond(found.positive, lambda: (found.matrix, jnp.array(True)), on_the_span)
