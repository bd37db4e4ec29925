"""Paired comparisons as a table of the page."""

from collections.abc import Sequence
from typing import NamedTuple

from ... import estimates
from ..pairs import Pair
from .tables import Table

MOST = 20  # rows
DIGITS = 3
HEADER = ("first", "second", "at", "quantity", "mean difference [95%]", "single intervals")
NUM_LABELS = 4


class PairTable(NamedTuple):
    """A table, and how many pairs it leaves out."""

    table: Table
    left_out: int


def pair_table(found: Sequence[Pair], label: str) -> PairTable | None:
    """The pairs that an instance has, None where there are none."""
    if not found:
        return None
    lines = [_line(pair) for pair in found[:MOST]]
    caption = f"Where a paired comparison says more on {label}"
    return PairTable(Table(caption, HEADER, lines, NUM_LABELS), max(0, len(found) - MOST))


def _line(pair: Pair) -> list[str]:
    difference = estimates.estimate(pair.mean, interval=(pair.low, pair.high), digits=DIGITS)
    single = "overlap" if pair.overlap else "do not overlap"
    return [pair.first, pair.second, pair.where, pair.quantity, difference, single]
