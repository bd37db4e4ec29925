"""The experiments of the LinGapE paper: their sizes, and claims that can hold or fail."""

import dataclasses
import json
import math

import numpy as np
import pytest
import xarray

from jaxbandits import reproduce
from jaxbandits.intervals import standard_error
from jaxbandits.reproduce import lingape_claims as claims

FIGURE_1 = {"LinGapE": [5, 6, 9], "XY-static": [300, 750, 1500], "XY-adaptive": [3e3, 6e3, 1e4]}
FIGURE_1 |= {"XY-oracle": [200, 200, 200]}
FIGURE_2 = {"LinGapE": [1, 4, 16], "XY-static": [3, 12, 50]}
FIGURE_2 |= {"LinGapE, by ratios": [1.1, 3.9, 17], "XY-adaptive": [30, 110, 300]}
FIGURE_3 = {"LinGapE": [2, 5, 9], "XY-static": [8, 25, 63]}
EXPERIMENTS = {
    part: reproduce.EXPERIMENTS[f"lingape/{part}"] for part in ("fig1", "table1", "fig2", "fig3")
}
QUARTERS = [5, 3.75, 3.75, 3.75, 3.75]
EVEN = [1.0] * 5
# What is computed, not run: H of LinGapE, of UGapE, of the oracle, and K.
COMPLEXITIES = {
    "lingape_complexity": 90.0,
    "ugape_complexity": 80.0,
    "oracle_complexity": 9.0,
    "num_complexity_arms": 5,
}


def dataset_with(
    means, axis=None, points=(0,), *, deviation=0.02, shares=None, wrong=0, cut=0, size=40
):
    """A dataset of a sweep with these mean pulls, in thousands, for each algorithm."""
    rng = np.random.default_rng(0)
    noise = 1 + deviation * rng.standard_normal((len(means), len(points), size))
    table = np.array([np.reshape(mean, (-1, 1)) for mean in means.values()])
    pulls = np.rint([1000 * table * noise])
    inner = ("algorithm", axis) if axis else ("algorithm", "none")
    dims = ("instance", *inner)
    whole, each = np.ones(pulls.shape[:3]), (*dims, "replication")
    correct = np.ones(pulls.shape, bool)
    correct[..., :wrong] = False
    columns = {
        "pulls": (each, pulls),
        "correct": (each, correct),
        "stopped": (each, np.ones(pulls.shape, bool) & (cut == 0)),
        "pulls_mean": (dims, pulls.mean(-1)),
        "pulls_se": (dims, np.apply_along_axis(standard_error, -1, pulls)),
        "cut_short": (dims, cut * whole),
    }
    if shares is not None:
        parts = np.array(shares, float)
        parts = parts / parts.sum(-1, keepdims=True)
        parts = np.broadcast_to(
            parts.reshape(-1, 1, 1, parts.shape[-1]), (*pulls.shape[1:], parts.shape[-1])
        )
        columns["arm_pulls"] = ((*each, "arm"), pulls[..., None] * parts[None])
        columns["num_arms"] = (dims, parts.shape[-1] * whole)
    coordinates = {"instance": ["soare"], "algorithm": list(means), inner[1]: list(points)}
    found = xarray.Dataset(columns, coordinates)
    found.attrs["options"] = json.dumps({"[instances.soare]": {"angle": 0.01}})
    return found if axis else found.squeeze("none", drop=True)


def verdicts(found):
    """For each claim: True, False, or None where it is undecided."""
    return [one["holds"] for one in found]


def with_complexities(found, axis, **changes):
    """The dataset with what `extended` adds, the same number at each point."""
    columns = (COMPLEXITIES | changes).items()
    return found.assign({name: (axis, [value] * found.sizes[axis]) for name, value in columns})


def figure_1(means=FIGURE_1, complexities=None, **options):
    found = dataset_with(means, "dim", (2, 5, 10), **options)
    return EXPERIMENTS["fig1"].claims(with_complexities(found, "dim", **(complexities or {})))


# Even shares of ten arms: XY-adaptive does not draw e_2 alone.
SPREAD = {"shares": [[1.0] * 11] * 4}


def test_all_claims_hold_for_the_paper_s_figure_1():
    exact = {**FIGURE_1, "XY-oracle": [200, claims.ORACLE_PULLS["0.01"] / 1000, 300]}
    less = {**exact, "XY-static": [3e4, 7e4, 14e4], "XY-adaptive": [3e5, 7e5, 14e5]}
    found = figure_1(less, deviation=0.0, **SPREAD)
    assert verdicts(found) == [True] * 12
    rates = {k: v for k, v in found[-1]["measured"].items() if k != "most"}
    assert {one["runs"] for one in rates.values()} == {120}
    json.dumps(found, allow_nan=False)
    # 30 runs cannot decide an error rate of 5%
    assert verdicts(figure_1(less, size=10, **SPREAD))[-1] is None


