"""Stored cells of a sweep: reused after a kill, refused where they cannot be read."""

import dataclasses
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from functools import partial

import numpy as np
import pytest
from run_settings import HALVING, timeless

import jaxbandits as jb
from jaxbandits.engine import api
from jaxbandits.sweeps import local, parse, run
from jaxbandits.sweeps.cell_progress import CellProgress, continued
from jaxbandits.sweeps.cells import cells_of
from jaxbandits.sweeps.store import Store

CELLS = f"""
replications = 40
{HALVING}
[axes]
gap = [1.0, 0.5]
"""


@pytest.fixture
def plan():
    return parse(tomllib.loads(CELLS))


def files(folder):
    return sorted((folder / "cells").iterdir())


def alike(one, other):
    return timeless(one).identical(timeless(other))


def test_a_finished_cell_is_not_played_again(plan, tmp_path, monkeypatch):
    whole = run(plan, out=tmp_path)
    assert [file.suffix for file in files(tmp_path)] == [".npz", ".npz"]
    monkeypatch.setattr(local, "_run", None)
    assert run(plan, out=tmp_path).identical(whole)


def test_shards_split_the_cells_and_the_last_returns_all_results(plan, tmp_path):
    whole = run(plan)
    assert run(plan, out=tmp_path, shard=(2, 2)) is None
    assert len(files(tmp_path)) == 1
    assert alike(run(plan, out=tmp_path, shard=(1, 2)), whole)
    for shard in [(0, 2), (3, 2)]:
        with pytest.raises(ValueError, match="shard must be i/n with 1 <= i <= n, got"):
            run(plan, out=tmp_path, shard=shard)
    with pytest.raises(ValueError, match="shard needs a folder"):
        run(plan, shard=(1, 2))


def half(path, other):
    path.write_bytes(path.read_bytes()[:200])


def foreign(path, other):
    path.write_bytes(b"not of this house")


def swapped(path, other):
    path.write_bytes(other.read_bytes())


def shorter(path, other):
    runs = jb.load(path)
    kept = slice(0, 30)
    names = ("replication", "pulls", "answer", "correct", "stopped", "arm_pulls")
    tables = {name: getattr(runs, name)[kept] for name in names}
    jb.Runs(**tables, rounds=None, regret=None, info={}, meta=runs.meta).save(path)


@pytest.mark.parametrize("fault", [half, foreign, swapped, shorter])
def test_an_unreadable_cell_is_refused_and_not_changed(fault, plan, tmp_path):
    run(plan, out=tmp_path)
    first, second = files(tmp_path)
    fault(first, second)
    before = {file: file.read_bytes() for file in files(tmp_path)}
    with pytest.raises(ValueError, match=f"{first.name}: .*without this file"):
        run(plan, out=tmp_path)
    assert {file: file.read_bytes() for file in files(tmp_path)} == before
    first.unlink()
    assert len(run(plan, out=tmp_path).replication) == 40


def played(**changed):
    """Runs that fit the cells of `CELLS`, but for what is changed."""
    arm_pulls = np.full((40, 3), 10)
    tables = {"arm_pulls": arm_pulls, "answer": np.zeros(40, int)} | changed
    fine, number = np.ones(len(tables["answer"]), bool), np.arange(len(tables["answer"]))
    pulls = tables["arm_pulls"].sum(1)
    return jb.Runs(number, pulls, correct=fine, stopped=fine, **tables)


CURVE = {"rounds": np.arange(1, 31), "regret": np.zeros((40, 30))}


@pytest.mark.parametrize(
    ("changed", "settings", "words"),
    [
        ({}, {}, None),
        (CURVE, {"horizon": 30}, None),
        ({"answer": np.zeros((40, 3), bool)}, {}, None),
        ({"answer": np.full(40, -1)}, {}, None),  # none of the targets
        ({"answer": np.full(40, 3)}, {}, "an answer that is none of the 3 targets"),
        ({"answer": np.zeros((40, 2), bool)}, {}, "an answer that is none of the 3 targets"),
        ({"arm_pulls": np.full((40, 4), 10)}, {}, "pulls of 4 arms, and the instance has 3"),
        ({}, {"max_pulls": 29}, "more pulls than 29"),
        ({}, {"horizon": 30}, "regret is that of other rounds"),
        (CURVE, {}, "regret is that of other rounds"),
        (CURVE, {"horizon": 30, "record": [10, 20]}, "regret is that of other rounds"),
        (CURVE | {"arm_pulls": np.full((40, 3), 11)}, {"horizon": 30}, "fewer or more pulls"),
    ],
    ids=str,
)
def test_a_stored_cell_of_other_shapes_or_lengths_than_its_own_is_refused(
    changed, settings, words, tmp_path
):
    cell = cells_of(parse(tomllib.loads(CELLS) | settings))[0]
    store = Store(tmp_path)
    store.put(cell.spec, played(**changed))
    if words is None:
        assert len(store.get(cell.spec, cell.problem)) == 40
        return
    with pytest.raises(ValueError, match=rf"\.npz: .*{words}.*; without this file"):
        store.get(cell.spec, cell.problem)


def test_parts_of_a_cell_that_differ_in_their_tables_are_refused(plan, tmp_path):
    cell, store = cells_of(plan)[0], Store(tmp_path)
    one = played()
    for runs in (one, dataclasses.replace(one, info={"phases": np.zeros(40)})):
        store.add(cell.spec, runs)
    with pytest.raises(ValueError, match=r"\.part: it holds other tables than .*without this file"):
        store.begun(cell.spec, cell.problem)


