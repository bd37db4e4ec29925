"""What the text of a function names by constants: files that it opens, globals, attributes.

Instructions show a name that stands where it is used. Here expressions are followed that make one:
`Path(__file__).parent / "table.csv"` of a file, `globals()["A"]` of a global.
"""

import ast
import builtins
import os
import os.path
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePath
from types import CodeType, ModuleType
from typing import Any, TypeAlias

from .reads import BY_NAME, FILES, OF_OPEN_FILES, WHOLE_MODULE
from .syntax import node_of
from .user_files import is_foreign, is_own_class

Scope: TypeAlias = Mapping[str, Any]
Node: TypeAlias = Any  # of `ast`

MADE_OF: tuple[Callable[..., Any], ...] = (
    *(str, os.fspath, os.path.join, os.path.dirname, os.path.abspath, os.path.realpath),
    *(os.path.basename, os.path.expanduser),
)
OF_PATHS = frozenset({"absolute", "expanduser", "joinpath", "resolve", "with_name", "with_suffix"})
PARTS = frozenset({"parent", "name", "stem", "suffix"})
OF_OWN_PATH = frozenset({"open", "read_text", "read_bytes"})
VALUES: tuple[type, ...] = (str, int, PurePath, ModuleType)


class Computed(Exception):
    """A value that is not made of constants and globals alone."""


