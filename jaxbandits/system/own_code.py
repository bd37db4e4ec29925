"""A hash of code that a user has written, so that stored results of other code are not taken.

Read are a function or class and what it uses of the user's own files: functions, classes, modules,
and plain constants, each as it is in memory. Of this package, of installed packages and of the
standard library only names count.

Of a file's text only the syntax counts, without comments, docstrings and layout, so that the hash
is the same in all versions of Python. Not seen is what a function imports while it runs, and what
it finds in objects that are neither plain data nor dataclasses.
"""

import ast
import dataclasses
import dis
import functools
import linecache
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .plugins import digest, is_ours

Place: TypeAlias = tuple[str, int]  # name and first line of a function
Names: TypeAlias = frozenset[str]

PLAIN: tuple[type, ...] = (type(None), bool, int, float, complex, str, bytes)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
READS: Names = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
WRITES: Names = frozenset({"STORE_GLOBAL"})
INSTALLED: Names = frozenset({"site-packages", "dist-packages"})  # folders
STANDARD: tuple[Path, ...] = tuple(
    Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")
)


def hash_of_code(function: Any) -> str:
    """`sha256:` and 16 digits, other ones after a change of a user's code behind `function`.

    Args:
      function: a function, a class, or what is around one: `functools.partial`, `at_budget`.
    Returns:
      "" where there is no code of a user, or none whose text can be found.
    """
    reading = _Reading()
    try:
        reading.value(function)
    except Exception:  # of an odd object among the user's, which is no fault of what is run
        return ""
    text = "\n".join(reading.lines)
    return digest([("", text.encode("utf-8", "surrogatepass"))]) if reading.found_text else ""


