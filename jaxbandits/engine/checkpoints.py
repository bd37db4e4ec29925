"""At which rounds of a regret run the regret is recorded.

About 100 rounds however long the run is, so that its memory does not grow with the horizon.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Int

from ..messages import brief
from ..parameters import require
from ..real_numbers import fault, is_flag
from ..whole_numbers import are_whole

GRID: int = 100  # recorded rounds, about
SPACINGS: tuple[str, ...] = ("mixed", "even", "log")
# What a user gives as `record`: one of `SPACINGS`, or the rounds themselves.
RecordedRounds: TypeAlias = str | Sequence[int] | np.ndarray
Rounds: TypeAlias = Int[np.ndarray, " T"]


def check(record: RecordedRounds, horizon: int | None) -> None:
    """Raise unless `record` is a spacing, or a list of rounds of a run with that horizon."""
    if isinstance(record, str):
        known = ", ".join(map(repr, SPACINGS))
        require(record in SPACINGS, f"record must be one of {known} or rounds", record)
        require(record == "mixed" or horizon is not None, "record is for runs with a horizon")
        return
    require(horizon is not None, "record is for runs with a horizon")
    message = (
        f"record must be whole numbers that increase, from 1 to the horizon {horizon}, "
        f"got {brief(record)}"
    )
    rounds = _numbers(record)
    fits = rounds.ndim == 1 and rounds.size > 0 and are_whole(rounds)
    require(fits and (np.diff(rounds) > 0).all(), message)
    require(rounds[0] >= 1 and rounds[-1] <= horizon, message)


def _numbers(record):
    """A list of numbers as floats, NaN where it is none."""
    table = hasattr(record, "__array__")
    if table or isinstance(record, Sequence):
        listed = record if table else list(record)
        flags = np.asarray(listed).dtype == bool if table else any(map(is_flag, listed))
        if fault(listed) is None and not flags:
            try:
                return np.asarray(listed, float)
            except (TypeError, ValueError):  # lists of several lengths
                pass
    return np.array(np.nan)


def rounds_of(record: RecordedRounds, horizon: int) -> Rounds:
    """The recorded rounds, increasing; every round of a short run.

    >>> rounds_of("even", 1000)[:3].tolist(), rounds_of("log", 1000)[:3].tolist()
    ([10, 20, 30], [1, 2, 3])
    """
    if not isinstance(record, str):
        return np.asarray(record, np.int64)
    if horizon <= 2 * GRID:
        return np.arange(1, horizon + 1)
    numbers = {"mixed": (GRID // 2, GRID // 2), "even": (GRID, 0), "log": (0, GRID)}
    num_even, num_geometric = numbers[record]
    even = np.linspace(0, horizon, num_even + 1)[1:]
    geometric = np.geomspace(1, horizon, num_geometric)
    return np.unique(np.round(np.concatenate([even, geometric])).astype(np.int64))


def padded_length(record: RecordedRounds, horizon: int) -> int:
    """How many recorded rounds there are, with the zeros that `padded` adds."""
    return len(padded(rounds_of(record, horizon)))


def padded(rounds: Rounds) -> Rounds:
    """The rounds, then zeros up to a multiple of 200.

    No round has the number 0. Runs that record other rounds then seldom need another program.
    """
    return np.pad(rounds, (0, -len(rounds) % (2 * GRID)))
