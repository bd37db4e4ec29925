"""A cell under way: what is known of it, and which replications it needs next."""

import numpy as np

from ..engine.results import first_of, joined
from ..system.interrupts import held_back
from .until import enough, stages


class CellProgress:
    """Gathers the runs of a cell, stored as they come, until the cell is whole.

    Args:
      begun: a callable `spec -> Runs or None`: what is stored of the cell.
      leads: whether this process stores the cell as a whole.

    Attributes:
      cell: the `Cell`.
      found: its `Runs` once it is whole, else None.
    """

    def __init__(self, plan, cell, store=None, *, begun=None, leads=True):
        self.cell, self.found = cell, None
        self._plan, self._store, self._leads = plan, store, leads
        self._parts, self._known = [], np.zeros(plan.replications, bool)
        self._stages = stages(plan.replications, plan.until)
        self._number = next(self._stages)
        stored = begun(cell.spec) if begun is not None else None
        if stored is not None:
            self._take(stored)

    def __len__(self):
        """How many replications are known."""
        return np.count_nonzero(self._known)

    def missing(self):
        """Numbers of the replications to play before the next look."""
        return np.flatnonzero(~self._known[: self._number]).tolist()

    def add(self, runs, *, ours=True):
        """Take some of them, on disk before this returns unless another process has them there."""
        with held_back():
            self._take(runs)
            if self.found is not None:
                self.close()
            elif ours and self._store is not None:
                self._store.add(self.cell.spec, runs)

    def close(self):
        """Store the cell as a whole; of several processes one does it."""
        if self._store is not None and self._leads:
            self._store.put(self.cell.spec, self.found)

    def _take(self, runs):
        """Whether the cell is whole now, or else how far the next look is."""
        self._parts.append(runs)
        here = runs.replication
        self._known[here[here < self._known.size]] = True
        while self.found is None and self._known[: self._number].all():
            self._parts = [joined(self._parts)]
            runs, until = first_of(self._parts[0], self._number), self._plan.until
            following = next(self._stages, None)
            if following is None or (until and enough(runs, until)):
                self.found, self._parts = runs, []
            else:
                self._number = following
