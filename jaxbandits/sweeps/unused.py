"""What a folder holds of the cells of a sweep that cannot be used: said in one line."""

import itertools
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from ..system.revisions import Revisions, changes, counted
from .cells import Cell
from .store import Spec, Store

Former: TypeAlias = tuple[Revisions, Spec]  # earlier revisions of a cell, and its spec with them


def warn_of_unused(store: Store, cells: Sequence[Cell], known: Iterable[Cell]) -> None:
    """Warn where cells, or parts of them, are stored that cannot be used any more.

    Args:
      store: where they are stored; nothing in it is changed.
      cells: those that are to be played.
      known: all cells of the sweep.
    """
    for text in (_of_earlier_revisions(store, cells), _of_own_code(store, cells, known)):
        if text:
            warnings.warn(f"out: {text}; the old files stay", RuntimeWarning, stacklevel=2)


def _of_earlier_revisions(store: Store, cells: Iterable[Cell]) -> str:
    """Which cells are there whose numbers have changed since, and how."""
    revised = [cell for cell in cells if cell.revised]
    stored = store.names() if revised else frozenset()
    found = [
        (cell, before)
        for cell in revised
        if (before := next((b for b, spec in former(cell) if store.holds(spec, stored)), None))
        is not None
    ]
    lines = dict.fromkeys(line for cell, b in found for line in changes(b, cell.revised))
    cells_are = "1 stored cell is" if len(found) == 1 else f"{len(found)} stored cells are"
    changed = ", ".join(lines)
    return f"{cells_are} of an earlier revision and played anew ({changed})" if found else ""


def _of_own_code(store: Store, cells: Iterable[Cell], known: Iterable[Cell]) -> str:
    """Whether version 0.2.0 has stored cells that may be of the same code of a user."""
    own = [cell for cell in cells if cell.own_code]
    if not own or not store.has_former(own[0].spec, [cell.spec for cell in known]):
        return ""
    tables = dict.fromkeys(table for cell in own for table in cell.own_code)
    return (
        f"cells with code of yours ({', '.join(tables)}) that version 0.2.0 has stored are "
        "played anew, as it did not note all that the code reads"
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
