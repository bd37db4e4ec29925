"""Computations on all pairs of many points, tile by tile: M^2 numbers are never stored.

Points that cannot matter are left out first, so that the work is that of the remaining ones.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .. import selection
from ..design import directions

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
    order = jnp.argsort(~mask)
    missing = -mask.size % ROWS
    return _Chosen(jnp.concatenate([order, order[-1:].repeat(missing)]), mask.sum())


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


class _Tiles(NamedTuple):
    """The best tiles of rows with the largest distances: their blocks of rows and of columns."""

    row: Int[Array, " n"]
    column: Int[Array, " n"]
    largest: Float[Array, " n"]  # in order


def farthest(
    points: Float[Array, "M d"], alive: Bool[Array, " M"], inverse: Float[Array, "d d"], number: int
) -> Pairs:
    """The farthest pair of points alive first, then other distant pairs: `number` of them.

    Where there are many points, at first only the largest distance of each tile is found, as long
    as the tile is in the cache; then the pairs of the best tiles, one of each row of tiles.
    """
    size, dim = points.shape
    if size <= FEW:
        return _farthest_of_few(points, alive, inverse, number)
    moved = points @ inverse
    norms = (moved * points).sum(1)

    def from_point(row):
        sqdist = selection.at(norms, row) + norms - 2.0 * points @ selection.at(moved, row)
        return jnp.where(alive, jnp.maximum(0.0, sqdist), -1.0)

    centre = jnp.where(alive[:, None], points, 0.0).sum(0) / jnp.maximum(alive.sum(), 1)
    away = jnp.maximum(0.0, ((points - centre) @ inverse * (points - centre)).sum(1))
    radii = jnp.where(alive, jnp.sqrt(away), -jnp.inf)
    known = selection.best(
        from_point(selection.best(from_point(selection.best(radii).arm)).arm)
    ).value
    # If two points are farther apart than the known pair, one of them is farther than half of
    # that distance from the centre. Such points come first, and dead ones last.
    far = radii >= 0.5 * jnp.sqrt(jnp.maximum(0.0, known)) * (1.0 - 1e-9)
    order = jnp.argsort(jnp.where(alive, jnp.where(far, 0, 1), 2))
    num_far, num_alive = (alive & far).sum(), alive.sum()
    # Products of these rows are squared distances, -inf where a point is dead.
    norms, ones = jnp.where(alive, norms, -jnp.inf), jnp.ones_like(norms)
    left = _padded(jnp.column_stack([-2.0 * moved, norms, ones])[order], ROWS)
    right = _padded(jnp.column_stack([points, ones, norms])[order], COLUMNS)

    def tile(row, column):
        rows = lax.dynamic_slice(left, (row * ROWS, 0), (ROWS, dim + 2))
        columns = lax.dynamic_slice(right, (column * COLUMNS, 0), (COLUMNS, dim + 2))
        return rows @ columns.T

    def best_of(row):  # pairs with points that came before were seen in their rows
        def visit(carry):
            column, at, best = carry
            largest = tile(row, column).max()
            better = largest > best
            return column + 1, jnp.where(better, column, at), jnp.where(better, largest, best)

        more = lambda carry: carry[0] * COLUMNS < num_alive  # noqa: E731
        own = row * ROWS // COLUMNS
        return lax.while_loop(more, visit, (own, own, jnp.zeros((), points.dtype)))[1:]

    def visit(carry):
        row, best = carry
        return row + 1, _kept(best, (row, *best_of(row)))

    blank = jnp.zeros(number, int)
    begin = _Tiles(blank, blank, jnp.zeros(number, points.dtype))
    more = lambda carry: carry[0] * ROWS < num_far  # noqa: E731
    _, best = lax.while_loop(more, visit, (jnp.zeros((), int), begin))

    def pair(_, block):
        row, column = block
        top = selection.best(tile(row, column).reshape(-1)).arm
        return None, (row * ROWS + top // COLUMNS, column * COLUMNS + top % COLUMNS)

    _, ends = lax.scan(pair, None, (best.row, best.column))
    first, second = (order[jnp.minimum(end, size - 1)] for end in ends)
    return Pairs(first, second, best.largest)


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


def _padded(rows, size):
    """Rows of whole blocks: the last row repeats."""
    return jnp.concatenate([rows, rows[-1:].repeat(-rows.shape[0] % size, 0)])


def _kept(best, found):
    """The n largest of n + 1 tiles, in order."""
    position = (best.largest >= found[2]).sum()
    index = jnp.arange(best.largest.size)

    def inserted(old, new):
        shifted = jnp.concatenate([old[:1], old[:-1]])
        return jnp.where(index < position, old, jnp.where(index == position, new, shifted))

    return _Tiles(*(inserted(old, new) for old, new in zip(best, found, strict=True)))