@pytest.mark.parametrize(
    ("name", "pulls", "false"),
    [
        ("LinGapE", [5, 300, 9], [0, 1]),
        ("LinGapE", [5, 6, 60], [6]),
        ("LinGapE", [5, 6, 180], [1, 6]),
        ("XY-oracle", [200, 900, 200], [2]),
        ("XY-oracle", [200, 4e3, 200], [2, 4]),
        ("XY-adaptive", [3e3, 6e3, 2e3], [3]),
        ("XY-adaptive", [3e3, 6e3, 80], [1, 3, 4]),
        ("XY-static", [300, 750, 6000], [3, 7]),
    ],
)
def test_other_pulls_refute_claims_of_figure_1(name, pulls, false):
    found = verdicts(figure_1({**FIGURE_1, name: pulls}, **SPREAD))
    assert [i for i, holds in enumerate(found) if holds is False] == [*false, 8]


def test_claims_of_figure_1_are_undecided_without_clear_differences():
    same = {name: [100, 250, 500] for name in FIGURE_1}
    assert verdicts(figure_1(same))[:8] == [None, False, None, False, False, None, None, True]
    assert None not in verdicts(figure_1(**SPREAD))
    assert verdicts(figure_1(cut=1, **SPREAD))[:8] == [None] * 8
    assert verdicts(figure_1(wrong=20))[-1] is False
    found = verdicts(figure_1(size=1, **SPREAD))
    # XY-oracle's pulls are deterministic: one run refutes the claim. H needs no run.
    assert found == [*[None] * 8, False, True, True, None]


def test_xy_adaptive_that_drops_arms_for_good_refutes_that_it_forgets():
    for_good = {"shares": [[0.1, 1.0, *[0.002] * 9]] * 4}
    assert verdicts(figure_1(**for_good))[5] is False
    two = dataset_with(FIGURE_1, "dim", (2, 5, 10), **SPREAD).sel(dim=[2])
    assert verdicts(EXPERIMENTS["fig1"].claims(two))[5] is None
    some = dataset_with(FIGURE_1, "dim", (2, 5, 10), **SPREAD).sel(algorithm=["LinGapE"])
    assert verdicts(EXPERIMENTS["fig1"].claims(some))[5] is None


def test_claims_on_h_follow_what_was_computed():
    above = {"lingape_complexity": 9.0 * 72 * 5.5}
    assert verdicts(figure_1(complexities=above, **SPREAD))[9:11] == [False, False]
    between = {"lingape_complexity": 9.0 * 72 * 4}
    assert verdicts(figure_1(complexities=between, **SPREAD))[9:11] == [True, False]
    bare = dataset_with(FIGURE_1, "dim", (2, 5, 10), **SPREAD)
    assert verdicts(EXPERIMENTS["fig1"].claims(bare))[9:11] == [None, None]


def test_h_and_the_bound_of_theorem_2_are_computed_at_each_point():
    """9/8 on the basis, and H_oracle `(1 + sqrt(K - 1))^2 / gap^2`, by hand."""
    gaps, names = (0.5, 2.0), ["LinGapE", claims.BY_RATIOS]
    found = claims.with_pull_bounds(
        xarray.Dataset(coords={"gap": list(gaps), "algorithm": names}),
        dataclasses.replace(EXPERIMENTS["fig2"].sweep(), axes={"gap": gaps}),
    )
    assert found.pull_bound.sel(algorithm="LinGapE").isnull().all()
    for gap in gaps:
        one = found.sel(gap=gap)
        assert one.lingape_complexity == pytest.approx(5 * 18 / gap**2)
        assert one.ugape_complexity == pytest.approx(5 * 2**2 / (gap / 2) ** 2)
        assert one.oracle_complexity == pytest.approx(9 / gap**2, rel=2e-3)
        assert one.num_complexity_arms == 5
        # Equations (4) and (8), with lambda = 1, L = 1, S = 2 and R = 1.
        bound = float(one.pull_bound.sel(algorithm=claims.BY_RATIOS))
        width = math.sqrt(2 * math.log(25 / 0.05) + 5 * math.log1p(bound / 5)) + 2.0
        assert bound == pytest.approx(1 + 5 + 5 * 18 / gap**2 * width**2)


def table(second=995.0, first=4.975, rest=0.03, **options):
    means = {"XY-static": [13], "LinGapE": [700], "LinGapE, by ratios": [720], "XY-oracle": [2742]}
    shares = [
        claims.STATIC_SHARES,
        *[[first, second, rest, rest, rest, 0.01]] * 2,
        claims.ORACLE_ARMS,
    ]
    means["XY-oracle"] = [sum(claims.ORACLE_ARMS) / 1000]
    options = {"deviation": 0.1, "shares": shares} | options
    found = dataset_with(means, **options)
    oracle = found.arm_pulls.sel(algorithm=["XY-oracle"])
    exact = oracle * 0 + np.array(options["shares"][-1]).reshape(1, 1, 1, -1)
    return xarray.concat(
        [
            found.sel(algorithm=list(means)[:3]),
            found.sel(algorithm=["XY-oracle"]).assign(arm_pulls=exact),
        ],
        "algorithm",
    ).assign_attrs(found.attrs)


