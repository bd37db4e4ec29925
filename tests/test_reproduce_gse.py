"""The figures of the GSE paper: what is run, and claims that can hold or fail."""

import json
import math
from functools import partial

import numpy as np
import pytest
import xarray
from test_local_data import CARS, write_motor

import jaxbandits as jb
from jaxbandits import reproduce
from jaxbandits.report import plot
from jaxbandits.reproduce import claims, gse, measures
from jaxbandits.reproduce.gse import bounds

EXPERIMENTS = {name: reproduce.EXPERIMENTS[name] for name in gse.EXPERIMENTS}
ON_ACCURACY = [name for name in EXPERIMENTS if name != "gse/bounds"]


def dataset_with(chance, instances=("one",), algorithms=("A", "B"), axes=None, runs=4000):
    """A sweep's dataset with accuracies `chance(instance, algorithm, **point)`; None gives NaN."""
    axes, rng = axes or {"x": (1, 2)}, np.random.default_rng(0)
    shape = (len(instances), len(algorithms), *map(len, axes.values()))
    table = np.full((*shape, runs), np.nan)
    for index in np.ndindex(*shape):
        point = {name: values[i] for (name, values), i in zip(axes.items(), index[2:], strict=True)}
        p = chance(instances[index[0]], algorithms[index[1]], **point)
        if p is not None:
            table[index] = rng.permutation(np.arange(runs) < round(p * runs))
    dims = ("instance", "algorithm", *axes)
    seconds = np.full(shape, 1.0)
    if gse.PEACE in algorithms:
        seconds[:, algorithms.index(gse.PEACE)] = 30.0
    columns = {"correct": ((*dims, "replication"), table), "seconds": (dims, seconds)}
    coordinates = {"instance": list(instances), "algorithm": list(algorithms)}
    return xarray.Dataset(columns, coordinates | {n: list(v) for n, v in axes.items()})


def two_algorithms(a, b, **rest):
    """A and B with these accuracies at x = 1 and x = 2."""
    table = {"A": a, "B": b}
    return dataset_with(lambda instance, name, x: table[name][x - 1], **rest)


@pytest.mark.parametrize(
    ("claim", "holds", "fails"),
    [
        (
            claims.compare("", claims.accuracy(), "A", "B", least=0.0),
            two_algorithms((0.6, 0.6), (0.5, 0.5)),
            two_algorithms((0.5, 0.5), (0.6, 0.5)),
        ),
        (
            claims.compare("", claims.accuracy(), "A", ("A", "B"), least=0.2),
            two_algorithms((0.9, 0.9), (0.5, 0.5)),
            two_algorithms((0.6, 0.6), (0.5, 0.5)),
        ),
        (
            claims.compare("", claims.accuracy({"x": [2]}), "A", "B", least=0.0),
            two_algorithms((0.1, 0.6), (0.5, 0.5)),
            two_algorithms((0.9, 0.4), (0.5, 0.5)),
        ),
        (
            claims.best_of("", ("A",), "B"),
            two_algorithms((0.51, 0.5), (0.5, 0.5)),
            two_algorithms((0.3, 0.3), (0.5, 0.5)),
        ),
        (
            claims.compare("", claims.accuracy(), ("A", "B"), least=-0.03, most=0.03),
            two_algorithms((0.51, 0.5), (0.5, 0.5)),
            two_algorithms((0.3, 0.3), (0.5, 0.5)),
        ),
        (
            claims.compare("", claims.change("x"), "A", least=0.1),
            two_algorithms((0.3, 0.5), (0.5, 0.5)),
            two_algorithms((0.5, 0.5), (0.1, 0.9)),
        ),
        (
            claims.compare("", claims.change("x", start=1, end=2), ("A",), most=0.0),
            two_algorithms((0.5, 0.3), (0.5, 0.5)),
            two_algorithms((0.3, 0.5), (0.5, 0.5)),
        ),
        (
            claims.compare("", claims.change("x"), "A", most=0.05),
            two_algorithms((0.5, 0.51), (0.1, 0.9)),
            two_algorithms((0.3, 0.5), (0.5, 0.5)),
        ),
    ],
    ids=["ahead", "ahead by", "ahead at", "not behind", "alike", "rises", "falls", "stays"],
)
def test_claims_hold_fail_or_stay_open(claim, holds, fails):
    assert claim(holds)["holds"] is True
    assert claim(fails)["holds"] is False
    few = two_algorithms((0.5, 0.5), (0.5, 0.5), runs=1)
    assert claim(few)["holds"] is None
    json.dumps([claim(x) for x in (holds, fails, few)], allow_nan=False)


