"""The syntax of Python files: what is left of a text without comments, docstrings and layout.

It is the same in all versions of Python, so that a hash of it is too. Where a file was edited after
it was imported, what is in memory is compared with it by the instructions of functions.
"""

import ast
import functools
import linecache
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

Place: TypeAlias = tuple[str, int]  # name and first line of a function

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
MAIN = "__main__"  # what is run under `if __name__ == "__main__"` is no part of a file's syntax


class Import(NamedTuple):
    """One import statement: `level` dots, the module after them, and names taken from it."""

    level: int
    module: str
    names: tuple[str, ...]


class Source(NamedTuple):
    """The text of a file, taken apart.

    Attributes:
      whole: its syntax.
      imports: all its import statements, those inside of functions among them.
      functions: syntax by place; lambdas that begin in one line have one place.
      compiled: by place, what these functions are compiled to.
    """

    whole: str
    imports: tuple[Import, ...]
    functions: dict[Place, str]
    compiled: dict[Place, list[str]]


def text_of(file: str, scope: dict[str, Any] | None = None) -> str:
    """The text of a file as it is now, or of a cell of a notebook; "" where there is none."""
    linecache.checkcache(file)
    return "".join(linecache.getlines(file, scope))


@functools.lru_cache(maxsize=256)
def parsed(text: str) -> Source:
    """The `Source` of a text; an empty one where it is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were given when the file was imported
            tree, code = ast.parse(text), compile(text, "<text>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return Source(text, (), {}, {})
    source = Source(str(_plain(_without_main(tree))), tuple(_imports(tree)), {}, {})
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            place = _place(node)
            source.functions[place] = source.functions.get(place, "") + str(_plain(node))
    for inner in codes_in(code):
        place = inner.co_name, inner.co_firstlineno
        if place in source.functions:
            source.compiled.setdefault(place, []).append(instructions(inner))
    return source


def syntax_of(code: CodeType, text: str) -> str:
    """The syntax of a function; its instructions where the text is no longer that of the function.

    A file may have been edited after it was imported. To hash what it says now would give the
    results of the code in memory out as those of the new text.
    """
    found = _place_of(code, text)
    if found is None:
        return instructions(code)
    place, which = found
    return parsed(text).functions[place] + (f" {which}" if which else "")


def node_of(code: CodeType, text: str) -> ast.AST | None:
    """The syntax tree of a function; None where `text` is not its text, or others share a line."""
    found = _place_of(code, text)
    if found is None or len(parsed(text).compiled[found[0]]) > 1:
        return None
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTIONS))
    return next(node for node in nodes if _place(node) == found[0])


def _place_of(code: CodeType, text: str) -> tuple[Place, int] | None:
    """Where a function stands in a text, and which it is of those that begin in that line."""
    source, own = parsed(text), instructions(code)
    places = [
        place
        for place, compiled in source.compiled.items()
        if place[0] == code.co_name and own in compiled
    ]
    if not places:
        return None
    place = min(places, key=lambda place: abs(place[1] - code.co_firstlineno))
    return place, source.compiled[place].index(own)


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def instructions(code: CodeType) -> str:
    """What Python has compiled a function to, as text; lines and files are no part of it."""
    constants = [
        instructions(x) if isinstance(x, CodeType) else f"{type(x).__name__} {_ordered(x)}"
        for x in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return f"{code.co_code.hex()} {names} {constants}"


def _ordered(constant: Any) -> str:
    """A constant as text; the order of a set differs between processes."""
    return repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def _place(node: Any) -> Place:
    first = min([node.lineno, *(x.lineno for x in getattr(node, "decorator_list", []))])
    return getattr(node, "name", "<lambda>"), first


def _without_main(tree: ast.Module) -> ast.Module:
    return ast.Module([node for node in tree.body if not _is_for_main(node)], [])


def _is_for_main(node: ast.stmt) -> bool:
    """Whether it is `if __name__ == "__main__":`, which nothing that is imported runs."""
    if not (isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and not node.orelse):
        return False
    sides = [node.test.left, *node.test.comparators]
    values = {getattr(side, "id", None) or getattr(side, "value", None) for side in sides}
    return values == {"__name__", MAIN}


def _imports(tree: ast.AST) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(0, alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield Import(node.level, node.module or "", tuple(x.name for x in node.names))


def _plain(node: Any) -> Any:
    """Syntax as lists and texts, which versions of Python agree in."""
    if isinstance(node, list):
        return [_plain(x) for x in node]
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
    return [type(node).__name__, *([name, _plain(part)] for name, part in fields.items())]
