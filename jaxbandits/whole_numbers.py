"""Whole numbers: the one test of what counts as one, and the words for those that are allowed."""

from typing import Any

import numpy as np

from .real_numbers import fault

INTEGERS: tuple[type, ...] = (int, np.integer)


def is_whole(
    value: Any,
    least: int | None = None,
    most: int | None = None,
    *,
    types: type | tuple[type, ...] | None = None,
) -> bool:
    """Whether a value is a single whole number in a range.

    Args:
      value: anything whose entries can be looked at.
      least, most: the ends of the range, which belong to it; None for no end.
      types: those that count, `INTEGERS` say; a bool then does not. None: whatever equals a whole
        number, 7.0 for instance.

    >>> is_whole(7.0), is_whole(7.0, types=INTEGERS), is_whole(7.5), is_whole(0, 1), is_whole("7")
    (True, False, False, False, False)
    """
    if types is not None and (isinstance(value, bool) or not isinstance(value, types)):
        return False
    try:
        return (
            np.ndim(value) == 0
            and fault(value) is None
            and bool(value == int(value))
            and (least is None or bool(value >= least))
            and (most is None or bool(value <= most))
        )
    except (TypeError, ValueError, OverflowError):
        return False


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
