"""Computations on all pairs of many points, tile by tile: M^2 numbers are never stored.

Points that cannot matter are left out first, so that the work is that of the remaining ones.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .. import selection
from ..design import directions
from . import blocks

FEW = 256  # points; up to so many, all distances are stored
ROWS, COLUMNS = 64, 256  # of a tile


class _Chosen(NamedTuple):
    """The points of a mask, moved to the front, in blocks of `ROWS`."""

    order: Int[Array, " padded"]  # indices of points; the last one repeats
    number: Int[Array, ""]  # of points in the mask

    def rows(self, block):
        """Indices of a block's points, and which of them are in the mask."""
        begin = block * ROWS
        rows = lax.dynamic_slice(self.order, (begin,), (ROWS,))
        return rows, begin + jnp.arange(ROWS) < self.number


def _in_front(mask: Bool[Array, " M"]) -> _Chosen:
    return _Chosen(_padded(jnp.argsort(~mask), ROWS), mask.sum())


def _tile(moved, norms, points, rows):
    """`||z - z'||^2` between the points of some rows and all points."""
    return jnp.maximum(0.0, norms[rows][:, None] + norms - 2.0 * (moved[rows] @ points.T))


def beaten(
    points: Float[Array, "M d"],
    alive: Bool[Array, " M"],
    scores: Float[Array, " M"],
    inverse: Float[Array, "d d"],
    width: Float[Array, ""],
) -> Bool[Array, " M"]:
    """Which z alive have a z' alive with `width ||z' - z|| < score' - score`."""

    def lost(sqdist, own):
        ahead = scores - own[:, None]
        return ((ahead > 0) & (width**2 * sqdist < ahead**2) & alive).any(1)

    if points.shape[0] <= FEW:
        return alive & lost(directions.sqdist(points, inverse), scores)
    moved = points @ inverse
    norms = (moved * points).sum(1)
    leader = selection.best(jnp.where(alive, scores, -jnp.inf))
    sqdist = jnp.maximum(
        0.0, selection.at(norms, leader.arm) + norms - 2.0 * points @ moved[leader.arm]
    )
    ahead = leader.value - scores
    by_leader = alive & (ahead > 0) & (width**2 * sqdist < ahead**2)
    others = _in_front(alive & ~by_leader)

    def visit(carry):
        block, found = carry
        rows, inside = others.rows(block)
        here = inside & lost(_tile(moved, norms, points, rows), scores[rows])
        return block + 1, found.at[rows].max(here)

    more = lambda carry: carry[0] * ROWS < others.number  # noqa: E731
    return lax.while_loop(more, visit, (jnp.zeros((), int), by_leader))[1]


class Pairs(NamedTuple):
    """Pairs of points and their squared distances, the largest first."""

    first: Int[Array, " n"]
    second: Int[Array, " n"]
    sqdist: Float[Array, " n"]  # 0 where there is none


