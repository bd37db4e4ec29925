"""The figures of the RAGE paper: what is run, and claims that can hold or fail."""

import dataclasses
import json
from functools import partial

import numpy as np
import pytest
import xarray

import jaxbandits as jb
from jaxbandits import reproduce
from jaxbandits.report import plot
from jaxbandits.reproduce import claims, measures, rage
from jaxbandits.reproduce.rage import (
    ADAPTIVE,
    ALBA,
    GREEDY,
    ORACLE,
    ORACLES,
    PUBLISHED,
    RAGE,
    RATIO,
    ROUNDED,
    STATIC,
)

AXES = {
    "rage/fig1a": {"dim": (5, 10, 15, 20, 25, 30, 35)},
    "rage/fig1b": {"num_arms": (10_000, 15_000, 20_000, 25_000, 30_000)},
    "rage/fig1c": {"num_arms": (250, 500, 1000, 1500, 2000)},
    "rage/fig1d": {"dim": (40, 80, 120, 160)},
    "rage/fig2a": {"factors": (3, 4, 5, 6)},
    "rage/fig2a_printed": {"factors": (3, 4, 5, 6)},
    "rage/fig2b": {},
}
OPTIONS = {
    "rage/fig1a": {"angle": 0.01, "scale": 2.0},
    "rage/fig1b": {},
    "rage/fig1c": {"dim": 9, "mix": 0.0},
    "rage/fig1d": {},
    "rage/fig2a": {},
    "rage/fig2a_printed": {"weights": "paper"},
    "rage/fig2b": {"num_arms": 40},
}
# Pulls at a point x of the axis for which every claim holds, and for which none does.
CONFIRMED = {
    "rage/fig1a": {
        RAGE: lambda x: 1e6 * x**0.1,
        ADAPTIVE: lambda x: 9e5 * x**0.1,
        RATIO: lambda x: 3e5 * x**0.5,
        ALBA: lambda x: 5e6,
        STATIC: lambda x: 6e5 * x,
        ORACLE: lambda x: 6e5,
        PUBLISHED: lambda x: 6e5,
    },
    "rage/fig1b": {
        RAGE: lambda x: 100 * np.log(x),
        GREEDY: lambda x: x + 300,
        ALBA: lambda x: 1e4,
        STATIC: lambda x: 2e3,
        ORACLE: lambda x: 400,
    },
    "rage/fig1c": {
        RAGE: lambda x: 7e3,
        GREEDY: lambda x: 7e3,
        ALBA: lambda x: 7e5,
        STATIC: lambda x: 1e4,
        ORACLE: lambda x: 4e3,
    },
    "rage/fig1d": {
        RAGE: lambda x: 2.5e4,
        STATIC: lambda x: 9e4 * x,
        **dict.fromkeys(ORACLES, lambda x: 2e4),
    },
    "rage/fig2a": {
        RAGE: lambda x: 2e4,
        GREEDY: lambda x: 1e4 * x,
        ALBA: lambda x: 1e5 * x,
        STATIC: lambda x: 2e4 * x,
        ORACLE: lambda x: 1.5e4,
    },
    "rage/fig2b": {
        RAGE: lambda x: 2e6,
        GREEDY: lambda x: 2e6,
        ALBA: lambda x: 9e7,
        STATIC: lambda x: 3e6,
        ORACLE: lambda x: 1.5e6,
    },
}
CONFIRMED["rage/fig2a_printed"] = CONFIRMED["rage/fig2a"]
REFUTED = {
    "rage/fig1a": {
        RAGE: lambda x: 1e5 * x,
        ADAPTIVE: lambda x: 1e8,
        RATIO: lambda x: 1e8 / x**2,
        ALBA: lambda x: 10.0,
        STATIC: lambda x: 1e6,
        # Above RAGE at the least dim, and far below it at the largest.
        ORACLE: lambda x: 1e9 if x < 20 else 10.0,
        PUBLISHED: lambda x: 1e9 if x < 20 else 10.0,
    },
    "rage/fig1b": {
        RAGE: lambda x: 1.0 * x,
        GREEDY: lambda x: 100.0,
        ALBA: lambda x: 1e4,
        STATIC: lambda x: 2e3,
        ORACLE: lambda x: 1e7,
    },
    "rage/fig1c": {
        RAGE: lambda x: 7e3,
        GREEDY: lambda x: 7e3,
        ALBA: lambda x: 9e3,
        STATIC: lambda x: 1e4,
        ORACLE: lambda x: 1e4,
    },
    "rage/fig1d": {
        RAGE: lambda x: 1e5 * x,
        STATIC: lambda x: 1e5,
        ORACLE: lambda x: 1e3 * x,
        ROUNDED: lambda x: 1e3 * x,
        PUBLISHED: lambda x: 1e3 * x,
    },
    "rage/fig2a": {
        RAGE: lambda x: 4e4,
        GREEDY: lambda x: 1e5 / x,
        ALBA: lambda x: 1e5 / x,
        STATIC: lambda x: 1e5 / x,
        ORACLE: lambda x: 1e4,
    },
    "rage/fig2b": {
        RAGE: lambda x: 2e7,
        GREEDY: lambda x: 2e6,
        ALBA: lambda x: 9e6,
        STATIC: lambda x: 3e6,
        ORACLE: lambda x: 1e6,
    },
}
REFUTED["rage/fig2a_printed"] = REFUTED["rage/fig2a"]
# Of figure 1a: the bounds of rho and rho itself, and the factor that brings rho out of them.
RHO = {"rho_lower": 2.0, "rho": 20.0, "rho_upper": 40.0}
OUTSIDE = 3.0


