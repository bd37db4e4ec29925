"""Claims of a paper: the verdict, and the numbers it rests on."""

from collections.abc import Sequence
from typing import NamedTuple

from ..measured import measured_text
from ..reading import ClaimRow, not_played

# In the order of the page: words, a sign beside them, and the class of the style.
VERDICTS = (
    ("fails", "✗", "fails"),
    ("too small to tell", "?", "open"),
    ("not played", "?", "open"),
    ("holds", "✓", "holds"),
)


class Claim(NamedTuple):
    """One claim as text."""

    verdict: str
    sign: str
    kind: str
    claim: str
    paper: str
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
    for verdict, sign, kind in VERDICTS:
        mine = [one for one in found if _verdict_of(one) == verdict]
        rows += [
            Claim(
                verdict,
                sign,
                kind,
                x["claim"],
                x.get("paper", ""),
                measured_text(x["measured"], replications),
            )
            for x in mine
        ]
        counts += [f"{len(mine)} {_plural(verdict, len(mine))}"] if mine else []
    return Claims(", ".join(counts), rows, any(one["holds"] is False for one in found))


def _verdict_of(claim: ClaimRow) -> str:
    if claim["holds"] is None:
        return "not played" if not_played(claim) else "too small to tell"
    return "holds" if claim["holds"] else "fails"


def _plural(verdict: str, number: int) -> str:
    several = {"fails": "fail", "holds": "hold"}
    return verdict if number == 1 else several.get(verdict, verdict)
