"""Complexity constants: equal to plain loops, to closed forms, and to the tables of their paper."""

import itertools
import json
import math
import os
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import jaxbandits as jb
from benchmarks import complexity as tables
from jaxbandits import theory

RNG = np.random.default_rng(0)
RATIO = {"selection": "ratio"}
DATA = os.environ.get("JAXBANDITS_DATA")
real = pytest.mark.skipif(DATA is None, reason="JAXBANDITS_DATA names no folder")


def least_norm(features, i, j):
    """Absolute weights of the cheapest combination of arms that is `x_i - x_j`."""
    split = np.hstack([features.T, -features.T])
    wanted = features[i] - features[j]
    costs = np.ones(2 * len(features))
    found = scipy.optimize.linprog(costs, A_eq=split, b_eq=wanted, method="highs-ipm")
    return np.abs(found.x[: len(features)] - found.x[len(features) :])


def by_loops(features, theta, m, epsilon, variance):
    """LUCB, UGapE, and m-LinGapE in three forms: largest variance, ratios, ratios times norms."""
    means = [float(x @ theta) for x in features]
    ranked = sorted(means, reverse=True)
    gaps = []
    for mean in means:
        good = mean >= ranked[m - 1]
        gaps.append(mean - ranked[m] if good else ranked[m - 1] - mean)
    lucb = ugape = widest = printed = proved = 0.0
    for a, gap in enumerate(gaps):
        lucb += 2 * variance / max(epsilon / 2, gap) ** 2
        ugape += 2 * variance / max(epsilon, (epsilon + gap) / 2) ** 2
        widest += 4 * variance / max(epsilon, (epsilon + gap) / 3) ** 2
        one, other = 0.0, 0.0
        for i, j in itertools.combinations(range(len(gaps)), 2):
            weights = least_norm(features, i, j)
            size = max(epsilon, (epsilon + gaps[i]) / 3, (epsilon + gaps[j]) / 3)
            one = max(one, weights[a] / size**2)
            other = max(other, weights[a] * sum(weights) / size**2)
        printed += variance * one
        proved += variance * other
    return lucb, ugape, widest, printed, proved


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 5.0])
@pytest.mark.parametrize("m", [1, 3, 5])
def test_the_constants_equal_plain_loops(m, epsilon):
    features, theta = RNG.normal(size=(6, 3)), RNG.normal(size=3)
    instance = jb.instances.linear(features, theta, noise_var=0.3)
    found = (
        theory.lucb_complexity(instance, m, epsilon=epsilon),
        theory.ugape_complexity(instance, m, epsilon=epsilon),
        theory.m_lingape_complexity(instance, m, epsilon=epsilon),
        theory.m_lingape_complexity(instance, m, epsilon=epsilon, **RATIO),
        theory.m_lingape_complexity(instance, m, epsilon=epsilon, rho_power=2, **RATIO),
    )
    expected = by_loops(features, theta, m, epsilon, 0.3)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(("num_arms", "dim"), [(10, 10), (10, 20), (30, 30)])
def test_for_independent_arms_m_lingape_has_the_larger_constant(num_arms, dim):
    """`w = e_i - e_j`: both arms at the boundary add `1 / gap^2`, any other one that of its own."""
    m = tables.members(num_arms)
    for number in range(10):
        instance = tables.drawn(num_arms, dim, 0.25, number)
        ugape = theory.ugape_complexity(instance, m)
        found = theory.m_lingape_complexity(instance, m, **RATIO)
        assert found == pytest.approx(9 / 8 * ugape)
        twice = theory.m_lingape_complexity(instance, m, rho_power=2, **RATIO)
        assert twice == pytest.approx(2 * found)
        assert not tables.pays(instance, m)


def test_the_constant_of_the_classic_instance_has_a_closed_form():
    """Arms e_1, (cos, sin), e_2: no difference has a smaller norm because of the second arm."""
    angle, variance = math.pi / 6, 0.25
    instance = jb.instances.classic_top_m(3, 1, angle=angle, noise_var=variance)
    gap = 1 - math.cos(angle)
    # `(1 - cos, 0, -sin)` gives the difference of the first two; other pairs have the gap 1.
    expected = variance * 9 * (gap + math.sin(angle)) / gap**2
    assert theory.m_lingape_complexity(instance, 1, **RATIO) == pytest.approx(expected)


@pytest.mark.parametrize("factor", [0.25, 1e-3, 40.0])
def test_all_constants_scale_alike_with_the_features(factor):
    instance = tables.drawn(8, 4, 0.5, 0)
    scaled = tables.first_feature(factor * instance.arms)
    for constant in (
        theory.lucb_complexity,
        theory.ugape_complexity,
        theory.m_lingape_complexity,
        lambda *given: theory.m_lingape_complexity(*given, **RATIO),
    ):
        assert constant(scaled, 3) == pytest.approx(constant(instance, 3) / factor**2)


