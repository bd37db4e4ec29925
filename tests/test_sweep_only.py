"""Sweeps whose algorithms or instances are played only at some values of an axis (`only`)."""

import re
from functools import partial

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import report
from jaxbandits.report.plot import figure
from jaxbandits.report.table import print_table
from jaxbandits.sweeps import parse, run
from jaxbandits.sweeps.dataset import write as save


def test_an_algorithm_is_played_only_where_the_table_says():
    table = {
        "replications": 5,
        "instances": {"basis": {"name": "canonical", "gap": 1.0}},
        "algorithms": {
            "all": {"name": "sequential_halving", "budget": 40},
            "small": {"name": "sequential_halving", "budget": 50, "only": {"dim": [3, 5]}},
        },
        "axes": {"dim": [3, 4, 5]},
    }
    dataset = run(parse(table))
    assert dataset.replications.values.tolist() == [[[5, 5, 5], [5, 0, 5]]]
    left = dataset.sel(algorithm="small", dim=4)
    assert np.isnan(left.pulls).all()
    assert np.isnan(left.error_rate).all()
    assert np.isnan(left.seconds).all()
    assert (dataset.sel(algorithm="small", dim=5).pulls == 50).all()
    assert dataset.num_arms.values.tolist() == [[[3, 4, 5], [3, 4, 5]]]
    same = jb.sweep(
        {"basis": partial(jb.instances.canonical, gap=1.0)},
        {
            "all": partial(jb.sequential_halving, budget=40),
            "small": partial(jb.sequential_halving, budget=50),
        },
        axes={"dim": [3, 4, 5]},
        only={"small": {"dim": (3, 5)}},
        replications=5,
        progress=False,
    )
    np.testing.assert_array_equal(same.pulls, dataset.pulls)
    figure(dataset)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("horizon", [{}, {"horizon": 40}])
def test_a_cell_that_is_not_played_is_shown_without_warnings(horizon, tmp_path, capsys):
    halving = {"name": "sequential_halving", "budget": 40}
    table = {
        "replications": 5,
        "instances": {"basis": {"name": "canonical", "dim": 3}},
        "algorithms": {"all": halving, "some": halving | {"only": {"gap": [0.5]}}},
        "axes": {"gap": [0.5, 1.0]},
    }
    dataset = run(parse(table | horizon))
    print_table(dataset)
    assert "nan" not in capsys.readouterr().out
    save(dataset, tmp_path / "results.nc")
    text = report.write(tmp_path).read_text(encoding="utf-8")
    assert "– to –" not in text
    assert "nan" not in re.findall(r">([^<]*)<", text)
    figure(dataset)


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ({"dmi": [3]}, r"algorithms.SH.*unknown axis of only 'dmi'; did you mean 'dim'"),
        ({"dim": [3, 7]}, r"algorithms.SH\] only dim must be some of \[3, 4\], got \[7\]"),
        ({"dim": 3}, r"only dim must be some of \[3, 4\], got 3"),
        ({"dim": []}, r"only dim must be some of \[3, 4\], got \[\]"),
        (3, "only.* must be a table, got 3"),
    ],
)
def test_a_bad_restriction_is_named(only, message):
    table = {
        "replications": 5,
        "instances": {"basis": {"name": "canonical", "gap": 1.0}},
        "algorithms": {"SH": {"name": "sequential_halving", "budget": 40, "only": only}},
        "axes": {"dim": [3, 4]},
    }
    with pytest.raises(ValueError, match=message):
        parse(table)


def test_a_flag_is_no_number_of_an_axis():
    """`True` equals 1, and would play it."""
    parts = (
        {"basis": partial(jb.instances.canonical, dim=3)},
        {"SH": partial(jb.sequential_halving, budget=40)},
    )
    rest = {"axes": {"gap": [0.5, 1]}, "replications": 2, "progress": False}
    with pytest.raises(ValueError, match=r"only gap must be some of \[0.5, 1\], got \[True\]"):
        jb.sweep(*parts, only={"SH": {"gap": [True]}}, **rest)
    rest["axes"] = {"gap": [2**70, 1.0]}
    with pytest.raises(ValueError, match=r"gap must have whole numbers below 2\*\*63, got 118059"):
        jb.sweep(*parts, **rest)


def test_only_with_an_unknown_name_and_a_sweep_without_cells_are_refused():
    parts = (
        {"basis": partial(jb.instances.canonical, gap=1.0)},
        {"SH": partial(jb.sequential_halving, budget=40)},
    )
    rest = {"axes": {"dim": [3, 4]}, "replications": 2, "progress": False}
    with pytest.raises(ValueError, match="unknown name in only 'HS'; did you mean 'SH'"):
        jb.sweep(*parts, only={"HS": {"dim": [3]}}, **rest)
    with pytest.raises(ValueError, match=r"\[.*\] only: no cell of the sweep is played"):
        jb.sweep(*parts, only={"SH": {"dim": [3]}, "basis": {"dim": [4]}}, **rest)
