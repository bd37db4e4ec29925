"""What stored files call constructors, instances and options.

Cells of a sweep, the attributes of its results and the file of a live run all use it. The texts are
part of the file formats: whatever changes one of them makes stored files unusable.
"""

import dataclasses
import functools
import hashlib
import string
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..types import Table
from .own_classes import state_of
from .own_code import Unknown, hash_of_code, hash_of_value
from .user_files import is_own_class

# Text, numbers, None, and lists and dicts of these: what JSON can hold.
Plain: TypeAlias = Any
Number: TypeAlias = int | float | complex
Entries: TypeAlias = dict[str, list[Any]]  # of arrays, in their order, by the digest

MOST_ENTRIES = 500  # of an array that is stored a second time, to say what differs from it
LOCAL = "<local>"  # marks a function whose name does not say which one it is
# Modules that have another name in what was stored before they were renamed.
FORMER_MODULES: dict[str, str] = {
    "jaxbandits.instances.contextual": "jaxbandits.instances.shown",
    "jaxbandits.instances.data.local_files": "jaxbandits.instances.data",
    "jaxbandits.instances.instance": "jaxbandits.instances.base",
    "jaxbandits.instances.papers": "jaxbandits.instances.named",
    "jaxbandits.instances.simulators": "jaxbandits.instances.base",
    "jaxbandits.instances.synthetic": "jaxbandits.instances.made_up",
}


def stored_name(function: Any) -> str:
    """What files call a function: the module and name it had when such files were first written.

    What was stored is found again when algorithms are moved between folders. A constructor around
    another, `outer` of `inner`, is called by the names of both; an object by that of its class.
    """
    if hasattr(function, "inner"):
        return f"{function.outer}({stored_name(function.inner)})"
    if not hasattr(function, "__qualname__"):
        function = type(function)
    module = FORMER_MODULES.get(function.__module__, function.__module__ or "__main__")
    *folders, file = module.split(".")
    if folders[:2] == ["jaxbandits", "algorithms"]:
        folders = folders[:2]
    return ".".join([*folders, file, function.__qualname__])


def describe(value: Any, code: Callable[[Any], str] = hash_of_code) -> Plain:
    """Plain data that changes whenever `value` does, for hashing.

    Args:
      value: as in `described`.
      code: a hash of the user's code behind a function or class; "" for none.
    """

    def known(name: str, value: Any, code: Callable[[Any], str]) -> str:
        local = f"{name}{LOCAL}{id(value)}"
        if "<" in name:
            return local
        try:
            return f"{name} {code(value)}".rstrip()
        except Unknown as reason:
            return f"{local} {reason}"

    def name(function: Any) -> str:
        return known(stored_name(function), function, code)

    def other(value: Any) -> str:
        return known(stored_name(value), value, hash_of_value)

    return described(value, repr, name, other=other)


def described(
    value: Any,
    number: Callable[[Number], Plain],
    name: Callable[[Any], str],
    array: Callable[[Table], Plain] | None = None,
    other: Callable[[Any], Plain] | None = None,
) -> Plain:
    """Plain data that describe a value.

    Args:
      value: an instance, a constructor, an option, or lists and dicts of them.
      number: what stands for a float or complex number, or for an array of no axes.
      name: what stands for a function or class.
      array: what stands for any other array; by default `described_array`.
      other: what stands for any other object; by default the name of its type.
    """

    def inner(value: Any) -> Plain:
        return described(value, number, name, array, other)

    def object_(value: Any) -> Plain:
        return stored_name(value) if other is None else other(value)

    own = is_own_class(type(value)) and not isinstance(value, type)
    if isinstance(value, functools.partial):
        return [inner(value.func), inner(list(value.args)), inner(value.keywords)]
    if own and not (isinstance(value, tuple) or dataclasses.is_dataclass(value) or _draws(value)):
        return object_(value)
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: inner(v) for key, v in value.items()}
        return [[inner(key), inner(v)] for key, v in value.items()]  # 1 is not "1"
    if _draws(value):  # a simulator
        parts = value._asdict() if isinstance(value, tuple) else dict(state_of(value))
        return [inner(type(value)), inner(parts)]
    if isinstance(value, list | tuple):
        entries = [inner(v) for v in value]
        return [name(type(value)), *entries] if own else entries
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | bool | type(None)):
        return value
    if callable(value):
        named = hasattr(value, "__qualname__") or hasattr(value, "inner")
        return name(value) if named else object_(value)
    if hasattr(value, "arms"):
        rare = ("simulator", "stress")  # most have none, and their cells keep their names
        # Of the means and the simulator, which are described themselves.
        accuracy = ("standard_errors", "draws", "simulator_code")
        parts = {key: inner(v) for key, v in vars(value).items() if key not in accuracy}
        return {key: part for key, part in parts.items() if key not in rare or part is not None}
    if dataclasses.is_dataclass(value):
        return [name(type(value)), inner(dict(state_of(value)))]
    table = np.asarray(value)
    if table.dtype.hasobject:
        return object_(value)
    if table.ndim == 0:
        return number(table.item())
    return described_array(table) if array is None else array(table)


