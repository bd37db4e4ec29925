"""Which modules and files are a user's own, and which of them an import leads to."""

import functools
import importlib.machinery
import importlib.util
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from .plugins import CODE, digest, is_ours
from .syntax import Import, parsed, text_of

INSTALLED: frozenset[str] = frozenset({"site-packages", "dist-packages"})  # folders
STANDARD: tuple[Path, ...] = tuple(
    Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")
)


def is_own(function: FunctionType) -> bool:
    """Whether a function stands in a file of the user."""
    return is_own_code(function.__code__, function.__globals__)


def is_own_code(code: CodeType, scope: dict[str, Any]) -> bool:
    """Whether the code of a function with these globals stands in a file of the user."""
    return not (is_ours(str(scope.get("__name__"))) or _is_installed(code.co_filename))


def is_foreign(module: str) -> bool:
    """Whether a module is of this package, of an installed one or of the standard library."""
    found = sys.modules.get(module)
    folder = next(iter(getattr(found, "__path__", [])), None)  # of a package without __init__.py
    file = getattr(found, "__file__", None) or folder
    if file is None:  # of a notebook, or a module in C
        return module != "__main__"
    return is_ours(module) or _is_installed(file)


def is_own_class(kind: type) -> bool:
    """Whether a class is of the user; of a module that is not known, whether a method of it is."""
    module = kind.__module__
    if module in sys.modules and (module != "__main__" or not is_foreign(module)):
        return not is_foreign(module)
    return any(isinstance(x, FunctionType) and is_own(x) for x in vars(kind).values())


@functools.lru_cache(maxsize=4096)
def _is_installed(file: str) -> bool:
    if file.startswith("<frozen"):
        return True
    path = Path(file).resolve()
    return bool(INSTALLED.intersection(path.parts)) or any(map(path.is_relative_to, STANDARD))


class UserFiles:
    """The files of a user that some code leads to by its imports, each taken as it is now."""

    def __init__(self) -> None:
        self._hashes: dict[str, str] = {}  # by file

    def add(self, file: str, scope: dict[str, Any] | None, package: str) -> None:
        """A file, or a cell of a notebook, and all that it imports.

        Args:
          file: what Python calls it.
          scope: the globals of its module, None where it was not imported.
          package: what its relative imports start from.
        """
        if file in self._hashes:
            return
        self._hashes[file] = ""  # before what it imports, which may import it
        if not file.endswith(CODE[0]) and file.endswith(CODE):  # compiled from another language
            self._hashes[file] = digest([("", Path(file).read_bytes())])
            return
        if not (text := text_of(file, scope)):
            return
        source = parsed(text)
        self._hashes[file] = digest([("", source.whole.encode("utf-8", "surrogatepass"))])
        for statement in source.imports:
            for name in imported(statement, package):
                self.add_module(name)

    def add_module(self, name: str) -> None:
        """A module of the user by its name, whether or not it was imported yet."""
        if is_ours(name) or _is_in_one_place(name.partition(".")[0]):
            return
        module = sys.modules.get(name)
        if module is not None and name != "__main__":
            file, package = getattr(module, "__file__", None), package_of(module)
            if file is not None and not is_foreign(name):
                self.add(file, vars(module), package)
        elif module is None and (spec := _spec(name)) is not None and spec.has_location:
            file = str(spec.origin)
            scope = {"__name__": name, "__loader__": spec.loader, "__spec__": spec}
            if not _is_installed(file):
                self.add(file, scope, spec.parent or "")

    @property
    def hashes(self) -> list[str]:
        """One of each file, in an order that does not depend on where they lie."""
        return sorted(filter(None, self._hashes.values()))


def _is_in_one_place(name: str) -> bool:
    """Whether all modules of a package that was imported are foreign."""
    package = sys.modules.get(name)
    shared = package is None or (hasattr(package, "__path__") and not package.__file__)
    return not shared and is_foreign(name)


def package_of(module: ModuleType) -> str:
    """What the relative imports of a module start from."""
    return getattr(module, "__package__", None) or ""


def imported(statement: Import, package: str) -> Iterator[str]:
    """Full names of the modules that a statement imports, or may import."""
    try:
        name = importlib.util.resolve_name("." * statement.level + statement.module, package)
    except ImportError:  # relative, in no package
        return
    parts = name.split(".")
    yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    yield from (f"{name}.{inner}" for inner in statement.names if inner != "*")


def _spec(name: str) -> importlib.machinery.ModuleSpec | None:
    """Where a module is that was not imported; nothing is imported to find it."""
    *_, last = parents = name.split(".")
    folders: Iterable[str] | None = None
    try:
        for length in range(1, len(parents)):
            parent = importlib.machinery.PathFinder.find_spec(".".join(parents[:length]), folders)
            if parent is None or parent.submodule_search_locations is None:
                return None
            folders = list(parent.submodule_search_locations)
        return importlib.machinery.PathFinder.find_spec(name, folders) if last else None
    except (ImportError, ValueError, OSError):
        return None
