"""A cell that is being simulated: which replications are known, and which it needs next."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from jaxtyping import Int

from ..engine.results import Runs, first_of, joined
from ..system.interrupts import held_back
from .cells import Cell
from .groups import Group
from .spec import Sweep
from .until import enough, stages

if TYPE_CHECKING:
    from .store import Store


class CellProgress:
    """Collects the runs of a cell, stored as they come, until the cell is complete.

    Args:
      plan: the `Sweep`.
      cell: one of its cells.
      store: where its runs are stored; None: nowhere.
      stored: `Runs` of the replications that are known already, or None.
      leads: whether this process stores the cell as a whole.

    Attributes:
      cell: the `Cell`.
      engine: that of the `stored` runs, None where there are none.
      result: its `Runs` once it is complete, else None.
    """

    def __init__(
        self,
        plan: Sweep,
        cell: Cell,
        store: "Store | None" = None,
        *,
        stored: Runs | None = None,
        leads: bool = True,
    ) -> None:
        self.cell: Cell = cell
        self.engine: str | None = None if stored is None else stored.meta.get("engine")
        self.result: Runs | None = None
        self._plan, self._store, self._leads = plan, store, leads
        self._parts: list[Runs] = []
        self._known = np.zeros(plan.replications, bool)
        self._stages = stages(plan.replications, plan.until)
        self._number = next(self._stages)
        if stored is not None:
            self._take(stored)

    def __len__(self) -> int:
        """How many replications are known."""
        return int(np.count_nonzero(self._known))

    @property
    def known(self) -> Runs | None:
        """`Runs` of the replications that are known; None of none."""
        if self.result is not None or not self._parts:
            return self.result
        return joined(self._parts)

    def missing(self) -> Int[np.ndarray, " R"]:
        """Numbers of the replications to simulate before the rules are checked again."""
        return np.flatnonzero(~self._known[: self._number])

    def add(self, runs: Runs, *, ours: bool = True) -> None:
        """Take some replications, which are on disk when this returns.

        Args:
          runs: the replications.
          ours: whether this process has to store them; else another one has.
        """
        with held_back():
            self._take(runs)
            if self.result is not None:
                self.close()
            elif ours and self._store is not None:
                self._store.add(self.cell.spec, runs)

    def close(self) -> None:
        """Store the cell as a whole; of several processes one does it."""
        if self._store is not None and self._leads and self.result is not None:
            self._store.put(self.cell.spec, self.result)

    def _take(self, runs: Runs) -> None:
        """Set the result if the cell is complete now, else the number of the next check."""
        self._parts.append(runs)
        numbers = runs.replication
        self._known[numbers[numbers < self._known.size]] = True
        while self.result is None and self._known[: self._number].all():
            self._parts = [joined(self._parts)]
            runs, until = first_of(self._parts[0], self._number), self._plan.until
            following = next(self._stages, None)
            most = self._plan.replications
            if following is None or (until and enough(runs, until, most)):
                self.result, self._parts = runs, []
            else:
                self._number = following


# The cells of a group that are being simulated, by their number in the group.
OpenCells: TypeAlias = dict[int, CellProgress]
Work: TypeAlias = Sequence[tuple[Group, OpenCells]]


def continued(open_cells: OpenCells, how: dict[str, Any]) -> dict[str, Any]:
    """Options of a `Simulation` that prefer the engine with which cells were begun.

    Where the user names an engine, the cells were begun with several, or this machine lacks theirs,
    the options are as they were.
    """
    begun = {f.engine for f in open_cells.values() if f.engine is not None}
    if how.get("engine", "auto") != "auto" or len(begun) != 1:
        return how
    from ..engine.checks import check_engine, devices_of

    (engine,) = begun
    try:
        check_engine(engine, devices_of(how.get("devices")))
    except ValueError:
        return how
    return how | {"prefer": engine}


class Keep(Protocol):
    """What takes the runs of a cell as they come."""

    def __call__(self, open_cell: CellProgress, runs: Runs, *, ours: bool = True) -> None:
        """Take some replications; see `CellProgress.add`."""
