"""Claims of a paper: the verdict, and the numbers it rests on."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ... import estimates
from ..reading import NOT_PLAYED, ClaimRow

# By verdict, in the order of the page: words, a sign beside them, and the class of the style.
VERDICTS = {
    False: ("fails", "✗", "fails"),
    None: ("too small to tell", "?", "open"),
    True: ("holds", "✓", "holds"),
}
ERRORS = {"standard_error", "standard_errors"}  # of the entry before them
MOST = 12  # entries of a list that are shown


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


def claims_of(found: Sequence[ClaimRow]) -> Claims | None:
    """The `Claims` of a folder, None where it has none."""
    if not found:
        return None
    rows, counts = [], []
    for holds, (verdict, sign, kind) in VERDICTS.items():
        mine = [one for one in found if one["holds"] is holds]
        rows += [
            Claim(
                "not played" if holds is None and NOT_PLAYED in one["measured"] else verdict,
                *(sign, kind, one["claim"], measured_text(one["measured"])),
            )
            for one in mine
        ]
        counts += [f"{len(mine)} {_plural(verdict, len(mine))}"] if mine else []
    return Claims(", ".join(counts), rows, any(one["holds"] is False for one in found))


def _plural(verdict: str, number: int) -> str:
    several = {"fails": "fail", "holds": "hold"}
    return verdict if number == 1 else several.get(verdict, verdict)


def measured_text(measured: Any) -> str:
    """Names and numbers; behind a number half the width of its 95% interval, where it is known."""
    if not isinstance(measured, dict):
        return _text(measured)
    entries = list(measured.items())
    errors = [*(value if name in ERRORS else None for name, value in entries[1:]), None]
    parts = [
        f"{str(name).replace('_', ' ')}: {_text(value, error)}"
        for (name, value), error in zip(entries, errors, strict=True)
        if name not in ERRORS
    ]
    return "; ".join(parts)


def _text(value: Any, error: Any = None) -> str:
    if isinstance(value, dict):
        return _some([f"{name}: {_text(one)}" for name, one in value.items()])
    if isinstance(value, list):
        errors = error if isinstance(error, list) and len(error) == len(value) else len(value) * [0]
        return _some([_text(*pair) for pair in zip(value, errors, strict=True)])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return estimates.PAGE.missing if value is None else str(value)
    if isinstance(error, int | float) and error > 0:
        return estimates.estimate(value, estimates.NORMAL * error)
    return f"{value:,}" if isinstance(value, int) else estimates.rounded(value, estimates.DIGITS)


def _some(texts: list[str]) -> str:
    more = [f"… ({len(texts)} in all)"] if len(texts) > MOST else []
    return ", ".join([*texts[:MOST], *more])
