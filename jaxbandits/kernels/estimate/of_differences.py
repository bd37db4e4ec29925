"""Least squares where nothing but differences of targets has to be known."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..linalg import subspace
from ..tracing import traced_once
from . import least_squares


@traced_once
def batch(
    arms: Float[Array, "K d"],
    counts: Int[Array, " K"],
    sums: Float[Array, " K"],
    targets: Float[Array, "M d"],
    alive: Bool[Array, " M"],
) -> tuple[Float[Array, "d d"], Float[Array, " d"], Bool[Array, ""]]:
    """A whole batch at once: `(V^-, theta, known)` from counts and reward sums.

    Where the drawn arms span, as `least_squares.batch`. Where they do not, `V^-` is a generalised
    inverse: `(z - z')^T theta` and `||z - z'||^2` in `V^-` are right for vectors of their span
    alone. `known` says whether all differences of targets alive are; otherwise both are NaN.
    """
    whole, _, logdet = least_squares.batch(arms, counts, sums)
    spans = logdet > -jnp.inf
    space, part = subspace.of_weighted(arms, counts)
    inside = subspace.differences_within(space, targets, alive, strict=True)
    inverse = jnp.where(spans, whole, jnp.where(inside, part, jnp.nan))
    return inverse, inverse @ (arms.T @ sums), spans | inside
