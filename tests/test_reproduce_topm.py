"""The figures of the Top-m paper: what is run, and claims that can hold or fail."""

import json

import numpy as np
import pytest
import xarray

from jaxbandits import algorithms, reproduce
from jaxbandits.reproduce import topm
from jaxbandits.reproduce.claims import compare, error_rate

EXPERIMENTS = {name: reproduce.EXPERIMENTS[name] for name in topm.EXPERIMENTS}
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
        topm.ALONE: 1000,
    },
    "topm/fig1b": {
        topm.LUCB: 3000,
        topm.GREEDY: 3300,
        topm.GIFA: 8000,
        topm.LIN_GAME: 1200,
        topm.EQUAL: 5000,
    },
    "topm/fig1c": {
        topm.LUCB: 15_000,
        topm.LUCB_LV: 15_000,
        topm.UGAPE: 25_000,
        topm.GREEDY: 14_000,
        **dict.fromkeys((topm.OPTIMIZED, topm.GIFA, topm.GIFA_LV), 12_000),
        topm.ALONE: 15_000,
    },
}
ERRORS = {"topm/fig1b": {topm.STALE[topm.GREEDY]: 0.044, topm.GREEDY: 0.044}}


def dataset_with(pulls, *, rates=None, deviation=0.02, replications=500, cut=0):
    """A sweep's dataset with pulls that vary about those given."""
    rng = np.random.default_rng(0)
    shape = (1, len(pulls), replications)
    table = np.array(list(pulls.values()))[None, :, None]
    drawn = table * np.exp(deviation * rng.normal(size=shape))
    correct, stopped = np.ones(shape, bool), np.ones(shape, bool)
    for name, rate in (rates or {}).items():
        correct[0, list(pulls).index(name), : round(rate * replications)] = False
    stopped[..., :cut] = False
    dims = ("instance", "algorithm", "replication")
    columns = {"pulls": (dims, drawn), "correct": (dims, correct), "stopped": (dims, stopped)}
    return xarray.Dataset(columns, {"instance": ["one"], "algorithm": list(pulls)})


def verdicts(name, dataset):
    claims = EXPERIMENTS[name].claims(dataset)
    json.dumps(claims, allow_nan=False)
    return [one["holds"] for one in claims]


def test_the_paper_s_parameters():
    for name, experiment in EXPERIMENTS.items():
        plan = experiment.sweep(None, False, None)
        assert plan.replications == 500
        assert {part.label for part in plan.algorithms} == set(CONFIRMED[name])
        assert {part.options["delta"] for part in plan.algorithms} == {0.05}
        quick = experiment.sweep(None, True, None)
        assert {part.label for part in quick.algorithms} < set(CONFIRMED[name])


def test_the_paper_s_thresholds():
    """In fig1a and fig1b: LUCB1's for arms' averages, the self-normalised one for least squares."""
    for name, experiment in EXPERIMENTS.items():
        for label, build in experiment.algorithms.items():
            threshold = build.keywords["threshold"]
            if name == "topm/fig1c" or label in (topm.LIN_GAME, topm.EQUAL):
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
    found = verdicts(name, dataset_with(CONFIRMED[name], rates=ERRORS.get(name), replications=2000))
    assert found[:-1] == [True] * (len(found) - 1)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_claims_that_fail(name):
    wrong = dict.fromkeys(REFUTED[name], 0.2)
    found = verdicts(name, dataset_with(REFUTED[name], rates=wrong))
    open_ = 1 if name == "topm/fig1b" else 0  # the claim on the stale test, which is not run here
    assert found.count(False) == len(found) - open_
    assert found.count(None) == open_


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_claims_that_stay_open(name):
    assert set(verdicts(name, dataset_with(CONFIRMED[name], replications=1))) == {None}
    assert set(verdicts(name, dataset_with(CONFIRMED[name], cut=500))) == {None}


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
