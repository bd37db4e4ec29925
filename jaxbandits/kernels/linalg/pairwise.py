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
ROWS = 64  # of a tile


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


def farthest(
    points: Float[Array, "M d"], alive: Bool[Array, " M"], inverse: Float[Array, "d d"], number: int
) -> Pairs:
    """The farthest pair of points alive first, then other distant pairs: `number` of them."""
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
    # that distance from the centre.
    far = radii >= 0.5 * jnp.sqrt(jnp.maximum(0.0, known)) * (1.0 - 1e-9)
    others = _in_front(alive & far)

    def visit(carry):
        block, best = carry
        rows, inside = others.rows(block)
        tile = jnp.where(inside[:, None] & alive, _tile(moved, norms, points, rows), -1.0)
        columns = jnp.argmax(tile, axis=1)
        values = jnp.take_along_axis(tile, columns[:, None], 1)[:, 0]
        top = selection.best(values)
        found = (selection.at(rows, top.arm), selection.at(columns, top.arm), top.value)
        return block + 1, _kept(best, found)

    more = lambda carry: carry[0] * ROWS < others.number  # noqa: E731
    blank = jnp.zeros(number, int)
    begin = Pairs(blank, blank, jnp.zeros(number, points.dtype))
    _, found = lax.while_loop(more, visit, (jnp.zeros((), int), begin))
    return found


def _kept(best, found):
    """The n largest of n + 1 pairs, in order."""
    position = (best.sqdist >= found[2]).sum()
    index = jnp.arange(best.sqdist.size)

    def inserted(old, new):
        shifted = jnp.concatenate([old[:1], old[:-1]])
        return jnp.where(index < position, old, jnp.where(index == position, new, shifted))

    return Pairs(*(inserted(old, new) for old, new in zip(best, found, strict=True)))
