"""Pairs of algorithms whose paired difference and single intervals disagree."""

import json

import numpy as np
import pytest
import xarray
from pages import example

from jaxbandits.engine.results import mean_difference
from jaxbandits.report import pairs, table

RNG = np.random.default_rng(0)
SHARED = RNG.normal(1000.0, 100.0, 50).round()


def dataset_of(*pulls, correct=None, cut=()):
    """A dataset of one instance and no axes; one row of pulls `[R]` for each algorithm."""
    names = [f"algorithm {i}" for i in range(len(pulls))]
    values = np.array(pulls)
    right = np.ones(values.shape, bool) if correct is None else np.array(correct)
    grid = ("instance", "algorithm")
    stopped = np.isfinite(values) & [[name not in cut] for name in names]
    columns = {
        "pulls": ((*grid, "replication"), np.rint(values)[None]),
        "correct": ((*grid, "replication"), right[None]),
        "stopped": ((*grid, "replication"), stopped[None]),
    }
    return xarray.Dataset(columns, {"instance": ["soare"], "algorithm": names}, {"axes": "[]"})


def test_a_significant_difference_of_overlapping_intervals_is_found():
    other = SHARED + RNG.normal(10.0, 5.0, 50).round()
    (pair,) = pairs.pairs(dataset_of(SHARED, other))
    expected = mean_difference(SHARED, other)
    assert (pair.mean, pair.low, pair.high) == pytest.approx(
        [expected[name] for name in ("mean", "low", "high")]
    )
    assert pair.overlap
    assert pair.high < 0
    assert (pair.where, pair.first, pair.quantity) == ("soare", "algorithm 0", "pulls")
    assert "while the single intervals overlap" in pairs.in_words(pair)


@pytest.mark.parametrize("distance", [12.0, 13.0, 14.0, 15.0])
def test_means_whose_intervals_are_apart_differ_significantly(distance):
    """Both are Student's: a difference has at most the sum of the standard errors."""
    swings = np.array([10.0, -10.0] * 6)  # where one is high, the other is low: the worst case
    assert pairs.pairs(dataset_of(1000.0 + swings, 1000.0 + distance - swings)) == []


def test_pairs_that_agree_are_left_out():
    far, same = SHARED + 500.0 + RNG.normal(0.0, 5.0, 50), RNG.normal(1000.0, 100.0, 50)
    assert pairs.pairs(dataset_of(SHARED, far)) == []
    assert pairs.pairs(dataset_of(SHARED, same)) == []
    assert pairs.pairs(dataset_of(SHARED, SHARED + 1.0)) == []  # exactly apart: no interval
    assert pairs.note([]) == ""


def test_runs_cut_short_are_not_compared_and_missing_replications_are_left_out():
    other = SHARED + RNG.normal(10.0, 5.0, 50).round()
    assert pairs.pairs(dataset_of(SHARED, other, cut=("algorithm 1",))) == []
    some = other.copy()
    some[40:] = np.nan
    (pair,) = pairs.pairs(dataset_of(SHARED, some))
    assert pair.mean == pytest.approx((SHARED[:40] - some[:40]).mean())


def test_errors_are_compared_where_enough_replications_differ():
    wrong = np.zeros((2, 50), bool)
    wrong[0, :20] = True
    wrong[1, :8] = True
    same = np.full(50, 40.0)
    (pair,) = pairs.pairs(dataset_of(same, same, correct=~wrong))
    assert pair.quantity == "errors"
    assert pair.mean == pytest.approx(12 / 50)
    wrong[1, :15] = True  # five differ
    assert pairs.pairs(dataset_of(same, same, correct=~wrong)) == []


@pytest.mark.parametrize(("discordant", "known"), [(9, False), (10, True), (11, True)])
def test_ten_discordant_replications_are_enough(discordant, known):
    """The boundary is the same in a column of differences and in the list of pairs."""
    assert pairs.LEAST_DISCORDANT == 10
    same, wrong = np.full(200, 40.0), np.zeros((2, 200), bool)
    wrong[0, :discordant] = True
    wrong[0, 50:100] = wrong[1, 50:100] = True  # both err: not discordant
    dataset = dataset_of(same, same, correct=~wrong)
    assert (pairs.differences(dataset) is not None) == known
    assert bool(pairs.pairs(dataset)) == known  # significant, while the intervals overlap


