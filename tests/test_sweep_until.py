"""Cells that end once their estimates are precise enough (`until`)."""

import dataclasses
import tomllib
from functools import partial

import numpy as np
import pytest
from run_settings import HALVING, timeless

import jaxbandits as jb
from jaxbandits.engine.results import first_of
from jaxbandits.intervals import binomial_interval
from jaxbandits.report import plot, table
from jaxbandits.report import write as report
from jaxbandits.sweeps import local, parse, run
from jaxbandits.sweeps.cell_progress import CellProgress
from jaxbandits.sweeps.cells import cells_of
from jaxbandits.sweeps.dataset import write
from jaxbandits.sweeps.groups import Group
from jaxbandits.sweeps.store import Store
from jaxbandits.sweeps.until import RULES, confidence, enough, revisions, stages
from jaxbandits.system.revisions import revised_ones

CELLS = f"""
replications = 400
[until]
error_width = 0.08
{HALVING}
[axes]
gap = [2.0, 0.2]
"""


def planned(old="", new=""):
    return parse(tomllib.loads(CELLS.replace(old, new)))


def played(number):
    """`Runs` of the harder cell."""
    instance = jb.instances.canonical(3, gap=0.2)
    uneven = partial(jb.lingape, delta=0.4)
    return jb.simulate(instance, jb.at_budget(uneven, 30), replications=number)


def both(dataset):
    return [dataset.sel(gap=gap).squeeze() for gap in (2.0, 0.2)]


def test_a_cell_ends_at_the_first_stage_that_is_precise_enough():
    dataset = run(planned())
    easy, hard = both(dataset)
    widths = [float(cell.error_high - cell.error_low) for cell in (easy, hard)]
    assert widths[0] <= 0.08 < widths[1]
    assert (int(easy.replications), int(hard.replications)) == (100, 400)
    assert dataset.sizes["replication"] == 400
    assert int(easy.pulls.count()) == int(easy.correct.count()) == 100
    assert np.isnan(easy.pulls.values[100:]).all()
    halving = partial(jb.sequential_halving, budget=30)
    runs = jb.simulate(jb.instances.canonical(3, gap=2.0), halving, replications=100)
    np.testing.assert_array_equal(easy.arm_pulls.values[:100], runs.arm_pulls)
    assert int(easy.errors) == runs.summary()["errors"]


def test_the_interval_of_a_cell_holds_after_several_looks():
    """Several looks are planned, so each interval has 97.5%, and the cells that ended show it."""
    dataset = run(planned())
    assert dataset.attrs["confidence"] == 0.975
    for cell in both(dataset):
        errors, number = int(cell.errors), int(cell.replications)
        expected = binomial_interval(errors, number, 0.975)
        assert (float(cell.error_low), float(cell.error_high)) == pytest.approx(expected)
    assert "confidence" not in run(planned("[until]\nerror_width = 0.08\n")).attrs


def test_a_rule_holds_at_its_limit():
    runs = played(150)
    runs = dataclasses.replace(runs, pulls=np.arange(150), correct=np.arange(150) > 3)
    digest = runs.summary(confidence=confidence(400, {"error_width": 1.0}))
    for rule in ("error_width", "pulls_se"):
        limit = RULES[rule](digest)
        assert limit > 0
        assert enough(runs, {rule: limit}, 400)
        assert not enough(runs, {rule: np.nextafter(limit, 0)}, 400)


def test_a_cell_without_a_single_error_ends():
    right = dataclasses.replace(played(100), correct=np.ones(100, bool))
    assert right.summary()["error_rate"] == 0.0
    assert enough(right, {"error_width": 0.04288}, 400)  # 1 - 0.0125 ** (1 / 100)
    assert not enough(right, {"error_width": 0.04287}, 400)


def test_only_replications_up_to_the_next_look_are_played():
    plan = planned("error_width = 0.08", "error_width = 0.001")
    cell = cells_of(plan)[1]
    progress = CellProgress(plan, cell)
    some = first_of(played(150), 120)
    assert progress.missing().tolist() == [*range(100)]
    progress.add(some)
    assert progress.missing().tolist() == [*range(120, 150)]
    progress.add(played(150))
    assert progress.missing().tolist() == [*range(150, 225)]
    assert len(progress) == 150


def test_the_rule_of_the_width_is_a_revision():
    assert len(RULES["error_width"].revisions) == 1
    assert set(revised_ones(revisions({"error_width": 0.1, "pulls_se": 1.0}))) == {
        "until error_width"
    }


def test_the_end_of_a_cell_does_not_depend_on_interruptions(tmp_path, monkeypatch):
    plan = planned()
    whole = run(plan)
    more = planned("error_width = 0.08", "error_width = 0.001")
    cell, other = (cells_of(p)[0] for p in (plan, more))
    full = CellProgress(more, other)
    played = Group((other,)).simulation(more, 400).run({0: range(400)}, lambda *state: None)
    full.add(played[0])
    assert len(full.result) == 400
    Store(tmp_path).add(cell.spec, full.result)  # more than the rule asks for
    found = run(plan, out=tmp_path)
    assert timeless(found).identical(timeless(whole))
    monkeypatch.setattr(local, "_run", None)
    assert run(plan, out=tmp_path).identical(found)


def test_reports_give_the_replications_of_a_cell_that_ended_early(tmp_path):
    dataset = run(planned())
    write(dataset, tmp_path / "results.nc")
    page = report(tmp_path).read_text()
    assert "until error_width ≤ 0.08, at most 400" in page
    assert "of 100" in page
    assert "of 400" in page
    _, lines = table.rows(dataset)
    assert {line[3] for line in lines} == {"100", "400"}
    plot.save(dataset, tmp_path / "figure.png", quantities=("pulls", "errors"))
    plot.save(dataset.isel(gap=[0]), tmp_path / "boxes.png", quantities=("pulls",))
    assert (tmp_path / "boxes.png").stat().st_size > 1000


def test_regret_of_a_cell_that_ended_early_is_a_number(tmp_path):
    plan = parse(
        tomllib.loads("""
replications = 150
horizon = 10
[until]
regret_se = 0.05
[instances]
easy = {name = "canonical", dim = 3, gap = 0.1}
hard = {name = "canonical", dim = 3, gap = 5.0}
[algorithms.TSL]
name = "glm_tsl"
""")
    )
    dataset = run(plan)
    assert sorted(dataset.replications.values.ravel()) == [100, 150]
    _, lines = table.rows(dataset)
    assert not any("nan" in line[-1] for line in lines)
    write(dataset, tmp_path / "results.nc")
    assert "nan" not in report(tmp_path).read_text().split("<table")[1].lower()


def test_stages_do_not_exceed_the_largest_number_of_replications():
    assert list(stages(400, {})) == [400]
    assert list(stages(100, {"pulls_se": 1.0})) == [100]
    assert list(stages(7, {"pulls_se": 1.0})) == [7]
    assert list(stages(151, {"pulls_se": 1.0})) == [100, 150, 151]
    assert list(stages(300, {"pulls_se": 1.0})) == [100, 150, 225, 300]


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("error_with = 0.1", "unknown rule of .until. 'error_with'; did you mean 'error_width'"),
        ("pulls_se = 0.0", "pulls_se must be a finite number above 0, got 0.0"),
        ("pulls_se = true", "pulls_se must be .*got True"),
        ("regret_se = 1.0", "regret_se is for sweeps with a horizon, and this one has none"),
    ],
)
def test_rules_are_checked(new, message):
    with pytest.raises(ValueError, match=message):
        planned("error_width = 0.08", new)
