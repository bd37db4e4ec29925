"""Choosing arms: maxima, top-m and ranks whose ties favour no index.

Ties are broken by `order`, a random permutation drawn once a replication: the same law for any
single tie as a fresh coin, at no cost in random numbers.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int


def tie_order(key, num_arms: int) -> Int[Array, " K"]:
    """A random priority for each arm; the larger wins a tie."""
    return jax.random.permutation(key, num_arms)


class Best(NamedTuple):
    """A maximum and where it is."""

    arm: Array  # int []
    value: Array  # float []


def best(values: Float[Array, " K"]) -> Best:
    """The largest value and its first index; index 0 where no value is a number."""

    def above(one, two):
        return (one[0] > two[0]) | ((one[0] == two[0]) & (one[1] < two[1]))

    value, arm = _reduce((values,), above)
    return Best(arm, value)


def argmax(values: Float[Array, " K"], order: Int[Array, " K"]) -> Int[Array, ""]:
    """Index of the largest value, ties to the larger priority; 0 where no value is a number."""

    def above(one, two):
        return (one[0] > two[0]) | ((one[0] == two[0]) & (one[1] > two[1]))

    return _reduce((values, order), above)[-1]


def _reduce(tables, above):
    """The entry of `tables` that is `above` all others, with its index as the last item.

    One reduction over all tables at once: the value comes free, where `argmax` and then a
    look-up cost a pass and a gather more.
    """

    def better(one, two):
        wins = above(one, two)
        return tuple(jnp.where(wins, a, b) for a, b in zip(one, two, strict=True))

    tables = (*tables, lax.iota(int, tables[0].size))
    lowest = (-jnp.inf, *[-1] * (len(tables) - 2), 0)
    begin = tuple(jnp.array(x, t.dtype) for x, t in zip(lowest, tables, strict=True))
    return lax.reduce(tables, begin, better, (0,))


def at(table: Array, arm: Int[Array, ""]) -> Array:
    """`table[arm]` for an index known to be in range, without the checks of brackets."""
    return table.at[arm].get(mode="promise_in_bounds")


def rank(values: Float[Array, " K"], order: Int[Array, " K"]) -> Int[Array, " K"]:
    """Place of each value from the top, 0 the largest, ties to the larger priority."""
    num = values.shape[0]
    if num <= 64:  # K^2 comparisons vectorise; a batched sort does not
        above = values[None, :] > values[:, None]
        tied = values[None, :] == values[:, None]
        return (above | (tied & (order[None, :] > order[:, None]))).sum(1)
    places = jnp.arange(num)
    return jnp.zeros(num, places.dtype).at[jnp.lexsort((-order, -values))].set(places)


def top(
    values: Float[Array, " K"], order: Int[Array, " K"], m: int | Int[Array, ""]
) -> Bool[Array, " K"]:
    """Mask of the m largest values; put -inf where an arm may not be taken."""
    return rank(values, order) < m


def spread(
    alive: Bool[Array, " K"], total: Int[Array, ""], order: Int[Array, " K"]
) -> Int[Array, " K"]:
    """`total` draws shared equally among `alive`; the remainder goes by priority."""
    num_alive = alive.sum()
    extra = top(jnp.where(alive, 0.0, -jnp.inf), order, total % num_alive)
    return jnp.where(alive, total // num_alive + extra, 0)


def first_basis(arms: Float[Array, "K d"], tol: float = 1e-6) -> Int[Array, " d"]:
    """The first d linearly independent arms in index order.

    An arm counts as independent where its part outside the span of those chosen exceeds `tol`
    of its length. Where the arms do not span, the last entries repeat the last arm chosen.
    """
    num_arms, dim = arms.shape

    def visit(carry, arm):
        basis, chosen, found = carry
        x = arms[arm]
        rest = x - basis.T @ (basis @ x)
        rest = rest - basis.T @ (basis @ rest)  # a second pass keeps the basis orthogonal
        length = jnp.linalg.norm(rest)
        new = (length > tol * jnp.linalg.norm(x)) & (found < dim)
        slots = (jnp.arange(dim) >= found) & new  # later slots repeat until overwritten
        unit = rest / jnp.where(new, length, 1.0)
        basis = jnp.where(((jnp.arange(dim) == found) & new)[:, None], unit, basis)
        return (basis, jnp.where(slots, arm, chosen), found + new), None

    begin = (jnp.zeros((dim, dim), arms.dtype), jnp.zeros(dim, int), jnp.zeros((), int))
    (_, chosen, _), _ = jax.lax.scan(visit, begin, jnp.arange(num_arms))
    return chosen
