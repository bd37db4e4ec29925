"""Real numbers: the one test of what counts as one, and the words for what does not.

NumPy and JAX would make numbers of more: they drop masks and imaginary parts, read text inside of
an array of objects, and take lengths of time for the number of their units.
"""

import datetime
import decimal
import numbers
from typing import Any

import jax.numpy as jnp
import numpy as np

from .messages import brief, reason

REAL: str = "fiub"  # kinds of dtypes
KINDS: dict[str, str] = {
    "c": "complex ones",
    "U": "text",
    "S": "text",
    "T": "text",
    "M": "dates",
    "m": "lengths of time",
}
WORDS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((str, bytes), "text"),
    ((datetime.timedelta,), "lengths of time"),
    ((datetime.date, datetime.time), "dates"),
    ((numbers.Complex,), "complex ones"),
    ((type(None),), "None"),
)


def is_flag(value: Any) -> bool:
    """Whether this is one truth value, of Python, NumPy or JAX: no number where one is wanted.

    >>> is_flag(True), is_flag(np.array(True)), is_flag(1), is_flag([True])
    (True, True, False, False)
    """
    if isinstance(value, bool | np.bool_):
        return True
    return getattr(value, "shape", None) == () and getattr(value, "dtype", None) == np.dtype(bool)


def fault(value: Any) -> str | None:
    """What is wrong with a number, or with an array or nested list of them; None if nothing is.

    The phrase follows the name of an argument in a message.

    >>> fault([[1.0, 2], [True, 0.5]]), fault([1.0, np.ma.masked]), fault([[1.0, 2j]])
    (None, 'must have all entries, got a masked array that lacks 1', \
'must be real numbers, got complex ones')
    """
    if type(value) in (float, int, bool):
        return None
    if isinstance(value, list | tuple):
        return next(filter(None, map(fault, value)), None)
    if np.ma.is_masked(value):
        missing = int(np.ma.getmaskarray(value).sum())
        return f"must have all entries, got a masked array that lacks {missing}"
    if hasattr(value, "todense") or hasattr(value, "toarray"):
        return f"must be a full array, got a sparse {type(value).__name__}"
    if hasattr(value, "shape") or hasattr(value, "__array__"):
        return _fault_of_array(value)
    return _fault_of_entry(value)


def _fault_of_array(value):
    """That of what has a type of its entries, or can be made an array by NumPy."""
    if getattr(value, "ndim", 1) == 2 and hasattr(value, "columns"):  # a table of pandas, say
        for name in value.columns:
            if (found := fault(np.asarray(value[name]))) is not None:
                return f"{found} in column {brief(name)}"
    dtype: Any = getattr(value, "dtype", None)
    if not (isinstance(dtype, np.dtype) or hasattr(value, "aval")):  # one of pandas, say
        try:
            value = np.asarray(value)
        except (TypeError, ValueError, RuntimeError) as error:
            return f"must be an array of numbers, got {type(value).__name__}: {reason(error)}"
        dtype = value.dtype
    if getattr(dtype, "kind", None) == "O":
        return next(filter(None, map(_fault_of_entry, np.asarray(value).ravel().tolist())), None)
    kind = getattr(dtype, "kind", "")
    if kind in REAL or jnp.issubdtype(dtype, np.floating):  # bfloat16 has another kind
        return None
    return f"must be real numbers, got {KINDS.get(kind, dtype)}"


def _fault_of_entry(entry):
    """That of a single thing, from an array of objects perhaps."""
    if isinstance(entry, list | tuple | np.ndarray | np.generic):
        return fault(entry)
    if isinstance(entry, numbers.Real | decimal.Decimal):
        return None
    words = (words for types, words in WORDS if isinstance(entry, types))
    return f"must be real numbers, got {next(words, type(entry).__name__)}"