@pytest.mark.parametrize("unit", [8.0, 1 / 1024])
def test_the_unit_of_rewards_changes_no_constant(unit):
    plain = tables.drawn(8, 4, 0.5, 0)
    scaled = jb.instances.linear(plain.arms, unit * plain.theta, noise_var=unit**2)
    for constant in (
        theory.lucb_complexity,
        theory.ugape_complexity,
        theory.m_lingape_complexity,
        partial(theory.m_lingape_complexity, **RATIO),
    ):
        found = constant(scaled, 3, epsilon=0.1 * unit)
        assert found == pytest.approx(constant(plain, 3, epsilon=0.1), rel=1e-12)


FOUR = jb.instances.classic_top_m(4, 2, angle=0.6)


def widths(threshold, u, *, delta, noise_var, norm, largest, num_arms, dim, v0=1 / 40):
    """C after u draws, written out."""
    if threshold == "lucb1":
        return math.sqrt(2 * math.log(5 * num_arms * u**4 / (4 * delta)))
    if threshold == "heuristic":
        return math.sqrt(2 * math.log((1 + math.log(u)) / delta))
    logdet = dim * math.log(1 + u * largest / (v0 * dim))
    return math.sqrt(2 * math.log(1 / delta) + logdet) + math.sqrt(v0 / noise_var) * norm


@pytest.mark.parametrize("threshold", ["self_normalised", "lucb1", "heuristic"])
def test_the_bound_on_pulls_is_the_first_number_above_its_right_side(threshold):
    """Whole numbers one after the other; Theorem 2 with the first draw of each arm."""
    facts = {"delta": 0.1, "noise_var": 0.25, "norm": 1.0, "largest": 2.0}
    facts |= {"num_arms": 4, "dim": 3}
    for constant in (0.01, 3.0, 40.0):
        found = theory.top_m_pull_bound(FOUR, constant, 0.1, threshold=threshold)
        u = 5
        while u <= 1 + constant * widths(threshold, u, **facts) ** 2 + 4:
            u += 1
        assert u - 1 <= found <= u
        assert found == pytest.approx(1 + constant * widths(threshold, found, **facts) ** 2 + 4)


def test_the_bound_grows_with_the_constant_and_with_the_confidence():
    bound = partial(theory.top_m_pull_bound, FOUR)
    assert bound(10.0, 0.05) < bound(20.0, 0.05) < bound(20.0, 0.01)
    assert bound(10.0, 0.05, theta_norm=1.0) == bound(10.0, 0.05) < bound(10.0, 0.05, theta_norm=2)
    assert bound(math.inf, 0.05) == bound(1e307, 0.05) == math.inf
    assert 5.0 < bound(1e-300, 0.05) < 5.0 + 1e-9


def test_the_unit_of_rewards_changes_no_bound_on_pulls():
    arms, theta = RNG.normal(size=(5, 3)), RNG.normal(size=3)
    plain, scaled = (
        jb.instances.linear(arms, unit * theta, noise_var=0.5 * unit**2) for unit in (1.0, 1024.0)
    )
    found, other = (theory.top_m_pull_bound(instance, 50.0, 0.1) for instance in (plain, scaled))
    assert other == pytest.approx(found, rel=1e-12)


def test_lucb_needs_more_pulls_than_its_printed_constant_allows():
    """And no more than with the constant that Theorem 2 proves for m-LinGapE."""
    algorithm = partial(jb.lucb, m=2, delta=0.1, selection="largest_variance")
    pulls = jb.simulate(FOUR, algorithm, replications=40).pulls
    bound = partial(theory.top_m_pull_bound, FOUR, delta=0.1, threshold="lucb1")
    assert pulls.min() > bound(theory.lucb_complexity(FOUR, 2))
    assert pulls.max() < bound(theory.m_lingape_complexity(FOUR, 2))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"complexity": 0.0}, "complexity must be a number above 0, got 0"),
        ({"complexity": math.nan}, "complexity must be a number above 0, got nan"),
        ({"delta": 1.0}, "delta must be a number in"),
        ({"threshold": "pairwise"}, "threshold must be one of 'self_normalised', 'lucb1'"),
        ({"v0": 0.0}, "v0 must be a finite number above 0, got 0"),
        ({"theta_norm": -1.0}, "theta_norm must be a finite number, 0 or above, got -1"),
        ({"instance": 3}, "instance must be an Instance, got 3"),
        ({"instance": replace(FOUR, theta_norm=None)}, "theta_norm must be given"),
    ],
)
def test_what_a_bound_on_pulls_refuses(given, words):
    with pytest.raises(ValueError, match=words):
        theory.top_m_pull_bound(**{"instance": FOUR, "complexity": 1.0, "delta": 0.1} | given)


