"""At which rounds of a regret run the regret is recorded, so that memory does not grow with it."""

import numpy as np

from ..parameters import require

GRID = 100  # rounds, about
SPACINGS = ("mixed", "even", "log")


def check(record, horizon):
    """Raise unless these are a spacing or rounds of a run of that horizon."""
    if isinstance(record, str):
        known = ", ".join(map(repr, SPACINGS))
        require(record in SPACINGS, f"record must be one of {known} or rounds, got {record!r}")
        require(record == "mixed" or horizon is not None, "record is for runs with a horizon")
        return
    require(horizon is not None, "record is for runs with a horizon")
    told = f"record must be whole numbers that increase, from 1 to the horizon {horizon}"
    try:
        rounds = np.asarray(record, float)
    except (TypeError, ValueError):
        rounds = np.array(np.nan)
    fine = rounds.ndim == 1 and rounds.size > 0 and (rounds == np.floor(rounds)).all()
    require(fine and (np.diff(rounds) > 0).all(), f"{told}, got {record!r}")
    require(rounds[0] >= 1 and rounds[-1] <= horizon, f"{told}, got {record!r}")


def rounds_of(record, horizon):
    """The rounds, increasing; all of a short run.

    >>> rounds_of("even", 1000)[:3].tolist(), rounds_of("log", 1000)[:3].tolist()
    ([10, 20, 30], [1, 2, 3])
    """
    if not isinstance(record, str):
        return np.asarray(record, np.int64)
    if horizon <= 2 * GRID:
        return np.arange(1, horizon + 1)
    halves = {"mixed": (GRID // 2, GRID // 2), "even": (GRID, 0), "log": (0, GRID)}
    evenly, geometrically = halves[record]
    even = np.linspace(0, horizon, evenly + 1)[1:]
    geometric = np.geomspace(1, horizon, geometrically)
    return np.unique(np.round(np.concatenate([even, geometric])).astype(np.int64))


def padded_length(record, horizon):
    """How many of them, with what `padded` adds."""
    return len(padded(rounds_of(record, horizon)))


def padded(rounds):
    """With zeros, which no round is, so that other rounds seldom need another program."""
    return np.pad(rounds, (0, -len(rounds) % (2 * GRID)))