def farthest(
    points: Float[Array, "M d"], alive: Bool[Array, " M"], inverse: Float[Array, "d d"], number: int
) -> Pairs:
    """The farthest pair of points alive first, then other distant pairs: `number` of them.

    Where there are many points, they are sorted by their distance from the centre: the distance of
    two points is at most the sum of theirs, so that most pairs need not be looked at. At first only
    the largest distance of each point to those after it is found, as long as the tile is in the
    cache; then the other ends of the points with the largest.
    """
    size, dim = points.shape
    if size <= FEW:
        return _farthest_of_few(points, alive, inverse, number)

    def sqdist_to(centre):
        def squares(vectors):
            moved = vectors - centre
            return (moved @ inverse * moved).sum(1)

        return jnp.where(alive, jnp.maximum(0.0, blocks.each(squares, points)), -jnp.inf)

    total = blocks.weighted_sum(points, alive.astype(points.dtype))
    centre = total / jnp.maximum(alive.sum(), 1)
    away = sqdist_to(centre)
    one = selection.best(away).arm
    two = selection.best(sqdist_to(selection.at(points, one))).arm
    known = selection.best(sqdist_to(selection.at(points, two))).value
    radii = jnp.where(alive, jnp.sqrt(away), -jnp.inf)
    order = jnp.argsort(-radii)  # dead points last
    # The largest radius of each block of rows and of columns.
    of_rows = radii[order[::ROWS]]
    of_columns = jnp.append(radii[order[::COLUMNS]], -jnp.inf)
    # Products of these rows with moved ones are squared distances, -inf where a point is dead.
    sorted_in = _padded(order, COLUMNS)
    norms = away[sorted_in]
    table = jnp.column_stack([points[sorted_in] - centre, jnp.ones_like(norms), norms])

    def moved(row):
        rows = lax.dynamic_slice(table, (row * ROWS, 0), (ROWS, dim + 2))
        return jnp.column_stack([-2.0 * rows[:, :dim] @ inverse, rows[:, dim + 1], rows[:, dim]])

    def tile(rows, column):
        return rows @ lax.dynamic_slice(table, (column * COLUMNS, 0), (COLUMNS, dim + 2)).T

    def of_later(rows, row, column):  # pairs with points before were seen in the rows of those
        later = (row * ROWS + jnp.arange(ROWS))[:, None] < column * COLUMNS + jnp.arange(COLUMNS)
        return jnp.where(later, tile(rows, column), 0.0)

    def possible(radius, other, sqdist):  # that two points with these radii are farther apart
        return radius + other >= jnp.sqrt(jnp.maximum(0.0, sqdist)) * (1.0 - 1e-9)

    def best_of(row, known):
        rows, radius, own = moved(row), selection.at(of_rows, row), row * ROWS // COLUMNS

        def visit(carry):
            column, at, best = carry
            largest = tile(rows, column).max(1)
            better = largest > best
            return column + 1, jnp.where(better, column, at), jnp.where(better, largest, best)

        def more(carry):
            return possible(radius, selection.at(of_columns, carry[0]), known)

        begin = own + 1, jnp.full(ROWS, own), jnp.maximum(0.0, of_later(rows, row, own).max(1))
        return lax.while_loop(more, visit, begin)[1:]

    def visit(carry):
        row, known, at, best = carry
        columns, largest = best_of(row, known)
        at = lax.dynamic_update_slice(at, columns, (row * ROWS,))
        best = lax.dynamic_update_slice(best, largest, (row * ROWS,))
        return row + 1, jnp.maximum(known, largest.max()), at, best

    def unfinished(carry):
        row, known = carry[:2]
        radius = selection.at(of_rows, row)
        return (row < of_rows.size) & possible(radius, radius, known)

    padded = len(table)
    begin = jnp.zeros((), int), known, jnp.zeros(padded, int), jnp.zeros(padded, points.dtype)
    _, _, at, best = lax.while_loop(unfinished, visit, begin)

    def pair(_, first):
        row, column = first // ROWS, selection.at(at, first)
        distances = selection.at(of_later(moved(row), row, column), first % ROWS)
        second = column * COLUMNS + selection.best(distances).arm
        ends = selection.at(sorted_in, first), selection.at(sorted_in, second)
        # The product is a difference of large numbers where points are close to each other.
        apart = selection.at(points, ends[0]) - selection.at(points, ends[1])
        some = selection.at(best, first) > 0
        return None, Pairs(*ends, jnp.where(some, jnp.maximum(0.0, apart @ inverse @ apart), 0.0))

    _, found = lax.scan(pair, None, selection.largest(best, number))
    order = jnp.argsort(-found.sqdist)
    return Pairs(*(selection.at(table, order) for table in found))


def _farthest_of_few(points, alive, inverse, number):
    """The same by a table of all pairs: the best ones of rows with the largest distances."""
    later = jnp.arange(points.shape[0])[:, None] < jnp.arange(points.shape[0])
    table = jnp.where(later & alive[:, None] & alive, directions.sqdist(points, inverse), 0.0)

    def pair(values, _):
        row = selection.best(values)
        column = selection.best(selection.at(table, row.arm)).arm
        values = jnp.where(jnp.arange(values.size) == row.arm, 0.0, values)
        return values, Pairs(row.arm, column, row.value)

    return lax.scan(pair, table.max(1), None, length=number)[1]


def _padded(order, size):
    """Indices of whole blocks: the last one repeats."""
    return jnp.concatenate([order, order[-1:].repeat(-order.size % size)])
