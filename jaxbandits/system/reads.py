"""What a function reads besides its arguments, as far as its instructions show."""

import builtins
import dis
import itertools
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple, TypeAlias

from .syntax import Import, codes_in
from .user_files import is_foreign, is_own_class

Steps: TypeAlias = list[dis.Instruction]
Scope: TypeAlias = Mapping[str, Any]  # the globals of a function

NOISE = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN"})
GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
STORES = frozenset({"STORE_FAST", "STORE_DEREF"})
NUMBERS = frozenset({"LOAD_CONST", "LOAD_SMALL_INT"})
# Of a module, what changes no result and differs from place to place.
OF_THE_FILE = frozenset(
    {"__builtins__", "__cached__", "__doc__", "__file__", "__loader__", "__name__", "__package__"}
    | {"__path__", "__spec__"}
)
ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb"})
MODULES = frozenset({"import_module", "__import__"})
WHOLE_MODULE = frozenset({"globals", "eval", "exec"})
BY_NAME = frozenset({"getattr", "vars", "dir", "__dict__", "__getattribute__", "attrgetter"})
FILES = frozenset(
    {"open", "read_text", "read_bytes", "loadtxt", "genfromtxt", "fromfile", "memmap", "loadmat"}
    | {f"read_{kind}" for kind in ("csv", "table", "parquet", "excel", "json", "pickle", "hdf")}
    | {"open_dataset", "load_dataset", "open_zarr", "imread"}
)
A_FILE = "a file"  # in words, where its name is computed
OF_OPEN_FILES = frozenset({"json", "marshal", "pickle", "tomllib"})  # whose `load` opens none
LOOKED_UP = frozenset({"get", "pop", "setdefault", "__getitem__"})
# Instructions that take what is looked up as it is; any other makes another name of it.
TAKE = frozenset({"PRECALL", "BINARY_SUBSCR", "STORE_SUBSCR", "CONTAINS_OP"})


class Reads(NamedTuple):
    """What a function, and those written inside of it, read.

    Attributes:
      globals: names of its module, but of counters that it only increases.
      attributes: names of attributes, of whatever.
      of_libraries: attributes of modules that are not the user's, with their values.
      imports: modules that it imports while it runs.
      variables: of the environment.
      files: that it opens.
      modules: that it looks up by their names.
      whole: whether any global of its module may be read.
      by_name: whether attributes are looked up by names that may be computed.
      unknown: what is read, in words, where the name of it is computed.
    """

    globals: tuple[str, ...]
    attributes: frozenset[str]
    of_libraries: tuple[tuple[str, Any], ...]
    imports: tuple[Import, ...]
    variables: tuple[str, ...]
    files: tuple[str | Path, ...]
    modules: tuple[str, ...]
    whole: bool
    by_name: bool
    unknown: tuple[str, ...]


def reads_of(code: CodeType, scope: Scope) -> Reads:
    """The `Reads` of the code of a function whose globals are `scope`."""
    codes = [_steps(inner) for inner in codes_in(code)]
    names = {x.argval for steps in codes for x in steps if x.opname in GLOBALS | ATTRIBUTES}
    found: dict[str, list[Any]] = {"variables": [], "files": [], "modules": [], "unknown": []}
    inside = imported_in(code)
    for steps in codes:
        for kind, value in _looked_up(_as_globals(steps, inside), {**scope, **inside}):
            found[kind].append(value)
    return Reads(
        globals=tuple(sorted(_read(codes) - OF_THE_FILE)),
        attributes=frozenset(name for inner in codes_in(code) for name in inner.co_names),
        of_libraries=tuple(x for steps in codes for x in _of_libraries(steps, scope)),
        imports=tuple(x for steps in codes for x in _imports(steps)),
        whole=any(name in names and name not in scope for name in WHOLE_MODULE),
        by_name=not BY_NAME.isdisjoint(names),
        **{kind: tuple(values) for kind, values in found.items()},
    )


def _steps(code: CodeType) -> Steps:
    """The instructions of a function; what only hands a name to a function inside reads nothing."""
    handed = {*code.co_cellvars, *code.co_freevars}
    return [
        step._replace(opname="LOAD_CLOSURE")
        if step.opname.startswith("LOAD_FAST") and step.argval in handed
        else step
        for step in dis.get_instructions(code)
        if step.opname not in NOISE
    ]


def _read(codes: list[Steps]) -> set[str]:
    """The globals that are read for more than to be increased by a number."""
    return {
        step.argval
        for steps in codes
        for at, step in enumerate(steps)
        if step.opname in GLOBALS and not _is_counted(steps[at : at + 4])
    }


def _is_counted(steps: Steps) -> bool:
    """Whether these are the instructions of `NAME += 1`."""
    kinds = [step.opname for step in steps]
    return (
        len(steps) == 4
        and kinds[1] in NUMBERS
        and kinds[2:] == ["BINARY_OP", "STORE_GLOBAL"]
        and steps[0].argval == steps[3].argval
    )


def _of_libraries(steps: Steps, scope: Scope) -> Iterator[tuple[str, Any]]:
    for before, step in itertools.pairwise(steps):
        owner = _global(before, scope) if step.opname in ATTRIBUTES else None
        if isinstance(owner, ModuleType) and is_foreign(owner.__name__):
            value = vars(owner).get(step.argval)
            if value is not None and value is not sys.modules:
                yield f"{before.argval}.{step.argval}", value


