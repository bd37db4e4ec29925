"""What holds of every live run: a file that says anything else was not written by one.

Of the state of an algorithm nothing is known: it may hold NaN, for what it has not seen yet, say.
"""

import numpy as np

from ..engine.saved import LEAST_ANSWER
from ..system.data_files import Unreadable
from .snapshot import Snapshot


def check_snapshot(snapshot: Snapshot, num_arms: int, num_targets: int) -> None:
    """Raise `Unreadable` unless a live run can have come to this.

    Args:
      snapshot: of fitting shapes and dtypes.
      num_arms: K.
      num_targets: M, of what is answered.
    """
    _check_counts(snapshot)
    _check_tickets(snapshot, num_arms)
    _check_move(snapshot, num_arms, num_targets)


def _check_counts(snapshot: Snapshot) -> None:
    arm_pulls, told, sums = snapshot.arm_pulls, snapshot.told, snapshot.sums
    counts = np.concatenate([arm_pulls, told, [snapshot.rounds, snapshot.issued]])
    _require((counts >= 0).all(), "a count is below 0")
    _require((told <= arm_pulls).all(), "a phase has more pulls than the run")
    fits = np.isfinite(sums).all() and not sums[told == 0].any()
    _require(fits, "the sums of the rewards of a phase are none")
    if snapshot.one_arm:
        _require(not told.any(), "it has a phase, which its algorithm has not")
        _require(
            arm_pulls.sum() == snapshot.rounds, "the pulls of the arms do not sum to the rounds"
        )
    if not snapshot.rounds:
        _require((told == arm_pulls).all(), "it has pulls before the first round")


def _check_tickets(snapshot: Snapshot, num_arms: int) -> None:
    numbers, arms = np.array([*snapshot.tickets], np.int64), np.array([*snapshot.tickets.values()])
    known = (numbers >= 0) & (numbers < snapshot.issued)
    _require(known.all() and (np.diff(numbers) > 0).all(), "it has a ticket that was never issued")
    _require(
        ((arms >= 0) & (arms < num_arms)).all(), "it has a ticket for an arm that does not exist"
    )


def _check_move(snapshot: Snapshot, num_arms: int, num_targets: int) -> None:
    """Of what is asked for, what is shown and what is answered."""
    move, shown = snapshot.move, snapshot.shown
    choices = num_arms
    if shown is not None:
        _require(((shown >= 0) & (shown < num_arms)).all(), "it shows a row that does not exist")
        choices = max(1, len(shown))
    drawn = move.arm if move.count is None else move.arm[move.count != 0]
    exists = (drawn >= 0) & (drawn < choices)
    _require(snapshot.done or bool(exists.all()), "it asks for an arm that does not exist")
    if move.count is not None and not snapshot.done:
        _require(bool((move.count >= 0).all()), "it asks for fewer than 0 pulls of an arm")
        free = snapshot.wanted() - snapshot.handed_out()
        _require((free >= 0).all(), "a phase has more pulls than it asks for")
    if np.issubdtype(move.answer.dtype, np.integer):
        exists = (move.answer >= LEAST_ANSWER) & (move.answer < num_targets)
        _require(bool(exists.all()), "its answer is none of the targets")


def _require(holds: bool | np.bool_, text: str) -> None:
    if not holds:
        raise Unreadable(text)
