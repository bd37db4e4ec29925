"""What a folder holds of the cells of a sweep that cannot be used: said in one line."""

import itertools
import warnings
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from ..system.revisions import Revisions, changes, counted
from .cells import Cell
from .store import Spec, Store

Former: TypeAlias = tuple[Revisions, Spec]  # earlier revisions of a cell, and its spec with them


def warn_of_unused(store: Store, cells: Iterable[Cell]) -> None:
    """Warn where cells, or parts of them, are stored whose numbers have changed since.

    Args:
      store: where they are stored; nothing in it is changed.
      cells: those that are to be played.
    """
    revised = [cell for cell in cells if cell.revised]
    stored = store.names() if revised else frozenset()
    found = [
        (cell, before)
        for cell in revised
        if (before := next((b for b, spec in former(cell) if store.holds(spec, stored)), None))
        is not None
    ]
    if not found:
        return
    lines = dict.fromkeys(line for cell, b in found for line in changes(b, cell.revised))
    cells_are = "1 stored cell is" if len(found) == 1 else f"{len(found)} stored cells are"
    warnings.warn(
        f"out: {cells_are} of an earlier revision and played anew, the old files stay: "
        f"{', '.join(lines)}",
        RuntimeWarning,
        stacklevel=2,
    )


def former(cell: Cell) -> Iterator[Former]:
    """What a cell was called in each of its earlier revisions, the latest first."""
    revised = cell.revised
    now = tuple(map(len, revised.values()))
    for numbers in itertools.product(*(range(most, -1, -1) for most in now)):
        pairs = zip(revised.items(), numbers, strict=True)
        before = {name: lines[:number] for (name, lines), number in pairs if number}
        spec = {name: part for name, part in cell.spec.items() if name != "revisions"}
        if numbers != now:
            yield before, spec | ({"revisions": counted(before)} if before else {})
