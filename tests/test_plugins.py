"""Plugins: names from files and installed packages, what is refused, and how cells are stored."""

import importlib
import json
import re
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest
import xarray
from test_cli import call, refused

import jaxbandits as jb
from jaxbandits.reproduce.experiment import _is_ours
from jaxbandits.sweeps import check, read
from jaxbandits.sweeps.names import constructors
from jaxbandits.system.plugins import MODULE, read_files

PAGE = (Path(jb.__file__).parents[1] / "docs/how_to/plugins.md").read_text()
FILE, PACKAGE = re.findall(r"```python\n(.*?)```", PAGE, re.S)
SWEEP, PROJECT = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
HALVING = """
replications = 4
[instances.coins]
name = "coin"
[algorithms.SH]
name = "sequential_halving"
budget = 8
"""


@pytest.fixture
def mine(tmp_path):
    """The plugin file of the page."""
    return written(tmp_path / "mine.py", FILE)


@pytest.fixture(autouse=True)
def _forgotten():
    """Modules of plugins are not kept for the next test."""
    yield
    for name in [n for n in sys.modules if n.startswith((MODULE, "my_bandits"))]:
        del sys.modules[name]


def written(path, text):
    path.write_text(text)
    return path


def cells(sweep, *plugins):
    """Identities of the cells of a sweep file."""
    return {cell.identity for cell in check(read(sweep, plugins=read_files(plugins)))}