def _text(value: str) -> str:
    """A text, in quotes where it would be taken for the number that it looks like."""
    try:
        complex(value)
    except ValueError:
        return value
    return repr(value)


def _draws(value: Any) -> bool:
    """Whether it is a simulator of rewards."""
    return hasattr(value, "reward") and not isinstance(value, type)


def described_array(array: Table) -> list[Any]:
    """`[dtype, shape, hash of the entries]`."""
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return [str(array.dtype), list(array.shape), digest]


def entries_of(value: Any) -> Entries:
    """The entries of the small arrays in a value, for messages about what differs."""
    found: Entries = {}

    def note(table: Table) -> None:
        if table.size <= MOST_ENTRIES and table.dtype.kind in "biuf":
            found[described_array(table)[-1]] = np.ravel(table).tolist()

    described(value, repr, str, note)
    return found


def differences(one: Plain, two: Plain, entries: Entries) -> list[tuple[str, str, str]]:
    """`(where, in one, in two)` of each difference between the descriptions of two values.

    Of two arrays of one shape it gives the first entries that differ, where these are known.

    Args:
      one, two: as `described` returns them.
      entries: those of small arrays in both.
    """
    if one == two:
        return []
    if isinstance(one, dict) and isinstance(two, dict):
        return [
            (f" {name}{where}", before, after)
            for name in sorted({*one, *two})
            for where, before, after in differences(one.get(name), two.get(name), entries)
        ]
    if _is_array(one) and _is_array(two) and one[:2] == two[:2]:
        return [_first_entry(one, two, entries)]
    return [("", _shown(one), _shown(two))]


def _first_entry(one: list[Any], two: list[Any], entries: Entries) -> tuple[str, str, str]:
    """Where two arrays of one shape differ first, and what is there."""
    tables = entries.get(one[-1], []), entries.get(two[-1], [])
    for place, before, after in zip(np.ndindex(*one[1]), *tables, strict=False):
        if repr(before) != repr(after):
            return str(list(place)), repr(before), repr(after)
    return "", _shown(one), "one with other entries"


def _is_array(value: Plain) -> bool:
    """Whether this is what `described_array` returns."""
    return isinstance(value, list) and len(value) == 3 and _is_digest(value[-1])


def _is_digest(value: Plain) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= set(string.hexdigits)


def _shown(value: Plain) -> str:
    """A description as text, without the digests of arrays."""
    if _is_array(value):
        return f"an array {value[0]} {value[1]}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
    return str(value)


def digest_files(path: Path | str, below: Sequence[str] = ()) -> str:
    """Hash of a file, or of the files in a folder: a cell with other data is another cell.

    Of the folders in it, only those named `below` count: results may lie there as well.
    """
    path = Path(path)
    folders = [path, *(path / name for name in below)] if path.is_dir() else []
    files = sorted(p for x in folders if x.is_dir() for p in x.iterdir()) if folders else [path]
    digest = hashlib.sha256()
    for file in files:
        if file.is_file():
            name = file.relative_to(path).as_posix() if path.is_dir() else file.name
            digest.update(name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
