"""Progress says what is compiled, and an interrupt meanwhile says what was done."""

import re
import signal
import threading
from functools import partial

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.engine import api, compile_times
from jaxbandits.engine.results import Runs
from jaxbandits.sweeps import ahead, grid, local
from jaxbandits.system import progress
from jaxbandits.system.progress import Progress

INSTANCE = jb.instances.canonical(3, gap=1.0)
SH = partial(jb.sequential_halving, budget=30)


def test_a_call_says_what_it_compiles(capsys):
    jb.simulate(INSTANCE, SH, replications=3, progress=True)
    shown = capsys.readouterr().err
    assert re.fullmatch(r"compiling sequential_halving( \(about \d+ s\))?\n", shown)
    jb.simulate(INSTANCE, SH, replications=3)
    assert capsys.readouterr().err == ""


def rage(arms):
    """A constructor of a user with the name of one of the package."""


def test_it_says_about_how_long_an_algorithm_of_the_package_takes(monkeypatch):
    stored = {"native": {"rage": 2.6, "uniform": 0.4}, "xla": {"rage": 8.4}}
    monkeypatch.setattr(compile_times, "_stored", lambda: stored)
    monkeypatch.setattr(compile_times, "compiler", lambda: "c++")
    about = compile_times.about
    assert about(jb.rage, "auto") == about(partial(jb.rage, delta=0.1), "native") == " (about 3 s)"
    assert about(jb.rage, "xla") == " (about 8 s)"
    assert about(jb.uniform, "auto") == " (about 1 s)"
    assert about(jb.uniform, "xla") == about(jb.rage, "cuda") == about(rage, "auto") == ""
    monkeypatch.setattr(compile_times, "compiler", lambda: None)
    assert about(jb.rage, "auto") == " (about 8 s)"


def test_a_line_without_bars_and_without_rich(capsys, monkeypatch):
    monkeypatch.setattr(Progress, "_open", lambda self, items: None)
    Progress().wait("compiling a")
    assert capsys.readouterr().err == "\rcompiling a\n"
    Progress(False).wait("compiling b")
    assert capsys.readouterr().err == ""


def test_a_bar_shows_it_until_it_is_moved(monkeypatch):
    bar = progress.Bar("replications")
    shown = []
    bar._progress.has_bars = True
    monkeypatch.setattr(bar._progress, "show", lambda *what: shown.append(what))
    bar.wait("compiling a")
    bar(3, 9)
    assert shown == [("compiling a", 0, None), ("replications", 3, 9)]


def test_a_sweep_waits_for_a_program_before_it_says_so(monkeypatch):
    monkeypatch.setattr(ahead, "PATIENCE_SECONDS", 0.01)
    ready, said = threading.Event(), []

    def waiting():
        said.append("second")
        ready.set()

    with ahead.Ahead([lambda: 1, lambda: ready.wait(10)], threads=1) as makers:
        assert makers.take(0, lambda: said.append("first")) == 1
        assert makers.take(1, waiting) is True
    assert said[-1:] == ["second"]
    with ahead.Ahead([lambda: 1], threads=0) as makers:
        makers.take(0, lambda: said.append("at once"))
    assert said[-1:] == ["at once"]


def test_a_timeout_of_the_maker_is_its_own_error(monkeypatch):
    def fails():
        raise TimeoutError("of the maker")

    with ahead.Ahead([fails], threads=1) as makers, pytest.raises(TimeoutError, match="the maker"):
        makers.take(0)


@pytest.fixture
def slow_compiling(monkeypatch):
    """Compiling always takes longer than a sweep waits before it says so."""
    made = local._made

    def slowly(*what):
        threading.Event().wait(0.05)
        return made(*what)

    monkeypatch.setattr(ahead, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(local, "_made", slowly)


@pytest.mark.usefixtures("slow_compiling")
def test_the_lines_of_a_sweep_name_what_is_compiled(capsys):
    jb.sweep({"basis": INSTANCE}, {"SH": SH}, replications=3)
    first, last = capsys.readouterr().err.splitlines()
    assert first == "compiling SH on basis"
    assert last.startswith("1/1 SH on basis: 3 replications, ")


@pytest.mark.parametrize(
    ("seconds", "end"), [(0.1, "2.0 s"), (7.25, "2.0 s after 7.2 s of compiling")]
)
def test_a_finished_cell_says_how_long_it_compiled(seconds, end):
    (cell,) = grid.check(grid.planned({"basis": INSTANCE}, {"SH": SH}, replications=1))
    runs = Runs(*np.ones((3, 1), int), *np.ones((2, 1), bool), np.zeros((1, 3), int))
    runs.meta.update(seconds=2.0, compile_seconds=seconds)
    assert grid._line(cell, runs, stored=False).endswith(f"1 replications, {end}")


def test_a_finished_cell_says_how_many_were_cut_short(capsys):
    lingape = partial(jb.lingape, delta=0.1, theta_norm=1.0)
    jb.sweep({"basis": INSTANCE}, {"LinGapE": lingape}, replications=3, max_pulls=4)
    assert "1/1 LinGapE on basis: 3 replications (3 cut short), " in capsys.readouterr().err
    jb.sweep({"basis": INSTANCE}, {"SH": SH}, replications=3)
    assert "cut short" not in capsys.readouterr().err


@pytest.mark.usefixtures("slow_compiling")
def test_cells_that_are_stored_are_not_said_to_compile(tmp_path, capsys):
    axes = {"gap": [0.5, 1.0, 2.0]}
    basis = {"basis": partial(jb.instances.canonical, dim=3)}
    play = partial(jb.sweep, basis, {"SH": SH}, replications=3)
    play(axes={"gap": axes["gap"][:2]}, out=tmp_path)
    capsys.readouterr()
    play(axes=axes, out=tmp_path)
    lines = capsys.readouterr().err.splitlines()
    compiling = [line for line in lines if line.startswith("compiling ")]
    assert compiling == ["compiling SH on basis, gap = 2.0"]
    assert sum("stored before" in line for line in lines) == 2


def test_an_interrupted_task_says_how_many_items_are_finished(capsys):
    def interrupted():
        with Progress(items="cells", number=3) as progress:
            progress.finish("the first")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert capsys.readouterr().err.splitlines() == ["1/3 the first", "1 of 3 cells are finished"]


@pytest.mark.parametrize("progress", [False, True])
def test_an_interrupt_while_a_program_compiles_says_that_nothing_is_done(progress, monkeypatch):
    """JAX may lose an interrupt or end the process; so it waits until the program is there."""
    compiled = []

    def interrupted(*_, **__):
        signal.raise_signal(signal.SIGINT)
        compiled.append(True)

    monkeypatch.setattr(api, "Simulation", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"^interrupted: 0 of 3 replications are done$"):
        jb.simulate(INSTANCE, SH, replications=3, progress=progress)
    assert compiled == [True]
