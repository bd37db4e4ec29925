"""What the labelled results of a sweep hold, and what is left out."""

import sys
from functools import partial

import numpy as np
import pytest
from pages import example

import jaxbandits as jb
from jaxbandits import theory
from jaxbandits.sweeps import columns, dataset
from jaxbandits.system import machine

SOARE = jb.instances.soare(3, angle=0.5)


def sweep_of(algorithms, **options):
    given = {"replications": 4, "progress": False, "max_pulls": 50} | options
    return jb.sweep({"soare": SOARE}, algorithms, **given)


@pytest.mark.parametrize(("most", "there"), [(2 * 4 * 4, True), (2 * 4 * 4 - 1, False)])
def test_numbers_of_single_replications_are_left_out_where_they_are_many(monkeypatch, most, there):
    monkeypatch.setattr(dataset, "MOST_NUMBERS", most)
    found = sweep_of({"a": partial(jb.gse, budget=20), "b": partial(jb.gse, budget=30)})
    assert ("arm_pulls" in found) == there  # 2 cells, 4 replications, 4 arms
    assert found.arm_pulls_mean.sum("arm").values.tolist() == [[20.0, 30.0]]
    infos = [name for name in found if name.startswith("info_") and not name.endswith("_mean")]
    means = [name for name in found if name.startswith("info_") and name.endswith("_mean")]
    assert means
    assert (len(infos) > 0) == (2 * 4 * len(means) <= most)


@pytest.mark.parametrize("spare", [0, -1])
def test_info_of_single_replications_is_left_out_where_it_is_large(monkeypatch, spare):
    parts = {"a": partial(jb.gse, budget=20), "b": partial(jb.gse, budget=30)}
    counted = [name for name in sweep_of(parts) if name.startswith("info_") and "mean" in name]
    monkeypatch.setattr(dataset, "MOST_NUMBERS", 2 * 4 * len(counted) + spare)
    found = sweep_of(parts)
    assert (counted[0].removesuffix("_mean") in found) == (spare == 0)


def test_lower_bounds_are_given_only_for_algorithms_that_promise_the_best_arm():
    found = sweep_of(
        {
            "best": partial(jb.lingape, delta=0.1),
            "good": partial(jb.lingape, delta=0.1, epsilon=0.2),
            "budget": partial(jb.gse, budget=20),
            "set": partial(jb.m_lingape, m=2, delta=0.1),
        },
        bounds=True,
    )
    expected = [theory.pull_lower_bound(SOARE, 0.1), np.nan, np.nan, np.nan]
    np.testing.assert_allclose(found.pull_lower_bound.values[0], expected)
    np.testing.assert_allclose(found.promised_error.values[0], [0.1, np.nan, np.nan, 0.1])


def test_promised_error_rates_follow_an_axis_and_regret_runs_promise_none():
    axis = {"axes": {"delta": [0.1, 0.2]}}
    found = sweep_of({"by the axis": jb.lingape, "budget": partial(jb.gse, budget=20)}, **axis)
    expected = [[0.1, 0.2], [np.nan, np.nan]]
    np.testing.assert_allclose(found.promised_error.values[0], expected)
    regret = sweep_of({"a": jb.uniform}, horizon=5, max_pulls=10**7)
    assert "promised_error" not in regret


def test_no_axis_can_have_the_name_of_anything_in_the_results(monkeypatch):
    monkeypatch.setattr(dataset, "pull_lower_bounds", lambda cells: [1.0])
    basis = {"basis": jb.instances.canonical(3, gap=1.0)}
    halving = {"SH": partial(jb.sequential_halving, budget=12)}
    sets = {"top": partial(jb.m_lingape, m=1, delta=0.3)}
    given = {"replications": 2, "progress": False}
    found = [
        jb.sweep(basis, halving, bounds=True, **given),
        jb.sweep(basis, halving, horizon=12, **given),
        jb.sweep(basis, sets, **given),
    ]
    there = {name for one in found for name in (*one.dims, *one.variables)}
    own = {name for name in there if not name.startswith(("info_", "facts_"))} - {"num_arms"}
    by_experiments = {"bound", "error_bound", "average_reward", "best_average"}
    of_estimates = {"unsettled", "regret_errors"}  # where means are estimated, see `test_settled`
    of_comparisons = {*columns.REGRET, *columns.DIFFERENCE, columns.OVER_BOUND}  # their tables
    assert own | by_experiments | of_estimates | of_comparisons == columns.TAKEN


@pytest.mark.parametrize(
    ("program", "command"),
    [
        (["/home/me/bin/jaxbandits", "run", "my sweep.toml"], "jaxbandits run 'my sweep.toml'"),
        (["/lib/jaxbandits/__main__.py", "demo"], "python -m jaxbandits demo"),
        (["jaxbandits", "run", "a\udcff.toml"], r"jaxbandits run 'a\udcff.toml'"),
        ([""], None),
    ],
)
def test_provenance_has_the_command_without_the_folders_of_the_program(
    monkeypatch, program, command
):
    monkeypatch.setattr("sys.argv", program)
    found = machine.provenance()
    assert found.get("command") == command
    assert found["numpy"] == np.__version__
    assert "CPUs" in found["machine"]
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert "command" not in machine.provenance()


def test_whole_numbers_are_stored_in_fewer_bytes_and_read_as_they_are(tmp_path):
    found = example(regret=True).isel(replication=np.arange(20).repeat(50))
    found["answers"] = found.pulls.astype(float).where(found.pulls > 1000)
    dataset.write(found, tmp_path / "results.nc")
    found.to_netcdf(tmp_path / "plain.nc", engine="h5netcdf")
    with dataset.opened_results(tmp_path / "results.nc") as read:
        packed = {name for name, x in read.variables.items() if x.encoding.get("zlib")}
        assert packed == {"pulls", "correct", "stopped", "answers"}
        assert read.load().identical(found)
        assert all(read[name].dtype == found[name].dtype for name in found)
    sizes = [(tmp_path / name).stat().st_size for name in ("results.nc", "plain.nc")]
    assert sizes[0] < sizes[1]