def installed(folder, monkeypatch, code, entries, name="my-bandits"):
    """A package on Python's path as an installer leaves it."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    written(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    written(info / "entry_points.txt", entries)
    written(folder / f"{name.replace('-', '_')}.py", code)
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()


def entries_of(project):
    """The entry points of a `pyproject.toml` as an installer writes them."""
    found = re.findall(r'\[project.entry-points."(.*?)"\]\n(.*?)(?=\n\[|\Z)', project, re.S)
    return "\n".join(f"[{group}]\n{lines.replace(chr(34), '')}" for group, lines in found)


def test_the_file_of_the_page_is_listed_and_played(mine, tmp_path):
    listed = call("list", "algorithms", "--plugin", mine)
    assert listed.exit_code == 0, listed.output
    assert (
        f"Draw the arms in turn, and answer with the largest sum [plugin {mine}]" in listed.output
    )
    assert "lingape " in listed.output
    sweep, out = written(tmp_path / "sweep.toml", SWEEP), tmp_path / "out"
    assert len(cells(sweep, mine)) == 4
    written(sweep, SWEEP.replace("[5, 20]", "[20]"))
    options = ["--plugin", mine, "--out", out, "--replications", 3]
    first = call("run", sweep, *options)
    assert first.exit_code == 0, first.output
    with xarray.open_dataset(out / "results.nc") as found:
        assert found.pulls.squeeze().values.tolist() == [[80] * 3, [40] * 3]
        stored = json.loads(found.attrs["options"])
    assert re.fullmatch("mine.py sha256:[0-9a-f]{16}", stored["[instances.basis]"]["plugin"])
    assert stored["[algorithms.At a budget]"]["plugin"] == stored["[instances.basis]"]["plugin"]
    assert call("run", sweep, *options).stderr.count("stored before") == 2
    before = cells(sweep, mine)

    written(mine, FILE + "\n")
    refused(call("run", sweep, *options), "--force", "plugin mine.py sha256", "instead of mine.py")
    assert not before & cells(sweep, mine)  # with --force all would be played
    assert not (tmp_path / "__pycache__").exists()


def test_a_sweep_file_alone_runs_no_code(mine, tmp_path):
    """It can name neither a plugin file nor a module."""
    ran = tmp_path / "ran"
    written(mine, FILE + f"\nopen({str(ran)!r}, 'w').close()\n")
    for line in (f'plugin = "{mine}"', f'plugins = ["{mine}"]', f'[plugins]\nmine = "{mine}"'):
        sweep = written(tmp_path / "sweep.toml", f"{line}\n{SWEEP}")
        refused(call("run", sweep, "--out", tmp_path / "out"), "unknown key 'plugin")
    for name in (str(mine), "mine:in_turn", f"{mine}:in_turn", "in_turn"):
        sweep = written(tmp_path / "sweep.toml", SWEEP.replace("in_turn", name))
        refused(call("run", sweep, "--out", tmp_path / "out"), "unknown instance 'two_good_arms'")
        text = SWEEP.replace("in_turn", name).replace("two_good_arms", "canonical")
        sweep = written(tmp_path / "sweep.toml", text + "gap = [1.0]\n")
        refused(call("run", sweep, "--out", tmp_path / "out"), f"unknown algorithm {name!r}")
    assert not ran.exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ALGORITHMS = {", ["line 1: SyntaxError"]),
        ("import nowhere", ["line 1: ModuleNotFoundError: No module named 'nowhere'"]),
        ("\n\nraise OSError('a\\nb')", ["line 3: OSError: a b"]),
        ("import sys\nsys.exit(3)", ["line 2: SystemExit: 3"]),
        ("x = 1", ["none of ALGORITHMS, INSTANCES, EXPERIMENTS"]),
        ("ALGORITHMS = [1]", ["ALGORITHMS must be a dict by name, got [1]"]),
        ("ALGORITHMS = {1: print}", ["ALGORITHMS must have names that are text, got 1"]),
        ("ALGORITHMS = {'a': 1}", ["algorithm 'a' must be a constructor", "got 1"]),
        ("INSTANCES = {'a': int}", ["instance 'a' must be a constructor", "int"]),
        ("EXPERIMENTS = {'a': print}", ["'a' must be a jaxbandits.reproduce.Experiment"]),
        ("def f(arms): ...\nALGORITHMS = {'rage': f}", ["algorithm 'rage' is one of jaxbandits'"]),
    ],
)
def test_a_faulty_file_is_named(tmp_path, text, words):
    file = written(tmp_path / "mine.py", text)
    refused(call("list", "--plugin", file), f"plugin {file}", *words)


def test_files_that_cannot_be_told_apart_or_read_are_refused(mine, tmp_path):
    refused(call("list", "--plugin", tmp_path / "no.py"), "no.py: No such file")
    refused(call("list", "--plugin", written(tmp_path / "a.txt", FILE)), "a.txt", "named *.py")
    (tmp_path / "b").mkdir()
    twin = written(tmp_path / "b" / "mine.py", FILE)
    refused(call("list", "--plugin", mine, "--plugin", twin), f"plugin {twin}", "the same name")
    other = written(tmp_path / "other.py", FILE)
    both = call("list", "--plugin", mine, "--plugin", other)
    refused(both, f"plugin {mine}: algorithm 'in_turn' is also in plugin {other}")
    out = tmp_path / "out"
    clustered = call("reproduce", "x", "--out", out, "--plugin", mine, "--cluster", "tcp://x:1")
    refused(clustered, "mine.py", "cluster")


def test_a_file_that_fails_leaves_no_module(tmp_path):
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        read_files([written(tmp_path / "broken.py", "1 / 0")])
    assert MODULE + "broken" not in sys.modules


def test_a_package_is_imported_when_one_of_its_names_is_used(tmp_path, monkeypatch):
    installed(tmp_path / "site", monkeypatch, PACKAGE, entries_of(PROJECT))
    own = HALVING.replace('"coin"', '"canonical"\ndim = 2\ngap = 1.0')
    sweep, out = written(tmp_path / "sweep.toml", own), tmp_path / "out"
    assert len(cells(sweep)) == 1
    assert "my_bandits" not in sys.modules
    sweep = written(tmp_path / "sweep.toml", HALVING)
    done = call("run", sweep, "--out", out)
    assert done.exit_code == 0, done.output
    assert "my_bandits" in sys.modules
    with xarray.open_dataset(out / "results.nc") as found:
        table = json.loads(found.attrs["options"])["[instances.coins]"]
    assert table["plugin"].startswith("my-bandits 1.0 sha256:")
    assert table["constructor"] == "my_bandits.coin"
    listed = call("list")
    assert "Draws of two coins [plugin my-bandits 1.0]" in listed.output
    assert "which is fair" not in listed.stderr


def test_a_package_that_is_removed_or_installed_later_is_noticed(tmp_path, monkeypatch):
    site = tmp_path / "site"
    installed(site, monkeypatch, PACKAGE, entries_of(PROJECT))
    info, elsewhere = site / "my_bandits-1.0.dist-info", tmp_path / "elsewhere"
    for path, is_there in ((None, True), (elsewhere, False), (info, True)):
        if path:
            shutil.move(info if path == elsewhere else elsewhere, path)
        assert ("coin" in constructors("instance")) == is_there


@pytest.mark.slow
def test_an_experiment_of_a_package_is_reproduced(tmp_path, monkeypatch):
    """Its own constructors are known by the package's code, those of jaxbandits are not."""
    mixed = PACKAGE.replace(
        '"short": alternate}', '"short": partial(jb.sequential_halving, budget=60)}'
    )
    installed(tmp_path / "site", monkeypatch, mixed, entries_of(PROJECT))
    out = tmp_path / "out"
    done = call("reproduce", "coins/fig1", "--quick", "--replications", 4, "--out", out)
    assert done.exit_code == 0, done.output
    assert "Short runs draw less." in done.output
    with xarray.open_dataset(out / "results.nc") as found:
        options = json.loads(found.attrs["options"])
    assert options["[algorithms.long]"]["plugin"] == options["[instances.coins]"]["plugin"]
    assert "plugin" not in options["[algorithms.short]"]


