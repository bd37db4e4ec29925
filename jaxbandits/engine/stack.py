"""Worlds that differ in numbers alone, played side by side by one program."""

from typing import Any, NamedTuple

import numpy as np

from .device_loop import SPAN, Trial


class Family(NamedTuple):
    """Worlds of one structure; calling it with their numbers gives the trial of all of them.

    A lane carries the numbers in which its world differs from the others. They are the same
    for a replication whichever worlds still wait, so that its results are too.
    """

    world: Any
    own: tuple  # bool, for each number: whether it differs by world and has a leading axis [W]

    def __call__(self, numbers):
        """The `Trial` of replication `id % SPAN` of world `id // SPAN`."""

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

        return Trial(draw, build, lambda id: (id // SPAN, id % SPAN))


def family(worlds):
    """`(structure, numbers)` for a `Player`, of `(World, numbers)` that differ in numbers alone."""
    first, numbers = worlds[0]
    if len(worlds) == 1:
        return first, numbers
    own, columns = differing(worlds), zip(*(numbers for _, numbers in worlds), strict=True)
    stacked = tuple(
        np.stack(column) if differs else column[0]
        for differs, column in zip(own, columns, strict=True)
    )
    return Family(first, own), stacked


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
