"""Figures on regret: their claims, and a small run."""

import dataclasses
import json

import numpy as np
import pytest
import xarray

from jaxbandits import reproduce
from jaxbandits.reproduce import claims, glm
from jaxbandits.reproduce.glm import images
from jaxbandits.reproduce.measures import WHOLE_AXES, enough_hold

ROUNDS = np.arange(1, 401)
PROBLEMS = {"instance": ["MNIST", "Fashion-MNIST"], "activation": ["relu", "tanh"]}
ONE_PERCENT, TWO, FIVE, TEN, TWENTY = images.REP
# Average rewards of the four problems, those of MNIST first.
REWARDS = {
    images.DEEP: (0.56, 0.56, 0.56, 0.56),
    images.PLAIN: (0.54, 0.54, 0.54, 0.54),
    ONE_PERCENT: (0.5, 0.5, 0.5, 0.45),
    TWO: (0.46, 0.46, 0.46, 0.46),
    FIVE: (0.497, 0.503, 0.48, 0.5),
    TEN: (0.45, 0.45, 0.45, 0.45),
    TWENTY: (0.4, 0.4, 0.4, 0.4),
}
OTHER_REWARDS = {
    images.DEEP: (0.45, 0.45, 0.45, 0.45),
    images.PLAIN: (0.52, 0.52, 0.52, 0.52),
    ONE_PERCENT: (0.5, 0.5, 0.5, 0.5),
    TWO: (0.25, 0.25, 0.25, 0.25),
    FIVE: (0.45, 0.45, 0.45, 0.45),
    TEN: (0.45, 0.45, 0.45, 0.45),
    TWENTY: (0.55, 0.55, 0.55, 0.55),
}


def dataset(**curves):
    """A dataset whose regret follows these functions of the round, with noise, at dim 2 and 3."""
    rng = np.random.default_rng(0)
    noise = 1 + 0.1 * rng.normal(size=(1, 1, 2, 50, 1))
    table = np.concatenate(
        [np.broadcast_to(f(ROUNDS), (1, 1, 2, 50, 400)) * noise for f in curves.values()], axis=1
    )
    dims = ("instance", "algorithm", "dim", "replication", "round")
    coords = {"instance": ["a"], "algorithm": list(curves), "dim": [2, 3], "round": ROUNDS}
    return xarray.Dataset({"regret": (dims, table)}, coords, {"axes": json.dumps(["dim"])})


def logarithm(t):
    return 10 * np.log1p(t)


def line(t):
    return 0.5 * t


def root(t):
    return 3 * np.sqrt(t)


def times(number, curve):
    return lambda t: number * curve(t)


CONFIRMED = {
    glm.TSL: times(10, root),
    glm.FPL: times(11, root),
    glm.GLM_UCB: times(12, line),
    glm.UCB_GLM: times(5, root),
    glm.TSL_USED: logarithm,
    glm.FPL_USED: times(1.1, logarithm),
    glm.GLM_UCB_USED: line,
    glm.UCB_GLM_USED: times(2, line),
}
REFUTED = {
    glm.TSL: times(4, line),
    glm.FPL: times(8, line),
    glm.GLM_UCB: line,
    glm.UCB_GLM: times(10, line),
    glm.TSL_USED: times(20, line),
    glm.FPL_USED: times(40, line),
    glm.GLM_UCB_USED: logarithm,
    glm.UCB_GLM_USED: root,
}


LINEAR = {glm.LIN_TS: line, glm.LIN_UCB: root, glm.LIN_TS_USED: logarithm}
OTHER_LINEAR = {glm.LIN_TS: logarithm, glm.LIN_UCB: root, glm.LIN_TS_USED: line}


def problems(rewards):
    """A dataset of the four problems with these average rewards, and noise."""
    noise = np.random.default_rng(0).normal(0.0, 0.01, (1, 2, 2, 50, 1))
    table = np.array(list(rewards.values())).reshape(-1, 2, 2, 1, 1) + noise * np.ones(ROUNDS.size)
    dims = ("algorithm", *PROBLEMS, "replication", "round")
    coords = {"algorithm": list(rewards), **PROBLEMS, "round": ROUNDS}
    axes = {"axes": json.dumps(["activation"])}
    columns = {"average_reward": (dims, table), "regret": (dims, (0.6 - table) * ROUNDS)}
    return xarray.Dataset(columns, coords, axes)


def verdicts(rows, dataset):
    found = [one(dataset) for one in rows]
    json.dumps(found, allow_nan=False)
    return [one["holds"] for one in found]