def test_regret_is_compared_at_the_last_round():
    dataset = example(instances=("cube",), regret=True)
    curves = dataset.regret.values
    curves[0, 1, 0] = curves[0, 0, 0] + 0.01 * np.arange(6) * np.linspace(1.0, 2.0, 20)[:, None]
    dataset.stopped[:] = True
    found = [p for p in pairs.pairs(dataset) if p.where == "cube, gap = 0.5"]
    assert [pair.quantity for pair in found] == ["regret"]
    assert found[0].mean == pytest.approx(-0.05 * 1.5)


def test_the_printed_table_has_one_line_about_all_pairs(capsys):
    dataset = example(instances=("soare",))
    table.print_table(dataset)
    assert "paired" not in capsys.readouterr().out
    pulls = dataset.pulls.values
    pulls[0, 1, 0] = pulls[0, 0, 0] + 10 + np.arange(20)
    table.print_table(dataset)
    *_, line = capsys.readouterr().out.rstrip("\n").split("\n\n")[-1].split("A paired comparison")
    assert " ".join(line.split()).startswith(
        "says more (mean difference [95%]): pulls of LinGapE minus those of GSE on "
        "soare, gap = 0.5: -19.5 [-22, -17], while the single intervals overlap."
    )
    one = pairs.pairs(dataset)
    assert pairs.note(one * 6).endswith("; and 2 more.")


def test_a_column_has_the_difference_to_the_first_algorithm():
    other = SHARED + RNG.normal(10.0, 5.0, 50).round()
    found = pairs.differences(dataset_of(SHARED, other, other, cut=("algorithm 2",)))
    expected = mean_difference(other, SHARED)
    first, second, third = found.texts
    assert (first, third) == ("-", "-")
    mean, half = map(float, second.split(" ± "))
    assert mean == pytest.approx(expected["mean"], abs=0.06)
    assert half == pytest.approx((expected["high"] - expected["low"]) / 2, abs=0.06)
    assert found.note == "Difference: pulls minus those of algorithm 0 in the same replications."
    assert pairs.differences(dataset_of(SHARED)) is None


def test_algorithms_with_equal_pulls_are_compared_by_their_errors():
    same, wrong = np.full(50, 40.0), np.zeros((2, 50), bool)
    wrong[0, :20] = True
    wrong[1, :8] = True
    found = pairs.differences(dataset_of(same, same, correct=~wrong))
    assert found.note.startswith("Difference: errors minus")
    assert found.texts[1].startswith("-0.24 ± ")
    wrong[1, :15] = True  # five differ: too few for Student's interval
    assert pairs.differences(dataset_of(same, same, correct=~wrong)) is None


def test_the_difference_of_regret_is_that_of_the_last_round():
    dataset = example(instances=("cube",), regret=True)
    dataset.stopped[:] = True
    curves = dataset.regret.values
    curves[0, 1, 0] = curves[0, 0, 0] + np.arange(6)
    found = pairs.differences(dataset)
    assert found.note.startswith("Difference: regret minus")
    assert found.texts[2] == "5"  # in every replication, so without an interval


def test_a_cell_for_all_points_is_not_compared_with_one_point():
    dataset = example(instances=("soare",))
    dataset.stopped[:] = True
    dataset.attrs["independent"] = json.dumps({"gap": [["soare", "GSE"]]})
    assert pairs.differences(dataset) is None
    dataset.attrs["independent"] = json.dumps({"gap": [["soare", "LinGapE"]]})
    assert [text == "-" for text in pairs.differences(dataset).texts] == [True, False, False]


def test_the_printed_table_has_the_column(capsys):
    table.print_table(example(instances=("soare",)))
    header, *_, note = capsys.readouterr().out.rstrip().splitlines()
    assert header.rstrip().endswith(pairs.DIFFERENCE)
    assert note == "Difference: pulls minus those of LinGapE in the same replications."
