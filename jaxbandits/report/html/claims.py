"""Claims of a paper: the verdict, and the numbers it rests on."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..measured import measured_text
from ..reading import NOT_PLAYED, ClaimRow

# By verdict, in the order of the page: words, a sign beside them, and the class of the style.
VERDICTS = {
    False: ("fails", "✗", "fails"),
    None: ("too small to tell", "?", "open"),
    True: ("holds", "✓", "holds"),
}


class Claim(NamedTuple):
    """One claim as text."""

    verdict: str
    sign: str
    kind: str
    claim: str
    measured: str


class Claims(NamedTuple):
    """All claims, those that fail first, and how many there are of each verdict."""

    summary: str
    claims: list[Claim]
    some_fail: bool


def claims_of(found: Sequence[ClaimRow], replications: float) -> Claims | None:
    """The `Claims` of a folder, None where it has none.

    Args:
      found: rows of `claims.json`.
      replications: behind errors that do not say how many.
    """
    if not found:
        return None
    rows, counts = [], []
    for holds, (verdict, sign, kind) in VERDICTS.items():
        mine = [one for one in found if one["holds"] is holds]
        rows += [
            Claim(
                "not played" if holds is None and _not_played(one["measured"]) else verdict,
                *(sign, kind, one["claim"], measured_text(one["measured"], replications)),
            )
            for one in mine
        ]
        counts += [f"{len(mine)} {_plural(verdict, len(mine))}"] if mine else []
    return Claims(", ".join(counts), rows, any(one["holds"] is False for one in found))


def _not_played(measured: Any) -> bool:
    return isinstance(measured, dict) and NOT_PLAYED in measured


def _plural(verdict: str, number: int) -> str:
    several = {"fails": "fail", "holds": "hold"}
    return verdict if number == 1 else several.get(verdict, verdict)
