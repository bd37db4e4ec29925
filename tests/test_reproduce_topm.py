"""The figures of the Top-m paper: what is run, and claims that can hold or fail."""

import json
import math
import os
from functools import partial

import numpy as np
import pytest
import xarray

import jaxbandits as jb
from jaxbandits import algorithms, reproduce
from jaxbandits.reproduce import Calculation, topm
from jaxbandits.reproduce.calculation import CALCULATED, MADE_UP, RECORDED
from jaxbandits.reproduce.claims import below_bound, compare, error_rate
from jaxbandits.reproduce.topm import constants, drugs

DATA = os.environ.get("JAXBANDITS_DATA")
real = pytest.mark.skipif(DATA is None, reason="JAXBANDITS_DATA names no folder")
EXPERIMENTS = {n: x for n, x in topm.EXPERIMENTS.items() if not isinstance(x, Calculation)}
# Claims that no number of replications decides: on constants, or on runs that may still go on.
SURE = (
    "The constants are",
    "On this instance",
    "On independent arms",
    "Every algorithm takes more",
)
# Mean pulls for which every claim of the paper holds, and for which none does.
CONFIRMED = {
    "topm/fig1a": {
        **dict.fromkeys((topm.LUCB_LV, topm.UGAPE), 14_000),
        **dict.fromkeys((topm.GREEDY, topm.OPTIMIZED, topm.GIFA, topm.GIFA_LUCB), 2500),
        **dict.fromkeys((topm.GIFA_LV, topm.GIFA_LV_LUCB), 3500),
        topm.ALONE: 7600,
        **dict.fromkeys((topm.STALE[topm.GREEDY], topm.STALE[topm.GIFA_LUCB]), 3000),
    },
    "topm/fig1b": {
        topm.LUCB: 5e6,
        **dict.fromkeys((topm.GREEDY, topm.GIFA), 3300),
        topm.LIN_GAME: 7000,
        topm.EQUAL: 5000,
        **dict.fromkeys((topm.STALE[topm.GREEDY], topm.STALE[topm.GIFA_LUCB]), 3000),
    },
    "topm/fig1c": {
        **dict.fromkeys((topm.LUCB, topm.LUCB_LV, topm.UGAPE, topm.ALONE), 15_000),
        **dict.fromkeys((*topm.PAIRED, topm.STALE[topm.GREEDY]), 7600),
        topm.STALE[topm.LUCB]: 15_000,
    },
    "topm/fig2": {key: [14000, 760] for key in topm.CLASSIC_NAMES},
    "topm/fig3": {key: [1100, 12000] for key in (*topm.SIMILAR, topm.GREEDY, topm.GIFA)},
    "topm/fig6": dict.fromkeys(topm.PAIRED, 7600),
    "topm/table2": {
        topm.LUCB_LV: 14_000,
        topm.UGAPE: 14_000,
        topm.WIDEST: 3500,
        topm.OPTIMIZED: 2500,
    },
}
REFUTED = {
    "topm/fig1a": {
        topm.LUCB_LV: 4000,
        topm.UGAPE: 7000,
        topm.GREEDY: 2500,
        topm.OPTIMIZED: 4500,
        topm.GIFA: 5500,
        topm.GIFA_LUCB: 2500,
        topm.GIFA_LV: 3500,
        topm.GIFA_LV_LUCB: 7000,
        topm.ALONE: 4000,
    },
    "topm/fig1b": {
        topm.LUCB: 3000,
        topm.GREEDY: 3300,
        topm.GIFA: 8000,
        topm.LIN_GAME: 1200,
        topm.EQUAL: 5000,
    },
    "topm/fig1c": {
        topm.LUCB: 1500,
        topm.LUCB_LV: 1500,
        topm.UGAPE: 2500,
        topm.GREEDY: 1400,
        **dict.fromkeys((topm.OPTIMIZED, topm.GIFA, topm.GIFA_LV), 1200),
        topm.ALONE: 1500,
    },
    "topm/fig2": {key: [760, 14000] for key in topm.CLASSIC_NAMES},
    "topm/fig3": {
        topm.OPTIMIZED: [1100, 12_000],
        topm.GIFA_LV: [1100, 20_000],
        topm.GREEDY: [1100, 12_000],
        topm.GIFA: [2000, 12_000],
    },
    "topm/fig6": {**dict.fromkeys(topm.PAIRED, 7600), topm.OPTIMIZED: 9000},
    "topm/table2": dict.fromkeys((topm.LUCB_LV, topm.UGAPE, topm.WIDEST, topm.OPTIMIZED), 50_000),
}
# Constants of Table 2, with the variance, and bounds.
BOUNDS = {
    True: {
        topm.LUCB_LV: (500.0, 20_000.0),
        topm.UGAPE: (300.0, 20_000.0),
        topm.WIDEST: (1500.0, 20_000.0),
        topm.OPTIMIZED: (400.0, 20_000.0),
    },
    False: {
        topm.LUCB_LV: (80.0, 20_000.0),
        topm.UGAPE: (80.0, 20_000.0),
        topm.WIDEST: (1500.0, 20_000.0),
        topm.OPTIMIZED: (400.0, 20_000.0),
    },
}
ERRORS = {"topm/fig1b": {topm.STALE[topm.GREEDY]: 0.044, topm.GREEDY: 0.044}}