@pytest.mark.parametrize(
    ("rows", "holding", "failing"),
    [
        (glm.CLAIMS, dataset(**CONFIRMED), dataset(**REFUTED)),
        (images.CLAIMS, problems(REWARDS), problems(OTHER_REWARDS)),
        (glm.LINEAR_CLAIMS, dataset(**LINEAR), dataset(**OTHER_LINEAR)),
    ],
    ids=["logistic", "images", "linear"],
)
def test_each_claim_can_hold_fail_and_stay_open(rows, holding, failing):
    assert set(verdicts(rows, holding)) == {True}
    assert set(verdicts(rows, failing)) == {False}
    assert set(verdicts(rows, failing.isel(replication=[0]))) == {None}
    assert set(verdicts(rows, holding.isel(algorithm=[]))) == {None}


def test_what_is_ours_stands_apart():
    """Each other claim quotes the section that makes it."""
    said = [one.paper for one in (*glm.CLAIMS, *images.CLAIMS, *glm.LINEAR_CLAIMS)]
    assert said.count("") == 3
    assert all(text.startswith("Section ") for text in said if text)
    own = [one.text for one in glm.CLAIMS if not one.paper]
    assert all("at most 25% above" in text for text in own)


def test_some_problems_can_support_claims_on_some_problems_and_not_refute_them():
    """MNIST shows that 1% and 5% are alike, and each better once; none is superior there."""
    part = {"instance": ["MNIST"]}
    rows = [one(problems(REWARDS).sel(part)) for one in images.CLAIMS[3:6]]
    assert [row["holds"] for row in rows] == [True, True, None]
    assert rows[2]["measured"]["not_played"] == ["Fashion-MNIST"]
    assert rows[0]["ours"] == "1% is best on MNIST, relu; 5% is best on MNIST, tanh"
    assert verdicts(images.CLAIMS[3:6], problems(OTHER_REWARDS).sel(part)) == [None] * 3
    tanh = problems(OTHER_REWARDS).sel(activation=["tanh"])
    tanh = tanh.assign_attrs({WHOLE_AXES: json.dumps({"activation": ["relu", "tanh"]})})
    row = images.CLAIMS[4](tanh)
    assert (row["holds"], row["measured"]["not_played"]) == (None, ["activation = relu"])


def test_a_number_of_points_suffices():
    assert enough_hold([True, False, None], 1) is True
    assert enough_hold([True, False, None], 2) is None
    assert enough_hold([True, False, False], 2) is False
    assert enough_hold([True, False], None) is False
    assert enough_hold([], 1) is None
    three = claims.compare(
        "", claims.reward_difference, ONE_PERCENT, FIVE, least=-0.01, most=0.01, at_least=3
    )
    row = three(problems(REWARDS))
    assert row["holds"] is False
    assert row["ours"].endswith("Fashion-MNIST, relu")  # the third best, 0.02 apart


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        (claims.compare("", claims.final_regret, "log", "line", most=1.0), True),
        (claims.compare("", claims.final_regret, "line", "log", most=1.0), False),
        (claims.compare("", claims.final_regret, "line", ("line", "log"), most=1.0), False),
        (claims.compare("", claims.final_regret, "line", "log", most=4.0), True),
        (claims.compare("", claims.final_regret, "log", "absent", most=1.0), None),
        (claims.compare("", claims.late_rate, "line", least=0.85), True),
        (claims.compare("", claims.late_rate, ("line", "root"), least=0.85), False),
        (claims.compare("", claims.late_rate, ("log", "root"), most=0.8), True),
        (claims.compare("", claims.late_rate, "line", most=0.8), False),
        (claims.compare("", claims.late_rate, "absent", most=0.8), None),
    ],
)
def test_claims_about_regret(claim, holds):
    assert claim(dataset(log=logarithm, line=line, root=root))["holds"] is holds


def test_one_contrary_point_refutes_a_claim():
    both = dataset(log=logarithm, line=line)
    both.regret.loc[{"algorithm": "log", "dim": 3}] = 2 * both.regret.loc[
        {"algorithm": "line", "dim": 3}
    ].values  # fmt: skip
    found = claims.compare("", claims.final_regret, "log", "line", most=1.0)(both)
    assert found["holds"] is False
    measured = found["measured"]["log / line"]
    assert measured["dim 2"]["ratio"] < 0.5
    assert found["ours"] == "log / line: 2, dim 3"
    np.testing.assert_allclose(measured["dim 3"]["ratio"], 2.0)


def test_instances_are_kept_separate():
    two = xarray.concat(
        [dataset(log=logarithm, line=line), dataset(log=root, line=line)], "instance"
    ).assign_coords(instance=["a", "b"])
    two.attrs["axes"] = json.dumps(["dim"])
    found = claims.compare("", claims.final_regret, "log", "line", most=1.0)(two)
    measured = found["measured"]["log / line"]
    assert measured["a, dim 2"]["ratio"] < measured["b, dim 2"]["ratio"]
    assert len(measured) == 4


