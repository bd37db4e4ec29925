"""Cells that differ only in numbers share one program, and give the results of `simulate`."""

import tomllib
from functools import partial

import jax
import numpy as np
import pytest
from run_settings import assert_same_runs

import jaxbandits as jb
from jaxbandits.engine import host_loop
from jaxbandits.engine.api import Simulation
from jaxbandits.engine.partition import prepared
from jaxbandits.engine.stack import own_bytes
from jaxbandits.sweeps import groups, parse, run
from jaxbandits.sweeps.cells import cells_of
from jaxbandits.sweeps.groups import groups_of

GRID = """
replications = 30
seed = 5
[instances.soare]
name = "soare"
dim = 3
scale = 2.0
[algorithms.LinGapE]
name = "lingape"
[axes]
angle = [0.8, 0.6, 0.7]
delta = [0.1, 0.05, 0.2, 0.3]
"""


def planned(old="", new=""):
    return parse(tomllib.loads(GRID.replace(old, new)))


@pytest.mark.parametrize("engine", ["xla", "native"])
def test_a_grid_of_numbers_is_one_program_and_equals_simulate(engine):
    plan = planned()
    (group,) = groups_of(plan, cells_of(plan))
    assert len(group.cells) == 12
    before = host_loop.program.cache_info().misses
    dataset = run(plan, engine=engine)
    assert host_loop.program.cache_info().misses == before + 1
    assert dataset.attrs["engine"] == engine
    assert (dataset.compile_seconds > 0).sum() <= 1
    for angle in (0.8, 0.7):
        for delta in (0.05, 0.3):
            runs = jb.simulate(
                jb.instances.soare(3, angle=angle, scale=2.0),
                partial(jb.lingape, delta=delta),
                replications=30,
                seed=5,
                engine=engine,
            )
            cell = dataset.sel(angle=angle, delta=delta).squeeze()
            np.testing.assert_array_equal(cell.pulls, runs.pulls)
            np.testing.assert_array_equal(cell.arm_pulls, runs.arm_pulls)


def test_cells_of_different_shapes_are_different_groups():
    plan = planned("angle = [0.8, 0.6, 0.7]", "dim = [3, 4]\nangle = [0.8, 0.6]")
    assert [len(g.cells) for g in groups_of(plan, cells_of(plan))] == [8, 8]


def test_an_axis_without_effect_on_a_cell_does_not_play_it_twice():
    table = tomllib.loads(GRID)
    table["algorithms"]["SH"] = {"name": "sequential_halving", "budget": 40}
    plan = parse(table)
    assert [len(g.cells) for g in groups_of(plan, cells_of(plan))] == [12, 3]


def test_groups_depend_on_the_sweep_and_not_on_what_is_left_to_play(tmp_path):
    plan = planned()
    whole = run(plan, out=tmp_path)
    for file in sorted((tmp_path / "cells").iterdir())[1::2]:
        file.unlink()
    assert_equal_pulls(run(plan, out=tmp_path), whole)
    assert_equal_pulls(run(plan, batch=8), whole)


def assert_equal_pulls(one, other):
    for name in ("pulls", "arm_pulls", "correct"):
        np.testing.assert_array_equal(one[name], other[name])


def sizes_of(plan):
    return {len(group.cells) for group in groups_of(plan, cells_of(plan))}


def test_the_limits_of_what_is_played_side_by_side_belong_to_it(monkeypatch):
    plan = planned("replications = 30", "replications = 128")
    carried = own_bytes([cell.prepared for cell in cells_of(plan)])
    monkeypatch.setattr(groups, "SMALL_BYTES", carried)  # beyond it, few replications
    monkeypatch.setattr(groups, "FEW", 0)
    assert sizes_of(plan) == {12}
    monkeypatch.setattr(groups, "SMALL_BYTES", carried - 1)
    assert sizes_of(plan) == {1}
    monkeypatch.setattr(groups, "FEW", 128)
    assert sizes_of(plan) == {12}
    monkeypatch.setattr(groups, "FEW", 127)
    assert sizes_of(plan) == {1}
    monkeypatch.setattr(groups, "FEW", 128)
    monkeypatch.setattr(groups, "MOST_BYTES", carried)
    assert sizes_of(plan) == {12}
    monkeypatch.setattr(groups, "MOST_BYTES", carried - 1)
    assert sizes_of(plan) == {1}


def test_cells_with_large_tables_are_grouped_only_if_sequential_and_few(monkeypatch):
    plan = planned("replications = 30", "replications = 1000")
    monkeypatch.setattr(groups, "SMALL_BYTES", 0)
    assert {len(g.cells) for g in groups_of(plan, cells_of(plan))} == {1}
    few = planned()
    assert {len(g.cells) for g in groups_of(few, cells_of(few))} == {12}
    table = tomllib.loads(GRID)
    table["algorithms"] = {"SH": {"name": "sequential_halving", "budget": 40}}
    table["axes"] = {"angle": [0.8, 0.6]}
    phased = parse(table)
    assert {len(g.cells) for g in groups_of(phased, cells_of(phased))} == {1}


def ball(n):
    return partial(jb.instances.sphere, num_arms=6, dim=3, mix=1.0, noise_var=0.1 + n / 10)


CELLS = {
    "phased": lambda n: (jb.instances.canonical(8, gap=1.0 + n), partial(jb.gse, budget=40 + n)),
    "random": lambda n: (ball(n), partial(jb.lingape, delta=0.1)),
    "designs": lambda n: (ball(n), partial(jb.rage, delta=0.1)),
    "regret": lambda n: (
        jb.instances.glm(np.eye(3), [0.1, 0.2 * n, 0.5], family="logistic"),
        jb.glm_tsl,
    ),
}


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("random", "regret", "designs")]


@pytest.mark.parametrize("name", ["phased", *SLOW])
def test_a_stack_of_cells_equals_each_cell_alone(name):
    options = {"horizon": 40} if name == "regret" else {}
    pairs = [CELLS[name](n) for n in range(3)]
    prepare = [prepared(*pair, options.get("horizon")) for pair in pairs]
    stack = Simulation(prepare, replications=30, batch=16, seed=7, **options)
    waiting = {2: range(10), 0: range(3, 13), 1: range(5)}
    found = stack.run(waiting, lambda *state: None)
    for index, numbers in waiting.items():
        alone = Simulation([prepare[index]], replications=20, seed=7, **options)
        assert_same_runs(found[index], alone.run({0: numbers}, lambda *state: None)[0])


def test_the_time_of_a_group_is_divided_among_its_cells():
    dataset = run(planned())
    assert (dataset.seconds > 0).all()
    assert float(dataset.seconds.sum()) == pytest.approx(dataset.attrs["seconds"], abs=0.02)


def test_tables_that_a_constructor_holds_keep_their_precision():
    """It is not traced in single precision before it is played in double."""
    table = np.random.default_rng(0).normal(size=(8, 3))

    def held(key):
        scale = jax.random.uniform(key, (), minval=1.0, maxval=2.0)
        return jb.instances.tabular(table * scale, table.sum(1) * scale)

    build = partial(jb.gse, budget=40)
    found = jb.sweep({"held": held}, {"GSE": build}, replications=4, progress=False)
    runs = jb.simulate(held, build, replications=4)
    np.testing.assert_array_equal(found.arm_pulls.squeeze(), runs.arm_pulls)
