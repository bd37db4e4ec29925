"""The house by its imports: each floor stands on those below; files and functions stay small."""

import ast
from pathlib import Path

import pytest

import jaxbandits

ROOT = Path(jaxbandits.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
NAMES = ["/".join(file.relative_to(ROOT).with_suffix("").parts) for file in FILES]

# The first entry that starts a module's name gives its floor; a folder's name ends in "/".
FLOORS = {
    "signatures": -1,
    "core": 0,
    "precision": 0,
    "composing": 1,
    "tables": 0.5,
    "options": 1,
    "progress": 0,
    "files": 0,
    "private": 0,
    "interrupts": 0,
    "version": 0,
    "kernels/": 0,
    "design": 2,
    "rounding": 2,
    "fitting": 2,
    "instances/": 2,
    "skeletons/": 2,
    "algorithms/": 3,
    "envs/": 3,
    "driver": 3,
    "protocol": 4,
    "debugging": 4,
    "apart": 3,
    "problems": 4,
    "lanewise/": 2,
    "native/": 3,
    "reasons": 3,
    "batch": 4,
    "results": 4,
    "theory/": 5,
    "lanes": 5,
    "checks": 5,
    "recording": 5,
    "world": 5,
    "family": 5,
    "processes": 5,
    "simulation": 6,
    "live": 6,
    "sweeps/": 7,
    "labels": 5,
    "panels": 6,
    "plot": 7,
    "table": 8,
    "report": 8,
    "reproduce": 8,
    "demo": 9,
    "cache": 9,
    "catalogue": 9,
    "cli": 10,
    "__main__": 11,
    "__init__": 11,
}
SHELVES = ("kernels", "instances", "algorithms", "envs")


def floor_of(name):
    for start, floor in FLOORS.items():
        folder = start.removesuffix("/")
        if name == folder or name.startswith(folder + "/"):
            return floor
    raise AssertionError(f"{name} has no floor: give it one here")


def tree_of(name):
    return ast.parse(ROOT.joinpath(f"{name}.py").read_text())


def imports(name):
    """Modules of the package that a module imports, wherever in the file, as `folder/file`."""
    here = name.split("/")[:-1]
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[: len(here) - node.level + 1]
            base = [*base, *(node.module or "").split(".")]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jaxbandits"):
            base = node.module.split(".")[1:]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                assert not alias.name.startswith("jaxbandits"), f"{name}: import relatively"
            continue
        else:
            continue
        path = "/".join(part for part in base if part)
        for alias in node.names:
            inner = f"{path}/{alias.name}".strip("/")
            found = next((n for n in (inner, f"{inner}/__init__", path) if n in NAMES), None)
            yield found or f"{path}/__init__".strip("/")


def test_the_walk_sees_imports():
    assert set(imports("algorithms/confidence/rage")) == {
        "core",
        "options",
        "kernels/directions",
        "kernels/everyone",
        "kernels/ledger",
        "kernels/once",
        "kernels/radius",
        "kernels/roundings",
        "kernels/xy_designs",
        "skeletons/single",
    }
    assert "envs/stressed" in set(imports("problems"))
    assert "results" in set(imports("__init__"))


@pytest.mark.parametrize("name", NAMES)
def test_a_file_imports_only_what_is_below(name):
    own, shelf = floor_of(name), name.split("/")[0]
    for imported in imports(name):
        if imported.split("/")[0] == shelf:
            continue  # a folder may be arranged as it likes; algorithms are held apart below
        assert floor_of(imported) < own, f"{name} imports {imported}"


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("algorithms/")])
def test_an_algorithm_knows_no_other_and_no_world(name):
    if name.endswith("__init__"):
        return
    shelves = {imported.split("/")[0] for imported in imports(name)}
    assert shelves <= {"core", "kernels", "options", "skeletons"}


@pytest.mark.parametrize("name", NAMES)
def test_kernels_know_no_move(name):
    if name.startswith("kernels/"):
        assert {imported.split("/")[0] for imported in imports(name)} <= {"kernels"}


@pytest.mark.parametrize("name", NAMES)
def test_files_are_short(name):
    lines = ROOT.joinpath(f"{name}.py").read_text().count("\n")
    assert lines <= (200 if name.startswith("algorithms/") else 400)


def lengths(name):
    """Lines of each function without its docstring and the functions inside it."""

    def measure(node):
        inner = [measure(child) for child in ast.iter_child_nodes(node)]
        found = [item for lists, _ in inner for item in lists]
        nested = sum(lines for _, lines in inner)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return found, nested
        size = whole = node.end_lineno - node.lineno + 1
        if ast.get_docstring(node) is not None:
            size -= node.body[0].end_lineno - node.body[0].lineno + 1
        return [*found, (node.name, size - nested)], whole

    return measure(tree_of(name))[0]


def test_the_measure_of_a_function():
    assert ("total", 2) in lengths("envs/finite")  # of _Normal: a signature and a line
    assert ("finite", 13) in lengths("envs/finite")


@pytest.mark.parametrize("name", NAMES)
def test_functions_are_short(name):
    long = {function: size for function, size in lengths(name) if size > 60}
    assert not long


def test_two_shelves_stand_apart():
    for shelf in SHELVES:
        assert any(name.startswith(f"{shelf}/") for name in NAMES)