class _Reading:
    """One walk through what a function uses.

    Attributes:
      lines: what was met, in an order that follows from the code alone.
      found_text: whether the text of a function or class was among it.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.found_text: bool = False
        # By id, which stays the object's own as long as the object is kept.
        self._met: dict[Any, Any] = {}

    def value(self, value: Any, attributes: Names = frozenset()) -> None:
        """Note a value; of a module of the user, the attributes of these names."""
        if type(value) in PLAIN:
            self.lines.append(f"{type(value).__name__} {value!r}")
        elif isinstance(value, FunctionType):
            self._once(value, self._function)
        elif isinstance(value, type):
            self._once(value, self._class)
        elif isinstance(value, ModuleType):
            self._once(value, lambda module: self._module(module, attributes), attributes)
        elif isinstance(value, functools.partial):
            self._all([value.func, value.args, value.keywords])
        elif isinstance(value, MethodType):
            self._all([value.__func__, value.__self__])
        elif callable(value) and hasattr(value, "__wrapped__"):  # by `jax.jit`, for instance
            self.value(value.__wrapped__)
        else:
            self._data(value)

    def _all(self, values: Any) -> None:
        for value in values:
            self.value(value)

    def _once(self, value: Any, note: Callable[[Any], None], *more: Any) -> None:
        """Note an object in full where it is met first, and by its name after that."""
        key = id(value), *more
        if key in self._met:
            self.lines.append(value.__name__)
        else:
            self._met[key] = value
            note(value)

    def _function(self, function: FunctionType) -> None:
        if is_own(function):
            self._own_function(function)
        elif not hasattr(function, "__wrapped__"):
            self.lines.append(_label(function))
        if hasattr(function, "__wrapped__"):
            self.value(function.__wrapped__)

    def _own_function(self, function: FunctionType) -> None:
        text = _text(function.__code__.co_filename, function.__globals__)
        if not text:
            self.lines.append(function.__name__)
            return
        self.found_text = True
        self.lines.append(_syntax(function.__code__, text))
        self._all([function.__defaults__, function.__kwdefaults__])
        self._read_by(function)

    def _read_by(self, function: FunctionType) -> None:
        """What a function reads: of the scopes around it, and of its module."""
        code, scope = function.__code__, function.__globals__
        attributes = frozenset(name for inner in _codes(code) for name in inner.co_names)
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            self.lines.append(name)
            self._cell(cell)
        # A global that the function writes to is a counter, say: no part of what it does.
        for name in sorted(names_in(code, READS) - names_in(code, WRITES)):
            if name in scope and not name.startswith("__"):  # no name or folder of the file
                self.lines.append(name)
                self.value(scope[name], attributes)

    def _cell(self, cell: Any) -> None:
        try:
            contents = cell.cell_contents
        except ValueError:  # nothing was assigned yet
            return
        self.value(contents)

    def _module(self, module: ModuleType, attributes: Names) -> None:
        if is_foreign(module.__name__):
            self.lines.append(module.__name__)
            return
        for name in sorted(attributes & vars(module).keys()):
            if not name.startswith("__"):
                self.lines.append(name)
                self.value(vars(module)[name], attributes)

    def _class(self, kind: type) -> None:
        if is_foreign(kind.__module__):
            self.lines.append(_label(kind))
            return
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        syntax = _parsed(_text(file)).classes.get(kind.__qualname__) if file else None
        self.found_text |= syntax is not None
        fields = [*getattr(kind, "_fields", ()), *getattr(kind, "__dataclass_fields__", ())]
        self.lines += [kind.__name__, syntax or "", *fields]
        self._all(kind.__bases__)
        for name, member in sorted(vars(kind).items()):
            self._member(name, member)

    def _member(self, name: str, member: Any) -> None:
        """Note what a user wrote in a class, and not what Python, of some version, has added."""
        inner, public = _inside(member), not name.startswith("_")
        if isinstance(inner, FunctionType) and is_own(inner):
            # Those that `dataclass` makes have no text.
            file = inner.__code__.co_filename
            wanted = inner.__name__ != "__annotate__" and bool(_text(file, inner.__globals__))
        else:
            kinds = (*PLAIN, tuple, FunctionType)
            wanted = public and (type(inner) in kinds or isinstance(inner, type))
        if wanted:
            self.lines.append(name)
            self.value(inner)

    def _data(self, value: Any) -> None:
        """Note collections, arrays and dataclasses, and of other objects their type."""
        if isinstance(value, tuple | list):
            self.lines.append(f"{len(value)} in a {type(value).__name__}")
            self._all(value)
        elif isinstance(value, set | frozenset):
            self.lines += [f"{len(value)} in a set", *sorted(map(repr, value))]
        elif isinstance(value, Mapping):
            self.lines.append(f"{len(value)} in a mapping")
            for key in sorted(value, key=repr):
                self._all([key, value[key]])
        elif dataclasses.is_dataclass(value):
            self._all([type(value), *(getattr(value, x.name) for x in dataclasses.fields(value))])
        elif hasattr(type(value), "__array__"):
            self.lines.append(_array(value))
        elif is_foreign(type(value).__module__):
            self.lines.append(_label(value))
        else:
            self.value(type(value))


def _array(value: Any) -> str:
    """Type, shape and entries of an array of numbers; of another one its type."""
    try:
        table = np.asarray(value)
    except Exception:  # a key of JAX, which has no entries
        return type(value).__name__
    if table.dtype.kind not in "biufc":
        return type(value).__name__
    entries = np.ascontiguousarray(table).tobytes()
    return f"{table.dtype} {table.shape} {digest([('', entries)])}"


def _inside(member: Any) -> Any:
    """The function in a method of a class, a property or the like."""
    for name in ("__func__", "fget", "func", "__wrapped__"):
        inner = getattr(member, name, None)
        if callable(inner) and not isinstance(member, FunctionType | type):
            member = inner
    return member


def _label(value: Any) -> str:
    """The package and the name; modules in a package move from version to version."""
    package = str(getattr(value, "__module__", "")).partition(".")[0]
    return f"{package}.{getattr(value, '__name__', type(value).__name__)}"


def is_own(function: FunctionType) -> bool:
    """Whether a function stands in a file of the user."""
    module = str(function.__globals__.get("__name__"))
    return not (is_ours(module) or _is_installed(function.__code__.co_filename))


def is_foreign(module: str) -> bool:
    """Whether a module is of this package, of an installed one or of the standard library."""
    found = sys.modules.get(module)
    folder = next(iter(getattr(found, "__path__", [])), None)  # of a package without __init__.py
    file = getattr(found, "__file__", None) or folder
    if file is None:  # of a notebook, or a module in C
        return module != "__main__"
    return is_ours(module) or _is_installed(file)


@functools.lru_cache(maxsize=4096)
def _is_installed(file: str) -> bool:
    if file.startswith("<frozen"):
        return True
    path = Path(file).resolve()
    return bool(INSTALLED.intersection(path.parts)) or any(map(path.is_relative_to, STANDARD))


def _text(file: str, scope: dict[str, Any] | None = None) -> str:
    """The text of a file as it is now, or of a cell of a notebook; "" where there is none."""
    linecache.checkcache(file)
    return "".join(linecache.getlines(file, scope))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def names_in(code: CodeType, instructions: Names) -> set[str]:
    """Names that some instructions of a function, and of those in it, are about."""
    return {
        step.argval
        for inner in _codes(code)
        for step in dis.get_instructions(inner)
        if step.opname in instructions
    }


class _Source(NamedTuple):
    """The text of a file, taken apart.

    Attributes:
      functions: syntax by place; lambdas that begin in one line have one place.
      compiled: by place, what these functions are compiled to.
      classes: syntax by qualified name.
    """

    functions: dict[Place, str]
    compiled: dict[Place, list[str]]
    classes: dict[str, str]


def _syntax(code: CodeType, text: str) -> str:
    """The syntax of a function; its instructions where the text is no longer that of the function.

    A file may have been edited after it was imported. To hash what it says now would give the
    results of the code in memory out as those of the new text.
    """
    source, own = _parsed(text), _instructions(code)
    places = [
        place
        for place, compiled in source.compiled.items()
        if place[0] == code.co_name and own in compiled
    ]
    if not places:
        return own
    return source.functions[min(places, key=lambda place: abs(place[1] - code.co_firstlineno))]


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> _Source:
    source = _Source({}, {}, {})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were given when the file was imported
            tree, whole = ast.parse(text), compile(text, "<text>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return source
    _take_apart(tree, "", source)
    for code in _codes(whole):
        place = code.co_name, code.co_firstlineno
        if place in source.functions:
            source.compiled.setdefault(place, []).append(_instructions(code))
    return source


def _take_apart(node: ast.AST, prefix: str, source: _Source) -> None:
    """Collect the functions and classes in a piece of syntax."""
    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, ast.ClassDef):
            source.classes[prefix + child.name] = str(_plain_syntax(child))
            inner = f"{prefix}{child.name}."
        elif isinstance(child, FUNCTIONS):
            name = getattr(child, "name", "<lambda>")
            first = min([child.lineno, *(x.lineno for x in getattr(child, "decorator_list", []))])
            before = source.functions.get((name, first), "")
            source.functions[name, first] = before + str(_plain_syntax(child))
            inner = f"{prefix}{name}.<locals>."
        _take_apart(child, inner, source)


def _plain_syntax(node: Any) -> Any:
    """Syntax as lists and texts, which versions of Python agree in."""
    if isinstance(node, list):
        return [_plain_syntax(x) for x in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    # What is empty is left out, as each version of Python adds fields.
    fields = {
        name: part
        for name, part in ast.iter_fields(node)
        if name not in ("ctx", "kind", "type_comment") and part is not None and part != []
    }
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    return [type(node).__name__, *([name, _plain_syntax(part)] for name, part in fields.items())]


def _instructions(code: CodeType) -> str:
    """What Python has compiled a function to, as text; lines and files are no part of it."""
    constants = [
        _instructions(x) if isinstance(x, CodeType) else f"{type(x).__name__} {_ordered(x)}"
        for x in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return f"{code.co_code.hex()} {names} {constants}"


def _ordered(constant: Any) -> str:
    """A constant as text; the order of a set differs between processes."""
    return repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)