@pytest.mark.slow
def test_enough_ends_the_sum_early_and_keeps_the_comparison():
    answers, early = set(), 0
    for number in range(12):
        instance = tables.drawn(10, 5, 0.25, number)
        limit = theory.ugape_complexity(instance, 4)
        whole = theory.m_lingape_complexity(instance, 4, **RATIO)
        part = theory.m_lingape_complexity(instance, 4, enough=limit, **RATIO)
        assert part <= whole
        assert (part <= limit) == (whole <= limit)
        answers.add(whole <= limit)
        early += part < whole
    assert answers == {True, False}
    assert early > 3


def test_a_gap_of_0_gives_infinity_without_epsilon():
    tied = jb.instances.linear(np.eye(4), [1.0, 0.5, 0.5, 0.0])
    twins = jb.instances.linear([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
    for instance, m in ((tied, 2), (twins, 1)):
        for options in ({}, RATIO):
            assert theory.m_lingape_complexity(instance, m, **options) == math.inf
            assert theory.m_lingape_complexity(instance, m, epsilon=0.1, **options) < math.inf
        assert theory.lucb_complexity(instance, m) == theory.ugape_complexity(instance, m)
        assert theory.lucb_complexity(instance, m) == math.inf
    assert theory.lucb_complexity(tied, 2, epsilon=0.2) == pytest.approx(2 * (4 + 100 + 100 + 4))
    assert theory.lucb_complexity(tied, 1) == pytest.approx(2 * (4 + 4 + 4 + 1))


def test_bad_input_is_named():
    basis = jb.instances.canonical(4, gap=0.5)
    for m in (0, 4, 1.5, True, None, "2"):
        with pytest.raises(ValueError, match=f"m must be a whole number from 1 to 3, got {m!r}"):
            theory.lucb_complexity(basis, m)
    for epsilon in (-0.1, math.nan, math.inf, None):
        with pytest.raises(ValueError, match="epsilon must be a finite number, 0 or above, got"):
            theory.ugape_complexity(basis, 1, epsilon=epsilon)
    with pytest.raises(ValueError, match="instance: its targets must be its arms"):
        theory.m_lingape_complexity(jb.instances.transductive(6), 1)
    with pytest.raises(ValueError, match="instance must be an Instance, got 'classic'"):
        theory.lucb_complexity("classic", 1)
    with pytest.raises(ValueError, match="selection must be one of 'largest_variance', 'ratio'"):
        theory.m_lingape_complexity(basis, 1, selection="greedy")
    with pytest.raises(ValueError, match="rho_power must be one of 1, 2, got 3"):
        theory.m_lingape_complexity(basis, 1, rho_power=3)
    with pytest.raises(ValueError, match="enough must be a finite number above 0, got 0"):
        theory.m_lingape_complexity(basis, 1, enough=0)


@pytest.mark.slow
def test_the_first_row_of_table_4_on_few_instances():
    """The paper has 29.1% and 30.8%; the quantiles leave 1/1000 on either side."""
    count = sum(tables.pays(tables.drawn(10, 5, 0.5, number), 4) for number in range(60))
    assert scipy.stats.binom.ppf(0.001, 60, 0.291) <= count
    assert count <= scipy.stats.binom.isf(0.001, 60, 0.308)


def test_the_tables_are_written(tmp_path, capsys):
    out = tmp_path / "tables.json"
    tables.main(["--only", "K=10", "N=5", "D=0.25", "--instances", "3", "--out", str(out)])
    tables.main(["--only", "table 5", "m=3", "--out", str(out)])
    share, single = json.loads(out.read_text())
    assert (share["instances"], share["m"], share["printed_percent"]) == (3, 4, 29.1)
    assert share["low"] <= share["percent"] <= share["high"]
    assert single["name"] == "m=3, random stand-in"
    assert "printed_ugape" not in single
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["K=10 N=5 D=0.25", "m=3, random stand-in"]


def test_the_stored_tables_agree_with_the_paper():
    rows = {row["name"]: row for row in json.loads(tables.RESULTS.read_text())}
    for (num_arms, dim), scale in itertools.product(tables.PRINTED, tables.SCALES):
        row = rows[f"K={num_arms} N={dim} D={scale}"]
        assert row["instances"] == 1000
        assert row["p_value"] > 0.001
        assert dim < num_arms or row["count"] == 0
    for m, (m_lingape, ugape) in tables.TABLE_5.items():
        row = rows[f"m={m}, the paper's matrix"]
        assert (round(row["m_lingape"], 2), round(row["ugape"], 2)) == (m_lingape, ugape)


@real
@pytest.mark.parametrize(("m", "gap"), [(3, 0.0755), (8, 0.0289)])
def test_table_5_agrees_with_the_paper(m, gap):
    row = tables.constants(m, DATA)
    assert round(row["gap"], 4) == gap
    assert (round(row["m_lingape"], 2), round(row["ugape"], 2)) == tables.TABLE_5[m]
