"""A cell under way: what is known of it, and which replications it needs next."""

from ..results import first_of, joined
from .until import enough, stages


class Filling:
    """Gathers the runs of a cell, stored as they come, until the cell is whole.

    Attributes:
      cell: the `Cell`.
      found: its `Runs` once it is whole, else None.
    """

    def __init__(self, plan, cell, store=None, *, resume=True, leads=True):
        self.cell, self.found = cell, None
        self._plan, self._store, self._leads = plan, store, leads
        self._runs = store.begun(cell.spec) if store is not None and resume else None
        self._stages = stages(plan.replications, plan.until)
        self._number = next(self._stages)
        self._look()

    def __len__(self):
        """How many replications are known."""
        return 0 if self._runs is None else len(self._runs)

    def missing(self):
        """Numbers of the replications to play before the next look."""
        known = set() if self._runs is None else set(self._runs.replication.tolist())
        return [r for r in range(self._number) if r not in known]

    def add(self, runs, *, ours=True):
        """Take some of them, on disk before this returns unless another process has them there."""
        self._runs = runs if self._runs is None else joined([self._runs, runs])
        self._look()
        if self.found is not None:
            self.close()
        elif ours and self._store is not None:
            self._store.add(self.cell.spec, runs)

    def close(self):
        """Store the cell as a whole; of several processes one does it."""
        if self._store is not None and self._leads:
            self._store.put(self.cell.spec, self.found)

    def _look(self):
        """Whether the cell is whole, or else how far the next look is."""
        while self.found is None and self._runs is not None and not self.missing():
            runs, until = first_of(self._runs, self._number), self._plan.until
            following = next(self._stages, None)
            if following is None or (until and enough(runs, until)):
                self.found = runs
            else:
                self._number = following
