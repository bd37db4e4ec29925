"""Vectors of the D = d (d + 1) / 2 products of a vector's coordinates, and sums over them.

With `s(x) = (x_i x_j, off the diagonal times sqrt(2))`, `s(x) . s(y) = (x . y)^2`, so quadratic
forms and sums of `x x^T` are products with a table of such vectors, half as long as `d^2`.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def _entries(dim):
    """Row and column of each entry, and the factor that belongs to it."""
    first, second = np.triu_indices(dim)
    return first, second, np.where(first == second, 1.0, np.sqrt(2.0))


def _back(dim):
    """Index of the product of two coordinates in such a vector, `int [d, d]`."""
    first, second, _ = _entries(dim)
    where = np.zeros((dim, dim), int)
    where[first, second] = where[second, first] = np.arange(first.size)
    return where


def size(dim: int) -> int:
    """D, the length of such a vector."""
    return dim * (dim + 1) // 2


def of(vectors: Float[Array, "n d"]) -> Float[Array, "n D"]:
    """`s(x)` of each row."""
    return between(vectors, vectors)


def between(left: Float[Array, "n d"], right: Float[Array, "n d"]) -> Float[Array, "n D"]:
    """Row by row the vector of the symmetric part of `x y^T`."""
    i, j, factor = _entries(left.shape[1])
    mixed = left[:, i] * right[:, j] + left[:, j] * right[:, i]
    return mixed * (0.5 * factor).astype(left.dtype)


def packed(matrix: Float[Array, "d d"]) -> Float[Array, " D"]:
    """`p` with `s(x) . p = x^T M x` for a symmetric M."""
    i, j, factor = _entries(matrix.shape[0])
    return matrix[i, j] * factor.astype(matrix.dtype)


def unpacked(vector: Float[Array, " D"], dim: int) -> Float[Array, "d d"]:
    """The symmetric matrix whose `packed` form this is."""
    _, _, factor = _entries(dim)
    return symmetric(vector / factor.astype(vector.dtype), dim)


def pairs(vectors: Float[Array, "n d"]) -> Float[Array, "n D"]:
    """Each product of two coordinates of a row once, without factors."""
    # Slices instead of indices: of arms that are not traced, this is computed before compilation.
    rows = [vectors[:, i : i + 1] * vectors[:, i:] for i in range(vectors.shape[1])]
    return jnp.concatenate(rows, axis=1)


def symmetric(vector: Float[Array, " D"], dim: int) -> Float[Array, "d d"]:
    """The matrix whose entries on and above the diagonal these are, row by row."""
    return vector.at[_back(dim)].get(mode="promise_in_bounds")


def product(left: Float[Array, "d d"], right: Float[Array, "d d"]) -> Float[Array, "D D"]:
    """The quadratic form that is `trace(P left P right)` at `packed(P)`; all are symmetric."""
    i, j, factor = _entries(left.shape[0])
    back, forth = np.ix_(i, j), np.ix_(j, i)
    same = left[np.ix_(i, i)] * right[np.ix_(j, j)] + left[np.ix_(j, j)] * right[np.ix_(i, i)]
    other = left[back] * right[forth] + left[forth] * right[back]
    return (same + other) * (0.25 * factor[:, None] * factor).astype(left.dtype)


def fourth(vectors: Float[Array, "n d"], weights: Float[Array, " n"]) -> Float[Array, "D D"]:
    """`sum over n of w_n s(x_n) s(x_n)^T`."""
    table = of(vectors)
    return table.T @ (weights[:, None] * table)


def fourth_of_pairs(
    points: Float[Array, "M d"], weights: Float[Array, "M M"]
) -> Float[Array, "D D"]:
    """`sum over a < b of w_ab s(z_a - z_b) s(z_a - z_b)^T` for symmetric w with zero diagonal.

    With `s(z_a - z_b) = s(z_a) + s(z_b) - 2 s(z_a, z_b)` sums over the points are enough. Points
    close to each other cancel in them, so that the accuracy falls with their distance.
    """
    dim, table = points.shape[1], of(points)
    i, j, factor = _entries(dim)
    products = (factor[:, None] * factor).astype(points.dtype)
    alone = fourth(points, weights.sum(1))
    both = (table.T @ weights) @ table
    mixed = table.T @ between(points, weights @ points)
    # sum of w_ab z_ai z_ak z_bj z_bl, of which `both` has the products in another order
    plain, back = both / products, _back(dim)
    straight = plain[back[np.ix_(i, i)], back[np.ix_(j, j)]]
    crossed = plain[back[np.ix_(i, j)], back[np.ix_(j, i)]]
    return alone + both - 2.0 * (mixed + mixed.T) + products * (straight + crossed)
