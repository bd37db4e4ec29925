"""Very many vectors, a block of them at a time: what a lane needs then does not grow with them.

A product of K vectors with a matrix of each lane takes `K d` numbers for each lane, and the table
of `x x^T` takes `K d^2`: 3 and 20 GB for a million arms in 50 dimensions and 8 lanes.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
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
    begins, repeated = _blocks(vectors)
    found = lax.map(lambda begin: function(_rows(vectors, begin)), begins)
    return jnp.concatenate([found[:-1].reshape(-1), found[-1, repeated:]])


def sum_of_squares(
    vectors: Float[Array, "K d"], weights: Float[Array, " K"]
) -> Float[Array, "d d"]:
    """The sum of `w x x^T`, in blocks."""
    return _added(lambda rows, weights: (rows * weights[:, None]).T @ rows, vectors, weights)


def weighted_sum(vectors: Float[Array, "K d"], weights: Float[Array, " K"]) -> Float[Array, " d"]:
    """The sum of `w x`, in blocks where they are many."""
    if not are_many(vectors):
        return weights @ vectors
    return _added(lambda rows, weights: weights @ rows, vectors, weights)


def _added(function, vectors, weights):
    """The sum over blocks of `function(rows, weights)`."""
    begins, repeated = _blocks(vectors)

    def add(total, block):
        begin, is_last = block
        weight = _rows(weights, begin, vectors.shape[1])
        first = jnp.where(is_last, repeated, 0)
        weight = jnp.where(jnp.arange(weight.size) >= first, weight, 0.0)
        return total + function(_rows(vectors, begin), weight), None

    rows = jax.ShapeDtypeStruct((_length(vectors.shape[1]), vectors.shape[1]), vectors.dtype)
    shape = jax.eval_shape(function, rows, jax.ShapeDtypeStruct(rows.shape[:1], weights.dtype))
    blank = jnp.zeros(shape.shape, shape.dtype)
    return lax.scan(add, blank, (begins, jnp.arange(begins.size) == begins.size - 1))[0]


def _length(dim):
    return max(1, MOST // dim)


def _rows(table, begin, dim=None):
    length = _length(dim or table.shape[1])
    return lax.dynamic_slice(table, (begin,) + (0,) * (table.ndim - 1), (length, *table.shape[1:]))


def _blocks(vectors):
    """Where blocks begin, and how many rows of the last one are in the one before it, too.

    No block needs a copy of the table with rows filled up, which would take as much memory again.
    """
    length = _length(vectors.shape[1])
    begins = np.arange(0, len(vectors), length)
    last = len(vectors) - length
    repeated = int(begins[-1] - last)
    begins[-1] = last
    return jnp.asarray(begins), repeated
