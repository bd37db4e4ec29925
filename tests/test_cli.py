"""The command line: bad input gives one line of error, good input gives readable files."""

import io
import os
import subprocess
import sys

import jax
import matplotlib.image
import numpy as np
import pandas
import pytest
import xarray
from click.testing import CliRunner
from run_settings import child

from jaxbandits.cli import catalogue
from jaxbandits.cli.main import main
from jaxbandits.engine import host_loop
from jaxbandits.sweeps import grid

TINY = """
replications = 8
[instances.basis]
name = "canonical"
dim = 4
[algorithms.GSE]
name = "gse"
budget = 40
[algorithms.SH]
name = "sequential_halving"
budget = 40
[axes]
gap = [2.0, 0.2]
"""


def call(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


def refused(result, *words):
    """Assert status 2 and one line on standard error that holds these words."""
    assert result.exit_code == 2, result.output
    lines = [line for line in result.stderr.splitlines() if not line.startswith("compiling ")]
    assert len(lines) == 1, lines
    for word in words:
        assert word in lines[0]


@pytest.fixture
def tiny(tmp_path):
    file = tmp_path / "tiny.toml"
    file.write_text(TINY)
    return file


def test_without_a_command_it_lists_the_commands():
    result = call()
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) > 10
    assert "reproduce" in result.stderr
    assert "error" not in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"canonical"', '"canonicals"', ["canonicals", "did you mean 'canonical'"]),
        ('"gse"', '"gsee"', ["algorithms.GSE", "gsee"]),
        ("gap =", "gab =", ["gab", "gap"]),
        ("dim = 4", "dims = 4", ["dims", "'dim'"]),
        ("[2.0, 0.2]", "[2.0, nan]", ["[axes] gap must be without NaN"]),
        ("budget = 40", "budget = 1", ["budget", "got 1"]),
        ("replications = 8", "replications = 0", ["replications"]),
        ("replications = 8", "", ["replications"]),
        ("[axes]", "[axes", ["TOML"]),
        ("dim = 4", "dim = 4\nredraw = 3", ["redraw"]),
        ('"gse"', '"at_budget"', ["algorithms.GSE", "at_budget", "'algorithm'"]),
        ('"gse"', '"at_budget"\nalgorithm = "rag"', ["of at_budget 'rag'", "'rage'"]),
        ("dim = 4", "dim = 4.0", ["instances.basis", "dim must be written as a whole number"]),
        ("budget = 40", 'budget = "40"', ["algorithms.GSE", "budget must be", "got '40'"]),
        ('"gse"', '"gse"\ntol = "0.1"', ["tol must be a finite number", "got '0.1'"]),
        ('"canonical"', '"stressed"\ninstance = "digits"', ["instance of stressed 'digits'"]),
        ('"gse"', '"at_budget"\nalgorithm = "lucb"\nx = 1', ["option of at_budget 'x'"]),
    ],
)
def test_bad_files_are_refused(tiny, tmp_path, old, new, words):
    tiny.write_text(TINY.replace(old, new))
    result = call("run", tiny, "--out", tmp_path / "out")
    refused(result, *words)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_file_can_put_an_algorithm_at_a_budget(tiny, tmp_path):
    tiny.write_text(TINY.replace('"gse"', '"at_budget"\nalgorithm = "lingape"\ndelta = 0.2'))
    result = call("run", tiny, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    with xarray.open_dataset(tmp_path / "results.nc") as found:
        assert (found.pulls == 40).all()
    again = call("run", tiny, "--out", tmp_path)
    assert again.output.count("stored before") == 4


def test_bad_delta_is_refused(tiny, tmp_path):
    tiny.write_text(TINY.replace('"gse"\nbudget = 40', '"lingape"\ndelta = 1.5'))
    refused(call("run", tiny, "--out", tmp_path / "out"), "delta", "(0, 1)", "1.5")


@pytest.mark.parametrize(
    ("command", "missing", "usage"),
    [
        ("run", "argument 'SWEEP.toml'", "run SWEEP.toml --out DIR"),
        ("reproduce", "option '--out'", "reproduce NAME --out DIR"),
        ("report", "argument 'DIR'", "report DIR"),
    ],
)
def test_what_is_missing_is_named_with_the_whole_command(command, missing, usage):
    refused(call(command), f"Missing {missing}.", f" {usage}")


def test_bad_arguments_are_refused(tiny, tmp_path):
    out = tmp_path / "out"
    refused(call("run", tmp_path / "none.toml", "--out", out), "none.toml")
    refused(call("run", tmp_path, "--out", out), str(tmp_path))
    refused(call("run", tiny), "--out")
    refused(call("run", tiny, "--out", tiny), "--out", "tiny.toml")
    refused(call("run", tiny, "--out", out, "--replications", "x"), "replications")
    refused(call("run", tiny, "--out", out, "--replications", -1), "replications")
    refused(call("run", tiny, "--out", out, "--seed", -1), "seed")
    refused(call("rum"), "rum")
    refused(call("list", "algoritms"), "algoritms", "algorithms")
    refused(call("reproduce", "lingape/fig9", "--out", out), "lingape/fig9", "did you mean")


def test_binary_file_is_refused(tiny, tmp_path):
    tiny.write_bytes(b"\xff\xfe\x00")
    refused(call("run", tiny, "--out", tmp_path / "out"), "tiny.toml")


def test_a_run_writes_its_results_and_a_second_run_reuses_them(tiny, tmp_path):
    out = tmp_path / "out"
    result = call("run", tiny, "--out", out)
    assert result.exit_code == 0, result.output
    assert "error rate" in result.stdout
    assert result.stdout.count("GSE") == 2
    assert str(out / "figure.png") in result.stdout
    assert result.stdout.endswith(f"All on one page: jaxbandits report {out}\n")
    assert "4/4" in result.stderr
    table = pandas.read_csv(out / "table.csv")
    assert table.pulls_mean.tolist() == [40.0] * 4
    assert table.columns[:3].tolist() == ["instance", "algorithm", "gap"]
    picture = matplotlib.image.imread(out / "figure.png")
    assert picture.std() > 0.01
    assert all((out / f"figure.{ending}").stat().st_size > 1000 for ending in ("svg", "pdf"))
    with xarray.open_dataset(out / "results.nc") as first:
        first.load()
    assert dict(first.sizes) == {
        "instance": 1, "algorithm": 2, "gap": 2, "replication": 8, "arm": 4, "why": 10,
    }  # fmt: skip
    assert (first.pulls == 40).all()
    assert first.attrs["seed"] == 0
    assert first.attrs["title"] == "tiny.toml"
    assert {"python", "numpy", "machine", "command"} <= set(first.attrs)
    times = {file: file.stat().st_mtime_ns for file in (out / "cells").iterdir()}
    assert len(times) == 4

    again = call("run", tiny, "--out", out)
    assert again.exit_code == 0
    assert again.stderr.count("stored before") == 4
    assert times == {file: file.stat().st_mtime_ns for file in (out / "cells").iterdir()}
    with xarray.open_dataset(out / "results.nc") as second:
        assert second.load().identical(first)
    assert result.stdout == again.stdout


def test_shards_together_give_the_results_of_a_run(tiny, tmp_path):
    out = tmp_path / "out"
    first = call("run", tiny, "--out", out, "--shard", "1/2")
    assert first.exit_code == 0, first.output
    assert "does not hold all cells yet" in first.output
    assert not (out / "results.nc").exists()
    second = call("run", tiny, "--out", out, "--shard", "2/2")
    assert second.exit_code == 0, second.output
    assert (out / "results.nc").exists()
    for bad in ("2", "3/2", "a/b", "1/0"):
        refused(call("run", tiny, "--out", out, "--shard", bad), "shard must be", bad)
    refused(call("run", tiny, "--out", out, "--cores", "0"), "cores must be", "got 0")
    refused(call("run", tiny, "--out", out, "--cores", "x"), "--cores", "'x'")


@pytest.mark.slow
def test_the_engine_changes_no_number(tiny, tmp_path):
    pulls = []
    for name, options in (("xla", ["--devices", "1"]), ("native", [])):
        result = call("run", tiny, "--out", tmp_path / name, "--engine", name, *options)
        assert result.exit_code == 0, result.output
        with xarray.open_dataset(tmp_path / name / "results.nc") as dataset:
            assert dataset.attrs["engine"] == name
            pulls.append(dataset.arm_pulls.values)
    np.testing.assert_array_equal(*pulls)
    out = tmp_path / "none"
    refused(call("run", tiny, "--out", out, "--engine", "steam"), "engine must be one of", "steam")
    refused(call("run", tiny, "--out", out, "--devices", "x"), "devices must be", "x")
    refused(call("run", tiny, "--out", out, "--devices", "99"), "devices must be 1 to", "99")
    refused(call("run", tiny, "--out", out, "--cluster", "nowhere"), "cluster", "nowhere")


def test_foreign_results_are_not_overwritten(tiny, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    file = out / "results.nc"
    for reason in ("cannot be read", "holds something else"):
        if reason == "cannot be read":
            file.write_bytes(b"half a file")
        else:
            file.unlink()
            xarray.Dataset({"theirs": ("x", [1.0])}).to_netcdf(file, engine="h5netcdf")
        before = file.read_bytes()
        refused(call("run", tiny, "--out", out), "results.nc", reason)
        refused(call("reproduce", "lingape/fig1", "--out", out), "results.nc", reason)
        assert file.read_bytes() == before
        assert not (out / "cells").exists()


def test_each_cell_is_built_once(tiny, tmp_path, monkeypatch):
    built, original = [], grid.cells_of

    def end(plan, cells):
        raise ValueError("enough of it")

    monkeypatch.setattr(
        grid, "cells_of", lambda plan, **how: built.append(plan) or original(plan, **how)
    )
    monkeypatch.setattr(grid, "groups_of", end)
    refused(call("run", tiny, "--out", tmp_path / "a"), "enough")
    refused(call("reproduce", "lingape/fig1", "--quick", "--out", tmp_path / "b"), "enough")
    assert len(built) == 2


def test_options_of_the_command_override_the_file(tiny, tmp_path):
    tiny.write_text(TINY.replace('[algorithms.GSE]\nname = "gse"\nbudget = 40\n', ""))
    assert call("run", tiny, "--out", tmp_path, "--replications", 3, "--seed", 5).exit_code == 0
    with xarray.open_dataset(tmp_path / "results.nc") as dataset:
        assert dataset.sizes["replication"] == 3
        assert dataset.attrs["seed"] == 5


@pytest.mark.parametrize(
    ("axes", "max_pulls"),
    [
        pytest.param("", 12, marks=pytest.mark.slow),
        ("[axes]\ngap = [2.0, 0.2]\n", 100_000),
        pytest.param("", 100_000, marks=pytest.mark.slow),
        pytest.param("[axes]\ngap = [2.0, 0.2]\n", 12, marks=pytest.mark.slow),
    ],
)
def test_figure_and_table_of_stopping_times(tmp_path, axes, max_pulls):
    file = tmp_path / "conf.toml"
    file.write_text(
        f'replications = 5\nmax_pulls = {max_pulls}\n[instances."a [b]"]\nname = "canonical"\n'
        f'dim = 2\ngap = 2.0\n[algorithms.LinGapE]\nname = "lingape"\n{axes}'
    )
    result = call("run", file, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert (">=" in result.stdout) == (max_pulls == 12)
    assert "a [b]" in result.stdout
    assert matplotlib.image.imread(tmp_path / "out/figure.png").std() > 0.01


@pytest.mark.slow
def test_figure_of_regret(tmp_path):
    file = tmp_path / "regret.toml"
    file.write_text(
        'replications = 5\nhorizon = 30\n[instances.cube]\nname = "logistic_cube"\nnum_arms = 5\n'
        'dim = 2\n[algorithms."GLM-TSL"]\nname = "glm_tsl"\n'
    )
    result = call("run", file, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "regret" in result.stdout
    with xarray.open_dataset(tmp_path / "out/results.nc") as dataset:
        assert dataset.regret.dims == ("instance", "algorithm", "replication", "round")
        assert dataset["round"].values[-1] == 30
    assert matplotlib.image.imread(tmp_path / "out/figure.png").std() > 0.01


def test_list_shows_algorithms_instances_and_figures():
    everything = call("list")
    assert everything.exit_code == 0
    for word in ("lingape ", "soare ", "lingape/fig1", "Xu, Honda, Sugiyama, 2018"):
        assert word in everything.output
    assert "soare" not in call("list", "algorithms").output


HELP = """
import atexit, runpy, sys
heavy = "jax", "numpy", "matplotlib", "xarray", "pandas", "optax", "scipy.stats", "scipy.optimize"
atexit.register(lambda: print("imported:", [name for name in heavy if name in sys.modules]))
sys.argv = ["jaxbandits", "--help"]
runpy.run_module("jaxbandits", run_name="__main__", alter_sys=True)  # as `python -m` does
"""


def test_the_module_shows_its_help_without_importing_what_takes_long():
    shown = child(HELP)
    for word in ("demo", "list", "run", "reproduce", "imported: []"):
        assert word in shown


def test_the_list_needs_no_jax():
    shown = child(HELP.replace('"--help"', '"list"'))
    for word in ("lingape", "soare", "rage/fig1a", "imported: []"):
        assert word in shown


def test_the_stored_list_is_that_of_the_package():
    """`python -m benchmarks.pages` writes it, which adds new algorithms."""
    assert catalogue.STORED.read_text(encoding="utf-8") == catalogue.own()


def test_output_that_nobody_reads_is_no_error():
    assert call("--help").exit_code == 0  # which makes its own kind of replacing known
    command = [sys.executable, "-m", "jaxbandits", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.slow
def test_compiled_programs_are_kept_for_the_next_run(tiny, tmp_path, monkeypatch):
    """In the user's cache folder; JAX's own setting is restored after the command."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.delenv("JAXBANDITS_CACHE")
    before = jax.config.jax_compilation_cache_dir
    jax.clear_caches()
    host_loop.program.cache_clear()
    assert call("run", tiny, "--out", tmp_path / "out").exit_code == 0
    kept = list((tmp_path / "caches" / "jaxbandits").iterdir())
    assert len(kept) > 2
    assert jax.config.jax_compilation_cache_dir == before


@pytest.mark.parametrize(
    "command",
    [
        ("run", "", "--out", "x"),
        ("run", "sweep.toml", "--out", ""),
        ("reproduce", "gse/fig1", "--out", ""),
        ("reproduce", "gse/fig1", "--out", "x", "--data", ""),
        ("report", ""),
        ("list", "--plugin", ""),
    ],
)
def test_an_empty_name_is_not_the_working_folder(command):
    refused(call(*command), "it is empty, and must be the name of a file or folder")


@pytest.mark.parametrize("name", [("gse/fig1",), ("--all",)])
def test_a_folder_of_data_that_is_not_there_is_named(name, tmp_path):
    result = call("reproduce", *name, "--quick", "--out", tmp_path, "--data", tmp_path / "no")
    refused(result, f"data: there is no folder {tmp_path / 'no'}")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--devices", "9" * 5000, "devices must be 'all', 1 to"),
        ("--devices", "-1", "devices must be 'all', 1 to"),
        ("--replications", 2**32, "replications must be at most"),
        ("--shard", "1/" + "9" * 5000, "--shard must be I/N, as 2/5, got"),
    ],
)
def test_numbers_of_thousands_of_digits_are_refused(option, value, message, tiny, tmp_path):
    refused(call("run", tiny, "--out", tmp_path / "out", option, value), message)


def test_an_output_that_takes_not_all_characters_or_none_is_no_traceback():
    """The table has `±`; a full disk takes nothing."""
    assert call("--help").exit_code == 0  # which makes its own kind of replacing known
    command = [sys.executable, "-m", "jaxbandits", "list"]
    ascii_alone = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=ascii_alone, capture_output=True)
    assert done.returncode == 0, done.stderr
    printed = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    printed.reconfigure(errors=sys.modules["jaxbandits.cli.main"].REPLACING)
    print("1 ± 2, é", end="", file=printed, flush=True)
    assert printed.buffer.getvalue() == rb"1 +- 2, \xe9"
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    message = "error: the output cannot be printed: No space left on device\n"
    assert done.stderr.decode() == message


def test_a_backend_for_figures_that_there_is_not_is_refused_first(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "foo")
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    refused(call("run", tiny, "--out", tmp_path / "out"), "MPLBACKEND", "'foo'")
    assert not (tmp_path / "out").exists()
