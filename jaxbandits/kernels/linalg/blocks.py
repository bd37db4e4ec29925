"""Very many vectors, a block of them at a time: what a lane needs then does not grow with them.

A product of K vectors with a matrix of each lane takes `K d` numbers for each lane, and the table
of `x x^T` takes `K d^2`: 3 and 20 GB for a million arms in 50 dimensions and 8 lanes.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Shaped

MOST = 2**18  # numbers of a block; with fewer in all, there is one block


def are_many(vectors: Float[Array, "K d"]) -> bool:
    """Whether vectors are too many for one block."""
    return vectors.size > MOST


def each(
    function: Callable[[Float[Array, "n d"]], Shaped[Array, " n"]], vectors: Float[Array, "K d"]
) -> Shaped[Array, " K"]:
    """`function(vectors)`, which gives a number for each vector, in blocks where they are many."""
    if not are_many(vectors):
        return function(vectors)
    return lax.map(function, _cut(vectors)).reshape(-1)[: len(vectors)]


def sum_of_squares(
    vectors: Float[Array, "K d"], weights: Float[Array, " K"]
) -> Float[Array, "d d"]:
    """The sum of `w x x^T`, in blocks."""
    dim = vectors.shape[1]

    def add(total, block):
        rows, weight = block
        return total + (rows * weight[:, None]).T @ rows, None

    begin = jnp.zeros((dim, dim), vectors.dtype)
    return lax.scan(add, begin, (_cut(vectors), _cut(weights, dim)))[0]


def _cut(table, dim=None):
    """A table of rows in blocks, the last one filled up with zeros."""
    rows = max(1, MOST // (dim or table.shape[1]))
    number = -(-len(table) // rows)
    filled = jnp.pad(table, [(0, number * rows - len(table))] + [(0, 0)] * (table.ndim - 1))
    return filled.reshape(number, rows, *table.shape[1:])
