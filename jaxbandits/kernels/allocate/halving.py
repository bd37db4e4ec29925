"""Successive halving: how many arms survive each stage, and how many draws a stage has."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from ...types import Whole

LEFTOVERS = ("last", "discard")


class Schedule(NamedTuple):
    """Stages of an elimination that keeps `ceil(K_t / eta)` arms; sizes are static."""

    sizes: Int[np.ndarray, " s+1"]  # arms alive before each stage, then 1
    stages: int  # s

    def draws(self, budget: Whole, stage: Whole, leftover: str = "last") -> Whole:
        """Draws of `stage` (0-based), see `share`; with leftover "discard" no stage has more."""
        if leftover == "discard":
            return budget // max(self.stages, 1)
        return share(budget, max(self.stages, 1), stage)


def share(budget: Whole, stages: Whole, stage: Whole) -> Whole:
    """Draws of `stage` (0-based): `floor(B/s)`, one more in the last `B mod s` stages."""
    return budget // stages + (stage >= stages - budget % stages)


def schedule(num_arms: int, eta: int = 2) -> Schedule:
    """The stages for so many arms, by integer ceilings: log(125) / log(5) is rounded above 3."""
    sizes = [num_arms]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // eta))
    return Schedule(np.array(sizes), len(sizes) - 1)
