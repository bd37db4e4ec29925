"""What the attributes of a sweep's dataset state, read in one place.

A file may have been changed by another program, and a dataset by a user: an attribute of another
type, or a text that is no JSON, is named in the error.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..messages import brief
from ..system.data_files import Unreadable, parsed
from ..whole_numbers import is_whole
from .columns import TIMES
from .summaries import EACH, LEVEL

FLOATS = (float, np.floating, int, np.integer)


class NotOfASweep(Unreadable):
    """A dataset that no sweep has made."""


class Statement(NamedTuple):
    """What an attribute has to be."""

    words: str
    fits: Callable[[Any], bool]
    default: Any = None  # where there is no such attribute; None: there must be one


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _table_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(fits, value.values()))


def _is_options(value: Any) -> bool:
    """Of one part: its options by name; `only` has values by axis."""
    return isinstance(value, dict) and _table_of(_list_of(_anything))(value.get("only", {}))


def _anything(value: Any) -> bool:
    return True


def _is_axes(value: Any) -> bool:
    names = _list_of(_is_text)(value)
    return names and len(set(value)) == len(value) and not NO_AXES.intersection(value)


def _is_record(value: Any) -> bool:
    return _is_text(value) or _list_of(_is_number)(value)


def _is_pair(value: Any) -> bool:
    return _list_of(_anything)(value) and len(value) == 2


NO_AXES = frozenset({"instance", "algorithm", EACH})  # dimensions that every sweep has
WHOLE_AXES = "whole_axes"  # by axis, its values in the whole experiment
# Attributes that are JSON.
JSON: dict[str, Statement] = {
    "axes": Statement(
        f"a list of names that differ, none of them {', '.join(sorted(NO_AXES))}", _is_axes
    ),
    "options": Statement("a table of tables", _table_of(_is_options)),
    "independent": Statement("a table of lists of pairs", _table_of(_list_of(_is_pair)), {}),
    "until": Statement("a table of numbers", _table_of(_is_number), {}),
    "record": Statement("a name or a list of rounds", _is_record, "mixed"),
    "entries": Statement("a table of lists", _table_of(_list_of(_anything)), {}),
    **dict.fromkeys(
        ("data", "code"), Statement("a table of lists of texts", _table_of(_list_of(_is_text)), {})
    ),
    "revisions": Statement(
        "a table of tables of lines", _table_of(_table_of(_list_of(_is_text))), {}
    ),
    WHOLE_AXES: Statement("a table of lists", _table_of(_list_of(_anything)), {}),
}


def _is_count(value: Any) -> bool:
    return is_whole(value, 0)


def _is_finite(value: Any) -> bool:
    return isinstance(value, FLOATS) and not isinstance(value, bool) and math.isfinite(value)


def _is_share(value: Any) -> bool:
    return _is_finite(value) and 0 < value < 1


WHOLE = ("seed", "replications", "max_pulls", "horizon")
TEXTS = (
    *("jaxbandits", "title", "experiment", "jax", "device", "engine"),
    *("python", "numpy", "machine", "command"),
)
# Attributes that are text or numbers.
PLAIN: dict[str, Statement] = {
    **dict.fromkeys(WHOLE, Statement("a whole number, 0 or above", _is_count)),
    **dict.fromkeys(TIMES, Statement("a number", _is_finite)),
    **dict.fromkeys(TEXTS, Statement("text", _is_text)),
    LEVEL: Statement("a number between 0 and 1", _is_share),
}
NEEDED: tuple[str, ...] = ("axes", "options", *WHOLE)


def stated(attributes: Mapping[str, Any], name: str) -> Any:
    """What an attribute of `JSON` says; its default where there is none.

    Raises:
      Unreadable: a `ValueError` that names the attribute, and what it has to be.
    """
    words, fits, default = JSON[name]
    if name not in attributes:
        if default is None:
            raise Unreadable(f"it has no attribute {name!r}")
        return default
    try:
        found = parsed(attributes[name])
    except Unreadable:
        raise _misstated(name, "JSON", attributes[name]) from None
    if not fits(found):
        raise _misstated(name, words, attributes[name])
    return found


def _misstated(name: str, words: str, value: Any) -> Unreadable:
    return Unreadable(f"the attribute {name!r} is not {words}, got {brief(value)}")


def check_stated(attributes: Mapping[str, Any]) -> None:
    """Raise `Unreadable` for an attribute that is there and is not what it has to be."""
    for name, value in attributes.items():
        if name in JSON:
            stated(attributes, name)
        elif name in PLAIN and not PLAIN[name].fits(value):
            raise _misstated(name, PLAIN[name].words, value)


def check_results(attributes: Mapping[str, Any]) -> None:
    """Raise `Unreadable` unless these can be the attributes of a file of results."""
    for name in NEEDED:
        if name not in attributes:
            raise NotOfASweep(f"it has no attribute {name!r}")
    check_stated(attributes)
