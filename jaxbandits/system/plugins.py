"""Plugins: algorithms, instances and experiments that other packages or files offer by name.

An installed package offers them by entry points, and is imported only when a name of its own is
used or listed. A file is read only where the user names it on the command line. No other file,
a sweep file least of all, can name code that is run.
"""

import contextlib
import functools
import hashlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from ..messages import brief
from ..signatures import function_of

T = TypeVar("T")
Kind: TypeAlias = Literal["algorithm", "instance", "experiment"]

# By kind, the group of entry points of a package, and the table of a file.
GROUPS: dict[Kind, str] = {
    "algorithm": "jaxbandits.algorithms",
    "instance": "jaxbandits.instances",
    "experiment": "jaxbandits.experiments",
}
TABLES: dict[Kind, str] = {
    "algorithm": "ALGORITHMS",
    "instance": "INSTANCES",
    "experiment": "EXPERIMENTS",
}
MODULE = "jaxbandits_plugin_"  # begins the name of the module that a file becomes
DIGITS = 16  # of the hash of code, in hexadecimal
CODE: tuple[str, ...] = (
    *importlib.machinery.SOURCE_SUFFIXES,
    *importlib.machinery.EXTENSION_SUFFIXES,
)


class PluginFile(NamedTuple):
    """A Python file that the user has named, after it has run.

    Attributes:
      path: where it is.
      module: the name of its module.
      code: hash of its text.
      tables: by kind, what it offers by name.
    """

    path: Path
    module: str
    code: str
    tables: Mapping[Kind, Mapping[str, Any]]

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"plugin {self.path}"


class Offer(NamedTuple):
    """One name that a plugin offers.

    Attributes:
      plugin: what messages call the plugin.
      load: gives what has this name.
      source: names the plugin and its code, in stored files; after `load`.
    """

    plugin: str
    load: Callable[[], Any]
    source: Callable[[], str]


class Catalogue(Mapping[str, T]):
    """What has a name: things of this package, and those that plugins offer.

    Things of installed plugins are loaded when they are looked up; that a name is known is found
    without. A name that is offered twice, or is one of this package, is refused where it is used.

    Args:
      kind: what is named.
      own: those of this package.
      files: the plugins that the user has named.
      allowed: what a plugin may offer, for messages.
      fits: whether something is that.
    Raises:
      ValueError: a file offers a name that is taken, or something that does not fit.
    """

    def __init__(
        self,
        kind: Kind,
        own: Mapping[str, T],
        files: Sequence[PluginFile] = (),
        *,
        allowed: str,
        fits: Callable[[Any], bool],
    ) -> None:
        self._kind, self._own = kind, own
        self._allowed, self._fits = allowed, fits
        self._offers: dict[str, list[Offer]] = {}
        for name, offer in (*_in_files(kind, files), *_installed(kind)):
            self._offers.setdefault(name, []).append(offer)
        for file in files:
            for name in file.tables[kind]:
                self._offered(name)

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in self._offers if name not in self._own)

    def __len__(self) -> int:
        return len({*self._own, *self._offers})

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._offers

    def __getitem__(self, name: str) -> T:
        return self._offered(name) if name in self._offers else self._own[name]

    def is_own(self, name: str) -> bool:
        """Whether the name is one of this package."""
        return name in self._own

    def source(self, name: str) -> str:
        """Which plugin's code stands behind a name, which was looked up; "" for this package."""
        return self._offers[name][0].source() if name in self._offers else ""

    def plugin(self, name: str) -> str:
        """What messages call the plugin that offers a name; "" for this package."""
        return self._offers[name][0].plugin if name in self._offers else ""

    def _offered(self, name: str) -> Any:
        first, *others = self._offers[name]
        if name in self._own:
            raise ValueError(f"{first.plugin}: {self._kind} {name!r} is one of jaxbandits' own")
        if others:
            raise ValueError(f"{first.plugin}: {self._kind} {name!r} is also in {others[0].plugin}")
        found = first.load()
        if not self._fits(found):
            raise ValueError(
                f"{first.plugin}: {self._kind} {name!r} must be {self._allowed}, got {brief(found)}"
            )
        return found


def read_files(paths: Iterable[Path | str]) -> tuple[PluginFile, ...]:
    """Run Python files that the user has named, and give what they offer.

    Raises:
      ValueError: names the file, and what is wrong with it.
    """
    files: list[PluginFile] = []
    for path in map(Path, paths):
        same = next((file for file in files if file.module == _module_name(path)), None)
        if same is not None:
            raise ValueError(f"plugin {path}: {same.path} has the same name; rename one of them")
        files.append(_read(path))
    return tuple(files)


def _read(path: Path) -> PluginFile:
    if path.suffix not in importlib.machinery.SOURCE_SUFFIXES:
        raise ValueError(f"plugin {path}: it must be a Python file, named *.py")
    from .data_files import Unreadable, read_bytes  # only here, as it takes NumPy

    try:
        text = read_bytes(path)
    except Unreadable as error:
        raise ValueError(f"plugin {path}: {error}") from None
    loader = _Loader(path.resolve(), text)
    module = _module(path, loader)
    try:
        with _faults_named(path):
            loader.exec_module(module)
            found = {name: _entries(module, name) for name in TABLES.values()}
        tables = {kind: _table(path, name, found[name]) for kind, name in TABLES.items()}
        if not any(tables.values()):
            raise ValueError(f"plugin {path}: it defines none of {', '.join(TABLES.values())}")
    except ValueError:
        sys.modules.pop(module.__name__, None)
        raise
    return PluginFile(path, module.__name__, digest([("", text)]), tables)


