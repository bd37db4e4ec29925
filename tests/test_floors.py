"""The house by its imports: each floor stands on those below; files and functions stay small."""

import ast
import functools
from pathlib import Path

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


@functools.cache
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


def test_every_file_imports_only_what_is_below():
    wrong = [
        f"{name} imports {imported}"
        for name in NAMES
        for imported in imports(name)
        # A folder may be arranged as it likes; algorithms are held apart below.
        if imported.split("/")[0] != name.split("/")[0] and floor_of(imported) >= floor_of(name)
    ]
    assert wrong == []


def strangers(folder, allowed):
    """What the files of a folder import from elsewhere than the allowed ones."""
    files = [n for n in NAMES if n.startswith(f"{folder}/") and not n.endswith("__init__")]
    assert len(files) > 30
    return [
        f"{name} imports {imported}"
        for name in files
        for imported in imports(name)
        if imported.split("/")[0] not in allowed
    ]


def test_an_algorithm_knows_no_other_and_no_world():
    assert strangers("algorithms", {"core", "kernels", "options", "skeletons"}) == []


def test_kernels_know_no_move():
    assert strangers("kernels", {"kernels"}) == []


def test_files_are_short():
    lines = {name: ROOT.joinpath(f"{name}.py").read_text().count("\n") for name in NAMES}
    most = {name: 200 if name.startswith("algorithms/") else 400 for name in NAMES}
    assert [name for name in NAMES if lines[name] > most[name]] == []


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


def test_functions_are_short():
    long = {name: [part for part in lengths(name) if part[1] > 60] for name in NAMES}
    assert {name: parts for name, parts in long.items() if parts} == {}


def test_two_shelves_stand_apart():
    for shelf in SHELVES:
        assert any(name.startswith(f"{shelf}/") for name in NAMES)
