"""Coordinates in the span of a masked set of vectors, with static shapes."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float


class Span(NamedTuple):
    """Orthonormal axes of a subspace of R^d in the first `rank` of d columns."""

    frame: Array  # float [d, d] columns are axes, zero where not kept
    kept: Array  # bool [d]
    rank: Array  # int []


def of(vectors: Float[Array, "K d"], active: Bool[Array, " K"]) -> Span:
    """The span of the active vectors, by Gram-Schmidt with pivoting.

    A residual below `sqrt(K d eps)` of the longest vector counts as zero.
    """
    num, dim = vectors.shape
    start = jnp.where(active[:, None], vectors, 0.0)
    longest = (start**2).sum(1).max()
    cut = num * dim * jnp.finfo(vectors.dtype).eps * longest

    def axis(j, carry):
        rest, frame = carry
        lengths = (rest**2).sum(1)
        pivot = jnp.argmax(lengths)
        chosen = rest[pivot]
        chosen = chosen - frame @ (frame.T @ chosen)  # a second pass keeps the axes orthogonal
        length = (chosen**2).sum()
        found = (lengths[pivot] > cut) & (length > 0)
        unit = jnp.where(found, chosen / jnp.sqrt(jnp.where(found, length, 1.0)), 0.0)
        return rest - (rest @ unit)[:, None] * unit[None, :], frame.at[:, j].set(unit)

    begin = (start, jnp.zeros((dim, dim), vectors.dtype))
    _, frame = lax.fori_loop(0, dim, axis, begin)
    kept = (frame**2).sum(0) > 0.5
    return Span(frame, kept, kept.sum())


def coordinates(span: Span, vectors: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """Vectors in the frame, zero along the axes that are not kept."""
    return vectors @ span.frame


def fill(span: Span, matrix: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """Ones on the diagonal outside the span: the inverse restricted to the span is exact."""
    return matrix + jnp.diag((~span.kept).astype(matrix.dtype))
