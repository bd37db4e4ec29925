"""Points and Newton systems of the interior-point method for the XY design.

The problem is `min sum of s` subject to `q_m(s) = y_m^T A(s)^-1 y_m <= 1`, s >= 0. All of it is
written in the D = d (d + 1) / 2 dimensions of `squares`, in which A is linear in s and
`dq_m/ds_k = -s(y_m) . rows_k`. The Newton system is solved there or over the K arms.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from . import span, spd, squares
from .directions import Listed, Pairs, compact

FEW = 32  # directions


class Point(NamedTuple):
    """Where the path is, and A there with what follows from it."""

    scale: Array  # float [K] s
    slack: Array  # float [P] stands for 1 - q
    dual: Array  # float [P] multipliers of the directions, 0 if inactive
    price: Array  # float [K] multipliers of s >= 0
    matrix: Array  # float [d, d] A
    inverse: Array  # float [d, d]
    norms: Array  # float [P] q, 0 if inactive


class Problem(NamedTuple):
    """Arms and directions in coordinates where the uniform design is the identity.

    A little of the uniform design is mixed into each, for the best may lack rank.
    """

    arms: Array  # float [K, d]
    directions: Listed | Pairs
    active: Array  # bool [P]
    kept: Array  # bool [d] coordinates that the arms span
    measured: Array  # float [D, K] s(x) of the arms
    wanted: Array  # float [P, D] s(y) of the directions
    summed: Array  # float [D, P] the same, laid out for sums over directions
    widest: Array  # float [] unit of q: at the uniform design all are at most 1
    mixed: Array  # float [] how much of the uniform design

    @property
    def unit(self):
        """The identity of the kept coordinates."""
        return jnp.diag(self.kept.astype(self.arms.dtype))

    def information(self, scale):
        """A of a design as it is, ones on the diagonal outside of the span."""
        found = squares.unpacked(self.measured @ scale, self.kept.size)
        return found + jnp.diag((~self.kept).astype(self.arms.dtype))

    def norms(self, matrix):
        """The q of all directions for this A^-1."""
        found = self.wanted @ squares.packed(matrix) / self.widest
        return jnp.where(self.active, found, 0.0)

    def value(self, weights):
        """The largest q of a design, infinite where it loses rank."""
        found = spd.inverse(self.information(weights))
        norms = self.norms(found.matrix)
        good = found.positive & spd.all_finite(norms)
        return jnp.where(good, norms.max(), jnp.inf)

    def at(self, scale, slack, dual, price):
        """A point."""
        matrix = self.information(scale) + self.mixed * scale.sum() * self.unit
        inverse = spd.inverse(matrix).matrix
        return Point(scale, slack, dual, price, matrix, inverse, self.norms(inverse))

    def begin(self):
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

    def rows(self, point):
        """`[K, D]`, of `A^-1 (dA/ds_k) A^-1`."""
        shared = point.inverse @ self.unit @ point.inverse
        return squares.of(self.arms @ point.inverse) + self.mixed * squares.packed(shared)

    def sum_of(self, weights):
        """`[D]`: `sum of w_m s(y_m)`, in units of `widest`."""
        return self.summed @ weights / self.widest

    def bound(self, point):
        """A lower bound on the optimum from the multipliers of the directions."""
        half = self.arms @ point.inverse
        total = squares.unpacked(self.sum_of(point.dual), self.kept.size)
        slopes = (half @ total * half).sum(1).max()
        below = point.dual.sum() * slopes
        return (point.dual @ point.norms) ** 2 / jnp.where(below > 0, below, jnp.inf)

    def system(self, point, rows):
        """Solves for the step of s in the Newton system, given its right-hand side.

        The step is taken in units in which s >= 0 contributes the identity, so no pivoting is
        needed however small some weights are.
        """
        unit = jnp.sqrt(point.scale / point.price)
        curvature = 2.0 * self._bend(point) + self._stiffness(point, rows)
        solve = _solver(curvature * unit[:, None] * unit)
        return lambda right: unit * solve(unit * right)

    def _bend(self, point):
        """`[K, K]`, half of what the second derivatives of q contribute."""
        half, inverse = self.arms @ point.inverse, point.inverse @ self.unit
        total = squares.unpacked(self.sum_of(point.dual), self.kept.size)
        turned = half @ total
        own = (turned @ inverse * half).sum(1)
        twice = (inverse * (inverse @ total @ point.inverse)).sum()
        mixed = self.mixed * (own[:, None] + own) + self.mixed**2 * twice
        return (half @ self.arms.T) * (turned @ half.T) + mixed

    def _stiffness(self, point, rows):
        """`[K, K]`, what the slopes of q contribute.

        Summed over directions; where they are many, over `squares`, which is less work and less
        exact. It is exactness that counts where few directions decide.
        """
        num_arms, entries = rows.shape
        vectors, stiff = self.directions.vectors, point.dual / point.slack
        stiff = jnp.where(self.active, stiff, 0.0)

        def summed(vectors, stiff):
            slopes = (self.arms @ point.inverse @ vectors.T) ** 2
            slopes = slopes + self.mixed * ((vectors @ point.inverse @ self.unit) ** 2).sum(1)
            return (slopes * stiff) @ slopes.T

        def by_squares():
            return rows @ (self.directions.fourth(stiff) @ rows.T)

        if stiff.size <= FEW:
            found = summed(vectors, stiff)
        else:
            cost = self.directions.fourth_cost + num_arms * entries * (num_arms + entries)
            direct = stiff.size * num_arms**2 <= cost
            found = lax.cond(
                self.active.sum() <= FEW,
                lambda: summed(*compact(vectors, stiff, FEW)),
                (lambda: summed(vectors, stiff)) if direct else by_squares,
            )
        return found / self.widest**2


def problem(arms, directions, active, mixed):
    """The problem in good coordinates, and whether an active direction leaves the span."""
    space = span.of(arms, jnp.ones(arms.shape[0], bool))
    outside = (active & ~span.within(space, directions.vectors)).any()
    raw = span.coordinates(space, arms)
    whitened = span.whitening(space, raw.T @ raw / arms.shape[0])
    points, aims = whitened(arms), directions.mapped(whitened)
    measured, wanted = squares.of(points).T, squares.of(aims.vectors)
    one, mixed = jnp.ones((), arms.dtype), jnp.asarray(mixed, arms.dtype)
    found = Problem(points, aims, active, space.kept, measured, wanted, wanted.T, one, mixed)
    widest = found.norms(jnp.eye(arms.shape[1], dtype=arms.dtype)).max()
    return found._replace(widest=jnp.maximum(widest, jnp.finfo(arms.dtype).tiny)), outside


def _solver(curvature):
    """Solves with `I + curvature`, each solution corrected once by its own residual."""
    unit = jnp.eye(curvature.shape[0], dtype=curvature.dtype)
    rounded = 8.0 * jnp.finfo(curvature.dtype).eps * jnp.trace(curvature)
    matrix = curvature + (1.0 + rounded) * unit
    inverse = spd.inverse(matrix).matrix

    def solve(right):
        found = inverse @ right
        return found + inverse @ (right - matrix @ found)

    return solve