def dataset_with(
    pulls, *, rates=None, deviation=0.02, replications=500, cut=0, axes=None, bounds=None
):
    """A sweep's dataset with pulls that vary about those given, lists along an axis."""
    rng = np.random.default_rng(0)
    axes = {name: list(values) for name, values in (axes or {}).items()}
    shape = (1, len(pulls), *map(len, axes.values()), replications)
    table = np.array(list(pulls.values()))[None, ..., None]
    drawn = table * np.exp(deviation * rng.normal(size=shape))
    correct, stopped = np.ones(shape, bool), np.ones(shape, bool)
    for name, rate in (rates or {}).items():
        correct[0, list(pulls).index(name), ..., : round(rate * replications)] = False
    stopped[..., :cut] = False
    dims = ("instance", "algorithm", *axes, "replication")
    columns = {"pulls": (dims, drawn), "correct": (dims, correct), "stopped": (dims, stopped)}
    if bounds is not None:
        table = np.array([bounds[name] for name in pulls]).T
        columns |= {"complexity": ("algorithm", table[0]), "pull_bound": ("algorithm", table[1])}
    return xarray.Dataset(columns, {"instance": ["one"], "algorithm": list(pulls), **axes})


def made(name, pulls, *, right=True, **options):
    """The dataset of an experiment with these pulls; constants for which claims hold or fail."""
    axes, bounds = EXPERIMENTS[name].axes, BOUNDS[right] if name == "topm/table2" else None
    return dataset_with(pulls, axes=axes, bounds=bounds, **options)


def rows_of(name, dataset):
    claims = topm.EXPERIMENTS[name].claims(dataset)
    json.dumps(claims, allow_nan=False)
    return claims


def verdicts(name, dataset):
    return [one["holds"] for one in rows_of(name, dataset)]


def test_the_paper_s_parameters():
    for name, experiment in EXPERIMENTS.items():
        plan = experiment.sweep(None, False, None)
        assert plan.replications == 500
        assert {part.label for part in plan.algorithms} == set(CONFIRMED[name])
        assert {part.options["delta"] for part in plan.algorithms} == {0.05}
        quick = experiment.sweep(None, True, None)
        assert {part.label for part in quick.algorithms} <= set(CONFIRMED[name])
        assert (quick.replications, quick.algorithms) < (500, plan.algorithms)


