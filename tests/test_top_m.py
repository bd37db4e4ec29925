"""Relations between Top-m algorithms on the same rewards, and runs that do not end."""

from functools import partial

import jax
import numpy as np
import pytest
from top_m_lines import GapIndexRules, algorithm

import jaxbandits as jb
from jaxbandits.algorithms.loops.comparisons import by_averages, by_features
from jaxbandits.kernels.confidence import radius

CLASSIC = jb.instances.classic_top_m(4, 2, angle=0.8)
RANDOM = jb.instances.sphere(jax.random.key(3), 8, 3, mix=0.2, noise_var=0.25)
GIFA = GapIndexRules("paired", "indices", "index", "greedy", all_first=False)
ROWS = {
    "lin_gifa": GIFA,
    "lin_gifa, individual": GIFA._replace(indices="individual", selection="largest_variance"),
    "ugape": GapIndexRules("individual", "indices", "pair", "largest_variance"),
    "means, ugape's test": GapIndexRules(),
}


def row(arms, *, m, noise_var, rules, features=True, delta=0.05):
    """The algorithm of a row of Table 1, also of rows that no constructor offers."""
    facts = radius.facts(arms, delta=delta, noise_var=noise_var, v0=0.025, theta_norm=None)
    evidence = by_features(arms, 0.025, arm_space=True) if features else by_averages(len(arms))
    return algorithm(arms, evidence, rules, radius.width("heuristic", facts), m=m)


def stopping_times(instance, name, replications, *, m, stale=False):
    """Runs with each stopping test, on the same rewards and of at most 20,000 draws."""
    for test in ("ugape", "lucb"):
        rules = ROWS[name]._replace(stopping=test, stale_pair=stale)
        build = partial(row, m=m, rules=rules, features=name != "ugape")
        yield jb.simulate(instance, build, replications=replications, seed=9, max_pulls=20_000)


def no_later(instance, name, replications, m):
    """Lemma 1 of Reda et al.: `D_j <= max of B[i, j]` over the i outside J, for j in J."""
    early, late = stopping_times(instance, name, replications, m=m)
    assert (early.pulls <= late.pulls).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lin_gifa", "ugape"])
def test_ugapes_test_stops_no_later(name):
    no_later(CLASSIC, name, 400, 2)


@pytest.mark.slow
@pytest.mark.optimised
@pytest.mark.parametrize("name", ROWS)
def test_ugapes_test_never_stops_later(name):
    no_later(CLASSIC, name, 20_000, 2)
    no_later(RANDOM, name, 20_000, 3)


@pytest.mark.slow
def test_with_a_stale_pair_lucbs_test_often_stops_earlier():
    early, late = stopping_times(CLASSIC, "lin_gifa", 400, m=2, stale=True)
    assert (late.pulls < early.pulls).mean() > 0.2
    assert (~late.correct).mean() > 0.08
    assert (~early.correct).mean() < 0.05


def test_runs_that_do_not_end_are_reported():
    """Two arms with equal means at the border of the top m cannot be separated."""
    equal = jb.instances.linear(np.eye(3), [1.0, 0.5, 0.5], noise_var=0.25)
    for build in (jb.lucb, jb.ugape, partial(jb.lin_gifa, threshold="heuristic")):
        runs = jb.simulate(equal, partial(build, m=2), replications=20, seed=1, max_pulls=500)
        digest = runs.summary()
        assert digest["cut_short"] == (~runs.stopped).sum() > 15
        assert digest["pulls_mean_is_lower_bound"]
        assert (runs.pulls[~runs.stopped] == 500).all()
        assert len(runs) == 20


def test_epsilon_lets_runs_with_equal_means_end():
    equal = jb.instances.linear(np.eye(3), [1.0, 0.5, 0.5], noise_var=0.25)
    build = partial(jb.lucb, m=2, epsilon=0.4)
    runs = jb.simulate(equal, build, replications=20, seed=1, max_pulls=5000)
    assert runs.stopped.all()
    assert runs.correct.all()


@pytest.mark.slow
def test_equal_leaders_have_equal_chances():
    """Where averages tie, the first arm must not be answered more often than the others."""
    coins = jb.instances.bernoulli(np.eye(4), [0.5] * 4)
    for build in (partial(jb.m_lingape, m=1, threshold="heuristic"), partial(jb.ugape, m=1)):
        runs = jb.simulate(coins, partial(build, epsilon=50.0), replications=2000, seed=3)
        shares = runs.answer.mean(0)
        assert np.abs(shares - 0.25).max() < 0.05


def test_a_set_has_m_arms_whatever_xla_computes_twice():
    """A gap index that is computed anew, and rounded otherwise, would be larger than itself."""
    means = np.random.default_rng(0).standard_normal(11)
    instance = jb.instances.tabular(means=means, noise_var=1.0)
    build = partial(jb.ugape, m=8, noise_var=13.0)
    play = partial(jb.simulate, instance, build, replications=200, batch=16, max_pulls=60)
    found, native = play(engine="xla"), play(engine="auto")
    assert (found.answer.sum(1) == 8).all()
    np.testing.assert_array_equal(found.arm_pulls, native.arm_pulls)


@pytest.mark.parametrize(("build", "v0"), [(jb.m_lingape, 1.0), (jb.lin_gifa, 0.01)])
def test_the_ridge_of_the_published_program(build, v0):
    """Before any draw `x^T V^-1 x` is 1 / v0 for an arm of length 1."""
    algorithm = build(np.eye(3), m=1, v0="code", noise_var=4.0, theta_norm=1.0)
    found = algorithm.init(jax.random.key(0)).stats.variances
    np.testing.assert_allclose(found, 1.0 / v0)


def test_the_answer_before_the_first_test_is_a_set():
    build = partial(jb.lin_gifa, m=2, stale_pair=True, threshold="heuristic")
    live = jb.Live(build, np.eye(4))
    assert live.answer.sum() == 2
