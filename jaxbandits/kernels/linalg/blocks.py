"""Very many vectors, a block of them at a time: what a lane needs then does not grow with them.

A product of K vectors with a matrix of each lane takes `K d` numbers for each lane, and the table
of `x x^T` takes `K d^2`: 3 and 20 GB for a million arms in 50 dimensions and 8 lanes.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Shaped

MOST = 2**18  # numbers of a block; with fewer in all, there is one block


def are_many(vectors: Shaped[Array, "K d"]) -> bool:
    """Whether vectors are too many for one block."""
    return vectors.size > MOST


def each(
    function: Callable[[Shaped[Array, "n d"]], Shaped[Array, " n"]], vectors: Shaped[Array, "K d"]
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
    begin = jnp.zeros((vectors.shape[1],) * 2, vectors.dtype)
    return _added(begin, lambda rows, weight: (rows * weight[:, None]).T @ rows, vectors, weights)


def weighted_sum(vectors: Float[Array, "K d"], weights: Float[Array, " K"]) -> Float[Array, " d"]:
    """The sum of `w x`, in blocks where they are many."""
    if not are_many(vectors):
        return weights @ vectors
    begin = jnp.zeros(vectors.shape[1], vectors.dtype)
    return _added(begin, lambda rows, weight: weight @ rows, vectors, weights)


def _added(total, function, vectors, weights):
    """`total` and the sum over blocks of `function(rows, weights)`."""
    begins, repeated = _blocks(vectors)
    length = _length(vectors)
    first = np.where(np.arange(begins.size) == begins.size - 1, repeated, 0)  # row to count

    def add(total, block):
        begin, first = block
        weight = lax.dynamic_slice(weights, (begin,), (length,))
        weight = jnp.where(jnp.arange(length) >= first, weight, 0.0)
        return total + function(_rows(vectors, begin), weight), None

    return lax.scan(add, total, (begins, jnp.asarray(first)))[0]


def _length(vectors):
    return max(1, MOST // vectors.shape[1])


def _rows(vectors, begin):
    return lax.dynamic_slice(vectors, (begin, 0), (_length(vectors), vectors.shape[1]))


def _blocks(vectors):
    """Where blocks begin, and how many rows of the last one are in the one before it, too.

    No block needs a copy of the table with rows filled up, which would take as much memory again.
    """
    number, length = len(vectors), _length(vectors)
    begins = np.minimum(np.arange(0, number, length), number - length)
    return jnp.asarray(begins), begins.size * length - number
