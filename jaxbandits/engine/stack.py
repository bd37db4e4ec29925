"""Cells that differ in numbers alone, stacked so that one program runs them side by side."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..system.traces import TraceCache
from .device_loop import REPLICATIONS_PER_CELL, EpisodeFactory, Factories, Numbers
from .partition import CellStructure, PreparedCell


class StackedStructure(NamedTuple):
    """Cells of one structure; called with their numbers it makes the episodes of all of them.

    A lane carries the numbers in which its cell differs from the others. They are the same for a
    replication whichever cells still wait, so its results are the same too.
    """

    structure: CellStructure
    varying: tuple[bool, ...]  # for each number: whether it differs by cell, with a first axis

    @property
    def traces(self) -> TraceCache | None:
        """That of the cells, which are of one call."""
        return self.structure.traces

    @property
    def in_any_call(self) -> "StackedStructure":
        """See `CellStructure`."""
        return self._replace(structure=self.structure.in_any_call)

    def of_one(self, shapes: Any) -> tuple[CellStructure, Any]:
        """The structure of a cell, and the shapes of its numbers."""
        pairs = zip(self.varying, shapes, strict=True)
        return self.structure, tuple((x[0][1:], x[1]) if varies else x for varies, x in pairs)

    def __call__(self, numbers: Numbers) -> EpisodeFactory:
        """The `EpisodeFactory` of all replications of all cells."""

        def factory_with(own):
            rest = iter(own)
            return self.structure(
                tuple(
                    next(rest) if varies else x
                    for varies, x in zip(self.varying, numbers, strict=True)
                )
            )

        def draw(key, cell, replication):
            own = [x[cell] for varies, x in zip(self.varying, numbers, strict=True) if varies]
            return own, factory_with(own).draw(key, cell, replication)

        def build(problem):
            own, drawn = problem
            return factory_with(own).build(drawn)

        return EpisodeFactory(
            draw, build, lambda id: (id // REPLICATIONS_PER_CELL, id % REPLICATIONS_PER_CELL)
        )


def stacked(cells: Sequence[PreparedCell]) -> tuple[Factories, Numbers]:
    """`(structure, numbers)` for a `HostLoop`, of cells that differ in numbers alone."""
    first, numbers = cells[0]
    if len(cells) == 1:
        return first, numbers
    varying, columns = varying_numbers(cells), zip(*(numbers for _, numbers in cells), strict=True)
    numbers = tuple(
        np.stack(column) if varies else column[0]
        for varies, column in zip(varying, columns, strict=True)
    )
    return StackedStructure(first, varying), numbers


def own_bytes(cells: Sequence[PreparedCell]) -> int:
    """How many bytes a lane of the stacked cells carries that belong to its cell alone."""
    varying, (_, numbers) = varying_numbers(cells), cells[0]
    return sum(np.asarray(x).nbytes for x, varies in zip(numbers, varying, strict=True) if varies)


def varying_numbers(cells: Sequence[PreparedCell]) -> tuple[bool, ...]:
    """For each number, whether the cells differ in it."""
    columns = zip(*(numbers for _, numbers in cells), strict=True)
    return tuple(any(not _equal(column[0], x) for x in column[1:]) for column in columns)


def _equal(one, two):
    return np.array_equal(np.asarray(one), np.asarray(two), equal_nan=True)
