"""Whole numbers: the one test of what counts as one, and the words for those that are allowed.

A single whole number is an integer of Python, NumPy or JAX, an array without axes among them. True
is none, and 7.0 only where numbers may come out of a table or an axis, which have one type for all:
as an option of an algorithm, such as a budget of 1e4, and in tables.
"""

import operator
from typing import Any

import numpy as np

from .messages import brief
from .real_numbers import fault, is_flag

EXACT_BELOW: float = 2.0**53  # from which on a float64 may stand for another whole number

MOST_DIGITS = 30  # of a number in an option or a variable; Python refuses to read thousands


def is_whole(
    value: Any, least: int | None = None, most: int | None = None, *, written: bool = True
) -> bool:
    """Whether a value is a single whole number in a range.

    Args:
      value: anything whose entries can be looked at.
      least, most: the ends of the range, which belong to it; None for no end.
      written: whether it must be written as one, so that 7.0 is none.

    >>> is_whole(np.int8(7)), is_whole(7.0), is_whole(True), is_whole(0, 1), is_whole("7")
    (True, False, False, False, False)
    """
    try:
        if is_flag(value) or np.ndim(value) > 0 or fault(value) is not None:
            return False
        number = operator.index(value) if written else _integer(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return (least is None or number >= least) and (most is None or number <= most)


def _integer(value):
    """The integer that equals a real number, if there is one."""
    number = int(value)
    if number != value:
        raise ValueError
    return number


def written_whole(text: str) -> int | None:
    """The whole number that a text writes in decimal digits; None where it writes none.

    >>> written_whole(" 12 "), written_whole("-1"), written_whole("²"), written_whole("9" * 5000)
    (12, None, None, None)
    """
    digits = text.strip()
    return int(digits) if digits.isdecimal() and len(digits) <= MOST_DIGITS else None


def are_whole(table: np.ndarray) -> bool:
    """Whether all entries of a table are whole numbers or flags; infinity passes."""
    return table.dtype.kind in "iub" or (
        table.dtype.kind == "f" and bool((table == np.floor(table)).all())
    )


def allowed_whole(least: int, most: int | None = None) -> str:
    """What a message says must be given.

    >>> allowed_whole(1), allowed_whole(1, 1000)
    ('a whole number, 1 or above', 'a whole number from 1 to 1,000')
    """
    if most is None:
        return f"a whole number, {least} or above"
    return f"a whole number from {least} to {most:,}"


def shown(value: Any) -> str:
    """What a message says was given; of 7.0 also how the whole number is written.

    >>> shown(7.0), shown(7.5)
    ('7.0: write 7', '7.5')
    """
    number = isinstance(value, float | np.floating) and bool(value == np.floor(value))
    exact = number and abs(value) < EXACT_BELOW
    return f"{brief(value)}: write {int(value)}" if exact else brief(value)
