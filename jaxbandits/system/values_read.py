"""What functions read besides their arguments, as a key that changes when that does.

A program that was compiled for a function holds what the function read while it was traced: an
attribute, a global number, another function. In a notebook these are changed and the same function
is run again; then it needs another program. The same holds for a file that an instance is made of.
"""

import contextlib
import dataclasses
import dis
import functools
import os
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from ..types import NUMBERS
from .own_code import PLAIN
from .reads import GLOBALS as READS
from .syntax import codes_in
from .user_files import is_foreign, is_own

FILE_OPTION: str = "path"  # of what reads a file: a name says nothing of what is in it
SMALL: int = 2**20  # bytes of an array that is compared; a larger one equals itself alone
FEW: int = 10_000  # entries of a collection, likewise
WRITES: frozenset[str] = frozenset({"STORE_GLOBAL"})
ATTRIBUTES: frozenset[str] = frozenset({"LOAD_ATTR", "LOAD_METHOD"})  # instructions


class Same:
    """An object that equals itself alone; the key keeps it, so that its id stays its own."""

    __slots__: tuple[str, ...] = ("value",)
    value: Any

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def values_read(*sources: Any) -> Hashable:
    """A key of what the functions among the sources read.

    Args:
      sources: functions, objects that are called, `functools.partial` of these with their options.
        Numbers among the options are no part of the key, as programs are compiled for any.
    Returns:
      () where there is no code of a user and no file.
    """
    reading = _Reading()
    files = tuple(stamp for source in sources for stamp in _stamps(source))
    try:
        found = tuple(reading.of(root) for source in sources for root in _roots(source))
    except Exception:  # of an odd object among the user's, which is no fault of what is run
        return files
    return (*files, *found) if reading.found_own else files


def _stamps(source: Any) -> Iterator[Hashable]:
    """When the files were changed that a source reads: each file, or all in a folder."""
    if not isinstance(source, functools.partial):
        return
    given = source.keywords.get(FILE_OPTION)
    if isinstance(given, str | os.PathLike):
        place = Path(given).resolve()
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            with contextlib.suppress(OSError):
                facts = file.stat()
                yield str(file), facts.st_mtime_ns, facts.st_size, facts.st_ino
    for value in source.keywords.values():
        yield from _stamps(value)


def _roots(value: Any) -> Iterator[Any]:
    """The functions and objects of which a constructor with its options is made."""
    if isinstance(value, functools.partial):
        inner = [value.func, *value.args, *value.keywords.values()]
    elif dataclasses.is_dataclass(value) and is_foreign(type(value).__module__):
        inner = [getattr(value, field.name) for field in dataclasses.fields(value)]  # `at_budget`
    else:
        inner = jax.tree.leaves(value)
        if len(inner) == 1 and inner[0] is value:
            if not isinstance(value, (*NUMBERS, *PLAIN)):
                yield value
            return
        if not is_foreign(type(value).__module__):
            yield type(value)  # a constructor with arrays, or a simulator of rewards
    for part in inner:
        yield from _roots(part)


class _Reading:
    """One walk through what functions read; `found_own` says whether one is a user's."""

    def __init__(self) -> None:
        self.found_own = False
        self._met: dict[int, tuple[int, Any]] = {}  # by id, which stays the object's own while kept

    def of(self, value: Any, attributes: frozenset[str] = frozenset()) -> Hashable:
        """The key of a value; of a user's module, of its attributes of these names."""
        kind = type(value)
        if kind in PLAIN or isinstance(value, np.generic):
            return kind, repr(value)  # NaN equals NaN, and 0.0 is not -0.0
        if id(value) in self._met:
            return "met", self._met[id(value)][0]
        self._met[id(value)] = len(self._met), value
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, functools.partial):
            return self._all([value.func, value.args, value.keywords])
        if isinstance(value, MethodType):
            return self._all([value.__func__, value.__self__])
        if isinstance(value, ModuleType):
            return self._attributes(value, attributes) if not is_foreign(value.__name__) else kind
        if isinstance(value, tuple | list | set | frozenset | Mapping) and len(value) <= FEW:
            return self._collection(value)
        if isinstance(value, np.ndarray | jax.Array):
            return _table(value)
        return self._object(value)

    def _all(self, values: Any) -> tuple[Hashable, ...]:
        return tuple(self.of(value) for value in values)

    def _function(self, function: FunctionType) -> Hashable:
        wrapped = getattr(function, "__wrapped__", None)
        inside = None if wrapped is None else self.of(wrapped)
        if not is_own(function):
            return Same(function), inside
        self.found_own = True
        code, scope = function.__code__, function.__globals__
        cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        read, attributes = _globals_of(code)
        found = tuple((x, self.of(scope[x], attributes)) for x in read if x in scope)
        given = self._all([function.__defaults__, function.__kwdefaults__])
        return code, inside, given, self._all(cells), found

    def _attributes(self, holder: Any, names: frozenset[str]) -> Hashable:
        """Of a module or class: of its attributes that are data or functions."""
        found = []
        for name in sorted(names & vars(holder).keys()):
            member = getattr(vars(holder)[name], "__func__", vars(holder)[name])
            if not name.startswith("__") or isinstance(member, FunctionType):
                found.append((name, self.of(member)))
        return tuple(found)

    def _collection(self, value: Any) -> Hashable:
        if isinstance(value, Mapping):
            return type(value), tuple((self.of(key), self.of(x)) for key, x in value.items())
        found = self._all(value)
        if not is_foreign(type(value).__module__):
            return self.of(type(value)), found
        return type(value), frozenset(found) if isinstance(value, set | frozenset) else found

    def _object(self, value: Any) -> Hashable:
        """Of a user's class or of an object of one what it holds; of any other that it is it."""
        wrapped = getattr(value, "__wrapped__", None)  # by `jax.jit`, for instance
        if wrapped is not None and callable(value):
            return self.of(wrapped)
        kind = value if isinstance(value, type) else type(value)
        if is_foreign(kind.__module__):
            return Same(value)
        self.found_own = True
        if value is kind:
            return Same(kind), self._attributes(kind, frozenset(vars(kind)))
        held = vars(value) if hasattr(value, "__dict__") else {}
        return self.of(kind), Same(value) if not held else self.of(dict(held))


def names_in(code: CodeType, instructions: frozenset[str]) -> set[str]:
    """Names that some instructions of a function, and of those in it, are about."""
    return {
        step.argval
        for inner in codes_in(code)
        for step in dis.get_instructions(inner)
        if step.opname in instructions
    }


def _is_filled(cell):
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:  # nothing was assigned yet
        return False
    return True


@functools.lru_cache(maxsize=4096)
def _globals_of(code: CodeType) -> tuple[tuple[str, ...], frozenset[str]]:
    """Names of the globals that a function reads and does not write; of all attributes it uses."""
    kept = sorted(names_in(code, READS) - names_in(code, WRITES))
    attributes = names_in(code, ATTRIBUTES)
    return tuple(name for name in kept if not name.startswith("__")), frozenset(attributes)


def _table(value: Any) -> Hashable:
    """Of a small array of numbers its entries, of any other one that it is it."""
    numbers = getattr(value.dtype, "kind", "") in ("b", "i", "u", "f", "c")
    if value.nbytes > SMALL or not numbers or isinstance(value, Tracer):
        return Same(value)
    return str(value.dtype), value.shape, np.asarray(value).tobytes()
