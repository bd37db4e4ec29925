"""Small changes of a program (mutants), which its tests should notice."""

import ast
import hashlib
from typing import NamedTuple

COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
COMPARISONS |= {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
OPERATORS |= {ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult}
OPERATORS |= {ast.Pow: ast.Mult, ast.Mod: ast.FloorDiv}
NAMES = {"maximum": "minimum", "max": "min", "argmax": "argmin", "any": "all", "floor": "ceil"}
NAMES |= {new: old for old, new in NAMES.items()}


class Mutant(NamedTuple):
    """A file with one change, see `changed`."""

    name: str  # a digest of the file's name, the expression and its change
    file: str
    line: int
    before: str  # the expression
    after: str
    index: int  # of the expression in the file
    change: int  # its index among the possible changes of the expression


def mutants(file, text):
    """All `Mutant`s of a file."""
    tree = ast.parse(text)
    found, seen = [], {}
    for index, node in enumerate(_nodes(tree)):
        for change, after in enumerate(_changes(node)):
            # Equal expressions of a file are numbered, so that their names differ.
            words = (file, ast.unparse(node), ast.unparse(after))
            seen[words] = seen.get(words, 0) + 1
            digest = hashlib.sha256(repr((*words, seen[words])).encode()).hexdigest()[:12]
            found.append(Mutant(digest, file, node.lineno, *words[1:], index, change))
    return found


def changed(mutant, text):
    """The text of the file with the change."""
    tree = ast.parse(text)
    node = next(node for i, node in enumerate(_nodes(tree)) if i == mutant.index)
    if ast.unparse(node) != mutant.before:
        raise ValueError(f"{mutant.file} has another expression than {mutant.before} there now")
    after = list(_changes(node))[mutant.change]
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, name, after)
            elif isinstance(value, list):
                value[:] = [after if one is node else one for one in value]
    return ast.unparse(ast.fix_missing_locations(tree))


def _nodes(tree):
    """Expressions in a fixed order, without annotations, error messages and docstrings."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.expr):
            yield node
        todo.extend(reversed(list(_computed(node))))


def _computed(node):
    """The children of a node, without annotations and error messages."""
    left_out = []
    if isinstance(node, ast.AnnAssign | ast.arg):
        left_out = [node.annotation]
    elif isinstance(node, ast.FunctionDef):
        left_out = [node.returns]
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("require", "warnings.warn"):
        left_out = node.args[1:]
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
        return
    for child in ast.iter_child_nodes(node):
        if not any(child is one for one in left_out):
            yield child


def _changes(node):
    """The expressions that may replace an expression."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield ast.Compare(
            node.left, [COMPARISONS[type(node.ops[0])](), *node.ops[1:]], node.comparators
        )
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield ast.Constant(1.5 * node.value if node.value else 1.0)
    elif isinstance(node, ast.Attribute) and node.attr == "T":
        yield node.value
    elif isinstance(node, ast.Call):
        yield from _changed_calls(node)


def _changed_calls(node):
    if isinstance(node.func, ast.Attribute) and node.func.attr in NAMES:
        other = ast.Attribute(node.func.value, NAMES[node.func.attr], ast.Load())
        yield ast.Call(other, node.args, node.keywords)
    if ast.unparse(node.func) == "jnp.where" and len(node.args) == 3:
        test, yes, no = node.args
        yield ast.Call(node.func, [test, no, yes], node.keywords)
