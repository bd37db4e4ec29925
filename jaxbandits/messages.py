"""What was given, as part of an error message: in one line, however large it is."""

import re
import reprlib
from typing import Any

LONGEST: int = 200  # characters

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = LONGEST
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = _short.maxarray = 20


def brief(value: Any) -> str:
    """`repr(value)` without line breaks, shortened in the middle where it is long.

    >>> brief([[1.0, 2.0]]), brief("a name"), len(brief(list(range(10**6)))) < LONGEST
    ('[[1.0, 2.0]]', "'a name'", True)
    """
    try:
        text = re.sub(r"\s*\n\s*", " ", _short.repr(value))
    except ValueError:  # of an integer with thousands of digits
        return f"<{type(value).__name__} that is too long to show>"
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[: half - 3]} ... {text[-half + 3 :]}"


def reason(error: BaseException) -> str:
    """The first line of what an error says, or its type where it says nothing."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
