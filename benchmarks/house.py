"""How long files and functions of the package are: `python -m benchmarks.house`.

Lengths are only reported. What is enforced: imports, see `tests/test_floors.py`, and `--types
LEAST`, which fails if less than that percentage of the public names have known types.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import jaxbandits

ROOT = Path(jaxbandits.__file__).parent
LONGEST = 12  # the longest ones of each kind are shown


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


def completeness():
    """Percentage of public names whose types basedpyright knows, and the names without types.

    basedpyright looks for the package beside the first `python` in PATH.
    """
    folder = Path(sys.executable).parent
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    command = [folder / "basedpyright", "--verifytypes", "jaxbandits", "--ignoreexternal"]
    done = subprocess.run(
        [*command, "--outputjson"], env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    found = json.loads(done.stdout)["typeCompleteness"]
    lacking = [x["name"] for x in found["symbols"] if x["isExported"] and not x["isTypeKnown"]]
    return 100.0 * found["completenessScore"], lacking


def main():
    """Print the report; with `--types`, check the types instead."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--types",
        type=float,
        metavar="LEAST",
        help="least percentage of public names with known types",
    )
    least = parser.parse_args().types
    if least is None:
        print("\n".join(report()))
        return
    found, lacking = completeness()
    print(f"{found:.1f}% of public names have known types; without: {', '.join(lacking) or 'none'}")
    if not found >= least:
        sys.exit(f"at least {least}% must have")


if __name__ == "__main__":
    main()
