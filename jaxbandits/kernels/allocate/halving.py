"""Successive elimination by halves: how many survive each stage and what a stage may spend."""

from typing import NamedTuple

import numpy as np

LEFTOVERS = ("last", "discard")


class Schedule(NamedTuple):
    """Stages of an elimination that keeps `ceil(K_t / eta)` arms; sizes are static."""

    sizes: np.ndarray  # int [s + 1]: arms alive before each stage, then 1
    stages: int

    def draws(self, budget, stage, leftover="last"):
        """Draws of `stage` (0-based), see `share`; with leftover "discard" no stage has more."""
        if leftover == "discard":
            return budget // max(self.stages, 1)
        return share(budget, max(self.stages, 1), stage)


def share(budget, stages, stage):
    """Draws of `stage` (0-based): `floor(B/s)`, one more in the last `B mod s` stages."""
    return budget // stages + (stage >= stages - budget % stages)


def schedule(num_arms: int, eta: int = 2) -> Schedule:
    """Integer ceilings throughout: a floating logarithm rounds log(125)/log(5) above 3."""
    sizes = [num_arms]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // eta))
    return Schedule(np.array(sizes), len(sizes) - 1)