class _Reader:
    """Values of expressions of one function.

    Args:
      node: the syntax of the function.
      scope: its globals, and what it imports.
    """

    def __init__(self, node: Node, scope: Scope) -> None:
        self._scope = scope
        self._under_way: list[str] = []
        self._once: dict[str, Node] = {}  # by name, what is assigned to it, once and there alone
        stored = [x.id for x in _nodes(node) if isinstance(x, ast.Name) and _is_stored(x)]
        self._local = {x.arg for x in _nodes(node) if isinstance(x, ast.arg)} | {*stored}
        for one in _nodes(node):
            if isinstance(one, ast.Assign) and len(one.targets) == 1:
                name = getattr(one.targets[0], "id", None)
                if name is not None and stored.count(name) == 1:
                    self._once[name] = one.value

    def value(self, node: Node) -> Any:
        """The value of an expression; raises `Computed`."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._named(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if isinstance(owner, PurePath) and node.attr in {*PARTS, *OF_PATHS, *OF_OWN_PATH}:
                return getattr(owner, node.attr)
            if isinstance(owner, ModuleType) and node.attr in vars(owner):
                return vars(owner)[node.attr]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
            one, two = self._plain(node.left), self._plain(node.right)
            return one + two if isinstance(node.op, ast.Add) else one / two
        if isinstance(node, ast.JoinedStr):
            return "".join(str(self._plain(_inner(part))) for part in node.values)
        if isinstance(node, ast.Call) and not node.keywords:
            function, args = self.value(node.func), [self._plain(x) for x in node.args]
            of_path = isinstance(getattr(function, "__self__", None), PurePath)
            if (of_path and function.__name__ in OF_PATHS) or function in MADE_OF:
                return function(*args)
            if isinstance(function, type) and issubclass(function, PurePath):
                return function(*args)
        raise Computed

    def _named(self, name: str) -> Any:
        if name in self._once and name not in self._under_way:
            self._under_way.append(name)
            try:
                return self.value(self._once[name])
            finally:
                self._under_way.pop()
        known = {**vars(builtins), **self._scope}
        if name in self._local or name not in known:
            raise Computed
        return known[name]

    def _plain(self, node: Node) -> Any:
        found = self.value(node)
        if isinstance(found, VALUES):
            return found
        raise Computed


def files_in(code: CodeType, text: str, scope: Scope) -> list[Path] | None:
    """The files that a function opens.

    Args:
      code: of the function.
      text: of the file that it stands in.
      scope: its globals, and what it imports.
    Returns:
      None where the name of one is computed, or the text is not that of the function.
    """
    node = node_of(code, text)
    if node is None:
        return None
    reader, files = _Reader(node, scope), []
    for call in _nodes(node):
        if isinstance(call, ast.Call) and (argument := _opened(call, reader)) is not None:
            try:
                files.append(Path(reader.value(argument)))
            except (Computed, TypeError, ValueError):
                return None
    return files


def _opened(call: Node, reader: _Reader) -> Node | None:
    """The expression for the file that a call opens; None where it opens none."""
    function = call.func
    first = call.args[0] if call.args else call
    name, owner = getattr(function, "attr", ""), _value(reader, getattr(function, "value", None))
    if isinstance(function, ast.Name):
        found = _value(reader, function)
        name = getattr(found, "__name__", "") if not is_own_class(type(found)) else ""
        return first if name in FILES or name == "load" else None
    if isinstance(owner, PurePath) or (owner is None and name in OF_OWN_PATH):
        return function.value if name in OF_OWN_PATH else None
    if isinstance(owner, ModuleType):
        opens = name in FILES or (name == "load" and owner.__name__ not in OF_OPEN_FILES)
        return first if opens and is_foreign(owner.__name__) else None
    return first if owner is None and name in FILES else None


def _value(reader, node):
    """The value of an expression; None where it is computed."""
    try:
        return None if node is None else reader.value(node)
    except (Computed, TypeError, ValueError):
        return None


def globals_in(code: CodeType, text: str) -> set[str] | None:
    """Names of globals that a function looks up by text: `globals()["A"]`, `eval("A + 1")`.

    None where the name of one is computed.
    """
    node, names = node_of(code, text), set()
    if node is None:
        return None
    told: dict[Node, set[str] | None] = {}  # by nodes of names that a constant follows
    for one in _nodes(node):
        key: Node = None
        table: Node = None
        if isinstance(one, ast.Subscript):
            key, table = one.slice, one.value
        elif isinstance(one, ast.Call) and getattr(one.func, "attr", "") == "get" and one.args:
            key, table = one.args[0], one.func.value
        if _is_call_of(table, "globals") and _is_text(key):
            told[table.func] = {key.value}
        if _is_call_of(one, "eval") and len(one.args) == 1 and _is_text(one.args[0]):
            told[one.func] = _names_in(one.args[0].value)
    for one in _nodes(node):
        if isinstance(one, ast.Name) and one.id in WHOLE_MODULE:
            found = told.get(one)
            if found is None:
                return None
            names |= found
    return names


def attributes_in(code: CodeType, text: str) -> set[str] | None:
    """Attributes that a function looks up by text, `getattr(x, "a")`; None: computed ones too."""
    node, names, told = node_of(code, text), set(), set()
    for one in _nodes(node) if node is not None else ():
        if _is_call_of(one, "getattr") and len(one.args) > 1 and _is_text(one.args[1]):
            told.add(one.func)
            names.add(one.args[1].value)
    used = {x for x in _nodes(node) if _name_of(x) in BY_NAME} if node is not None else {None}
    return names if used == told else None


def _nodes(tree: Node) -> Iterator[Node]:
    return ast.walk(tree)


def _name_of(node):
    return getattr(node, "id", None) or getattr(node, "attr", None)


def _is_call_of(node, name):
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == name


def _is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _names_in(text):
    """The names in an expression; None where it is none, or calls what may read others."""
    try:
        found = {x.id for x in _nodes(ast.parse(text, mode="eval")) if isinstance(x, ast.Name)}
    except SyntaxError:
        return None
    return None if found & WHOLE_MODULE else found


def _is_stored(node):
    return isinstance(node.ctx, ast.Store | ast.Del)


def _inner(part):
    """The expression in a formatted text that is written as it is."""
    if not isinstance(part, ast.FormattedValue):
        return part
    if part.format_spec is not None or part.conversion != -1:
        raise Computed
    return part.value
