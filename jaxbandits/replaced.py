"""What somebody has put in place of parts of this package since they were imported.

A script, or a test, may assign to a module of this package: `radius.static = mine`. What is then
computed is no longer what names and version say. So each module is noted as its import leaves it,
and compared with that whenever a program, or stored work, is to be known by a name. While a part is
replaced nothing is this package's own: its functions are traced anew in each call, as those of a
user are, and keys of stored work say what was replaced.

Not seen is what changes inside of a list, an object or a nested table. A kernel that is called by
itself notices nothing before the next simulation: as under `jax.jit`, what is compiled stays.
"""

import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

PACKAGE: str = __name__.partition(".")[0]
# What decides how something is played, stored or shown, and no number.
APART: frozenset[str] = frozenset(
    {"cli", "compilers", "live", "plot", "report", "reproduce", "show", "sweeps", "system"}
)
# Of the engine, what decides numbers.
OF_THE_ENGINE: frozenset[str] = frozenset({"episode", "problems", "schedules", "traced_episodes"})
MISSING: str = "nothing"  # stands for what was deleted


class _Held(NamedTuple):
    """What a module, class or table held once its module was imported."""

    label: str
    holder: Mapping[Any, Any]
    names: list[Any]
    values: list[Any]

    def changes(self) -> Iterator[tuple[str, Any]]:
        """What is there now in another's place, by its full name."""
        for name, value in zip(self.names, self.values, strict=True):
            now = self.holder.get(name, MISSING)
            if now is not value and not _is_of_python(name, value):
                yield f"{self.label}.{name}", now


def _is_of_python(name, value):
    """Whether Python itself may write this, such as `__annotations__`; no method that it calls."""
    its = str(name).startswith("__") and str(name).endswith("__")
    return its and (not callable(value) or name.startswith("__annot"))


class _Made(NamedTuple):
    """What the functions of a module were made of."""

    functions: list[FunctionType]
    codes: list[Any]
    defaults: list[Any]
    by_keyword: list[Any]

    def changes(self) -> Iterator[tuple[str, Any]]:
        for parts, now in zip(self[1:], _parts(self.functions), strict=True):
            for function, before, after in zip(self.functions, parts, now, strict=True):
                if before is not after:
                    yield f"{function.__module__}.{function.__qualname__}", after


def _parts(functions):
    """Codes, defaults and defaults by keyword."""
    return (
        [x.__code__ for x in functions],
        [x.__defaults__ for x in functions],
        [x.__kwdefaults__ for x in functions],
    )


_noted: dict[str, tuple[list[_Held], _Made]] = {}  # by module
_states: list[dict[str, Any]] = [{}]  # what was replaced, each time that it was something else
_now: int = 0


def note(module: ModuleType) -> None:
    """Note what a module holds that was imported now."""
    global _now
    name, functions = module.__name__, []
    if name in _noted:  # it was reloaded: what was traced with its former functions is old
        _now = len(_states)
        _states.append(_states[0])
    held = [_held_by(name, vars(module))]
    for key, value in vars(module).items():
        own = getattr(value, "__module__", None) == name
        if isinstance(value, FunctionType) and own:
            functions.append(value)
        elif isinstance(value, type) and own:
            held.append(_held_by(f"{name}.{key}", vars(value)))
        elif type(value) is dict and key.isupper():
            held.append(_held_by(f"{name}.{key}", value))
    _noted[name] = held, _Made(functions, *_parts(functions))
    _all.cache_clear()


def _held_by(label, holder):
    return _Held(label, holder, [*holder], [*holder.values()])


@functools.cache
def _all():
    """What all modules hold, and their functions with all parts, to be compared at once."""
    modules = list(_noted.values())
    held = [(x.holder.values, x.values) for each, _ in modules for x in each]
    functions = [x for _, made in modules for x in made.functions]
    parts = [[x for _, made in modules for x in made[k]] for k in (1, 2, 3)]
    return held, functions, tuple(parts)


def _is_whole():
    """Whether nothing is replaced, as nearly always. It takes a fifth of a millisecond."""
    held, functions, parts = _all()
    try:
        for values, before in held:
            now = [*values()]  # in the order of a `dict`: what was added later comes last
            if now != before and now[: len(before)] != before:  # looks at identities first
                return False
        return _parts(functions) == parts
    except Exception:  # of two tables of numbers, say
        return False


def look() -> dict[str, Any]:
    """What is replaced now, by full names; this is what `state` counts from then on."""
    global _now
    found: dict[str, Any] = {}
    if not _is_whole():
        for held, made in list(_noted.values()):
            for each in (*held, made):
                found |= each.changes()
    if not _same(found, _states[_now]):
        earlier = (k for k in reversed(range(len(_states))) if _same(found, _states[k]))
        _now = next(earlier, len(_states))
        if _now == len(_states):
            _states.append(found)  # with its values, so that an id stays that of one value
    return found


def _same(one, two):
    return one.keys() == two.keys() and all(one[name] is two[name] for name in one)


def state() -> int:
    """A number of what was replaced at the last look; 0 as all was imported first."""
    return _now


class _Loader(SourceFileLoader):
    """Python's own, which notes a module once it is imported."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        note(module)


class _Finder:
    """Finds the modules of this package as Python does, for `_Loader`."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, *rooms = name.split(".")
        if package != PACKAGE or not _counts(rooms):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def _counts(rooms):
    """Whether what a module holds decides numbers."""
    if rooms[:1] == ["engine"]:
        return not OF_THE_ENGINE.isdisjoint(rooms[1:2])
    return bool(rooms) and rooms[0] not in APART


sys.meta_path.insert(0, _Finder)