def dataset_with(name, pulls, *, correct=True, deviation=0.1, replications=100):
    """A sweep's dataset with pulls that vary about those given."""
    axes, rng = AXES[name], np.random.default_rng(0)
    points = next(iter(axes.values()), (0,))
    table = np.array([[pull(x) for x in points] for pull in pulls.values()])
    noise = rng.normal(size=(1, len(pulls), len(points), replications))
    drawn = table[None, :, :, None] * np.exp(deviation * noise)
    dims = ("instance", "algorithm", *axes, "replication")
    shape = drawn.shape if axes else (*drawn.shape[:2], replications)
    coordinates = {"instance": ["one"], "algorithm": list(pulls), **axes}
    columns = {
        "pulls": (dims, drawn.reshape(shape)),
        "correct": (dims, np.full(shape, correct)),
        "stopped": (dims, np.ones(shape, bool)),
    }
    return xarray.Dataset(columns, {k: list(v) for k, v in coordinates.items()})


def with_rho(dataset, factor=1.0):
    """The dataset of figure 1a with what `extended` adds."""
    columns = {**RHO, "rho": factor * RHO["rho"]}
    whole = np.ones(dataset.sizes["dim"])
    return dataset.assign({name: ("dim", value * whole) for name, value in columns.items()})


def verdicts(name, dataset):
    found = reproduce.EXPERIMENTS[name].claims(dataset)
    json.dumps(found, allow_nan=False)
    return [one["holds"] for one in found]


@pytest.mark.parametrize("name", AXES)
def test_the_paper_s_parameters(name):
    plan = reproduce.EXPERIMENTS[name].sweep(None, False, None)
    assert plan.axes == AXES[name]
    assert plan.instances[0].options == OPTIONS[name]
    assert plan.instances[0].redraw
    assert plan.replications == (50 if "fig2a" in name else 20)
    assert plan.max_pulls == 10**9
    assert {part.options["delta"] for part in plan.algorithms} == {0.05}
    assert [part.label for part in plan.algorithms] == list(CONFIRMED[name])
    quick = reproduce.EXPERIMENTS[name].sweep(None, True, None)
    assert quick.replications <= plan.replications
    assert quick.max_pulls == plan.max_pulls
    assert {part.label for part in quick.algorithms} < set(CONFIRMED[name])


@pytest.mark.parametrize("name", AXES)
def test_claims_hold_fail_or_stay_open(name):
    confirmed = dataset_with(name, CONFIRMED[name])
    refuted = dataset_with(name, REFUTED[name], correct=False)
    if name == "rage/fig1a":
        confirmed, refuted = with_rho(confirmed), with_rho(refuted, OUTSIDE)
    assert set(verdicts(name, confirmed)) == {True}
    assert set(verdicts(name, refuted)) == {False}
    assert set(verdicts(name, dataset_with(name, CONFIRMED[name], replications=1))) == {None}


def test_replications_cut_short_leave_a_comparison_open():
    dataset = dataset_with("rage/fig1c", CONFIRMED["rage/fig1c"])
    dataset.stopped.loc[{"algorithm": RAGE, "replication": 3, "num_arms": 500}] = False
    assert verdicts("rage/fig1c", dataset) == [None, None, None, True]
    assert not measures.all_hold([True, None, False])
    assert measures.all_hold([True, None]) is None


def test_algorithms_that_were_not_run_leave_a_comparison_open():
    some = dataset_with("rage/fig1d", CONFIRMED["rage/fig1d"]).sel(algorithm=[RAGE, STATIC, ORACLE])
    assert verdicts("rage/fig1d", some) == [
        *[True, None, None],
        *[True, True, True, True, None],
        *[True, True],
    ]


def test_errors_of_oracles_do_not_count():
    dataset = dataset_with("rage/fig1d", CONFIRMED["rage/fig1d"])
    dataset.correct.loc[{"algorithm": ORACLE}] = False
    assert verdicts("rage/fig1d", dataset)[-2:] == [False, True]
    dataset.correct.loc[{"algorithm": STATIC}] = False
    assert verdicts("rage/fig1d", dataset)[-1] is False
    assert verdicts(
        "rage/fig2b", dataset_with("rage/fig2b", CONFIRMED["rage/fig2b"], replications=20)
    ) == [True, True, True, None]