def test_noise_common_to_both_curves_cancels_in_their_ratio():
    measured = claims.compare("", claims.final_regret, "root", "line", most=1.0)(
        dataset(root=root, line=line)
    )["measured"]
    assert measured["root / line"]["dim 2"]["standard_error"] < 1e-12


def test_the_figure_as_printed_has_the_printed_variance():
    made = glm.AS_PRINTED.instances["d = 10"]
    assert made.keywords["theta_var"] == 0.03
    assert list(glm.LOGISTIC.axes["dim"]) == [5, 10, 20]
    assert (glm.LOGISTIC.horizon, glm.LOGISTIC.replications) == (50_000, 100)
    assert len(glm.LOGISTIC.algorithms) == 8


@pytest.mark.slow
def test_a_small_run(tmp_path):
    few = {"algorithms": (glm.UCB_GLM_USED,), "horizon": 60}
    small = dataclasses.replace(glm.AS_PRINTED, quick=glm.AS_PRINTED.quick | few)
    found = reproduce.run(small, tmp_path, quick=True, replications=3)
    assert found.dataset.regret.shape == (1, 1, 3, 60)
    assert len(found.claims) == len(glm.CLAIMS)
    verdicts = {one["claim"]: one["holds"] for one in found.claims}
    (linear,) = (text for text in verdicts if text.startswith("Informal GLM-UCB and UCB-GLM fail"))
    assert verdicts[linear] is None
    assert (tmp_path / "figure.png").is_file()


@pytest.mark.slow
def test_a_small_run_of_the_neural_bandits(tmp_path):
    """Average rewards of two algorithms on digits, the best average reward, and claims on them."""
    few = {"algorithms": (images.DEEP, images.PLAIN), "horizon": 150, "replications": 6}
    small = dataclasses.replace(images.IMAGES, quick=images.IMAGES.quick | few)
    found = reproduce.run(small, tmp_path, quick=True)
    dataset = found.dataset
    assert dataset.average_reward.dims == dataset.regret.dims
    instance = images.instances.digits()
    best = instance.best_average(np.arange(6))
    np.testing.assert_allclose(dataset.best_average.values[0], best)
    reward = dataset.average_reward.isel(instance=0, activation=0, round=-1)
    loss = dataset.regret.isel(instance=0, activation=0, round=-1) / 150
    np.testing.assert_allclose((reward + loss).values, np.tile(best, (2, 1)))
    assert all("digits" in one["claim"] for one in found.claims)
    again = xarray.load_dataset(tmp_path / "results.nc")
    np.testing.assert_array_equal(again.average_reward, dataset.average_reward)
    assert "8 x 8 digits" in dataset.attrs["experiment"]


def test_average_rewards_are_compared_with_a_level():
    base = dataset(good=lambda t: 0.0 * t, poor=lambda t: 0.4 * t)
    rewards = base.assign(average_reward=0.57 - base.regret / base["round"])
    assert claims.compare("", claims.average_reward, "good", least=0.5)(rewards)["holds"] is True
    assert (
        claims.compare("", claims.average_reward, ("good", "poor"), least=0.5)(rewards)["holds"]
        is False
    )
    assert claims.compare("", claims.average_reward, "absent", least=0.5)(rewards)["holds"] is None


@pytest.mark.parametrize(("rounds", "falls", "rises"), [(400, False, True), (401, None, True)])
def test_short_runs_do_not_refute(rounds, falls, rises):
    curves = dataset(low=root, high=line)
    for one, two, holds in (("high", "low", falls), ("low", "high", rises)):
        found = claims.in_the_end(
            claims.compare("", claims.final_regret, one, two, most=1.0), rounds
        )(curves)
        assert found["holds"] is holds
        assert found["measured"]["rounds"] == 400
        assert set(found["measured"][f"{one} / {two}"]) == {"dim 2", "dim 3"}


def test_images_come_from_the_folder_where_it_has_them(tmp_path):
    assert list(images.IMAGES.from_folder(tmp_path)) == ["digits"]
    assert images.IMAGES.note(tmp_path) == " (scikit-learn's 8 x 8 digits)"
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "t10k-images-idx3-ubyte.gz").touch()
    assert list(images.IMAGES.from_folder(tmp_path)) == ["MNIST"]
    assert images.IMAGES.note(tmp_path) == " (test images of MNIST)"
    (tmp_path / "fashion").mkdir()
    (tmp_path / "fashion" / "train-images-idx3-ubyte").touch()
    assert list(images.IMAGES.from_folder(tmp_path)) == ["MNIST", "Fashion-MNIST"]
    assert images.IMAGES.note(tmp_path) == " (test images of MNIST)"
    (tmp_path / "mnist" / "train-images-idx3-ubyte.gz").touch()
    assert images.IMAGES.note(tmp_path) == ""
