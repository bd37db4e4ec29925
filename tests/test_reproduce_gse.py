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
from jaxbandits.reproduce.gse import bounds, data, linear, names
from jaxbandits.reproduce.gse.between_bounds import BETWEEN_BOUNDS

EXPERIMENTS = {name: reproduce.EXPERIMENTS[name] for name in gse.EXPERIMENTS}
ON_ACCURACY = [name for name in EXPERIMENTS if "bounds" not in name]


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
    if names.PEACE in algorithms:
        seconds[:, algorithms.index(names.PEACE)] = peace_seconds(axes)
    columns = {"correct": ((*dims, "replication"), table), "seconds": (dims, seconds)}
    coordinates = {"instance": list(instances), "algorithm": list(algorithms)}
    return xarray.Dataset(columns, coordinates | {n: list(v) for n, v in axes.items()})


def peace_seconds(axes):
    """Seconds at each point, as long as the paper's where there are dimensions."""
    dims = np.array(axes.get("dim", ()))
    times = np.select([dims < 31, dims >= 31], [30.0, 3000.0]) if dims.size else np.array(30.0)
    return times.reshape(times.shape + (1,) * (len(axes) - times.ndim) * bool(dims.size))


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
        quiet = instance == linear.QUIET["instance"]
        small = point["gap"] <= 0.05
        base = 0.1 + (1.5 * min(point["gap"], 0.4) if quiet else 0.3 * point["gap"])
        halving = gse_like or name == names.OD
        return base if halving else 0.15 if name == names.UCB and small else 0.06
    if figure == "gse/fig2":
        if name == names.PEACE and k > 31:
            return None
        best = 0.42 if name in (names.GREEDY, names.WYNN, names.WYNN_ROUND) else 0.45
        lingape = 0.9 - k / 150
        others = {names.PEACE: 0.2, names.BAYES: 0.15, names.BAYES_LIN: 0.1, names.UCB: 0.38}
        return {**others, names.GAPE: lingape, names.GAPE_GREEDY: lingape}.get(name, best)
    if figure == "gse/fig3":
        others = dict.fromkeys((names.GAPE_GREEDY, names.OD), 0.75 - k / 200)
        others |= {names.GAPE: 0.6 - k / 200}
        others |= {names.PEACE: 0.4, names.BAYES: 0.4, names.UCB: 0.5}
        return others.get(name, 0.56 if name.startswith((names.FWG, names.D)) else 0.545)
    if figure == "gse/fig4":
        gain = point["per_arm"] / 200
        designed = 0.01 * ("FWG" in name or name == names.LOG_D_ROUND)
        log = 0.04 * (name.startswith("GSE-Log") and k < 10)
        return {names.UCB_GLM: 0.1}.get(name, (0.5 if gse_like else 0.3) + gain + designed + log)
    if figure == "gse/fig5":
        return (0.4 if gse_like else 0.35) + point["per_arm"] / 200
    if figure in ("gse/fig6", "gse/fig6_100"):
        large, printed = point["budget"] == 500, name.endswith(names.AS_PRINTED)
        return 0.5 + (0.1 + k / 400) * (gse_like != large) + 0.03 * (printed and not large)
    if figure == "gse/fig6_per_arm":
        return 0.95
    if figure == "gse/fig7":
        return 0.9 - (k / 40 + 0.2 if gse_like and "one stage" not in name else 0.0)
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


def apart(figure, name):
    """What moves algorithms that are alike away from each other."""
    if figure == "gse/fig4" and name in (names.FWG_ROUND, names.LOG_FWG_ROUND):
        return -0.1
    alike = {names.LIN, names.GREEDY, names.OD, names.FWG, names.LOG_FWG}
    if figure == "gse/fig5":
        alike -= {names.LIN, names.GREEDY}  # no form of GSE may be level with LinGapE-Greedy
    d_optimal = name.startswith((names.D, names.LOG_D)) and "one stage" not in name
    return 0.06 * (name in alike or d_optimal)


@pytest.mark.parametrize("figure", ON_ACCURACY)
def test_claims_that_fail(figure):
    """The better algorithm becomes the worse, rising curves fall, equal accuracies differ."""

    def opposite(figure, instance, name, **point):
        p = confirming(figure, instance, name, **point)
        drift = 0.3 * point.get("gap", 0.0) + apart(figure, name)
        return None if p is None else min(1 - p + drift, 1.0)

    found = EXPERIMENTS[figure].claims(dataset_of(figure, opposite, 4000))
    assert not [one["claim"] for one in found if one["holds"] and "the time" not in one["claim"]]


@pytest.mark.parametrize("figure", ON_ACCURACY)
def test_claims_that_stay_open(figure):
    found = EXPERIMENTS[figure].claims(dataset_of(figure, confirming, 1))
    text = "the time"  # claims about it depend on seconds
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
    only = {p.label: p.only for p in plan.algorithms if p.only}
    assert only == {names.PEACE: {"dim": [7, 15, 31]}}
    plan = EXPERIMENTS["gse/fig3"].sweep(None, False, None)
    only = {p.label: p.only for p in plan.algorithms if p.only}
    assert only == {names.GAPE: {"num_arms": [8, 16]}}


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
    known = result.dataset.bound.values.tolist()
    assert [name for name in labels if name in known] == known
    assert drawn.get_yscale() == "log"


