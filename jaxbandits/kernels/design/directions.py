"""Directions that a design has to measure well, and the sums over them that a solver needs."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..linalg import blocks, svec

COMPARED = 256  # points; up to so many, all pairs are compared


class Listed(NamedTuple):
    """Any directions, one after the other."""

    vectors: Float[Array, "P d"]

    def mapped(self, function: Callable[[Array], Array]) -> "Listed":
        """The same after a linear map of rows."""
        return Listed(function(self.vectors))

    def sqnorms(self, inverse: Float[Array, "d d"]) -> Float[Array, " P"]:
        """`||y||^2` in `inverse`."""
        return (self.vectors @ inverse * self.vectors).sum(1)

    def fourth(self, weights: Float[Array, " P"]) -> Float[Array, "D D"]:
        """`sum of w s(y) s(y)^T`, see `svec`."""
        return svec.fourth(self.vectors, weights)

    @property
    def fourth_cost(self) -> int:
        """How many products that takes."""
        num, dim = self.vectors.shape
        return num * svec.size(dim) ** 2


def number_of_pairs(points: int) -> int:
    """How many differences so many points have; one of length zero where there is one point."""
    return max(1, points * (points - 1) // 2)


class Pairs(NamedTuple):
    """All differences `z_a - z_b` with a < b, in the order (0, 1), (0, 2), ..., (1, 2), ..."""

    points: Float[Array, "M d"]

    @property
    def number(self) -> int:
        """How many directions."""
        return number_of_pairs(self.points.shape[0])

    @property
    def indices(self) -> tuple[np.ndarray, np.ndarray]:
        """The targets a and b of each direction; one of length zero where there is one target."""
        num = self.points.shape[0]
        return np.triu_indices(num, 1) if num > 1 else (np.zeros(1, int), np.zeros(1, int))

    @property
    def vectors(self) -> Float[Array, "P d"]:
        """The differences."""
        first, second = self.indices
        return self.points[first] - self.points[second]

    def mapped(self, function: Callable[[Array], Array]) -> "Pairs":
        """The same after a linear map of rows."""
        return Pairs(function(self.points - self.points.mean(0)))

    def sqnorms(self, inverse: Float[Array, "d d"]) -> Float[Array, " P"]:
        """`||y||^2` in `inverse`, from products of points."""
        return sqdist(self.points, inverse)[self.indices]

    def fourth(self, weights: Float[Array, " P"]) -> Float[Array, "D D"]:
        """`sum of w s(y) s(y)^T`, by sums over the points where that is less work."""
        listed = Listed(self.vectors)
        if listed.fourth_cost <= self._fourth_cost:
            return listed.fourth(weights)
        first, second = self.indices
        where = np.full((self.points.shape[0],) * 2, first.size)
        where[first, second] = where[second, first] = np.arange(first.size)
        return svec.fourth_of_pairs(self.points, jnp.append(weights, 0.0)[where])

    @property
    def fourth_cost(self) -> int:
        """How many products that takes."""
        return min(self._fourth_cost, Listed(self.vectors).fourth_cost)

    @property
    def _fourth_cost(self) -> int:
        num, dim = self.points.shape
        entries = svec.size(dim)
        return num * entries * (num + 3 * entries)


def compact(
    vectors: Float[Array, "P d"], weights: Float[Array, " P"], room: int
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """The directions of positive weight, at most `room` of them, and their weights."""
    positive, number = weights > 0, weights.size
    places = jnp.where(positive, jnp.cumsum(positive) - 1, room)
    indices = jnp.full(room, number).at[places].set(jnp.arange(number), mode="drop")
    found = weights.at[indices].get(mode="fill", fill_value=0.0)
    return vectors.at[indices].get(mode="clip"), found


def sqdist(points: Float[Array, "M d"], inverse: Float[Array, "d d"]) -> Float[Array, "M M"]:
    """`||z_a - z_b||^2` in `inverse` for every two points; rounding is clipped at 0."""
    products = points @ inverse @ points.T
    norms = jnp.diagonal(products)
    return jnp.maximum(0.0, norms[:, None] + norms[None, :] - 2.0 * products)


def distinct(points: Float[Array, "M d"]) -> Bool[Array, " M"]:
    """Which points do not equal an earlier one; where they are many, by sorting them."""
    num = points.shape[0]
    if num <= COMPARED:
        equal = (points[:, None, :] == points[None, :, :]).all(-1)
        return ~jnp.tril(equal, -1).any(1)
    order = jnp.lexsort(points.T)  # equal points stay in their order
    rows = points[order]
    new = jnp.append(True, (rows[1:] != rows[:-1]).any(1))
    return jnp.zeros(num, bool).at[order].set(new)


def without_copies(points: Float[Array, "M d"], active: Bool[Array, " M"]) -> Bool[Array, " M"]:
    """Points that stand for all active ones: of equal ones, one is enough.

    Faster than `distinct` where points are many, because they are sorted by one number each. A copy
    may stay where points that differ have the same number, or rounding gives copies different ones.
    """
    mixed = jnp.asarray(np.random.default_rng(0).normal(size=points.shape[1]), points.dtype)
    numbers = jnp.where(active, blocks.each(lambda rows: rows @ mixed, points), jnp.inf)
    order = jnp.argsort(numbers)

    def differs(pairs):
        return (points[pairs[:, 0]] != points[pairs[:, 1]]).any(1)

    new = blocks.each(differs, jnp.stack([order[1:], order[:-1]], 1))
    return active & jnp.ones_like(active).at[order[1:]].set(new)
