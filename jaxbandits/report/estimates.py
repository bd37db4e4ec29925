"""Numbers as text, with the digits that their standard errors justify."""

import math

MISSING = "–"
DIGITS = 2  # of a standard error


def decimals(error):
    """Places after the point that leave `error` two digits; below 0: tens, hundreds.

    0 where the error is 0 or unknown.
    """
    if not math.isfinite(error) or error <= 0:
        return 0
    return DIGITS - 1 - math.floor(math.log10(float(f"{error:.{DIGITS - 1}e}")))


def fixed(value, places):
    """`value` rounded to `places` after the point, thousands apart."""
    return f"{round(value, places):,.{max(0, places)}f}" if math.isfinite(value) else MISSING


def estimate(mean, error, *, at_least=False):
    """`mean ± standard error`, after `≥` where it is a lower bound.

    Example:
      >>> estimate(1234567.0, 12345.0)
      '1,235,000 ± 12,000'
      >>> estimate(12.3456, 0.0123, at_least=True)
      '≥ 12.346 ± 0.012'
      >>> estimate(9.9999, 0.0996)
      '10.00 ± 0.10'
      >>> estimate(200.0, 0.0), estimate(2.71828, math.nan), estimate(123456.7, math.nan)
      ('200', '2.718', '123,500')
    """
    if not math.isfinite(mean):
        return MISSING
    sign = "≥ " if at_least else ""
    if not math.isfinite(error) or error <= 0:
        return sign + plain(mean)
    places = decimals(error)
    return f"{sign}{fixed(mean, places)} ± {fixed(error, places)}"


def plain(value, digits=4):
    """A number without a standard error: whole where it is whole, else so many digits."""
    if not math.isfinite(value):
        return MISSING
    if value == round(value):
        return f"{round(value):,}"
    return rounded(value, digits)


def rounded(value, digits):
    """So many digits, thousands apart, without an exponent where the number is large."""
    short = float(f"{value:.{digits}g}")
    return f"{round(short):,}" if abs(short) >= 10 ** (digits - 1) else f"{short:.{digits}g}"


def interval(low, high):
    """`[low, high]` with two digits each."""
    return f"[{low:.{DIGITS}g}, {high:.{DIGITS}g}]"
