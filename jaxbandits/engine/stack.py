"""Cells that differ in numbers alone, stacked so that one program plays them side by side."""

from typing import Any, NamedTuple

import numpy as np

from .device_loop import SPAN, EpisodeFactory


class Stack(NamedTuple):
    """Cells of one structure; called with their numbers it makes the episodes of all of them.

    A lane carries the numbers in which its world differs from the others. They are the same
    for a replication whichever worlds still wait, so that its results are too.
    """

    world: Any
    own: tuple  # bool, for each number: whether it differs by world and has a leading axis [W]

    def __call__(self, numbers):
        """The `EpisodeFactory` of replication `id % SPAN` of world `id // SPAN`."""

        def filled(mine):
            rest = iter(mine)
            return self.world(
                tuple(next(rest) if own else x for own, x in zip(self.own, numbers, strict=True))
            )

        def draw(key, number, replication):
            mine = [x[number] for own, x in zip(self.own, numbers, strict=True) if own]
            return mine, filled(mine).draw(key, number, replication)

        def build(problem):
            mine, drawn = problem
            return filled(mine).build(drawn)

        return EpisodeFactory(draw, build, lambda id: (id // SPAN, id % SPAN))


def stacked(worlds):
    """`(structure, numbers)` for a `HostLoop`, of several that differ in numbers alone."""
    first, numbers = worlds[0]
    if len(worlds) == 1:
        return first, numbers
    own, columns = differing(worlds), zip(*(numbers for _, numbers in worlds), strict=True)
    numbers = tuple(
        np.stack(column) if differs else column[0]
        for differs, column in zip(own, columns, strict=True)
    )
    return Stack(first, own), numbers


def own_bytes(worlds):
    """How much of its world a lane of their stack carries."""
    own, (_, numbers) = differing(worlds), worlds[0]
    return sum(np.asarray(x).nbytes for x, differs in zip(numbers, own, strict=True) if differs)


def differing(worlds):
    """For each number, whether the worlds differ in it: bool, a tuple."""
    columns = zip(*(numbers for _, numbers in worlds), strict=True)
    return tuple(any(not _equal(column[0], x) for x in column[1:]) for column in columns)


def _equal(one, two):
    return np.array_equal(np.asarray(one), np.asarray(two), equal_nan=True)