def test_a_faulty_package_hides_no_other(tmp_path, monkeypatch):
    """Its own names are refused, and the list ends with what is wrong."""
    broken = (
        "[jaxbandits.algorithms]\nlost = broken:lost\nnumber = broken:number\nrage = broken:f\n"
    )
    installed(tmp_path / "a", monkeypatch, "number = 3\ndef f(arms): ...", broken, "broken")
    missing = "[jaxbandits.algorithms]\nalternate = nowhere:alternate\n"
    installed(tmp_path / "b", monkeypatch, "", missing, "nobody")
    installed(tmp_path / "c", monkeypatch, PACKAGE, entries_of(PROJECT))
    listed = call("list", "algorithms")
    refused(
        listed,
        "plugin broken 1.0: 'lost' (broken:lost) cannot be loaded: AttributeError",
        "plugin broken 1.0: algorithm 'number' must be a constructor",
        "plugin broken 1.0: algorithm 'rage' is one of jaxbandits' own",
        "algorithm 'alternate' is also in plugin",
    )
    assert "  lingape " in listed.stdout
    assert "  rage " not in listed.stdout
    sweep, out = tmp_path / "sweep.toml", tmp_path / "out"
    for name, word in (("rage", "own"), ("alternate", "also in"), ("lost", "AttributeError")):
        text = HALVING.replace('"coin"', '"canonical"').replace("sequential_halving", name)
        written(sweep, text.replace("SH", "A"))
        refused(call("run", sweep, "--out", out), "[algorithms.A] plugin", word)
    sys.modules.pop("broken", None)


def test_a_change_of_a_package_is_another_source(tmp_path, monkeypatch):
    installed(tmp_path, monkeypatch, PACKAGE, entries_of(PROJECT))
    known = constructors("algorithm")
    assert known["alternate"].__name__ == "alternate"
    before = known.source("alternate")
    written(tmp_path / "my_bandits.py", PACKAGE + "\n")
    assert known.source("alternate") != before
    assert known.source("lingape") == known.plugin("lingape") == ""


def test_constructors_of_an_experiment_that_are_its_own_are_told_from_ours():
    def mine(arms, extra=0):
        return jb.uniform(arms)

    ours = [jb.rage, partial(jb.rage, delta=0.1), jb.at_budget(partial(jb.rage, delta=0.1), 9)]
    assert all(map(_is_ours, [*ours, jb.instances.soare, jb.instances.soare(3)]))
    theirs = [mine, partial(mine, extra=1), jb.at_budget(mine, 9), partial(jb.at_budget(mine), 1)]
    assert not any(map(_is_ours, theirs))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f(arms):\n  raise KeyError('z')", "[algorithms.SH] KeyError: 'z' (mine.py, line 2)"),
        ("def f(arms):\n  return [][0]", "IndexError: list index out of range (mine.py, line 2)"),
        ("def f(arms):\n  raise SystemExit(3)", "SystemExit: 3 (mine.py, line 2)"),
        ("def f(arms):\n  return arms + 'a'", "TypeError: unsupported operand type(s) for +"),
        ("def f(*a, **k):\n  return 1", "must return an Algorithm, got 1"),
        ("def f(): return {}\nINSTANCES = {'f': f}", "[instances.coins] f must return an Instance"),
    ],
)
def test_an_error_of_a_plugin_at_use_is_one_line_with_its_place(tmp_path, text, words):
    """No traceback, and the table whose constructor it is."""
    basis = 'name = "canonical"\ndim = 3\ngap = 0.5'
    halving, coin, mine = 'name = "sequential_halving"\nbudget = 8', 'name = "coin"', 'name = "f"'
    table = HALVING.replace(coin, mine)
    if "INSTANCES" not in text:
        table = HALVING.replace(coin, basis).replace(halving, mine)
    sweep = written(tmp_path / "sweep.toml", table)
    rest = "" if "INSTANCES" in text else "\nALGORITHMS = {'f': f}"
    file = written(tmp_path / "mine.py", text + rest)
    refused(call("run", sweep, "--plugin", file, "--out", tmp_path / "out"), f"{sweep}: [", words)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"raise BaseException('no')", ", line 1: BaseException: no"),
        (b"raise GeneratorExit", ", line 1: GeneratorExit"),
        (b"def __getattr__(name):\n  raise RuntimeError(name)", ", line 2: RuntimeError"),
        (
            b"class D(dict):\n  def __iter__(self): raise KeyError(1)\nALGORITHMS = D(a=1)",
            ", line 2: KeyError: 1",
        ),
        (b"x = 1\0", "null bytes"),
        (b"# coding: foo\n", "mine.py: SyntaxError: unknown encoding: foo"),
    ],
)
def test_whatever_a_file_raises_when_it_is_read_is_one_line(tmp_path, data, words):
    file = tmp_path / "mine.py"
    file.write_bytes(data)
    listed = call("list", "--plugin", file)
    refused(listed, f"plugin {file}", words)
    assert "line None" not in listed.stderr
    assert MODULE + "mine" not in sys.modules
