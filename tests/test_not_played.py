"""Claims about algorithms and points that a small version of an experiment leaves out."""

import json

import numpy as np
import pytest
import xarray
from test_reproduce_gse import two_algorithms
from test_reproduce_lingape import dataset_with

from jaxbandits import reproduce
from jaxbandits.reproduce import claims
from jaxbandits.reproduce.measures import WHOLE_AXES

DIMS = {WHOLE_AXES: json.dumps({"dim": [2, 5, 10, 20]})}


def pulls_at(dims, **means):
    return dataset_with(means, "dim", dims).assign_attrs(DIMS)


def row_of(claim, dataset):
    """Verdict, and what was not run."""
    row = claim(dataset)
    return row["holds"], row["measured"].get(claims.NOT_PLAYED)


def test_a_verdict_in_words():
    for holds, measured, words in (
        (True, {"not_played": ["A"]}, "holds"),
        (False, {}, "FAILS"),
        (None, {"ratio": 1.0}, "too small to tell"),
        (None, {"not_played": ["A", "dim = 5"]}, "not played (A, dim = 5)"),
    ):
        assert claims.verdict_of({"claim": "", "holds": holds, "measured": measured}) == words


def test_an_end_of_the_axis_is_that_of_the_whole_experiment():
    """More pulls at dim = 5 say nothing of dim = 20."""
    part = pulls_at((2, 5), A=[1, 9], B=[2, 2])
    least = claims.compare("", claims.pulls(at=slice(1)), "A", "B", most=1.0)
    largest = claims.compare("", claims.pulls(at=slice(-1, None)), "A", "B", most=1.0)
    assert row_of(least, part) == (True, None)
    assert row_of(largest, part) == (None, ["dim = 20"])
    assert row_of(largest, part.assign_attrs({WHOLE_AXES: "{}"})) == (False, None)


def test_growth_on_a_part_of_the_axis_can_support_a_claim_and_not_refute_it():
    growing = pulls_at((2, 5), A=[2, 5], B=[1, 1])
    claim = claims.compare("", claims.growth(), "A", least=0.5)
    assert row_of(claim, growing) == (True, None)
    flat = claims.compare("", claims.growth(), "B", least=0.5)
    assert row_of(flat, growing) == (None, ["dim = 20"])
    assert row_of(flat, pulls_at((2, 20), B=[1, 1])) == (False, None)
    assert row_of(claim, pulls_at((5,), A=[2])) == (None, ["dim = 2", "dim = 20"])


def test_an_algorithm_that_is_left_out_leaves_a_claim_open_unless_others_refute_it():
    claim = claims.compare("", claims.pulls(), "A", ("B", "C"), most=1.0)
    assert row_of(claim, pulls_at((2, 5), A=[1, 1], B=[2, 2])) == (None, ["C"])
    assert row_of(claim, pulls_at((2, 5), A=[2, 2], B=[1, 1])) == (False, None)


@pytest.mark.parametrize(
    ("claim", "missing"),
    [
        (claims.compare("", claims.accuracy(), "A", "C", least=0.0), ["C"]),
        (claims.best_of("", ("A", "C"), "B"), ["C"]),
        (claims.compare("", claims.accuracy({"x": [2, 7]}), "A", "B", least=0.0), ["x = 7"]),
        (claims.compare("", claims.change("x"), "C", least=0.0), ["C"]),
        (claims.compare("", claims.change("x", end=9), "A", least=0.0), ["x = 9"]),
        (claims.compare("", claims.seconds(), "A", "C", least=2.0), ["C"]),
        (claims.compare("", claims.error_rate, "C", least=0.0, most=1.0), ["C"]),
    ],
    ids=["ahead", "best of", "points", "rises", "rises to", "slower", "errors"],
)
def test_claims_on_accuracy_name_what_is_missing(claim, missing):
    part = two_algorithms((0.4, 0.3), (0.6, 0.6))
    assert row_of(claim, part) == (None, missing)


def test_a_change_over_a_shorter_axis_does_not_refute_one_over_the_whole():
    part = two_algorithms((0.5, 0.4), (0.5, 0.5))
    claim = claims.compare("", claims.change("x"), "A", least=0.0)
    assert row_of(claim, part) == (False, None)
    whole = part.assign_attrs({WHOLE_AXES: '{"x": [1, 2, 3]}'})
    assert row_of(claim, whole) == (None, ["x = 3"])


