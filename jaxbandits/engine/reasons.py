"""Why a replication has no answer that its algorithm vouches for.

The one place where flags become reasons. A flag is an entry of an algorithm's `info`, or what the
engine found out when a replication was cut short (`Runs.facts`); it is raised where it is above 0.
An algorithm only has to name its flags as the table `REASONS` does.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int


class Reason(NamedTuple):
    """A row of the table; codes are stored in files and never change their meaning."""

    code: int
    name: str
    meaning: str
    flags: tuple[str, ...] = ()  # entries of `facts` or `info`
    also_stopped: bool = False  # whether it also applies to a replication that stopped by itself


# The first that applies is the reason.
REASONS: tuple[Reason, ...] = (
    Reason(2, "nan", "the algorithm's state holds NaN", ("broken",), True),
    Reason(3, "tied", "other answers are exactly as good: no number of draws decides", ("tied",)),
    Reason(4, "skipped", "it answered at random, without a draw", ("skipped",), True),
    Reason(10, "hidden", "arms drawn anew do not span, or rounding hides a direction", ("hidden",)),
    Reason(5, "rank", "draws did not span what they had to", ("invalid", "unspanned"), True),
    Reason(6, "unsolved", "a design, a rounding or a game missed its accuracy", ("unsolved",)),
    Reason(
        7,
        "unfitted",
        "a fit did not converge, or has no finite estimate",
        ("unfitted", "unconverged", "nonfinite"),
    ),
    Reason(8, "capped", "a phase met the algorithm's own limit of draws", ("capped",)),
    Reason(9, "idle", "thousands of rounds passed without a draw", ("idle",)),
    Reason(1, "max_pulls", "max_pulls was reached; nothing else is known"),
)
NAMES: dict[int, str] = {0: "", **{reason.code: reason.name for reason in REASONS}}


def codes_of(
    stopped: Bool[np.ndarray, " R"], flags: Mapping[str, np.ndarray]
) -> Int[np.ndarray, " R"]:
    """The code of each replication's reason, int8 [R]; 0 for an answer that stands.

    Args:
      stopped: bool [R], whether the algorithm ended the replication.
      flags: by name, numbers [R].

    >>> codes_of(np.array([True, False, False]), {"tied": np.array([1, 1, 0])}).tolist()
    [0, 3, 1]
    """
    codes = np.zeros(len(stopped), np.int8)
    for reason in REASONS:
        raised = np.full(len(stopped), not reason.flags)
        for name in reason.flags:
            raised = raised | (np.asarray(flags.get(name, 0)) > 0)
        applies = raised & (~stopped | reason.also_stopped)
        codes = np.where((codes == 0) & applies, reason.code, codes).astype(np.int8)
    return codes


def counted(codes: Int[np.ndarray, " R"]) -> dict[str, int]:
    """How many replications have each reason: a dict by name, the most frequent first."""
    some, numbers = np.unique(codes[codes > 0], return_counts=True)
    pairs = sorted(zip(numbers.tolist(), some.tolist(), strict=True), key=lambda x: (-x[0], x[1]))
    return {NAMES[code]: number for number, code in pairs}


def text_of(counts: Mapping[str, int]) -> str:
    """Counts in a few words.

    >>> text_of({"tied": 12, "max_pulls": 1})
    '12 tied, 1 max_pulls'
    """
    return ", ".join(f"{number:,} {name}" for name, number in counts.items()) or "-"