def test_an_unreadable_part_of_a_cell_is_refused_and_not_changed(plan, tmp_path):
    store, cell = Store(tmp_path), cells_of(plan)[0]
    part = store.path(cell.spec).with_suffix(".0.part")
    part.write_bytes(b"half of it")
    with pytest.raises(ValueError, match=r"\.0\.part: .*without this file"):
        run(plan, out=tmp_path)
    assert part.read_bytes() == b"half of it"


def test_an_interrupted_cell_continues_where_it_stopped(tmp_path, monkeypatch, capsys):
    plan = parse(tomllib.loads(CELLS.replace("= 40", "= 300", 1)))
    whole = run(plan)
    monkeypatch.setattr(local, "CHECKPOINT_SECONDS", 0.0)
    played = []

    def stop(report, done, total):
        report(done, total)
        if done is not None and done >= 8:
            raise KeyboardInterrupt

    simulation = api.Simulation
    original = simulation.run

    def counted(self, waiting, report, *more):
        played.append(sum(map(len, waiting.values())))
        watch = partial(stop, report) if len(played) == 1 else report
        return original(self, waiting, watch, *more)

    monkeypatch.setattr(simulation, "run", counted)
    small = partial(simulation.__init__, batch=8)
    monkeypatch.setattr(simulation, "__init__", lambda self, *a, **k: small(self, *a, **k))
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="interrupted"):
        run(plan, out=tmp_path, progress=True)
    assert {file.suffix for file in files(tmp_path)} == {".part"}
    begun = r"(\d+) of (?:300|600) replications of '.+'(?: and 1 more)? are stored"
    last = capsys.readouterr().err.splitlines()[-1]
    (number,) = re.fullmatch(f"0 of 2 cells are finished, {begun}", last).groups()
    assert alike(run(plan, out=tmp_path, progress=True), whole)
    (line,) = (x for x in capsys.readouterr().err.splitlines() if x.startswith("going on: "))
    assert re.fullmatch(f"going on: {begun}", line).groups() == (number,)
    assert int(number) == played[0] - played[1]
    assert played[0] == 600  # both cells in one simulation
    assert 8 <= played[0] - played[1] < 300
    assert {file.suffix for file in files(tmp_path)} == {".npz"}


@pytest.mark.parametrize(
    ("begun", "asked", "engine"),
    [
        (["xla", "xla", None], {}, "xla"),
        (["xla"], {"engine": "auto"}, "xla"),
        (["xla"], {"engine": "native"}, None),  # as the user asks
        (["xla", "native"], {}, None),
        (["cuda"], {}, None),  # which is not for this machine
        (["in turn"], {}, None),
        ([None], {}, None),
    ],
)
def test_a_cell_keeps_the_engine_that_it_was_begun_with(begun, asked, engine, plan):
    (cell, *_), stored = cells_of(plan), []
    halving = partial(jb.sequential_halving, budget=30)
    few = jb.simulate(jb.instances.canonical(3, gap=1.0), halving, replications=8)
    for name in begun:
        runs = None if name is None else dataclasses.replace(few, meta={"engine": name})
        stored.append(CellProgress(plan, cell, stored=runs))
    preferred = {"prefer": engine} if engine else {}
    assert continued(dict(enumerate(stored)), asked) == asked | preferred


def test_a_cell_with_all_its_parts_is_reported_as_stored(plan, tmp_path, capsys):
    run(plan, out=tmp_path)
    store, cell = Store(tmp_path), cells_of(plan)[0]
    runs = store.get(cell.spec)
    store.path(cell.spec).unlink()
    store.add(cell.spec, runs)
    assert {file.suffix for file in files(tmp_path)} == {".part", ".npz"}
    run(plan, out=tmp_path, progress=True)
    assert capsys.readouterr().err.count("40 replications, stored before") == 2
    assert {file.suffix for file in files(tmp_path)} == {".npz"}


def test_a_sweep_can_be_resumed_after_an_interrupt_while_a_cell_is_stored(
    plan, tmp_path, monkeypatch
):
    def stop(store, spec, runs):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(Store, "put", stop)
        with pytest.raises(KeyboardInterrupt):
            run(plan, out=tmp_path)
    assert files(tmp_path) == []
    assert alike(run(plan, out=tmp_path), run(plan))


CHILD = """
import sys, tomllib
from pathlib import Path
from jaxbandits.sweeps import local, parse, run
local.CHECKPOINT_SECONDS = 0.0
print("begun", flush=True)
run(parse(tomllib.loads(sys.argv[1])), out=Path(sys.argv[2]))
print("done", flush=True)
"""
LONG = CELLS.replace("replications = 40", "replications = 4000").replace(
    "[1.0, 0.5]", "[1.0, 0.7, 0.5, 0.4, 0.3, 0.2]"
)


def killed(folder, wait):
    """Kill a sweep `wait` seconds after its first new file; whether it was still running."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, LONG, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"JAX_COMPILATION_CACHE_DIR": str(folder / "programs")},
    )
    before = set(files(folder)) if (folder / "cells").exists() else set()
    try:
        while child.poll() is None and (
            not (folder / "cells").exists() or set(files(folder)) <= before
        ):
            time.sleep(0.002)
        time.sleep(wait)
        early = child.poll() is None
        child.send_signal(signal.SIGKILL)
    finally:
        child.communicate()
    return early


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_ends_with_the_same_numbers(times, tmp_path):
    rng, plan = np.random.default_rng(1), parse(tomllib.loads(LONG))
    early = 0
    for _ in range(times):
        finished = list((tmp_path / "cells").glob("*.npz"))
        kept = {file: file.read_bytes() for file in finished}
        early += killed(tmp_path, rng.uniform(0.0, 0.05))
        assert all(file.read_bytes() == data for file, data in kept.items())
    assert early >= 1
    assert alike(run(plan, out=tmp_path), run(plan))