def test_the_paper_s_thresholds():
    """Heuristic in 1c, 3, 6; else LUCB1's for averages, the self-normalised for least squares."""
    heuristic = ("topm/fig1c", "topm/fig3", "topm/fig6")
    for name, experiment in EXPERIMENTS.items():
        for label, build in experiment.algorithms.items():
            threshold = build.keywords["threshold"]
            if name in heuristic or label in (topm.LIN_GAME, topm.EQUAL):
                assert threshold == "heuristic"
            elif build.func in (algorithms.lucb, algorithms.ugape):
                assert threshold == "lucb1"
            else:
                stale = build.keywords.get("stale_pair", False)
                assert threshold == ("self_normalised_code" if stale else "self_normalised")
            assert build.keywords.get("stale_pair", False) == label.endswith(", stale")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_claims_that_hold(name):
    """The last claim is left out: Table 3's error rate is not that of a correct stopping test."""
    found = verdicts(name, made(name, CONFIRMED[name], rates=ERRORS.get(name), replications=2000))
    assert found[:-1] == [True] * (len(found) - 1)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_claims_that_fail(name):
    wrong = dict.fromkeys(REFUTED[name], 0.2)
    rows = rows_of(name, made(name, REFUTED[name], rates=wrong, right=False))
    # Two claims are about constants alone: one of them about arms that are not the experiment's.
    known = [row for row in rows if not row["claim"].startswith(("On independent", "On this inst"))]
    found = [row["holds"] for row in known]
    open_ = 1 if name == "topm/fig1b" else 0  # the claim on the stale test, which is not run here
    assert found.count(False) == len(found) - open_
    assert found.count(None) == open_


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_claims_that_stay_open(name):
    for options in ({"replications": 1}, {"cut": 500}):
        rows = rows_of(name, made(name, CONFIRMED[name], **options))
        assert {row["holds"] for row in rows if not row["claim"].startswith(SURE)} == {None}


def test_error_rates_between_two_numbers():
    claim = compare("text", error_rate, "one", least=0.02, most=0.08)
    for rate, holds in ((0.045, True), (0.0, False), (0.2, False), (0.02, None)):
        cells = dataset_with({"one": 10.0}, rates={"one": rate}).squeeze("instance", drop=True)
        assert claim(cells)["holds"] is holds
    assert claim(dataset_with({"two": 1.0}).squeeze("instance", drop=True))["holds"] is None


def test_the_drugs_come_from_a_folder_or_stand_in(tmp_path):
    plan = EXPERIMENTS["topm/fig1c"]
    assert "made-up" in plan.note(None)
    assert plan.note(tmp_path) == ""
    (tmp_path / "drug_repurposing").mkdir()
    for folder in (tmp_path, tmp_path / "drug_repurposing"):
        (part,) = plan.sweep(None, False, folder).instances
        assert part.options["path"].endswith("drug_repurposing")


# Theorem 2 and Table 2.


def test_the_constants_and_bounds_are_those_of_the_theory():
    experiment = EXPERIMENTS["topm/table2"]
    plan = experiment.sweep()
    dataset = dataset_with(CONFIRMED["topm/table2"])
    found = constants.with_bounds(dataset, plan)
    instance = jb.instances.classic_top_m(4, 2, angle=math.pi / 6)
    gap = 1 - math.cos(math.pi / 6)
    inverse = 3 / gap**2 + 1  # two arms of mean 1 and the next one, and the last of mean 0
    assert found.complexity.sel(algorithm=topm.LUCB_LV) == pytest.approx(0.5 * inverse)
    assert found.complexity.sel(algorithm=topm.UGAPE) == pytest.approx(2.0 * inverse)
    assert found.complexity.sel(algorithm=topm.WIDEST) == pytest.approx(9.0 * inverse)
    ratio = jb.theory.m_lingape_complexity(instance, 2, selection="ratio")
    assert found.complexity.sel(algorithm=topm.OPTIMIZED) == pytest.approx(ratio)
    for name, threshold in ((topm.UGAPE, "lucb1"), (topm.WIDEST, "self_normalised")):
        cell = found.sel(algorithm=name)
        constant = float(cell.complexity)
        bound = jb.theory.top_m_pull_bound(instance, constant, 0.05, threshold=threshold)
        assert cell.pull_bound == bound


