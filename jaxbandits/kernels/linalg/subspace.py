"""Coordinates in the span of a masked set of vectors, with static shapes.

A subspace of R^d of dimension r is represented by r of the d coordinates: those in which its
vectors vary most freely. Leaving out the others takes no matrix product, and every quadratic form
`x^T (sum of x x^T)^- x` on the span is the same in all such coordinates.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Shaped

from .. import selection
from ..estimate import least_squares
from ..tracing import traced_once
from . import blocks, scaling, spd


class Span(NamedTuple):
    """A subspace of R^d; each of its vectors is `basis @ x`, x its own kept coordinates."""

    basis: Float[Array, "d d"]  # columns span it: 1 at their own coordinate, zero if not kept
    kept: Bool[Array, " d"]
    rank: Int[Array, ""]


@traced_once
def of(vectors: Float[Array, "K d"], active: Bool[Array, " K"]) -> Span:
    """The span of the active vectors.

    A residual below `sqrt(K d eps)` of the length of its column counts as zero.
    """
    return of_weighted(vectors, active)[0]


def of_weighted(
    vectors: Float[Array, "K d"], weights: Shaped[Array, " K"]
) -> tuple[Span, Float[Array, "d d"]]:
    """The span of the vectors of positive weight, and a generalised inverse of their weighted sum.

    The second is that of `sum of w x x^T`: a quadratic form in it is exact for vectors of the span.
    """
    matrix = least_squares.gram(vectors, weights)
    inverse = spd.partial_inverse(matrix, negligible(vectors))
    return of_gram(matrix, inverse), inverse.matrix


def of_gram(matrix: Float[Array, "d d"], inverse: spd.Partial) -> Span:
    """The span of vectors from the (weighted) sum of their `x x^T` and its partial inverse."""
    unit = jnp.eye(matrix.shape[0], dtype=matrix.dtype)
    # At the kept coordinates themselves the product is the identity, up to rounding.
    basis = jnp.where(inverse.kept[:, None], unit * inverse.kept, matrix @ inverse.matrix)
    return Span(basis, inverse.kept, inverse.kept.sum())


def negligible(vectors: Float[Array, "K d"]) -> float:
    """What rounding may leave of a squared length that should be 0, relative to its column's."""
    return vectors.size * float(jnp.finfo(vectors.dtype).eps)


