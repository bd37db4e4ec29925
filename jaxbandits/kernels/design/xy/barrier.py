"""Points of the interior-point method for the XY design.

The problem is `min sum of s` subject to `q_m(s) = y_m^T A(s)^-1 y_m <= 1`, s >= 0. All of it is
written in the D = d (d + 1) / 2 dimensions of `svec`, in which A is linear in s and
`dq_m/ds_k = -s(y_m) . rows_k`.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ....types import Scalar
from ...linalg import spd, subspace, svec
from ..directions import Listed, Pairs

TABLE = 2**21  # entries; up to so many, reading a table of `s(y)` is faster than computing products


class Point(NamedTuple):
    """A point of the path, and A there with what follows from it."""

    scale: Float[Array, " K"]  # s
    slack: Float[Array, " P"]  # stands for 1 - q
    dual: Float[Array, " P"]  # multipliers of the directions, 0 if inactive
    price: Float[Array, " K"]  # multipliers of s >= 0
    matrix: Float[Array, "d d"]  # A
    inverse: Float[Array, "d d"]
    norms: Float[Array, " P"]  # q, 0 if inactive


class Problem(NamedTuple):
    """Arms and directions in coordinates where the uniform design is the identity.

    A little of the uniform design is mixed into every design, because the best may lack rank.
    """

    arms: Float[Array, "K d"]
    directions: Listed | Pairs
    active: Bool[Array, " P"]
    kept: Bool[Array, " d"]  # coordinates that the arms span
    measured: Float[Array, "D K"]  # s(x) of the arms
    wanted: Float[Array, "P D"] | None  # s(y) of the directions, unless they are too many
    summed: Float[Array, "D P"] | None  # the same, laid out for sums over directions
    widest: Float[Array, ""]  # unit of q: at the uniform design all are at most 1
    mixed: Float[Array, ""]  # how much of the uniform design

    @property
    def unit(self) -> Float[Array, "d d"]:
        """The identity of the kept coordinates."""
        return jnp.diag(self.kept.astype(self.arms.dtype))

    def information(self, scale: Float[Array, " K"]) -> Float[Array, "d d"]:
        """A of a design with nothing mixed in; ones on the diagonal outside of the span."""
        found = svec.unpacked(self.measured @ scale, self.kept.size)
        return found + jnp.diag((~self.kept).astype(self.arms.dtype))

    def forms(self, packed: Float[Array, " D"]) -> Float[Array, " P"]:
        """`y^T M y` of all directions, `[P]`, in units of `widest`."""
        if self.wanted is not None:
            return self.wanted @ packed / self.widest
        matrix, vectors = svec.unpacked(packed, self.kept.size), self.directions.vectors
        return (vectors @ matrix * vectors).sum(1) / self.widest

    def norms(self, matrix: Float[Array, "d d"]) -> Float[Array, " P"]:
        """The q of all directions for this A^-1."""
        return jnp.where(self.active, self.forms(svec.packed(matrix)), 0.0)

    def value(self, weights: Float[Array, " K"]) -> Float[Array, ""]:
        """The largest q of a design, infinite where it loses rank."""
        found = spd.inverse(self.information(weights), may_lack_rank=True)
        norms = self.norms(found.matrix)
        good = found.positive & spd.all_finite(norms)
        return jnp.where(good, norms.max(), jnp.inf)

    def at(
        self,
        scale: Float[Array, " K"],
        slack: Float[Array, " P"],
        dual: Float[Array, " P"],
        price: Float[Array, " K"],
    ) -> Point:
        """The point with these variables."""
        matrix = self.information(scale) + self.mixed * scale.sum() * self.unit
        inverse = spd.inverse(matrix).matrix
        return Point(scale, slack, dual, price, matrix, inverse, self.norms(inverse))

    def begin(self) -> Point:
        """Twice the uniform design, with multipliers that satisfy the dual constraints."""
        num_arms = self.arms.shape[0]
        scale = jnp.full(num_arms, 2.0 / num_arms, self.arms.dtype)
        blank = jnp.zeros_like(self.active, self.arms.dtype)
        start = self.at(scale, blank, blank, scale)
        slack = 1.0 - start.norms
        dual = jnp.where(self.active, 1.0 / slack, 0.0)
        slopes = self.rows(start) @ self.sum_of(dual)
        largest = jnp.where(self.active.any(), slopes.max(), 1.0)
        price = 1.0 - 0.5 * slopes / largest
        return start._replace(slack=slack, dual=0.5 * dual / largest, price=price)

    def rows(self, point: Point) -> Float[Array, "K D"]:
        """The packed `A^-1 (dA/ds_k) A^-1` of every arm."""
        shared = point.inverse @ self.unit @ point.inverse
        return svec.of(self.arms @ point.inverse) + self.mixed * svec.packed(shared)

    def sum_of(self, weights: Float[Array, " P"]) -> Float[Array, " D"]:
        """`sum of w_m s(y_m)`, in units of `widest`."""
        if self.summed is not None:
            return self.summed @ weights / self.widest
        vectors = self.directions.vectors
        return svec.packed((vectors.T * weights) @ vectors) / self.widest

    def bound(self, point: Point) -> Float[Array, ""]:
        """A lower bound on the optimum from the multipliers of the directions."""
        half = self.arms @ point.inverse
        total = svec.unpacked(self.sum_of(point.dual), self.kept.size)
        slopes = (half @ total * half).sum(1).max()
        below = point.dual.sum() * slopes
        return (point.dual @ point.norms) ** 2 / jnp.where(below > 0, below, jnp.inf)


def problem(
    arms: Float[Array, "K d"],
    directions: Listed | Pairs,
    active: Bool[Array, " P"],
    mixed: Scalar,
) -> tuple[Problem, Bool[Array, ""]]:
    """The problem in good coordinates, and whether an active direction leaves the span."""
    space = subspace.of(arms, jnp.ones(arms.shape[0], bool))
    outside = (active & ~subspace.within(space, directions.vectors)).any()
    raw = subspace.coordinates(space, arms)
    whitened = subspace.whitening(space, raw.T @ raw / arms.shape[0])
    points, aims = whitened(arms), directions.mapped(whitened)
    measured, wanted = svec.of(points).T, None
    if active.size * measured.shape[0] <= TABLE:
        wanted = svec.of(aims.vectors)
    summed = None if wanted is None else wanted.T
    one, mixed = jnp.ones((), arms.dtype), jnp.asarray(mixed, arms.dtype)
    found = Problem(points, aims, active, space.kept, measured, wanted, summed, one, mixed)
    widest = found.norms(jnp.eye(arms.shape[1], dtype=arms.dtype)).max()
    return found._replace(widest=jnp.maximum(widest, jnp.finfo(arms.dtype).tiny)), outside
