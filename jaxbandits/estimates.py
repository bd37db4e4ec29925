"""Estimates as text. `estimate` writes every one that the package and its benchmarks print."""

import math
from typing import NamedTuple

RATE_DIGITS = 3  # of an error rate, and of a ratio to a bound
ERROR_DIGITS = 2  # of an error, and of the ends of an interval
DIGITS = 4  # of a number whose error is not known


class Style(NamedTuple):
    """How a medium writes numbers."""

    at_least: str  # before a lower bound
    missing: str
    thousands: str  # between groups of three digits
    decimals: int | None  # of numbers below 100 whose error is not known; None: DIGITS in all


PAGE = Style("≥ ", "–", ",", None)
TERMINAL = Style(">= ", "-", "", 2)


def estimate(
    value: float,
    error: float = math.nan,
    *,
    interval: tuple[float, float] | None = None,
    at_least: bool = False,
    digits: int | None = None,
    unit: str = "",
    style: Style = PAGE,
) -> str:
    """`value ± error [low, high]`, with the digits that the error justifies.

    Args:
      value: NaN: missing.
      error: half the width of an interval, or a standard error (what is shown says which of the
        two); NaN where it is not known, and 0 where the value is exact.
      interval: shown behind the value.
      at_least: whether the value is a lower bound.
      digits: of a value without an error; by the style by default.
      unit: behind each number, as "%".
      style: of the medium.

    Example:
      >>> estimate(1234567.0, 12345.0)
      '1,235,000 ± 12,000'
      >>> estimate(12.3456, 0.0123, at_least=True)
      '≥ 12.346 ± 0.012'
      >>> estimate(9.9999, 0.0996)
      '10.00 ± 0.10'
      >>> estimate(-0.02, 4.9)
      '0.0 ± 4.9'
      >>> estimate(200.0, 0.0), estimate(2.71828), estimate(123456.7)
      ('200', '2.718', '123,500')
      >>> estimate(4.4, interval=(2.71, 6.75), unit="%")
      '4.4% [2.7%, 6.8%]'
      >>> estimate(1234.5, 10.2, style=TERMINAL)
      '1234 ± 10'
    """
    if not math.isfinite(value):
        return style.missing
    if math.isfinite(error) and error > 0:
        places = _decimals(error)
        text = f"{_fixed(value, places, style)}{unit} ± {_fixed(error, places, style)}{unit}"
    elif math.isnan(error) and digits is None and style.decimals is not None:
        text = _fixed(value, 0 if abs(value) >= 100 else style.decimals, style) + unit
    else:
        text = number(value, DIGITS if digits is None else digits, style) + unit
    if at_least:
        text = style.at_least + text
    if interval is not None:
        low, high = (rounded(end, ERROR_DIGITS, style) + unit for end in interval)
        text = f"{text} [{low}, {high}]"
    return text


def number(value: float, digits: int = DIGITS, style: Style = PAGE) -> str:
    """A number without an error: exact where it is whole, else so many digits."""
    if not math.isfinite(value):
        return style.missing
    if value == round(value):
        return f"{round(value):{style.thousands}}"
    return rounded(value, digits, style)


def rounded(value: float, digits: int, style: Style = PAGE) -> str:
    """So many significant digits, without an exponent where the number is large."""
    short = float(f"{value:.{digits}g}")
    if math.isinf(short):  # of the largest number that there is
        short = value
    if abs(short) >= 10 ** (digits - 1):
        return f"{round(short):{style.thousands}}"
    return f"{short:.{digits}g}"


def _decimals(error: float) -> int:
    """Decimals that leave `error` two digits; below 0: tens, hundreds."""
    return ERROR_DIGITS - 1 - math.floor(math.log10(float(f"{error:.{ERROR_DIGITS - 1}e}")))


def _fixed(value: float, places: int, style: Style) -> str:
    shown = round(value, places) + 0.0  # no -0
    return f"{shown:{style.thousands}.{max(0, places)}f}"
