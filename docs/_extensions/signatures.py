"""Signatures in the words of the source: `delta: Probability = 0.05`, not what types stand for."""

import ast
import inspect
import re
import textwrap


def of_function(value):
    """Arguments and result of a function in the words of its source."""
    function = inspect.unwrap(value)
    found = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(found, ast.FunctionDef):
        return None
    names = function.__globals__
    first = [argument.arg for argument in found.args.args[:1]]
    if first in (["self"], ["cls"]):
        del found.args.args[0]
    for argument in [*found.args.args, *found.args.kwonlyargs]:
        argument.annotation = in_words(argument.annotation, names)
    returned = ast.unparse(in_words(found.returns, names)) if found.returns else ""
    return f"({ast.unparse(found.args)})", returned


def in_words(annotation, names):
    """An annotation without what only programs read.

    `"Axes"` becomes `Axes`, `Annotated[int, rule]` its type, and `Annotated[str, choice("a", "b")]`
    `Literal["a", "b"]`.
    """
    if annotation is None:
        return None
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return _Plain(names).visit(annotation)


class _Plain(ast.NodeTransformer):
    def __init__(self, names):
        self.names = names

    def visit_Subscript(self, node):
        self.generic_visit(node)
        if ast.unparse(node.value) != "Annotated":
            return node
        kind, rule = node.slice.elts[:2]
        allowed = eval(ast.unparse(rule), self.names).allowed
        if not allowed.startswith("one of "):
            return kind
        values = [ast.Constant(value) for value in re.findall("'([^']*)'", allowed)]
        return ast.Subscript(ast.Name("Literal"), ast.Tuple(values))


def of_fields(value):
    """The fields of a named tuple or a data class; their types stand beside their descriptions."""
    parameters = inspect.signature(value).parameters.values()
    shown = [p.name if p.default is p.empty else f"{p.name}=..." for p in parameters]
    return f"({', '.join(shown)})", ""


def from_source(app, what, name, value, options, signature, returned):
    if what in ("function", "method"):
        return of_function(value)
    if what == "class" and "__annotations__" in vars(value):
        return of_fields(value)
    if what == "class" and "__init__" in vars(value):
        return of_function(value.__init__)[0], ""
    return None


def setup(app):
    app.connect("autodoc-process-signature", from_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