def coordinates(span: Span, vectors: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """The kept coordinates of vectors of the span, zero for the others."""
    return jnp.where(span.kept, vectors, 0.0)


def whitening(
    span: Span, matrix: Float[Array, "d d"]
) -> Callable[[Float[Array, "n d"]], Float[Array, "n d"]]:
    """A linear map of rows that turns `matrix` into the identity of the kept coordinates.

    `matrix` is a `sum of w x x^T` in kept coordinates.
    """
    factor = spd.cholesky(fill(span, matrix))

    def mapped(vectors):
        return spd.forward_substitute(factor, coordinates(span, vectors).T).T

    return mapped


def whitened(
    arms: Float[Array, "K d"], weights: Float[Array, " K"]
) -> tuple[Span, Float[Array, "K d"]]:
    """The span of the support, and the arms in coordinates where A(w) is the identity on it."""
    space = of(arms, weights > 0)
    raw = coordinates(space, arms)
    return space, whitening(space, least_squares.gram(raw, weights / weights.sum()))(arms)


def within(span: Span, vectors: Float[Array, "n d"], *, strict: bool = False) -> Bool[Array, " n"]:
    """Which vectors lie in the span, up to about 1e-6 of their length (double precision).

    The strict test is up to about 1e-10. Vectors of the span can fail it where the vectors that
    span it are badly conditioned.
    """
    eps = jnp.finfo(vectors.dtype).eps
    lost = eps**1.25 if strict else 1e4 * eps

    def test(rows):
        return residuals(span, rows) <= lost * (rows**2).sum(1)

    return blocks.each(test, vectors)


def differences_within(
    span: Span, points: Float[Array, "M d"], alive: Bool[Array, " M"], *, strict: bool = False
) -> Bool[Array, ""]:
    """Whether all differences of the points alive lie in the span, see `within`."""
    # Seen from the point that is farthest off: from one far away all others look alike.
    total = blocks.weighted_sum(points, alive.astype(points.dtype))
    centre = total / jnp.maximum(alive.sum(), 1)
    off = blocks.each(lambda rows: residuals(span, rows - centre), points)
    one = points[selection.best(jnp.where(alive, off, -1.0)).arm]
    inside = blocks.each(lambda rows: within(span, rows - one, strict=strict), points)
    return (~alive | inside).all()


def residuals(span: Span, vectors: Float[Array, "n d"]) -> Float[Array, " n"]:
    """The squared length of what a vector of the span with its kept coordinates leaves."""
    return ((vectors - vectors @ span.basis.T) ** 2).sum(1)


def project(span: Span, vector: Float[Array, " d"]) -> Float[Array, " d"]:
    """The nearest vector of the span."""
    inner = spd.inverse(fill(span, span.basis.T @ span.basis)).matrix
    return span.basis @ (inner @ (span.basis.T @ vector))


def fill(span: Span, matrix: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """The matrix with ones on the diagonal outside the span: its inverse is exact on the span."""
    return matrix + jnp.diag((~span.kept).astype(matrix.dtype))


def pseudo_inverse(matrix: Float[Array, "d d"], negligible: float) -> Float[Array, "d d"]:
    """Moore and Penrose's inverse of a positive semi-definite matrix.

    Pivots below `negligible` times the diagonal entry of their column count as zero.
    """
    return pseudo_inverse_on(of_gram(matrix, spd.partial_inverse(matrix, negligible)), matrix)


def pseudo_inverse_on(span: Span, matrix: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """The same for a matrix whose range is the span."""
    inner = spd.inverse(fill(span, span.basis.T @ matrix @ span.basis)).matrix
    return span.basis @ inner @ span.basis.T


def inverse(span: Span, matrix: Float[Array, "d d"]) -> spd.Inverse:
    """The inverse of `matrix` in the kept coordinates, zero elsewhere.

    For a sum of `w x x^T` that spans the subspace, a generalised inverse on it; otherwise
    `positive` is False. `logdet` and `factor` belong to the filled matrix.
    """
    both = span.kept[:, None] & span.kept[None, :]
    found = spd.inverse(fill(span, jnp.where(both, matrix, 0.0)))
    return found._replace(matrix=jnp.where(both, found.matrix, 0.0))


def rank(vectors: Float[Array, "K d"]) -> Int[Array, ""]:
    """Dimension of the span, including directions hardly larger than rounding errors.

    Gram-Schmidt on the longest remainder; a remainder counts if it exceeds `max(K, d) eps` times
    the length of all vectors together. `of` squares the vectors, so that it misses directions
    below 1e-7 of the longest.
    """
    steps = min(vectors.shape)
    least = (max(vectors.shape) * jnp.finfo(vectors.dtype).eps) ** 2 * (vectors**2).sum()

    def remove(_, carry):
        rest, found = carry
        longest = rest[(rest**2).sum(1).argmax()]
        square = longest @ longest
        unit = longest / jnp.sqrt(jnp.where(square > 0, square, 1.0))
        return rest - jnp.outer(rest @ unit, unit), found + (square > least)

    return lax.fori_loop(0, steps, remove, (vectors, jnp.zeros((), int)))[1]


def far_apart(arms: Float[Array, "K d"], active: Bool[Array, " K"]) -> Bool[Array, " K"]:
    """A basis of the span of the active arms.

    Each time the arm is taken whose part outside the span of those before it is the longest.
    """
    num_arms, dim = arms.shape
    arms = scaling.among(arms, active)
    lengths = jnp.where(active, (arms**2).sum(1), 0.0)
    cut = negligible(arms) * lengths.max()

    def add(j, carry):
        rest, axes, chosen = carry
        far = selection.best(rest)
        x = selection.at(arms, far.arm)
        for _ in range(2):  # the second pass keeps the axes orthogonal
            x = x - axes @ (axes.T @ x)
        found = far.value > cut
        axis = jnp.where(found, x / jnp.sqrt(jnp.where(found, x @ x, 1.0)), 0.0)
        rest = jnp.where(active, jnp.maximum(rest - (arms @ axis) ** 2, 0.0), 0.0)
        here = (jnp.arange(num_arms) == far.arm) & found
        return jnp.where(here, 0.0, rest), axes.at[:, j].set(axis), chosen | here

    begin = (lengths, jnp.zeros((dim, dim), arms.dtype), jnp.zeros(num_arms, bool))
    return lax.fori_loop(0, dim, add, begin)[2]
