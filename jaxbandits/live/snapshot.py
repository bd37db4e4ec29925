"""All that is saved of a live run."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..core import Move


class Snapshot(NamedTuple):
    """A live run between two calls; K arms. A new one is made for every change."""

    state: Any  # the algorithm's
    move: Move  # what it wants now; NumPy arrays
    rounds: int  # moves learnt from
    arm_pulls: Int[np.ndarray, " K"]  # rewards told
    told: Int[np.ndarray, " K"]  # of those, in the phase that is not complete
    sums: Float[np.ndarray, " K"]  # their sums
    tickets: dict[int, int]  # number -> arm, of the pulls handed out and not yet told
    issued: int  # tickets handed out so far
    shown: Int[np.ndarray, " N"] | None = None  # rows that the move chooses from; None: all

    @property
    def one_arm(self) -> bool:
        """Whether a move is one pull of one arm, and not a phase."""
        return self.move.count is None

    @property
    def done(self) -> bool:
        """Whether the algorithm has stopped."""
        return bool(self.move.done)

    @property
    def asked(self) -> int:
        """The row of the one arm that is asked for."""
        index = int(self.move.arm)
        return index if self.shown is None else int(self.shown[index])

    @property
    def nothing_shown(self) -> bool:
        """Whether a contextual algorithm has been shown nothing since the last reward."""
        return self.shown is not None and not self.shown.size

    def wanted(self) -> Int[np.ndarray, " K"]:
        """Draws of each arm that the phase still waits for, handed out or not."""
        counts = np.zeros_like(self.told)
        counts[np.asarray(self.move.arm)] = self.move.count
        return counts - self.told

    def handed_out(self) -> Int[np.ndarray, " K"]:
        """Draws of each arm whose tickets are out."""
        return np.bincount([*self.tickets.values()], minlength=len(self.told)).astype(np.int64)