def test_a_claim_is_open_near_its_limit_and_where_an_algorithm_is_not_run():
    near = two_algorithms((0.51, 0.5), (0.5, 0.5), runs=400)
    assert claims.compare("", claims.accuracy(), "A", "B", least=0.0)(near)["holds"] is None
    absent = dataset_with(lambda i, name, x: None if name == "B" else 0.9)
    assert claims.compare("", claims.accuracy(), "A", "B", least=0.0)(absent)["holds"] is None
    assert claims.compare("", claims.accuracy(), "A", "C", least=0.0)(absent)["holds"] is None
    half = dataset_with(
        lambda i, name, x: None if name == "B" and x == 2 else 0.9 - 0.4 * (name == "B")
    )
    found = claims.compare("", claims.accuracy(), "A", "B", least=0.0)(half)
    assert found["holds"] is True  # decided by the only point at which both were run
    assert found["measured"]["A - B"]["difference"] == pytest.approx(0.4)


def test_differences_are_taken_replication_by_replication():
    """The standard error is that of pairs: small where both err in the same replications."""
    both = two_algorithms((0.5, 0.5), (0.5, 0.5), runs=400)
    correct = both.correct.values
    correct[0, 0] = correct[0, 1]
    correct[0, 0, :, :40] = 1.0
    mean, error, number = measures.accuracy_difference(both, "A", "B", {})
    assert mean == pytest.approx((1 - correct[0, 1, :, :40]).sum() / 800)
    assert error < 0.5 * math.sqrt(2 * 0.25 / 400)
    assert number == 400


def test_times_are_compared_where_both_were_run():
    dataset = two_algorithms((0.5, 0.5), (0.5, 0.5))
    dataset.seconds.values[0] = [[9.0, np.nan], [1.0, 100.0]]
    measured = claims.compare("", claims.seconds(), "A", "B", least=5.0)(dataset)
    assert (measured["holds"], measured["measured"]["A / B"]["ratio"]) == (True, 9.0)
    assert claims.compare("", claims.seconds(), "A", "B", least=10.0)(dataset)["holds"] is False
    assert claims.compare("", claims.seconds(), "A", "C", least=10.0)(dataset)["holds"] is None


def confirming(figure, instance, name, **point):
    """Accuracies for which the paper's claims are true."""
    k = point.get("num_arms", point.get("dim", 0))
    gse_like = name.startswith(("GSE", "Sequential", "η"))
    if figure == "gse/fig1":
        quiet = instance == gse.QUIET["instance"]
        small = point["gap"] <= 0.05
        base = 0.1 + (1.5 * min(point["gap"], 0.4) if quiet else 0.3 * point["gap"])
        return base if gse_like else 0.15 if name == gse.UCB and small else 0.06
    if figure == "gse/fig2":
        if name == gse.PEACE and k > 31:
            return None
        best = 0.45 if name in (gse.LIN, gse.FWG, gse.D) else 0.38
        worse = {gse.PEACE: 0.2, gse.BAYES: 0.1, gse.GAPE: 0.9 - k / 150}
        return (worse | {gse.GAPE_GREEDY: 0.9 - k / 150}).get(name, best)
    if figure == "gse/fig3":
        falling = {gse.GAPE_GREEDY: 0.9 - k / 200, gse.OD: 0.9 - k / 200}
        return falling.get(name, {gse.FWG: 0.56}.get(name, 0.545))
    if figure == "gse/fig4":
        gain = point["per_arm"] / 200 + 0.1 * name.endswith("FWG")
        log = name.startswith("GSE-Log") and k < 10
        return {gse.UCB_GLM: 0.1}.get(name, (0.5 if gse_like else 0.35) + gain + 0.1 * log)
    if figure == "gse/fig5":
        return (0.4 if gse_like else 0.35) + point["per_arm"] / 200
    if figure == "gse/fig6":
        large = point["budget"] == 500
        return 0.5 + 0.1 * (gse_like != large)
    if figure == "gse/fig6_per_arm":
        return 0.95
    if figure == "gse/fig7":
        return 0.9 - (k / 40 + 0.2 if gse_like else 0.0)
    return 0.5 - 0.1 * ("2" not in name)  # gse/eta