def test_claims_of_table_1():
    found = EXPERIMENTS["table1"].claims(table())
    assert verdicts(found) == [*[True] * 6, None]
    assert math.isclose(found[1]["measured"]["ratio"], 0.005)
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("options", "false"),
    [({"second": 300.0}, [0, 1]), ({"first": 6.0}, [1]), ({"rest": 0.3}, [2])],
)
def test_other_pulls_refute_claims_of_table_1(options, false):
    found = verdicts(EXPERIMENTS["table1"].claims(table(**options)))
    assert [i for i, holds in enumerate(found) if holds is False] == false


def test_table_1_of_other_allocations():
    even = [1.0] * 6
    lingape = [5, 995, 0.03, 0.03, 0.03, 0.01]
    twice = [2 * pulls for pulls in claims.ORACLE_ARMS]
    found = EXPERIMENTS["table1"].claims(table(shares=[even, lingape, lingape, twice]))
    assert verdicts(found)[:6] == [True, True, True, False, False, True]


def test_table_1_without_the_pulls_of_each_arm():
    found = verdicts(EXPERIMENTS["table1"].claims(table().drop_vars("arm_pulls")))
    assert found[:6] == [None] * 5 + [True]


def test_table_1_of_a_few_algorithms():
    some = table().sel(algorithm=["LinGapE", "XY-oracle"])
    assert verdicts(EXPERIMENTS["table1"].claims(some))[:6] == [True, True, True, None, True, None]


def figure_2(means=FIGURE_2, complexities=None, bounds=(10, 40, 160), **options):
    options = {"shares": [QUARTERS, EVEN, QUARTERS, EVEN]} | options
    found = dataset_with(means, "gap", (0.5, 0.2, 0.1), **options)
    found = with_complexities(found, "gap", **(complexities or {}))
    table = np.full((found.sizes["algorithm"], 3), np.nan)
    table[list(found.algorithm.values).index(claims.BY_RATIOS)] = bounds
    columns = {"pull_bound": 1000 * table, "complexity": table}
    found = found.assign({name: (("algorithm", "gap"), one) for name, one in columns.items()})
    return verdicts(EXPERIMENTS["fig2"].claims(found))


def test_claims_of_figure_2():
    assert figure_2() == [True] * 10
    assert figure_2({**FIGURE_2, "LinGapE": [1, 4, 60]})[:2] == [False, False]
    assert figure_2({**FIGURE_2, "XY-static": [30, 12, 50]})[1] is False
    assert figure_2({name: [1, 4, 16] for name in FIGURE_2})[:2] == [None, None]
    assert figure_2({**FIGURE_2, "XY-adaptive": [30, 50, 300]})[2] is False
    assert figure_2({**FIGURE_2, "LinGapE, by ratios": [1, 6, 16]})[3] is False
    uneven = [[6, 1, 1, 1, 1]] * 4
    assert figure_2(shares=uneven)[4:6] == [False, False]
    assert figure_2(shares=None)[4:6] == [None, None]
    assert figure_2(complexities={"ugape_complexity": 72.0})[6] is False
    assert figure_2(complexities={"oracle_complexity": 0.2})[7] is False
    assert figure_2(bounds=(10, 2, 160))[8] is False
    assert figure_2(cut=1)[8] is None


def test_runs_that_were_cut_short_decide_nothing():
    assert figure_2(cut=1)[:6] == [None] * 6
    assert figure_3(cut=1)[:4] == [None] * 4
    assert verdicts(EXPERIMENTS["table1"].claims(table(cut=1)))[:6] == [None] * 6
    assert verdicts(figure_1(cut=1))[8] is None


def figure_3(means=FIGURE_3, **options):
    return verdicts(
        EXPERIMENTS["fig3"].claims(dataset_with(means, "num_arms", (4, 8, 16), **options))
    )


def test_claims_of_figure_3():
    assert figure_3()[:4] == [True] * 4
    assert figure_3({**FIGURE_3, "LinGapE": [9, 26, 80]})[:4] == [False] * 4
    assert figure_3({**FIGURE_3, "XY-static": [40, 100, 63]})[1:4] == [False, True, False]
    assert figure_3(size=1)[:4] == [None] * 4


def test_the_paper_s_parameters():
    found = {name: one for name, one in reproduce.EXPERIMENTS.items() if name.startswith("lingape")}
    assert set(found) == {f"lingape/{part}" for part in ("fig1", "table1", "fig2", "fig3")}
    plan = found["lingape/fig1"].sweep()
    assert plan.axes == {"dim": tuple(range(2, 11))}
    assert plan.instances[0].options == {"angle": 0.01, "scale": 2.0}
    assert plan.algorithms[0].options == {"delta": 0.05, "v0": 1.0, "theta_norm": 2.0}
    assert plan.replications == 10
    assert plan.max_pulls > 10**9
    quick = found["lingape/fig1"].sweep(None, True)
    assert quick.instances[0].options["angle"] == 0.1
    assert found["lingape/fig1"].sweep(7, True).replications == 7
    assert found["lingape/table1"].sweep().instances[0].build().means[0] == 2.0
    log = found["lingape/fig3"].sweep(data="somewhere")
    assert log.instances[0].options["protocol"] == "lingape"
    assert "click log" in log.instances[0].table