def _imports(steps: Steps) -> Iterator[Import]:
    for at, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            level, names = steps[at - 2].argval, steps[at - 1].argval
            yield Import(level, step.argval, tuple(names or ()))


def _imported_names(steps: Steps) -> Iterator[tuple[str, Any]]:
    """What a function imports from modules that are there already, by the names it gives it."""
    module: Any = None
    for step, following in itertools.pairwise(steps):
        if step.opname == "IMPORT_NAME":
            module = sys.modules.get(step.argval)
        if following.opname in STORES and step.opname in ("IMPORT_NAME", "IMPORT_FROM"):
            inner = step.opname == "IMPORT_FROM"
            yield following.argval, getattr(module, step.argval, None) if inner else module


def imported_in(code: CodeType) -> dict[str, Any]:
    """What a function, and those written inside of it, import: by the names they give it."""
    return dict(pair for inner in codes_in(code) for pair in _imported_names(_steps(inner)))


def _as_globals(steps: Steps, names: Scope) -> Steps:
    """The instructions with these local names as if they were global."""
    return [
        step._replace(opname="LOAD_GLOBAL")
        if step.opname.startswith(("LOAD_FAST", "LOAD_DEREF")) and step.argval in names
        else step
        for step in steps
    ]


def _looked_up(steps: Steps, scope: Scope) -> Iterator[tuple[str, Any]]:
    """What is looked up by a name, or `unknown` and what it is where that name is computed."""
    for at in range(len(steps)):
        kind, words = _kind(steps, at, scope)
        if kind is None:
            continue
        name = _argument(steps, at, scope)
        yield ("unknown", words) if name is None else (kind, name)


def _kind(steps: Steps, at: int, scope: Scope) -> tuple[str | None, str]:
    """Of which kind an instruction looks something up, and that in words."""
    name, owner = _name(steps[at], scope), _global(steps[at - 1], scope) if at else None
    foreign = isinstance(owner, ModuleType) and is_foreign(owner.__name__)
    own = not foreign if isinstance(owner, ModuleType) else is_own_class(type(owner))
    if own or (at and steps[at - 1].argval == "self"):
        return None, ""  # the user's, which is looked at itself
    if name in ENVIRONMENT:
        return "variables", "a variable of the environment"
    if name in MODULES or (name == "modules" and owner is sys):
        return "modules", "a module"
    named = foreign or steps[at].opname in GLOBALS
    if name == "load" and foreign and owner.__name__ in OF_OPEN_FILES:
        return None, ""  # the file is looked at where it is opened
    if (named and name == "load") or (name in FILES and (named or _is_called(steps, at))):
        return "files", A_FILE
    return None, ""


def _is_called(steps: Steps, at: int) -> bool:
    """Whether an attribute is a method that is called, and no mask called `open`, say."""
    step, following = steps[at], steps[at + 1].opname
    return step.opname == "LOAD_METHOD" or "NULL" in step.argrepr or following == "PUSH_NULL"


def _name(step: dis.Instruction, scope: Scope) -> str:
    """What an instruction loads, by its own name; "" for what is looked at elsewhere."""
    name = step.argval
    if step.opname in ATTRIBUTES:
        return str(name)
    if step.opname not in GLOBALS:
        return ""
    value = scope.get(name, getattr(builtins, name, None))
    if value is os.environ:
        return "environ"
    known = isinstance(value, FunctionType | BuiltinFunctionType) and value.__module__
    return value.__name__ if known and is_foreign(known) else ""


def _global(step: dis.Instruction | None, scope: Scope) -> Any:
    """The value of a global that an instruction reads; None for any other instruction."""
    return scope.get(step.argval) if step is not None and step.opname in GLOBALS else None


def _argument(steps: Steps, at: int, scope: Scope) -> str | Path | None:
    """What is looked up: a constant, or a global that is text or a path; None: it is computed."""
    owner = _global(steps[at - 1], scope) if at else None
    if isinstance(owner, Path):  # `PATH.read_text()`
        return owner
    if steps[at + 1].opname == "CONTAINS_OP":  # `"NAME" in os.environ`
        place = at - 2 if steps[at - 1].opname in GLOBALS else at - 1
    else:
        skipped = (x.opname == "PUSH_NULL" or x.argval in LOOKED_UP for x in steps[at + 1 :])
        place = at + 1 + next(n for n, skip in enumerate(skipped) if not skip)
        if not _is_taken(steps, place):
            return None
    step = steps[place]
    value = step.argval if step.opname == "LOAD_CONST" else _global(step, scope)
    return value if isinstance(value, str | Path) else None


def _is_taken(steps: Steps, at: int) -> bool:
    """Whether what an instruction loads is an argument or an index as it is.

    The instruction that takes it is the first after which the stack has been lower.
    """
    above = 1  # values on the stack from this one on
    for step in steps[at + 1 :]:
        effect = dis.stack_effect(step.opcode, step.arg)
        if step.opname in ATTRIBUTES:
            taken = 1
        elif step.opname.startswith(("LOAD", "PUSH")):
            taken = 0
        else:
            made = int(not step.opname.startswith(("PRECALL", "POP", "STORE", "RETURN")))
            taken = made - effect
        if taken >= above:
            index = step.opname == "BINARY_OP" and step.argrepr == "[]"
            return step.opname in TAKE or step.opname.startswith("CALL") or index
        above += effect
    return False
