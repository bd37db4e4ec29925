"""A hash of code that a user has written, so that stored results of other code are not taken.

It holds two things. The syntax of the user's files that are reached by imports from what is run,
see `user_files`. And the values, as they are now, of what the functions read besides their
arguments: globals, scopes around them, attributes of classes, objects and modules, variables of the
environment, files. Of this package, of installed packages and of the standard library only names
count, and of this package what somebody has replaced, see `replaced`. A value of which nothing can
be said that would tell it from another is refused.

Not seen is what a call of another library reads by itself, from a file or over a network.
"""

import builtins
import copyreg
import enum
import functools
import importlib
import io
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from struct import Struct
from types import (
    BuiltinFunctionType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from .. import replaced
from .literal_names import attributes_in, files_in, globals_in
from .own_classes import Names, Part, fields_of, inside, is_added, state_of
from .plugins import digest
from .reads import A_FILE, OF_THE_FILE, Reads, imported_in, reads_of
from .syntax import Import, syntax_of, text_of
from .user_files import UserFiles, imported, is_foreign, is_own, is_own_class

MARK = "code:"  # begins every hash
FORMER_MARK = "sha256:"  # began those of version 0.2.0, which held less
HASH: re.Pattern[str] = re.compile(rf"{MARK}[0-9a-f]+")
PLAIN: tuple[type, ...] = (type(None), bool, int, float, complex, str, bytes, type(...))
SEQUENCES: tuple[type, ...] = (tuple, list)
SETS: tuple[type, ...] = (set, frozenset)
DATA: tuple[type, ...] = (*PLAIN, *SEQUENCES, *SETS, dict, np.ndarray)
LOCKS: tuple[type, ...] = (type(threading.Lock()), type(threading.RLock()))
HOLDING_NOTHING: Names = frozenset({"object", "Generic", "Protocol", "ABC"})


class Unknown(ValueError):
    """What is read has no description: another value in its place could not be told from it."""


def hash_of_code(function: Any, *, reads_files: bool = False) -> str:
    """`MARK` and 16 digits, other ones after a change of what a user's code does or reads.

    Args:
      function: a function, a class, an object, or what is around one: `functools.partial`.
      reads_files: whether the files that it reads are known, and need not be named in it.
    Returns:
      "" where there is no code of a user, and no part of this package is replaced.
    Raises:
      Unknown: something that it reads has no description; the text says what, and the way out.
    """
    walk = _Walk(reads_files=reads_files)
    found = walk.hash(function)
    return found if walk.met_own_code else ""


def hash_of_value(value: Any) -> str:
    """The hash of any object by what it holds, whether or not a user has written its class."""
    return _Walk().hash(value)


def _hash(*parts: str) -> str:
    return digest([("", part.encode("utf-8", "surrogatepass")) for part in parts])


class _Walk:
    """One walk through what a function reads.

    Attributes:
      met_own_code: whether a function or class of the user was met.
      files: the user's files that were met.
    """

    def __init__(self, *, reads_files: bool = False) -> None:
        self.met_own_code: bool = False
        self.files: UserFiles = UserFiles()
        self._reads_files = reads_files
        self._path: list[str] = []  # what leads to the value that is looked at, for messages
        self._under_way: list[Any] = []
        self._done: dict[Any, tuple[str, Any]] = {}  # with the object, whose id stays its own

    def hash(self, value: Any) -> str:
        """`MARK` and the hash of a value and of the files that were met.

        Where parts of this package are replaced, they are part of it.
        """
        changed = replaced.look()
        self.met_own_code = self.met_own_code or bool(changed)
        try:
            found = [self.of(_name(value), value)]
            for name, part in sorted(changed.items()):
                found += [name, self.of(name, part)]
        except Unknown:
            raise
        except Exception as error:  # of an odd object among the user's, or one nested too deeply
            raise Unknown(
                f"{_name(value)} reads what cannot be looked at ({type(error).__name__}): give "
                "what is read of it as an option"
            ) from None
        return MARK + _hash(*found, *self.files.hashes).partition(":")[2]

    def of(self, name: str, value: Any, attributes: Names | None = None) -> str:
        """Text that changes whenever the value does.

        Args:
          name: what messages call it.
          value: anything.
          attributes: names that are read of a module; None: all of them.
        """
        if type(value) in PLAIN:
            return f"{type(value).__name__} {value!r}"
        key = id(value), attributes if isinstance(value, ModuleType) else None
        if key in self._done:
            return self._done[key][0]
        if key in self._under_way:  # a cycle: how far above
            return f"above {len(self._under_way) - self._under_way.index(key)}"
        self._under_way.append(key)
        self._path.append(name)
        try:
            found = self._described(value, attributes)
        finally:
            self._under_way.pop()
            self._path.pop()
        self._done[key] = found, value
        return found

    def _all(self, kind: str, parts: Iterable[Part]) -> str:
        return _hash(kind, *(text for name, x in parts for text in (name, self.of(name, x))))

    def _listed(self, kind: str, values: Iterable[Any]) -> str:
        return self._all(kind, (("", value) for value in values))

    def _described(self, value: Any, attributes: Names | None) -> str:
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, ModuleType):
            return self._module(value, attributes)
        if isinstance(value, enum.Enum):
            return self._all("member", [("", type(value)), ("", value.name), ("", value.value)])
        if is_own_class(type(value)):
            self.met_own_code = True
            return self._object(value)
        return self._foreign_object(value)

    # Functions.

    def _function(self, function: FunctionType) -> str:
        if not is_own(function):
            return self._foreign_function(function)
        self.met_own_code = True
        code, scope = function.__code__, function.__globals__
        text = text_of(code.co_filename, scope)
        if text:
            self.files.add(code.co_filename, scope, scope.get("__package__") or "")
        parts: list[Part] = [("", syntax_of(code, text)), *_around(function)]
        parts += [(name, x) for name, x in vars(function).items() if name != "__wrapped__"]
        if hasattr(function, "__wrapped__"):
            parts.append(("", function.__wrapped__))
        return _hash(self._all("function", parts), *self._read_by(function))

    def _foreign_function(self, function: FunctionType) -> str:
        """By its name; one that was made while the program runs also by what it holds."""
        wrapped = getattr(function, "__wrapped__", None)
        found_by_name = _is_importable(function) and is_foreign(function.__module__)
        made = function.__closure__ or function.__defaults__ or function.__kwdefaults__
        if found_by_name or (wrapped is None and not made):
            return _label(function)
        try:
            held = self._all("around", _around(function))
        except Unknown:
            if wrapped is None:
                raise
            held = ""
        return _hash(_label(function), held, "" if wrapped is None else self.of("", wrapped))

    def _read_by(self, function: FunctionType) -> Iterator[str]:
        """What a function reads of its module, of others, of the environment and of files."""
        scope, code = function.__globals__, function.__code__
        reads = reads_of(code, scope)
        self._refuse_unknown(function, reads)
        attributes = None if reads.by_name else reads.attributes
        names = {*reads.globals} | ({*scope} if reads.whole else set())
        try:
            found = [*self._globals(function, names, reads, attributes)]
        except Unknown:  # of what a computed name may be; the text may tell which names there are
            text = text_of(code.co_filename, scope)
            told, inner = globals_in(code, text), attributes_in(code, text)
            if not ((reads.whole and told is not None) or (reads.by_name and inner is not None)):
                raise
            names = names if told is None else {*reads.globals, *told}
            attributes = attributes if inner is None else reads.attributes | inner
            found = [*self._globals(function, names, reads, attributes)]
        yield from found
        for name, value in reads.of_libraries:  # such as `sys.argv`
            if type(value) in DATA or is_own_class(type(value)) or _is_own_function(value):
                yield name
                yield self.of(name, value)
        package = scope.get("__package__") or ""
        looked_up = [Import(0, name, ()) for name in reads.modules]
        for statement in (*reads.imports, *looked_up):
            for name in dict.fromkeys(imported(statement, package)):
                if module := _loaded(name):
                    yield name
                    yield self.of(name, module, None if statement in looked_up else attributes)
        for name in reads.variables:
            yield f"{name} {os.environ.get(str(name))!r}"
        for file in reads.files if not self._reads_files else ():
            yield _contents(file)
        if A_FILE in reads.unknown and not self._reads_files:
            for file in _told_files(function, reads) or ():
                yield _contents(file, file.name)  # the folder is another one elsewhere

    def _globals(
        self, function: FunctionType, names: set[str], reads: Reads, attributes: Names | None
    ) -> Iterator[str]:
        """What globals with these names hold; `attributes` are those that are read of modules."""
        known = {**vars(builtins), **function.__globals__}
        for name in sorted((names & known.keys()) - OF_THE_FILE):
            by = "" if name in reads.globals else " (by globals, eval or exec)"
            yield name
            yield self.of(name + by, known[name], attributes)

    def _refuse_unknown(self, function: FunctionType, reads: Reads) -> None:
        for what in reads.unknown:
            known = self._reads_files or _told_files(function, reads) is not None
            if not (what == A_FILE and known):
                raise Unknown(
                    f"{_name(function)} reads {what} while it runs, whose name is computed: read "
                    "it at the top of a module, or give what is read as an option"
                )

    # Classes, modules and objects.

    def _class(self, kind: type) -> str:
        if not is_own_class(kind):
            return _label(kind)
        self.met_own_code = True
        self.files.add_module(kind.__module__)
        kinds: list[Part] = [("", base) for base in (*kind.__bases__, type(kind))]
        parts = self._all(kind.__name__, [*kinds, *fields_of(kind)])
        return _hash(parts, *self._members(kind))

    def _members(self, kind: type) -> Iterator[str]:
        """What a user wrote in a class, or put there, and not what Python has added."""
        for name, member in sorted(vars(kind).items()):
            if not is_added(kind, name, member):
                for part in inside(member):
                    yield name
                    yield self.of(name, part)

    def _module(self, module: ModuleType, attributes: Names | None) -> str:
        if is_foreign(module.__name__):
            return module.__name__
        self.files.add_module(module.__name__)
        own = {*vars(module)} - OF_THE_FILE
        names = own if attributes is None else own & attributes
        by = " (which a computed name may be)" if attributes is None else ""
        return _hash(
            "module",
            *(
                text
                for name in sorted(names)
                for text in (name, self.of(name + by, vars(module)[name], attributes))
            ),
        )

    def _object(self, value: Any) -> str:
        """An object of a user's class: the class, and what the object holds."""
        kind, parts = type(value), [*state_of(value)]
        foreign = [x for x in kind.__mro__ if not is_own_class(x)]
        held = [x for x in foreign if x.__name__ not in HOLDING_NOTHING]
        base: Any = next((x for x in (*PLAIN, *SEQUENCES, *SETS, dict) if x in held), None)
        if base is not None:
            parts.append(("", base.__repr__(value) if base in PLAIN else base(value)))
        elif held:  # which may hold more than its attributes
            return _hash(self._all("object", [("", kind), *parts]), self._reduced(value))
        return self._all("object", [("", kind), *parts])

    def _foreign_object(self, value: Any) -> str:
        """An object of a class that is not the user's, by what it would be pickled to."""
        kind = type(value)
        if isinstance(value, MethodType):
            return self._listed("method", [value.__func__, value.__self__])
        if kind in SEQUENCES:
            if all(type(x) in PLAIN for x in value):
                return _hash(kind.__name__, *map(repr, value))
            return self._listed(kind.__name__, value)
        if kind in SETS:
            return _hash(kind.__name__, *sorted(self.of("", x) for x in value))
        if kind in (dict, MappingProxyType):
            pairs = [part for item in value.items() for part in item]
            return self._listed("dict", pairs)
        if kind is np.ndarray and not value.dtype.hasobject:
            return _hash(str(value.dtype), str(value.shape), _hash_of_bytes(value))
        if kind is memoryview:
            return self._listed(kind.__name__, [value.format, np.asarray(value)])
        if kind in LOCKS or _is_written(value):
            return "changes no result"
        if kind is Struct:
            return self._listed(kind.__name__, [value.format])
        if kind is ContextVar:
            return self._listed("context variable", [value.name, value.get(None)])
        if kind in (property, classmethod, staticmethod, functools.cached_property):
            return self._listed(kind.__name__, inside(value))
        if callable(value) and hasattr(value, "__wrapped__"):  # by `jax.jit`, for instance
            own = [x for x in vars(value).values() if isinstance(x, FunctionType) and is_own(x)]
            if _is_importable(value) and is_foreign(value.__module__):
                return _label(value)
            return self._listed(_label(value), [value.__wrapped__, *own])
        if isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, ModuleType | None):
            return _label(value)
        return self._reduced(value)

    def _reduced(self, value: Any) -> str:
        """What an object is pickled to: how it is made again, and from what."""
        if _is_key(value):
            import jax

            return self._listed("key", [str(value.dtype), np.asarray(jax.random.key_data(value))])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of types that Python will not pickle some day
                reduce = copyreg.dispatch_table.get(type(value))  # of patterns and ufuncs, say
                made = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except Exception:
            raise self._unknown(value) from None
        if isinstance(made, str):
            return f"{_label(type(value))} {made}"
        build, args, state, items, pairs, *_ = (*tuple[Any, ...](made), None, None, None)
        return self._listed(
            _label(type(value)),
            [build, args, state, list(items or ()), [list(pair) for pair in pairs or ()]],
        )

    def _unknown(self, value: Any) -> Unknown:
        first, *rest = filter(None, self._path)
        where = f"{first} reads {'.'.join(rest)}," if rest else f"{first} is"
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        return Unknown(
            f"{where} an object of {kind}, which cannot be told from others like it: give what is "
            "read of it as an option, or make it inside the function"
        )


