"""How long files and functions of the package are: `python -m benchmarks.house`.

A report, not a rule: lengths follow sense. Rules are the imports, see `tests/test_floors.py`.
"""

import ast
from pathlib import Path

import jaxbandits

ROOT = Path(jaxbandits.__file__).parent
LONGEST = 12  # of each kind that are shown


def lengths(tree):
    """`(name, lines)` of each function, without its docstring and the functions inside it."""

    def measure(node):
        inner = [measure(child) for child in ast.iter_child_nodes(node)]
        found = [item for items, _ in inner for item in items]
        nested = sum(lines for _, lines in inner)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return found, nested
        size = whole = node.end_lineno - node.lineno + 1
        if ast.get_docstring(node) is not None:
            size -= node.body[0].end_lineno - node.body[0].lineno + 1
        return [*found, (node.name, size - nested)], whole

    return measure(tree)[0]


def report(root=ROOT):
    """The report as lines of text."""
    texts = {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*.py")}
    lines = {name: text.count("\n") for name, text in texts.items()}
    functions = {
        f"{name}: {function}": size
        for name, text in texts.items()
        for function, size in lengths(ast.parse(text))
    }
    yield f"{len(texts)} files, {sum(lines.values())} lines, {len(functions)} functions"
    loose = [name for name in texts if "/" not in name]
    yield f"{len(loose)} files at the root: {', '.join(sorted(loose))}"
    for title, sizes in (("longest files", lines), ("longest functions", functions)):
        yield f"{title}:"
        longest = sorted(sizes.items(), key=lambda item: -item[1])[:LONGEST]
        yield from (f"  {size:4d} {name}" for name, size in longest)


if __name__ == "__main__":
    print("\n".join(report()))