def with_bounds(experiment, bounds_of, low, rate, high):
    """A dataset of an experiment on bounds, with the same error rates at all budgets."""
    budgets = experiment.axes["budget"]
    shape = ("instance", "algorithm", "budget")
    errors = {"error_low": low, "error_rate": rate, "error_high": high}
    table = {name: (shape, np.full((1, 1, len(budgets)), value)) for name, value in errors.items()}
    bound = np.array([[one(budget) for budget in budgets] for one in bounds_of.values()])
    return xarray.Dataset(
        {"error_bound": (("bound", "budget"), bound), **table},
        {"bound": list(bounds_of), "budget": list(budgets)},
    )


@pytest.mark.parametrize(
    ("experiment", "names_of"),
    [(bounds.BOUNDS, bounds.LINEAR_BOUNDS), (bounds.LOGISTIC_BOUNDS, bounds.LOGISTIC)],
    ids=["linear", "logistic"],
)
def test_errors_are_held_against_bounds(experiment, names_of):
    """Claims of theorems hold where errors are below, and fail where all are above."""

    def verdicts(low, rate, high, bound):
        known = {name: lambda budget: bound for name in names_of}
        rows = experiment.claims(with_bounds(experiment, known, low, rate, high))
        return {row["claim"]: row["holds"] for row in rows if "The error is below" in row["claim"]}

    assert set(verdicts(0.01, 0.02, 0.03, 0.1).values()) == {True}
    assert set(verdicts(0.2, 0.3, 0.4, 0.1).values()) == {False}
    assert set(verdicts(0.05, 0.2, 0.4, 0.1).values()) == {None}
    assert len(verdicts(0.05, 0.2, 0.4, 0.1)) >= 2


def test_errors_are_held_against_lower_bounds_and_only_at_the_budgets_of_a_claim():
    lower = bounds.error_below("A", [80, 160], "text", above=True)
    known = {"A": lambda budget: 0.5 if budget > 200 else 0.01}
    found = with_bounds(bounds.BOUNDS, known, 0.04, 0.05, 0.06)
    assert lower(found)["holds"] is True
    assert lower(found.sel(budget=[80, 320]))["holds"] is None  # 160 was not run
    assert bounds.error_below("A", None, "text", above=True)(found)["holds"] is False
    assert bounds.error_below("A", [80], "text")(found)["holds"] is False
    assert bounds.error_below("A", [320], "text")(found)["holds"] is True


def test_the_cases_in_which_gse_leads_are_counted():
    dataset = dataset_of("gse/fig5", confirming, 4000)
    row = data.most_cases(dataset)
    assert (row["holds"], row["measured"]["ahead"]) == (True, 12)
    behind = lambda figure, instance, name, **point: (  # noqa: E731
        0.9 if name == names.BAYES and instance == "cars" else 0.5 + 0.1 * name.startswith("GSE")
    )
    half = data.most_cases(dataset_of("gse/fig5", behind, 4000))
    assert (half["holds"], half["measured"]["not ahead"]) == (False, 6)
    few = data.most_cases(dataset_of("gse/fig5", confirming, 1))
    assert (few["holds"], few["measured"]["unclear"]) == (None, 12)
    part = data.most_cases(dataset.sel(algorithm=[names.LIN, names.UCB]))
    assert part["holds"] is None
    assert names.PEACE in part["measured"]["not_played"]


def test_a_lead_that_grows_is_one_of_differences():
    claim = claims.compare("", claims.change_of_lead("x"), "A", "B", least=0.0)
    grows, falls = two_algorithms((0.2, 0.4), (0.2, 0.3)), two_algorithms((0.2, 0.4), (0.2, 0.5))
    assert claim(grows)["holds"] is True
    assert claim(falls)["holds"] is False
    assert claim(grows)["measured"]["A - B"]["difference"] == pytest.approx(0.1)
    assert claim(grows.sel(algorithm=["A"]))["holds"] is None


def test_the_growth_of_seconds_is_from_one_value_to_another():
    dataset = two_algorithms((0.5, 0.5), (0.5, 0.5))
    dataset.seconds.values[0] = [[2.0, 120.0], [1.0, np.nan]]
    claim = claims.compare("", claims.growth_of_seconds("x", 1, 2), "A", least=50.0)
    assert (claim(dataset)["holds"], claim(dataset)["measured"]["A"]["ratio"]) == (True, 60.0)
    slower = claims.compare("", claims.growth_of_seconds("x", 1, 2), "A", least=70.0)
    assert slower(dataset)["holds"] is False
    other = claims.compare("", claims.growth_of_seconds("x", 1, 2), "B", least=50.0)
    assert other(dataset)["holds"] is None
    part = claim(dataset.sel(x=[1]))
    assert (part["holds"], part["measured"]["not_played"]) == (None, ["x = 2"])


REFUTED = ("OD-LinBAI's bound is below GSE's for K = 6",)


@pytest.mark.slow
def test_bounds_are_compared_with_each_other():
    found = {one.text: one(None)["holds"] for one in BETWEEN_BOUNDS}
    assert [text for text, holds in found.items() if not holds] == [
        text for text in found if text.startswith(REFUTED)
    ]


def test_exponents_that_are_not_of_the_order_of_a_lower_bound_refute_the_claim(monkeypatch):
    claim = BETWEEN_BOUNDS[0]
    assert claim(None)["holds"] is True
    bound = jb.theory.gse_error_bound
    monkeypatch.setattr(
        jb.theory, "gse_error_bound", lambda instance, budget: bound(instance, budget // 2)
    )
    assert claim(None)["holds"] is False


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