def _around(function: FunctionType) -> list[Part]:
    """What a function has from where it was defined: defaults, and the scopes around it."""
    parts: list[Part] = [("", function.__defaults__), ("", function.__kwdefaults__)]
    names, cells = function.__code__.co_freevars, function.__closure__ or ()
    for name, cell in zip(names, cells, strict=True):
        try:
            parts.append((name, cell.cell_contents))
        except ValueError:  # nothing was assigned yet
            parts.append((name, "nothing"))
    return parts


def _is_own_function(value: Any) -> bool:
    return isinstance(value, FunctionType) and is_own(value)


def _is_written(value: Any) -> bool:
    """Whether it is a file that nothing can be read from, such as the output of the process."""
    if any(value is x for x in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)):
        return value is not None
    return isinstance(value, io.IOBase) and not value.closed and not value.readable()


def _is_importable(value: Any) -> bool:
    """Whether the name of a function leads to it."""
    found: Any = sys.modules.get(getattr(value, "__module__", None) or "")
    for name in getattr(value, "__qualname__", "").split("."):
        found = vars(found).get(name) if isinstance(found, ModuleType | type) else None
    return found is value


def _label(value: Any) -> str:
    """The package and the name; modules in a package move from version to version."""
    package = str(getattr(value, "__module__", "")).partition(".")[0]
    return f"{package}.{getattr(value, '__qualname__', type(value).__name__)}"


