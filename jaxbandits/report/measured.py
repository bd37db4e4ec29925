"""The numbers that a verdict on a claim rests on, as text."""

import math
from typing import Any

from .. import estimates

LOG = "standard_error_of_log"  # its interval is a factor to both sides
ERRORS = ("standard_error", "standard_errors", LOG)  # of the entry before them
MOST = 12  # entries of a list that are shown
MOST_LOG = 100.0  # a standard error of a logarithm beyond which the interval says nothing
RATE = {"errors", "runs", "low", "high"}


def measured_text(measured: Any) -> str:
    """Names and numbers in a line, with the half width or the ends of 95% intervals.

    Args:
      measured: the entry of that name in `claims.json`. In a table, what is named in `ERRORS`
        belongs to the entry before it.

    Example:
      >>> measured_text({"share": 0.99378, "standard_error": 1e-4, "least": 0.99})
      'share: 0.99378 ± 0.00020; least: 0.99'
      >>> measured_text({"RAGE": {"errors": 3, "runs": 4000, "low": 0.0002, "high": 0.002}})
      'RAGE: 3 of 4,000 wrong [0.0002, 0.002]'
    """
    return "; ".join(_entries(measured)) if isinstance(measured, dict) else _value(measured)


def _entries(table: dict[str, Any]) -> list[str]:
    """`name: value` for each entry that is no error of another."""
    behind = dict(zip(table, [*table][1:], strict=False))
    return [
        f"{_name(name)}: {_value(value, *_error(table, behind.get(name)))}"
        for name, value in table.items()
        if name not in ERRORS
    ]


def _name(name: str) -> str:
    return name.replace("_", " ") if name.isidentifier() else name


def _error(table: dict[str, Any], name: str | None) -> tuple[Any, bool]:
    """The error under this name, None if it is none, and whether it is one of a logarithm."""
    return (table[name] if name in ERRORS else None), name == LOG


def _value(value: Any, error: Any = None, of_log: bool = False) -> str:
    """A number, a list or a table as text."""
    if isinstance(value, dict):
        return _table(value, error) if value else "none"
    if isinstance(value, list):
        shown = _with_errors(value, error)
        more = [f"… ({len(shown)} in all)"] if len(shown) > MOST else []
        return f"[{', '.join([*shown[:MOST], *more])}]"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "not known" if value is None else str(value)
    if not isinstance(error, int | float) or not math.isfinite(error):
        return estimates.estimate(value)
    if not of_log:
        return estimates.estimate(value, estimates.NORMAL * error)
    if not (math.isfinite(value) and error < MOST_LOG):
        return estimates.estimate(value)
    factor = math.exp(estimates.NORMAL * error)
    return estimates.estimate(value, interval=(value / factor, value * factor))


def _table(table: dict[str, Any], errors: Any) -> str:
    """A table of cases or, where errors for all its entries follow it, of numbers."""
    if not isinstance(errors, list):
        return _case(table)
    shown = _with_errors([*table.values()], errors)
    return ", ".join(f"{_name(name)}: {text}" for name, text in zip(table, shown, strict=True))


def _with_errors(values: list[Any], errors: Any) -> list[str]:
    """Each value as text, with its error where errors are a list of the same length."""
    known = isinstance(errors, list) and len(errors) == len(values)
    pairs = zip(values, errors if known else [None] * len(values), strict=True)
    return [_value(*pair) for pair in pairs]


def _case(table: dict[str, Any]) -> str:
    """One of the cases that a claim rests on: an error rate, an estimate, or a table."""
    if set(table) == RATE:
        errors, runs, low, high = (
            _value(table[name]) for name in ("errors", "runs", "low", "high")
        )
        return f"{errors} of {runs} wrong [{low}, {high}]"
    first, *others = table
    if len(others) == 1 and others[0] in ERRORS:  # its name says no more than that of the case
        return _value(table[first], *_error(table, others[0]))
    return ", ".join(_entries(table))
