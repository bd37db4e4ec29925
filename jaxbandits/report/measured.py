"""The numbers that a verdict on a claim rests on, as text."""

import math
from typing import Any, NamedTuple

from .. import estimates
from ..intervals import half_width
from ..messages import brief

LOG = "standard_error_of_log"  # its interval is a factor to both sides
ERRORS = ("standard_error", "standard_errors", LOG)  # of the entry before them
REPLICATIONS = "replications"  # behind an error: how many it is computed from
MOST = 12  # entries of a list that are shown
MOST_LOG = 200.0  # half a width on the scale of logarithms beyond which an interval says nothing
LARGEST_SHOWN = 1e300  # beyond it an end of an interval may have no number
RATE = {"errors", "runs", "low", "high"}


class Error(NamedTuple):
    """What is known of the error of an entry."""

    error: Any = None  # a number, or a list of them; None: not known
    number: float = math.inf  # of replications
    of_log: bool = False

    def of(self, error: Any) -> "Error":
        """An error of one of several numbers, with the same replications."""
        return self._replace(error=error)

    @property
    def width(self) -> float:
        """Half the width of the interval, by Student's t; NaN where it is not known."""
        known = isinstance(self.error, int | float) and math.isfinite(self.error)
        return half_width(self.error, self.number) if known else math.nan


def measured_text(measured: Any, replications: float = math.inf) -> str:
    """Names and numbers in a line, with the half width or the ends of 95% intervals.

    Args:
      measured: the entry of that name in `claims.json`. In a table, what is named in `ERRORS`
        belongs to the entry before it, and `REPLICATIONS` to the error before it.
      replications: behind an error that does not say how many, as those of 0.2.0.

    Example:
      >>> measured_text({"share": 0.993, "standard_error": 1e-3, "replications": 3, "least": 0.9})
      'share: 0.9930 ± 0.0043; least: 0.9'
      >>> measured_text({"RAGE": {"errors": 3, "runs": 4000, "low": 0.0002, "high": 0.002}})
      'RAGE: 3 of 4,000 wrong [0.0002, 0.002]'
    """
    if isinstance(measured, dict):
        return "; ".join(_entries(measured, replications))
    return _value(measured, Error(number=replications))


def fault(measured: Any) -> str | None:
    """What is wrong with measured numbers that a file holds; None where all can be shown."""
    if isinstance(measured, int | float):
        large = abs(measured) > LARGEST_SHOWN and measured not in (math.inf, -math.inf)
        return f"a number beyond {LARGEST_SHOWN:g}, {brief(measured)}" if large else None
    if isinstance(measured, list):
        return next(filter(None, map(fault, measured)), None)
    if not isinstance(measured, dict):
        return None
    before = ""
    for name, value in measured.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if name == REPLICATIONS and before in ERRORS and not number:
            return f"{REPLICATIONS!r} that is no number, {brief(value)}"
        before = name
    return fault([*measured.values()])


def _entries(table: dict[str, Any], replications: float) -> list[str]:
    """`name: value` for each entry that is no error of another."""
    return [
        f"{_name(name)}: {_value(table[name], error)}"
        for name, error in _with_error(table, replications)
    ]


def _with_error(table: dict[str, Any], replications: float) -> list[tuple[str, Error]]:
    """Names of the entries of a table, with what is known of their errors."""
    found: list[tuple[str, Error]] = []
    before = ""
    for name, value in table.items():
        if name in ERRORS and found:
            found[-1] = found[-1][0], Error(value, replications, name == LOG)
        elif name == REPLICATIONS and before in ERRORS:
            found[-1] = found[-1][0], found[-1][1]._replace(number=value)
        elif name not in ERRORS:
            found.append((name, Error(number=replications)))
        before = name
    return found


def _name(name: str) -> str:
    return name.replace("_", " ") if name.isidentifier() else name


def _value(value: Any, error: Error) -> str:
    """A number, a list or a table as text."""
    if isinstance(value, dict):
        return _table(value, error) if value else "none"
    if isinstance(value, list):
        shown = _each(value, error)
        more = [f"… ({len(shown)} in all)"] if len(shown) > MOST else []
        return f"[{', '.join([*shown[:MOST], *more])}]"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "not known" if value is None else str(value)
    if not error.of_log:
        return estimates.estimate(value, error.width)
    if not (math.isfinite(value) and error.width < MOST_LOG):
        return estimates.estimate(value)
    factor = math.exp(error.width)
    if not math.isfinite(value * factor):
        return estimates.estimate(value)
    return estimates.estimate(value, interval=(value / factor, value * factor))


def _table(table: dict[str, Any], error: Error) -> str:
    """A table of cases or, where errors for all its entries follow it, of numbers."""
    if not isinstance(error.error, list):
        return _case(table, error.number)
    shown = _each([*table.values()], error)
    return ", ".join(f"{_name(name)}: {text}" for name, text in zip(table, shown, strict=True))


def _each(values: list[Any], error: Error) -> list[str]:
    """Each value as text, with its error where errors are a list of the same length."""
    known = isinstance(error.error, list) and len(error.error) == len(values)
    errors = error.error if known else [None] * len(values)
    return [_value(value, error.of(one)) for value, one in zip(values, errors, strict=True)]


def _case(table: dict[str, Any], replications: float) -> str:
    """One of the cases that a claim rests on: an error rate, an estimate, or a table."""
    if set(table) == RATE:
        errors, runs, low, high = (
            _value(table[name], Error()) for name in ("errors", "runs", "low", "high")
        )
        return f"{errors} of {runs} wrong [{low}, {high}]"
    found = _with_error(table, replications)
    if len(found) == 1 and len(table) > 1:  # its name says no more than that of the case
        return _value(table[found[0][0]], found[0][1])
    return ", ".join(_entries(table, replications))