class _Loader(importlib.abc.ExecutionLoader):
    """Runs the bytes that were hashed: nothing is read again, and no bytecode is kept."""

    def __init__(self, path: Path, text: bytes) -> None:
        self._path, self._text = path, text

    def get_filename(self, fullname: str) -> str:
        """The path, for tracebacks."""
        return str(self._path)

    def get_source(self, fullname: str) -> str:
        """The text of the file."""
        return importlib.util.decode_source(self._text)


def _module(path: Path, loader: _Loader) -> ModuleType:
    """The module of a file, before it runs."""
    name = _module_name(path)
    spec = importlib.machinery.ModuleSpec(name, loader, origin=str(path))
    spec.has_location = True
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # as dataclasses look for their module there
    return module


@contextlib.contextmanager
def _faults_named(path: Path) -> Generator[None]:
    """A block that runs code of a file; whatever that raises is a `ValueError` with the line."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        where = _line(error, path.resolve())
        raise ValueError(f"plugin {path}{where}: {in_words(error)}") from None


def _module_name(path: Path) -> str:
    return MODULE + re.sub(r"\W", "_", path.stem)


def _line(error: BaseException, path: Path) -> str:
    """Where in the file the error was raised."""
    if isinstance(error, SyntaxError):  # one of the whole text, as of its coding, has no line
        return f", line {error.lineno}" if error.lineno else ""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    return f", line {lines[-1]}" if lines else ""


def in_words(error: BaseException) -> str:
    """Type and message of an error, in one line."""
    message = error.msg if isinstance(error, SyntaxError) else " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _entries(module: ModuleType, name: str) -> Any:
    """What a file says by a name, a table as it is now; to ask may run code of the file."""
    table = getattr(module, name, {})
    return {key: table[key] for key in table} if isinstance(table, Mapping) else table


def _table(path: Path, name: str, table: Any) -> Mapping[str, Any]:
    if not isinstance(table, Mapping):
        raise ValueError(f"plugin {path}: {name} must be a dict by name, got {brief(table)}")
    for key in table:
        if not (isinstance(key, str) and key and key.isprintable()):
            raise ValueError(
                f"plugin {path}: {name} must have names that are text, got {brief(key)}"
            )
    return table


def _in_files(kind: Kind, files: Iterable[PluginFile]) -> Iterator[tuple[str, Offer]]:
    for file in files:
        for name, value in file.tables[kind].items():
            yield name, Offer(file.title, _constant(value), _constant(_source_of(file, value)))


def _constant(value: T) -> Callable[[], T]:
    return lambda: value


def _source_of(file: PluginFile, value: Any) -> str:
    """The file and the hash of its text; and that of the file which defines `value`, if another."""
    name = getattr(function_of(value), "__module__", None) or ""
    elsewhere = getattr(sys.modules.get(name), "__file__", None)
    if name == file.module or elsewhere is None or is_ours(name):
        return f"{file.path.name} {file.code}"
    both = digest([("", file.code.encode()), ("", Path(elsewhere).read_bytes())])
    return f"{file.path.name} {both}"


def is_ours(module: str) -> bool:
    """Whether a module belongs to this package, whose version stored files name."""
    return module.partition(".")[0] == __name__.partition(".")[0]


def is_extended(kind: Kind) -> bool:
    """Whether an installed package offers something of a kind."""
    return next(_installed(kind), None) is not None


def _installed(kind: Kind) -> Iterator[tuple[str, Offer]]:
    """What installed packages offer; none of them is imported."""
    stamps = tuple((folder, _changed(folder)) for folder in sys.path)
    for entry in _entry_points(GROUPS[kind], stamps):
        yield entry.name, _entry_offer(entry)


@functools.lru_cache(maxsize=len(GROUPS))  # to look through all packages takes 10 ms and more
def _entry_points(
    group: str, stamps: tuple[tuple[str, int], ...]
) -> tuple[importlib.metadata.EntryPoint, ...]:
    """Those of a group, for as long as nothing is installed in Python's path or removed."""
    return tuple(importlib.metadata.entry_points(group=group))


def _changed(folder: str) -> int:
    """When something was last added to a folder or removed; 0 where there is none."""
    try:
        return os.stat(folder or os.curdir).st_mtime_ns
    except OSError:
        return 0


def _entry_offer(entry: importlib.metadata.EntryPoint) -> Offer:
    package = "an unknown package" if entry.dist is None else _package_name(entry.dist)
    title = f"plugin {package}"

    def load() -> Any:
        try:
            return entry.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            text = f"{title}: {entry.name!r} ({entry.value}) cannot be loaded: {in_words(error)}"
            raise ValueError(text) from None

    return Offer(title, load, lambda: f"{package} {digest(_code_of(entry.module))}")


def _package_name(package: importlib.metadata.Distribution) -> str:
    return f"{package.metadata['Name']} {package.version}"


def _code_of(name: str) -> list[tuple[str, bytes]]:
    """Name and bytes of the files of the package that a module belongs to."""
    module = sys.modules[name.partition(".")[0]]
    if getattr(module, "__file__", None) is None:  # a namespace, which other packages share
        module = sys.modules[name]
    file = getattr(module, "__file__", None)
    if file is None:
        return []
    path = Path(file)
    folder = path.parent
    paths = sorted(folder.rglob("*")) if hasattr(module, "__path__") else [path]
    code = [one for one in paths if one.name.endswith(CODE) and one.is_file()]
    return [(one.relative_to(folder).as_posix(), one.read_bytes()) for one in code]


def digest(parts: Iterable[tuple[str, bytes]]) -> str:
    """`sha256:` and the first digits of the hash of code, given in parts that have names."""
    whole = hashlib.sha256()
    for name, data in parts:
        whole.update(f"{name}\0{len(data)}\0".encode() + data)
    return f"sha256:{whole.hexdigest()[:DIGITS]}"