def dataset_of(figure, chance, runs):
    plan = EXPERIMENTS[figure].sweep(None, False, None)
    names = [[part.label for part in parts] for parts in (plan.instances, plan.algorithms)]
    return dataset_with(partial(chance, figure), *names, axes=plan.axes, runs=runs)


@pytest.mark.parametrize("figure", ON_ACCURACY)
def test_claims_that_hold(figure):
    found = EXPERIMENTS[figure].claims(dataset_of(figure, confirming, 4000))
    wrong = [one for one in found if one["holds"] is not True]
    assert [one["claim"] for one in wrong] == []


@pytest.mark.parametrize("figure", ON_ACCURACY)
def test_claims_that_fail(figure):
    """The better algorithm becomes the worse, rising curves fall, equal accuracies differ."""

    def opposite(figure, instance, name, **point):
        p = confirming(figure, instance, name, **point)
        drift = 0.06 * (name in (gse.LIN, gse.D, gse.OD)) + 0.3 * point.get("gap", 0.0)
        return None if p is None else min(1 - p + drift, 1.0)

    found = EXPERIMENTS[figure].claims(dataset_of(figure, opposite, 4000))
    assert not [one["claim"] for one in found if one["holds"] and "the time" not in one["claim"]]


@pytest.mark.parametrize("figure", ON_ACCURACY)
def test_claims_that_stay_open(figure):
    found = EXPERIMENTS[figure].claims(dataset_of(figure, confirming, 1))
    text = "Peace takes more than ten times"  # this claim depends on seconds
    assert {one["holds"] for one in found if text not in one["claim"]} == {None}


def test_the_small_version_is_part_of_the_full_experiment():
    for figure, plan in EXPERIMENTS.items():
        small, whole = plan.sweep(None, True, None), plan.sweep(None, False, None)
        assert small.replications < whole.replications
        assert whole.replications >= 1000
        for name, values in small.axes.items():
            assert set(values) <= set(whole.axes[name]), figure
        assert jb.sweeps.check(small)


def test_files_of_one_figure_may_differ_only_in_instances():
    cars, motor = (reproduce.experiment.from_files(f"gse/fig5{x}.toml") for x in "ab")
    assert str(cars | {"instances": {}}) == str(motor | {"instances": {}})
    with pytest.raises(ValueError, match="must be alike but for instances"):
        reproduce.experiment.from_files("gse/fig1.toml", "gse/fig2.toml")


def test_peace_and_gape_run_only_where_they_are_feasible():
    plan = EXPERIMENTS["gse/fig2"].sweep(None, False, None)
    assert {p.label: p.only for p in plan.algorithms if p.only} == {gse.PEACE: {"dim": [7, 15, 31]}}
    plan = EXPERIMENTS["gse/fig3"].sweep(None, False, None)
    assert {p.label for p in plan.algorithms if p.only} == {gse.PEACE, gse.GAPE}


