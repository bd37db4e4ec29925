"""A module imports only from floors below its own; see `docs/architecture.md`."""

import ast
from pathlib import Path

import jaxbandits

ROOT = Path(jaxbandits.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
NAMES = ["/".join(file.relative_to(ROOT).with_suffix("").parts) for file in FILES]

# The first entry that starts a module's name gives its floor; a folder's name ends in "/".
FLOORS = {
    "messages": -3,
    "replaced": -2,
    "real_numbers": -2,
    "retracing": -1,
    "signatures": -1,
    "types": -1,
    "whole_numbers": -1,
    "estimates": -1,
    "intervals": -1,
    "system/forks": -1,
    "system/jax_options": -0.5,
    "compile_options": 0,
    "core": 0,
    "precision": 0,
    "version": 0,
    "system/keeping": 1.2,
    "system/kept_calls": 1.2,
    "system/": 0,
    "kernels/": 0,
    "feature_tables": 0.5,
    "transforms": 1.5,
    "parameters": 1,
    "conditions": 1.5,
    "compilers/": 1,
    "design": 2,
    "rounding": 2,
    "glm": 2,
    "instances/": 2,
    "algorithms/loops/": 2,
    "algorithms/wrappers/": 2.5,
    "algorithms/": 3,
    "show/": 3.5,
    "engine/episode": 4,
    "engine/results": 4,
    "engine/saved": 4,
    "theory/": 5,
    "engine/": 6,
    "results": 8.5,
    "live": 7,
    "sweeps/": 8,
    "report": 9,
    "plot": 9.5,
    "reproduce": 10,
    "cli": 11,
    "__main__": 12,
    "__init__": 12,
}
FOLDERS = ("kernels", "instances", "algorithms")


def floor_of(name):
    for start, floor in FLOORS.items():
        folder = start.removesuffix("/")
        if name == folder or name.startswith(folder + "/"):
            return floor
    raise AssertionError(f"{name} has no floor: give it one here")


def imports(name):
    """Modules of the package that a module imports, wherever in the file, as `folder/file`."""
    here = name.split("/")[:-1]
    for node in ast.walk(ast.parse(ROOT.joinpath(f"{name}.py").read_text())):
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


def test_all_imports_of_a_module_are_found():
    assert set(imports("algorithms/confidence/rage")) == {
        "conditions",
        "core",
        "parameters",
        "types",
        "kernels/allocate/rounding_by_name",
        "kernels/confidence/radius",
        "kernels/design/d_optimal",
        "kernels/design/directions",
        "kernels/design/xy/by_name",
        "kernels/estimate/of_differences",
        "kernels/linalg/pairwise",
        "kernels/sampling",
        "kernels/shared_call",
        "algorithms/loops/single",
    }
    assert "instances/environments/stressed" in set(imports("engine/problems"))


def test_every_module_imports_only_from_floors_below():
    wrong = [
        f"{name} imports {imported}"
        for name in NAMES
        for imported in imports(name)
        # Within a folder the order is free; algorithms are checked in a test of their own.
        if imported.split("/")[0] != name.split("/")[0] and floor_of(imported) >= floor_of(name)
    ]
    assert wrong == []


def forbidden_imports(folder, allowed):
    """Imports by the files of a folder that do not start with an allowed name."""
    files = [n for n in NAMES if n.startswith(f"{folder}/") and not n.endswith("__init__")]
    assert len(files) > 30
    return [
        f"{name} imports {imported}"
        for name in files
        for imported in imports(name)
        if not imported.startswith(allowed)
    ]


def test_an_algorithm_imports_no_other_and_no_environment():
    known = (
        *("types", "core", "messages", "feature_tables", "parameters", "conditions"),
        *("kernels/", "algorithms/loops/", "algorithms/wrappers/"),
    )
    assert forbidden_imports("algorithms", known) == []


def test_kernels_import_only_kernels_types_and_retracing():
    assert forbidden_imports("kernels", ("kernels/", "types", "retracing")) == []


def test_the_main_folders_hold_modules():
    for folder in FOLDERS:
        assert any(name.startswith(f"{folder}/") for name in NAMES)