def test_regret_of_fewer_rounds_and_of_fewer_algorithms():
    curves = np.cumsum(np.ones((1, 2, 4, 10)), -1) * np.array([1.0, 2.0])[None, :, None, None]
    curves += np.random.default_rng(0).normal(0.0, 0.01, curves.shape)
    coordinates = {"instance": ["i"], "algorithm": ["A", "B"], "round": np.arange(1, 11)}
    dims = ("instance", "algorithm", "replication", "round")
    dataset = xarray.Dataset({"regret": (dims, curves)}, coordinates, {"axes": "[]"})
    behind = claims.compare("", claims.final_regret, "B", "A", most=1.0)
    assert row_of(behind, dataset) == (False, None)
    assert row_of(claims.in_the_end(behind, 50), dataset) == (None, ["rounds 11 to 50"])
    assert row_of(claims.compare("", claims.final_regret, "A", ("B", "C"), most=1.0), dataset) == (
        None,
        ["C"],
    )
    assert row_of(claims.compare("", claims.late_rate, ("A", "C"), least=0.85), dataset) == (
        None,
        ["C"],
    )
    assert row_of(claims.compare("", claims.late_rate, "A", least=0.85), dataset) == (True, None)


def test_claims_of_the_lingape_paper_name_what_is_missing():
    figure, table = (reproduce.EXPERIMENTS[f"lingape/{name}"] for name in ("fig1", "table1"))
    rows = figure.claims(dataset_with({"LinGapE": [5, 9]}, "dim", (2, 3)))
    exact = next(row for row in rows if "each time" in row["claim"])
    assert exact["measured"]["not_played"] == ["XY-oracle", "dim = 5"]
    shares = np.ones((1, 6))
    rows = table.claims(dataset_with({"LinGapE": [5]}, shares=shares))
    missing = [row["measured"].get("not_played") for row in rows[:5]]
    assert missing == [None, None, None, ["XY-static"], ["XY-oracle"]]


def test_claims_use_the_names_of_the_axes():
    """The table says `dim`, `num_arms` and `budget`, not d, K and B."""
    for name, experiment in reproduce.EXPERIMENTS.items():
        if name == "gse/bounds":  # about bounds on other arms than those of its table
            continue
        if isinstance(experiment, reproduce.Calculation):  # its rows have the paper's letters
            continue
        rows = experiment.claims.__closure__[0].cell_contents
        texts = [row.text for row in rows if isinstance(row.text, str)]
        words = {word.strip("().,") for text in texts for word in text.split()}
        assert not words & {"d", "K", "B"}, name


def test_easier_instances_of_a_small_version_do_not_refute_a_claim():
    known = reproduce.EXPERIMENTS.items()
    played = {name: x for name, x in known if not isinstance(x, reproduce.Calculation)}
    changed = {
        name: experiment.changed(experiment.sweep(quick=True))
        for name, experiment in played.items()
    }
    assert {name: what for name, what in changed.items() if what} == {
        "lingape/fig1": ["angle = 0.01"]
    }
    assert not any(one.changed(one.sweep()) for one in played.values())
    row = {"claim": "", "measured": {"ratio": 1.0}, "holds": False}
    opened = claims.on_other_instances(row, ["angle = 0.01"])
    assert claims.verdict_of(opened) == "not played (angle = 0.01)"
    for same, missing in ((row, []), ({**row, "holds": True}, ["angle = 0.01"])):
        assert claims.on_other_instances(same, missing) == same


def test_an_average_over_fewer_points_does_not_refute_a_claim():
    part = two_algorithms((0.4, 0.3), (0.6, 0.6))
    claim = claims.compare("", claims.accuracy(), "A", "B", least=0.0)
    assert row_of(claim, part) == (False, None)
    assert row_of(claim, part.assign_attrs({WHOLE_AXES: '{"x": [1, 2, 3]}'})) == (None, ["x = 3"])


def test_many_things_that_were_not_played_are_counted():
    row = {"claim": "", "measured": {"not_played": list("abcdef")}, "holds": None}
    assert claims.verdict_of(row) == "not played (a, b, c, d, and 2 more)"
