"""The Newton systems of the interior-point method for the XY design, with an unknown for each arm.

What q contributes to a system has rank D = d (d + 1) / 2 at most. Where there are many more arms,
the system is solved in D dimensions.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ...linalg import spd, svec
from ..directions import compact
from .barrier import Point, Problem

FEW, SOME = 32, 512  # directions
MANY, VERY_MANY = 100, 1000  # arms
LONGEST = 64  # of many arms, those with the longest rows; at least so many


def system(
    problem: Problem, point: Point, rows: Float[Array, "K D"]
) -> Callable[[Float[Array, " K"]], Float[Array, " K"]]:
    """From the right-hand side of the Newton system to the step of s.

    The system is scaled so that s >= 0 contributes the identity; no pivoting is then needed,
    however small some weights are.
    """
    unit = jnp.sqrt(point.scale / point.price)
    num_arms, entries = rows.shape
    times = 2 if num_arms > VERY_MANY else 4
    if num_arms > MANY and num_arms >= times * entries:
        solve = _thin_solver(unit[:, None] * (rows @ _root(_in_svec(problem, point))))
    else:
        curvature = 2.0 * _bend(problem, point) + _stiffness(problem, point, rows)
        solve = _solver(curvature * unit[:, None] * unit)
    return lambda right: unit * solve(unit * right)


def _in_svec(problem, point):
    """`[D, D]`, what q contributes as a form in `rows`."""
    vectors, stiff = problem.directions.vectors, _stiff(problem, point)
    if stiff.size <= FEW:
        slopes = svec.fourth(vectors, stiff)
    else:
        slopes = lax.cond(
            problem.active.sum() <= FEW,
            lambda: svec.fourth(*compact(vectors, stiff, FEW)),
            lambda: problem.directions.fourth(stiff),
        )
    total = svec.unpacked(problem.sum_of(point.dual), problem.kept.size)
    return 2.0 * svec.product(point.matrix, total) + slopes / problem.widest**2


def _bend(problem, point):
    """`[K, K]`, half of what the second derivatives of q contribute."""
    half, inverse = problem.arms @ point.inverse, point.inverse @ problem.unit
    total = svec.unpacked(problem.sum_of(point.dual), problem.kept.size)
    turned = half @ total
    own = (turned @ inverse * half).sum(1)
    twice = (inverse * (inverse @ total @ point.inverse)).sum()
    mixed = problem.mixed * (own[:, None] + own) + problem.mixed**2 * twice
    return (half @ problem.arms.T) * (turned @ half.T) + mixed


def _stiffness(problem, point, rows):
    """`[K, K]`, what the slopes of q contribute.

    Summed over directions; where they are many, over `svec`, which is less work but less
    accurate. Where few directions decide, accuracy matters.
    """
    num_arms, entries = rows.shape
    vectors, stiff = problem.directions.vectors, _stiff(problem, point)

    def summed(vectors, stiff):
        slopes = (problem.arms @ point.inverse @ vectors.T) ** 2
        slopes = slopes + problem.mixed * ((vectors @ point.inverse @ problem.unit) ** 2).sum(1)
        return (slopes * stiff) @ slopes.T

    def in_svec():
        return rows @ (problem.directions.fourth(stiff) @ rows.T)

    cost = problem.directions.fourth_cost + num_arms * entries * (num_arms + entries)
    direct = stiff.size <= FEW or stiff.size * num_arms**2 <= cost
    rule = (lambda: summed(vectors, stiff)) if direct else in_svec
    for most in (FEW,) if direct else (SOME, FEW):
        if stiff.size > most:
            rule = _one_of(
                problem, lambda most=most: summed(*compact(vectors, stiff, most)), most, rule
            )
    found = rule()
    return found / problem.widest**2


def _one_of(problem, few, most, many):
    """The rule `few` where at most so many directions are active, else `many`."""
    return lambda: lax.cond(problem.active.sum() <= most, few, many)


def _stiff(problem, point):
    return jnp.where(problem.active, point.dual / point.slack, 0.0)


def _root(matrix):
    """F with `F F^T = matrix` up to rounding, also where that is singular."""
    return spd.cholesky(matrix + _rounded(matrix) * jnp.eye(matrix.shape[0], dtype=matrix.dtype))


def _solver(curvature):
    """Solves with `I + curvature`."""
    unit = jnp.eye(curvature.shape[0], dtype=curvature.dtype)
    matrix = curvature + (1.0 + _rounded(curvature)) * unit
    inverse = spd.inverse(matrix).matrix
    return _corrected(lambda right: inverse @ right, lambda found: matrix @ found)


def _thin_solver(table):
    """Solves with `I + U U^T` for a table U of few columns.

    Woodbury's formula for its inverse is accurate where the rows of U are short. By it the
    unknowns of short rows are eliminated; the system that remains for the longest rows is solved
    directly.
    """
    number, width = table.shape
    longest = max(LONGEST, width // 2)  # about as many arms have weight
    order = jnp.argsort(-(table**2).sum(1))[:longest]
    is_long = jnp.zeros(number, bool).at[order].set(True)
    long, short = table[order], jnp.where(is_long[:, None], 0.0, table)
    inner = spd.inverse(short.T @ short + jnp.eye(width, dtype=table.dtype)).matrix
    outer = long @ inner @ long.T
    outer = outer + (1.0 + _rounded(outer)) * jnp.eye(longest, dtype=table.dtype)
    inverse = spd.inverse(outer).matrix

    def solve(right):
        rest = jnp.where(is_long, 0.0, right)
        found = inverse @ (right[order] - long @ (inner @ (short.T @ rest)))
        rest = rest - short @ (long.T @ found)
        return (rest - short @ (inner @ (short.T @ rest))).at[order].set(found)

    return _corrected(solve, lambda found: found + table @ (table.T @ found))


def _rounded(matrix):
    """What rounding may leave on the diagonal."""
    return 8.0 * jnp.finfo(matrix.dtype).eps * jnp.trace(matrix)


def _corrected(solve, product):
    """Solutions, each corrected once by its own residual."""

    def solved(right):
        found = solve(right)
        return found + solve(right - product(found))

    return solved
