"""Coordinates in the span of a masked set of arms, with static shapes."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


class Span(NamedTuple):
    """An orthonormal frame of R^d, its first-class axes flagged."""

    frame: Array  # float [d, d] columns are axes
    kept: Array  # bool [d] axes inside the span
    rank: Array  # int []


def of(arms: Float[Array, "K d"], active: Bool[Array, " K"]) -> Span:
    """The span of the active arms, from the eigenvectors of their Gram matrix."""
    masked = jnp.where(active[:, None], arms, 0.0)
    eigenvalues, frame = jnp.linalg.eigh(masked.T @ masked)
    cut = arms.shape[0] * arms.shape[1] * jnp.finfo(arms.dtype).eps
    kept = eigenvalues > cut * eigenvalues[-1]
    return Span(frame, kept, kept.sum())


def coordinates(span: Span, vectors: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """Vectors in the frame, zero along the axes outside the span."""
    return (vectors @ span.frame) * span.kept


def fill(span: Span, matrix: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """Ones on the diagonal outside the span: the inverse restricted to the span is exact."""
    return matrix + jnp.diag((~span.kept).astype(matrix.dtype))