def _name(value: Any) -> str:
    """What messages call a function, or an object."""
    function = getattr(value, "func", value) if isinstance(value, functools.partial) else value
    return str(getattr(function, "__name__", type(function).__name__))


def _loaded(name: str) -> ModuleType | None:
    """A module of the user that a function imports while it runs, imported now."""
    found = sys.modules.get(name)
    if found is not None:
        return None if is_foreign(name) else found
    files = UserFiles()
    files.add_module(name)
    if not files.hashes:
        return None
    try:
        return importlib.import_module(name)
    except Exception:  # the function meets it too, if it comes to this statement
        return None


def _told_files(function: FunctionType, reads: Reads) -> list[Path] | None:
    """The files that a function opens, by its text; None where not all of them are known."""
    code, scope = function.__code__, function.__globals__
    files = files_in(code, text_of(code.co_filename, scope), {**scope, **imported_in(code)})
    opened = len(reads.files) + reads.unknown.count(A_FILE)
    return files if files is not None and len(files) >= opened else None


def _contents(file: str | Path, name: str | None = None) -> str:
    """What a file is called, its path if no name is given, and a hash of what is in it now."""
    name = str(file) if name is None else name
    try:
        return f"{name} {digest([('', Path(file).read_bytes())])}"
    except OSError as error:
        return f"{name} {type(error).__name__}"


def _hash_of_bytes(table: np.ndarray) -> str:
    return digest([("", np.ascontiguousarray(table).tobytes())])


def _is_key(value: Any) -> bool:
    return type(value).__name__ == "PRNGKeyArray" and type(value).__module__.startswith("jax")