def test_no_errors_of_fewer_runs_than_the_papers_decide_nothing():
    few = dataset_with("rage/fig1d", CONFIRMED["rage/fig1d"], replications=19)
    assert verdicts("rage/fig1d", few)[-2] is None
    enough = dataset_with("rage/fig1d", CONFIRMED["rage/fig1d"], replications=20)
    assert verdicts("rage/fig1d", enough)[-2] is True
    enough.stopped[{"algorithm": 0, "dim": 0, "replication": 0}] = False
    assert verdicts("rage/fig1d", enough)[-2] is None
    few.correct[{"algorithm": 0, "dim": 0, "replication": 0}] = False
    assert verdicts("rage/fig1d", few)[-2] is False


def test_the_bounds_of_lemma_1_are_computed_at_each_dim():
    sweep = dataclasses.replace(rage.BENCHMARK.sweep(), axes={"dim": (3,)})
    found = rage.BENCHMARK.extended(xarray.Dataset(coords={"dim": [3]}), sweep).isel(dim=0)
    assert found.rho_lower == pytest.approx(2.0)
    assert found.rho == pytest.approx(6.0, rel=2e-3)  # 2 d for d independent arms
    assert found.rho_upper == pytest.approx(12.0)


def test_hard_instances_count_as_much_as_easy_ones():
    """Ratios are taken within a replication: what varies with the instance drops out."""
    dataset = dataset_with("rage/fig2a", CONFIRMED["rage/fig2a"], replications=20)
    hardness = np.exp(3.0 * np.random.default_rng(1).normal(size=(4, 20)))
    dataset["pulls"] = dataset.pulls * hardness
    assert verdicts("rage/fig2a", dataset)[:3] == [True] * 3


def test_fitted_powers_are_those_of_the_pulls():
    dataset = dataset_with("rage/fig1d", CONFIRMED["rage/fig1d"], deviation=0.01).isel(instance=0)
    found = claims.compare("text", claims.growth(), STATIC)(dataset)["measured"][STATIC]
    assert abs(found["power"] - 1.0) < 3 * found["standard_error"] < 0.02
    relative = claims.compare("text", claims.growth(RAGE), STATIC)(dataset)["measured"][STATIC]
    assert abs(relative["power"] - 1.0) < 3 * relative["standard_error"]


def test_a_single_point_shows_no_growth():
    dataset = dataset_with("rage/fig1d", CONFIRMED["rage/fig1d"]).isel(dim=[0])
    assert verdicts("rage/fig1d", dataset) == [
        *[True] * 3,
        *[None] * 5,
        *[True, True],
    ]


def test_the_click_log_is_used_where_it_is_given(tmp_path):
    clicks = reproduce.EXPERIMENTS["rage/fig2b"]
    ((label, draw),) = clicks.from_folder(tmp_path).items()
    assert "stand" not in label
    assert draw.func is jb.instances.yahoo_r6a
    assert draw.keywords == {"path": str(tmp_path), "num_arms": 40}
    assert "made-up" in clicks.note(None)
    assert clicks.note(tmp_path) == ""
    with pytest.raises(ValueError, match="no file"):
        reproduce.run(clicks, tmp_path / "out", data=tmp_path / "nowhere")


@pytest.mark.slow
def test_a_small_run_from_end_to_end(tmp_path, monkeypatch):
    """Fast algorithms under the names in the figure, on an easy instance."""
    quick_ones = {
        name: partial(jb.lingape, delta=0.01 * (1 + position))
        for position, name in enumerate(CONFIRMED["rage/fig1a"])
    }
    easy = dataclasses.replace(
        rage.BENCHMARK,
        instances={"benchmark": partial(jb.instances.soare, angle=0.8, scale=2.0)},
        algorithms=quick_ones,
        quick={"axes": {"dim": (2, 3)}, "replications": 6},
    )
    monkeypatch.setitem(reproduce.EXPERIMENTS, "rage/fig1a", easy)
    result = reproduce.reproduce("rage/fig1a", tmp_path, quick=True)
    assert json.loads((tmp_path / "claims.json").read_text()) == result.claims
    assert len(result.claims) == 16
    assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"
    figure = plot.figure(result.dataset, quantities=("pulls",))
    (ax,), (legend,) = figure.axes, figure.legends
    labels = [label.get_text() for label in legend.get_texts()]
    assert labels == list(CONFIRMED["rage/fig1a"])
    # The bound is far below the curves, and is named at the edge of the panel.
    bounds = result.dataset.pull_lower_bound.isel(instance=0).min("algorithm").values
    assert (bounds < ax.get_ylim()[0]).all()
    (edge,) = [text.get_text() for text in ax.texts]
    assert edge.startswith(f"▼ {plot.BOUND}: ")
    ends = [float(x) for x in edge.split(": ")[1].split(" to ")]
    np.testing.assert_allclose(ends, [bounds.min(), bounds.max()], rtol=0.01)