def test_features_may_not_help():
    bounds = {**BOUNDS[True], topm.OPTIMIZED: (1e5, 1e6)}
    rows = rows_of("topm/table2", dataset_with(CONFIRMED["topm/table2"], bounds=bounds))
    (row,) = (row for row in rows if row["claim"].startswith("On this instance"))
    assert row["holds"] is False


def test_a_larger_constant_on_independent_arms_refutes_nine_eighths(monkeypatch):
    assert constants.nine_eighths(None)["holds"] is True
    larger = partial(jb.theory.m_lingape_complexity, rho_power=2)
    monkeypatch.setattr(jb.theory, "m_lingape_complexity", larger)
    assert constants.nine_eighths(None)["holds"] is False


def test_a_run_that_was_cut_short_above_the_bound_counts_as_above():
    claim = below_bound("one", "")
    cells = dataset_with({"one": 50_000.0}, bounds={"one": (1.0, 20_000.0)}, cut=500)
    assert claim(cells)["holds"] is False
    cells = dataset_with({"one": 10_000.0}, bounds={"one": (1.0, 20_000.0)}, cut=500)
    assert claim(cells)["holds"] is None
    assert claim(dataset_with({"two": 1.0}, bounds={"two": (1.0, 1.0)}))["holds"] is None


# Tables 4 and 5.


def shares(percents, instances=1000):
    """The dataset of Table 4 with these percentages by row."""
    counts = {row: round(instances * percent / 100) for row, percent in percents.items()}
    numbers = {}
    for row, count in counts.items():
        low, high = jb.intervals.binomial_interval(count, instances)
        numbers[row] = (instances, count, count / instances * 100, low * 100, high * 100)
    names = ("instances", "count", "percent", "low", "high")
    table = np.array(list(numbers.values())).T
    columns = {name: ("row", column) for name, column in zip(names, table, strict=True)}
    return xarray.Dataset(columns, {"row": list(percents)}, {CALCULATED: MADE_UP})


def test_claims_on_table_4():
    printed = {row: percent or 0.0 for row, percent in constants.SHARES.items()}
    told = dict.fromkeys(constants.AS_TOLD, 30.8)
    assert verdicts("topm/table4", shares(printed | told)) == [True] * 4
    assert verdicts("topm/table4", shares(dict.fromkeys(printed | told, 60.0))) == [False] * 4
    assert verdicts("topm/table4", shares(printed | told, instances=20))[0] is None
    (first, second, *_) = rows_of("topm/table4", shares({"K = 10, N = 5, D = 0.5": 30.8}))
    assert (first["holds"], second["holds"]) == (None, None)
    assert "K = 30, N = 30, D = 0.5" in first["measured"]["not_played"]


def test_the_three_ways_to_draw_an_instance_of_table_4():
    whole, columns = (constants.drawn(6, 3, 0.5, 0, norm=norm) for norm in ("matrix", "columns"))
    assert np.linalg.norm(whole.arms, 2) == pytest.approx(1.0)
    np.testing.assert_allclose(np.linalg.norm(columns.arms, axis=1), 1.0)
    lengths = np.linalg.norm(whole.arms, axis=1, keepdims=True)
    np.testing.assert_allclose(whole.arms / lengths, columns.arms)
    limit = jb.theory.ugape_complexity(whole, 3)
    found = jb.theory.m_lingape_complexity(whole, 3, selection="ratio")
    for noise_var in (0.9 * limit / found, 1.1 * limit / found):
        assert constants.pays(whole, 3, noise_var=noise_var) == (noise_var * found <= limit)


def test_a_row_of_table_4_counts_the_instances_that_pay():
    row = constants.share(10, 5, 0.5, replications=6)
    paid = [constants.pays(constants.drawn(10, 5, 0.5, i), 4) for i in range(6)]
    assert (row["m"], row["instances"], row["count"]) == (4, 6, sum(paid))
    assert row["percent"] == pytest.approx(100 * sum(paid) / 6)
    quarter = constants.share(10, 5, 0.5, noise_var=0.25, replications=6)
    assert quarter["count"] == 6 > row["count"]


