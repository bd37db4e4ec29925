"""Claims of a paper: the verdict, and the numbers it rests on."""

from collections.abc import Sequence
from typing import Any

from ... import estimates
from ..reading import ClaimRow
from .markup import Html, element, join

VERDICTS = {True: "holds", False: "fails", None: "too small to tell"}
CLASSES = {True: "holds", False: "fails", None: "open"}
ERRORS = {"standard_error", "standard_errors"}  # of the entry before them
MOST = 12  # entries of a list that are shown


def claims(found: Sequence[ClaimRow]) -> Html:
    """A list of the claims, each with its verdict."""
    items = [
        element(
            "li",
            element("strong", VERDICTS[one["holds"]], class_=CLASSES[one["holds"]]),
            join(": ", one["claim"]),
            element("p", measured_text(one["measured"]), class_="measured"),
        )
        for one in found
    ]
    return element("ul", *items, class_="claims")


def measured_text(measured: Any) -> str:
    """Names and numbers; a standard error stands behind the number it belongs to."""
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
        return estimates.estimate(value, error)
    return f"{value:,}" if isinstance(value, int) else estimates.rounded(value, estimates.DIGITS)


def _some(texts: list[str]) -> str:
    more = [f"… ({len(texts)} in all)"] if len(texts) > MOST else []
    return ", ".join([*texts[:MOST], *more])
