"""Symmetric positive definite systems, written as plain loops over columns.

The compiler expands batched triangular solves into programs that take tens of seconds to
compile, and batched LAPACK calls inside a compiled loop were seen to deadlock the CPU runtime
(jaxlib 0.10). These loops compile in milliseconds and vectorise over lanes.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from ...types import Scalar
from .. import selection
from ..primitives import called_as, primitive
from . import blocks, scaling

# Primitives, because the lane compilers implement these functions in another way; they tell the
# results of one apart by their number of axes.
SWEEP_COLUMNS, SWEEP_LARGEST = primitive("sweep_columns"), primitive("sweep_largest")
WIDE, BLOCK = 128, 32  # wider matrices are inverted by products, so many columns at a time
LOST = 64.0  # a pivot of so many rounding errors may be what is left of a lost direction


class Inverse(NamedTuple):
    """The inverse of a symmetric matrix; `positive` says whether it was positive definite."""

    matrix: Float[Array, "d d"]
    logdet: Float[Array, ""]  # of the original, meaningless unless positive
    positive: Bool[Array, ""]
    factor: Float[Array, "d d"]  # lower triangular L of the original L L^T; costs little to get


def inverse(matrix: Float[Array, "d d"], *, may_lack_rank: bool = False) -> Inverse:
    """Invert by sweeping each column; needs no pivoting on a positive definite matrix.

    A pivot that is not positive is replaced by 1 and clears `positive`: the result is then
    finite but wrong, and callers have to check the flag. In a matrix that may lack rank, rounding
    can make pivots positive that should be 0; with `may_lack_rank` so small pivots count as 0.
    """
    shrink = _shrink(matrix)
    least = LOST * np.finfo(matrix.dtype).eps if may_lack_rank else 0.0
    found, logdet, positive, factor = sweep_columns(_shrunk(matrix, shrink), least)
    logdet = logdet - 2.0 * jnp.log(shrink).sum()
    return Inverse(_shrunk(found, shrink), logdet, positive, factor[:, :, 0] / shrink[:, None])


@called_as(SWEEP_COLUMNS)
def sweep_columns(
    matrix: Float[Array, "d d"], least: Scalar
) -> tuple[Float[Array, "d d"], Float[Array, ""], Bool[Array, ""], Float[Array, "d d 1"]]:
    """`(inverse [d, d], log-determinant, positive, factor [d, d, 1])`; pivots at most 1."""
    sweep = _sweep_blocks if matrix.shape[0] > WIDE else _sweep_each
    inverse, logdet, positive, factor = sweep(matrix, least)
    return inverse, logdet, positive, factor[:, :, None]


def _sweep_each(matrix, least):
    """`sweep_columns`, a column at a time."""
    dim = matrix.shape[0]
    index = jnp.arange(dim)

    def step(j, carry):
        table, logdet, positive, factor = carry
        column = table[:, j]
        good = column[j] > least  # False for NaN
        pivot = jnp.where(good, column[j], 1.0)
        rest = jnp.where(index >= j, column / jnp.sqrt(pivot), 0.0)
        table = _sweep(table, column, index == j, pivot)
        return table, logdet + jnp.log(pivot), positive & good, factor.at[:, j].set(rest)

    begin = (matrix, jnp.zeros((), matrix.dtype), jnp.ones((), bool), jnp.zeros_like(matrix))
    table, logdet, positive, factor = lax.fori_loop(0, dim, step, begin)
    return _swept(table), logdet, positive, factor


def _sweep_blocks(matrix, least):
    """`sweep_columns`, `BLOCK` columns at a time: a wide table is read once for all of them."""
    width = matrix.shape[0]
    padded = _with_ones(matrix)
    dim = padded.shape[0]

    def step(block, carry):
        table, logdet, positive, factor = carry
        begin = block * BLOCK
        rows = lax.dynamic_slice(table, (begin, 0), (BLOCK, dim))  # the columns, by symmetry
        pivots = lax.dynamic_slice(rows, (0, begin), (BLOCK, BLOCK))
        inner, more, good, own = _sweep_each(pivots, least)
        here = begin + jnp.arange(BLOCK)
        change = rows - (here[:, None] == jnp.arange(dim))
        below = jnp.where(jnp.arange(dim) >= begin, rows, 0.0).T @ (inner @ own)
        below = lax.dynamic_update_slice(below, own, (begin, 0))
        factor = lax.dynamic_update_slice(factor, below, (0, begin))
        return table - change.T @ (inner @ change), logdet + more, positive & good, factor

    begin = (padded, jnp.zeros((), matrix.dtype), jnp.ones((), bool), jnp.zeros_like(padded))
    table, logdet, positive, factor = lax.fori_loop(0, dim // BLOCK, step, begin)
    return _swept(table)[:width, :width], logdet, positive, factor[:width, :width]


def _with_ones(matrix):
    """A matrix of whole blocks: it is continued by a diagonal of ones."""
    width = matrix.shape[0]
    padded = jnp.eye(width + -width % BLOCK, dtype=matrix.dtype)
    return padded.at[:width, :width].set(matrix)


def _shrink(matrix):
    """Powers of two that bring each diagonal entry to [1/4, 1), and pivots below 1.

    Row and column i are multiplied by factor i. Whether a pivot counts as lost does then not
    depend on the unit of its column. A diagonal entry of 0 or less stays as it is.
    """
    diagonal = jnp.diagonal(matrix)
    return 0.5 / scaling.power_of_two(jnp.sqrt(jnp.where(diagonal > 0, diagonal, 0.25)))


def _shrunk(matrix, shrink):
    """Rows and columns multiplied by powers of two, which is exact."""
    return matrix * shrink[:, None] * shrink[None, :]


def _sweep(table, column, here, pivot):
    """Sweep column c, of unit vector e and pivot p, by one product: `(c - e)(c - e)^T / p`.

    This is a sweep except for the diagonal, see `_swept`, and exact where p is at most 1.
    """
    # The barrier keeps the compiler from computing both anew for each entry of the table.
    change, scaled = lax.optimization_barrier((column - here, (column - here) / pivot))
    return table - change[:, None] * scaled[None, :]


def _swept(table):
    """The inverse once all columns are swept, made symmetric despite rounding."""
    return 2.0 * jnp.eye(table.shape[0], dtype=table.dtype) - 0.5 * (table + table.T)


class Partial(NamedTuple):
    """The inverse of the largest well-conditioned principal block, zero outside of it."""

    matrix: Float[Array, "d d"]
    kept: Bool[Array, " d"]  # the block


def partial_inverse(matrix: Float[Array, "d d"], negligible: float) -> Partial:
    """Sweep the columns with the largest pivots first, while they are above `negligible`.

    A pivot is measured against the diagonal entry of its own column, not against those of other
    columns, which may be of another size (see `scaling`). For a semi-definite matrix M of rank r
    the block is r by r and the result a generalised inverse P: `M P M = M` and `P M P = P`.
    """
    shrink = _shrink(matrix)
    diagonal = jnp.diagonal(matrix)
    there = diagonal > scaling.noise(jnp.sqrt(diagonal.max())) ** 2
    pivots = jnp.where(there, diagonal * shrink**2, 0.0)
    table, kept = sweep_largest(_shrunk(matrix, shrink), pivots, negligible)
    inverse = _shrunk(_swept(table), shrink)
    return Partial(jnp.where(kept[:, None] & kept[None, :], inverse, 0.0), kept)


@called_as(SWEEP_LARGEST)
def sweep_largest(
    matrix: Float[Array, "d d"], pivots: Float[Array, " d"], negligible: Scalar
) -> tuple[Float[Array, "d d"], Bool[Array, " d"]]:
    """The table after sweeps of the largest pivots above `negligible`, and which columns these are.

    `pivots` is the diagonal, with zeros for columns that count as zero.
    """
    index = jnp.arange(matrix.shape[0])

    def step(carry):
        table, rest = carry
        pivot = selection.best(rest)
        column = selection.at(table, pivot.arm)
        here = index == pivot.arm
        rest = jnp.where(here, -jnp.inf, rest - column**2 / pivot.value)  # -inf once swept
        return _sweep(table, column, here, pivot.value), rest

    unfinished = lambda carry: (carry[1] > negligible).any()  # noqa: E731  False for NaN
    table, rest = lax.while_loop(unfinished, step, (matrix, pivots))
    return table, rest == -jnp.inf


def positive(matrix: Float[Array, "d d"]) -> Bool[Array, ""]:
    """Whether a symmetric matrix is positive definite: whether all pivots of elimination are."""

    def step(j, carry):
        table, good = carry
        column = table[:, j]
        ahead = column[j] > 0  # False for NaN
        scaled = lax.optimization_barrier(column / jnp.where(ahead, column[j], 1.0))
        return table - scaled[:, None] * column[None, :], good & ahead

    return lax.fori_loop(0, matrix.shape[0], step, (matrix, jnp.ones((), bool)))[1]


def least_eigenvalue(matrix: Float[Array, "d d"]) -> Float[Array, ""]:
    """A lower bound on the least eigenvalue of a positive definite matrix, by bisection.

    The matrix is still `positive` when the bound is subtracted from its diagonal. The bound is
    less than 1e-12 of the trace below the eigenvalue (in double precision).
    """
    dim, eps = matrix.shape[0], np.finfo(matrix.dtype).eps
    unit = jnp.eye(dim, dtype=matrix.dtype)

    def halve(_, ends):
        low, high = ends
        middle = 0.5 * (low + high)
        below = positive(matrix - middle * unit)
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    steps = round(-np.log2(4 * eps))
    ends = (jnp.zeros((), matrix.dtype), jnp.trace(matrix) / dim)
    return lax.fori_loop(0, steps, halve, ends)[0]


def cholesky(matrix: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """Lower triangular L with `L L^T = matrix`; NaN from the first pivot that is not positive."""
    if matrix.shape[0] > WIDE:
        return _cholesky_by_blocks(matrix)
    index = jnp.arange(matrix.shape[0])

    def column(j, factor):
        rest = matrix[:, j] - factor @ factor[j]  # columns of the factor from j on are zero
        pivot = jnp.where(rest[j] > 0, rest[j], jnp.nan)
        return factor.at[:, j].set(jnp.where(index >= j, rest / jnp.sqrt(pivot), 0.0))

    return lax.fori_loop(0, matrix.shape[0], column, jnp.zeros_like(matrix))


def _cholesky_by_blocks(matrix):
    """`cholesky`, `BLOCK` columns at a time."""
    width = matrix.shape[0]
    padded = _with_ones(matrix)
    dim = padded.shape[0]

    def step(block, factor):
        begin = block * BLOCK
        wanted = lax.dynamic_slice(padded, (begin, 0), (BLOCK, dim))
        known = lax.dynamic_slice(factor, (begin, 0), (BLOCK, dim))
        rest = wanted - known @ factor.T
        own = cholesky(lax.dynamic_slice(rest, (0, begin), (BLOCK, BLOCK)))
        below = jnp.where(jnp.arange(dim) >= begin, forward_substitute(own, rest), 0.0).T
        below = lax.dynamic_update_slice(below, own, (begin, 0))
        return lax.dynamic_update_slice(factor, below, (0, begin))

    factor = lax.fori_loop(0, dim // BLOCK, step, jnp.zeros_like(padded))
    return factor[:width, :width]


def forward_substitute(
    factor: Float[Array, "d d"], columns: Float[Array, "d n"]
) -> Float[Array, "d n"]:
    """`X` with `L X = columns` for a lower triangular factor L."""

    def row(i, x):
        return x.at[i].set((columns[i] - factor[i] @ x) / factor[i, i])

    return lax.fori_loop(0, factor.shape[0], row, jnp.zeros_like(columns))


def back_substitute(factor: Float[Array, "d d"], vector: Float[Array, " d"]) -> Float[Array, " d"]:
    """`x` with `L^T x = vector` for a lower triangular factor L."""
    dim = vector.shape[0]

    def row(step, x):
        i = dim - 1 - step
        rest = vector[i] - factor[:, i] @ x  # entries of x up to i are still zero
        return x.at[i].set(rest / factor[i, i])

    return lax.fori_loop(0, dim, row, jnp.zeros_like(vector))


def outer(vectors: Float[Array, "n d"]) -> Float[Array, "n dd"]:
    """`v v^T` of each row, flat: products with this table serve all lanes at once."""
    num, dim = vectors.shape
    return (vectors[:, :, None] * vectors[:, None, :]).reshape(num, dim * dim)


def added(
    inverse: Float[Array, "d d"], vector: Float[Array, " d"], weight: Float[Array, ""]
) -> Float[Array, "d d"]:
    """The inverse after `weight * v v^T` is added to the matrix (Sherman and Morrison)."""
    moved = inverse @ vector
    scaled = lax.optimization_barrier(moved * (weight / (1.0 + weight * (vector @ moved))))
    return inverse - scaled[:, None] * moved[None, :]


def quadratic(vectors: Float[Array, "n d"], matrix: Float[Array, "d d"]) -> Float[Array, " n"]:
    """`v^T M v` of each row."""
    if blocks.are_many(vectors):
        return blocks.each(lambda rows: ((rows @ matrix) * rows).sum(1), vectors)
    return outer(vectors) @ matrix.reshape(-1)


def all_finite(array: Array) -> Bool[Array, ""]:
    """Whether every entry is finite; compiled maxima and minima may drop a NaN."""
    return jnp.isfinite(array).all()