def test_data_come_from_a_folder_or_stand_ins(tmp_path):
    plan = EXPERIMENTS["gse/fig5"]
    assert plan.note(None) == " (made-up cars and motor records)"
    assert plan.note(tmp_path) == " (made-up cars and motor records)"
    (tmp_path / "automobile").mkdir()
    (tmp_path / "automobile" / "imports-85.data").write_text("\n".join(CARS))
    assert plan.note(tmp_path) == " (made-up motor records)"
    cars, motor = plan.sweep(None, True, tmp_path).instances
    assert (cars.build, motor.build) == (jb.instances.automobile, jb.instances.motor)
    (tmp_path / "motor").mkdir()
    write_motor(tmp_path / "motor")
    assert plan.note(tmp_path) == ""
    assert plan.sweep(None, True, tmp_path).instances[1].build == jb.instances.electric_motor


@pytest.mark.slow
def test_bounds_are_drawn_beside_errors(tmp_path):
    result = reproduce.reproduce("gse/bounds", tmp_path, quick=True)
    found = {one["claim"].split(" ")[0]: one["holds"] for one in result.claims}
    assert result.claims[0]["holds"] is True
    assert len(found) >= 3
    drawn = plot.figure(result.dataset, quantities=("errors",)).axes[0]
    labels = [line.get_label() for line in drawn.lines]
    assert [name for name in labels if "bound" in name] == result.dataset.bound.values.tolist()
    assert drawn.get_yscale() == "log"


def test_an_error_rate_above_a_bound_refutes_the_claim():
    dataset = xarray.Dataset(
        {
            "error_bound": (("bound", "budget"), [[0.1, 0.01]]),
            **{
                name: (("instance", "algorithm", "budget"), [[[value, value]]])
                for name, value in (("error_low", 0.04), ("error_rate", 0.05), ("error_high", 0.06))
            },
        },
        {"bound": ["GSE's bound, by normal tails"], "budget": [100, 200]},
    )
    find = bounds.error_below_bound.find
    assert find(dataset).verdict is False
    assert find(dataset.isel(budget=[0])).verdict is True
    assert find(dataset.isel(budget=[0]).assign(error_high=0.2)).verdict is None


def test_identical_curves_leave_a_claim_open():
    """Identical runs are no evidence for or against a strict difference."""
    both = two_algorithms((0.5, 0.9), (0.5, 0.9), runs=100)
    both.correct.values[0, 1] = both.correct.values[0, 0]
    assert claims.compare("", claims.accuracy(), "A", "B", least=0.0)(both)["holds"] is None
    assert (
        claims.compare("", claims.accuracy(), "A", "B", least=0.1)(both)["holds"] is False
    )  # 100 runs suffice
    assert (
        claims.compare("", claims.accuracy(), ("A", "B"), least=-0.03, most=0.03)(both)["holds"]
        is True
    )
    right = two_algorithms((1.0, 1.0), (1.0, 1.0), runs=100)
    assert claims.compare("", claims.change("x"), "A", most=0.0)(right)["holds"] is None
    assert claims.compare("", claims.change("x"), "A", most=-0.2)(right)["holds"] is False


def test_a_few_identical_runs_decide_no_claim():
    few = two_algorithms((1.0, 1.0), (1.0, 1.0), runs=8)
    assert claims.compare("", claims.accuracy(), "A", "B", least=0.1)(few)["holds"] is None
    assert (
        claims.compare("", claims.accuracy(), ("A", "B"), least=-0.01, most=0.01)(few)["holds"]
        is None
    )
    assert claims.compare("", claims.change("x"), "A", most=-0.2)(few)["holds"] is None


def test_claims_that_compare_no_algorithms_are_open():
    whole = two_algorithms((0.5, 0.5), (0.5, 0.5))
    assert claims.compare("", claims.accuracy(), "A", "A", least=0.0)(whole)["holds"] is None
    assert (
        claims.compare("", claims.accuracy(), "A", least=-0.03, most=0.03)(whole)["holds"] is None
    )