def columns_of_table_5(numbers, data):
    names = ("m_lingape", "ugape", "gap")
    table = np.array([numbers[3], numbers[8]]).T
    columns = {name: ("row", column) for name, column in zip(names, table, strict=True)}
    columns["m"] = ("row", [3, 8])
    return xarray.Dataset(columns, {"row": ["m = 3", "m = 8"]}, {CALCULATED: data})


def test_claims_on_table_5():
    printed = {3: (4545.97, 5047.77, 0.0755), 8: (32124.01, 27622.18, 0.0289)}
    printed[3] = (*printed[3][:2], 0.0754)
    assert verdicts("topm/table5", columns_of_table_5(printed, RECORDED)) == [True, True]
    other = {3: (5000.0, 4000.0, 0.0754), 8: (32124.01, 27622.18, 0.0289)}
    assert verdicts("topm/table5", columns_of_table_5(other, RECORDED)) == [False, False]
    digit = printed | {8: (32124.02, 27622.18, 0.0289)}
    assert verdicts("topm/table5", columns_of_table_5(digit, RECORDED)) == [False, True]
    rows = rows_of("topm/table5", columns_of_table_5(printed, MADE_UP))
    assert rows[0]["measured"]["not_played"] == ["the authors' matrix"]


def test_the_matrix_that_stands_in_meets_the_condition_as_the_authors_does(tmp_path):
    result = reproduce.reproduce("topm/table5", tmp_path)
    assert [row["holds"] for row in result.claims] == [None, True]
    gaps = result.dataset.gap.values
    np.testing.assert_allclose(gaps, list(constants.GAPS.values()), rtol=0.2)


@real
def test_table_5_on_the_authors_matrix(tmp_path):
    result = reproduce.reproduce("topm/table5", tmp_path, data=DATA)
    assert [row["holds"] for row in result.claims] == [True, True]


# Figure 5.


def test_the_baseline_is_one_less_the_cosine_of_known_genes():
    signature = np.array([1.0, 0.0, np.nan, 2.0])
    phenotype = np.array([3.0, np.nan, 1.0, 4.0])
    assert drugs.baseline(signature, phenotype) == pytest.approx(1 - 11 / (5 * math.sqrt(5)))


def test_a_hit_score_is_the_share_of_good_drugs_among_the_best():
    scores, good = [0.1, 0.9, 0.5, 0.7], [1, 1, 0, 0]
    assert [drugs.hit_score(scores, good, rank) for rank in (1, 2, 4)] == [1.0, 0.5, 0.5]


def scored(rewards, baseline, *, misfit=0.0, again=None, data=RECORDED):
    number = len(rewards)
    columns = {
        "mean": ("row", rewards),
        "baseline": ("row", baseline),
        "baseline_again": ("row", baseline if again is None else again),
        "good": ("row", [1] * 5 + [0] * 5),
        "misfit": ("row", [misfit] * number),
    }
    return xarray.Dataset(columns, {"row": list(map(str, range(number)))}, {CALCULATED: data})


def test_claims_on_figure_5():
    falling, rising = np.arange(10.0)[::-1], np.arange(10.0)
    assert verdicts("topm/fig5", scored(falling, rising, misfit=1.0)) == [True] * 4
    assert verdicts("topm/fig5", scored(rising, falling, again=rising)) == [False] * 4
    made_up = rows_of("topm/fig5", scored(falling, rising, data=MADE_UP))[3]
    assert made_up["measured"]["not_played"] == ["the recorded drugs"]


@real
def test_the_recorded_drugs_and_their_logged_baseline():
    rows = drugs.recorded(drugs.Path(DATA))
    assert len(rows) == 10
    first = rows["Hydroxyzine"]()
    assert first["mean"] == pytest.approx(0.49150, abs=1e-5)
    assert first["baseline"] == pytest.approx(1.311772640937897)
    assert len(first["reward"]) == 18
