"""The guarantee of each algorithm, at fixed seeds; broken twins must fail the same test."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from params import params
from programs import QUICK, simulate
from scipy import integrate, stats

import jaxbandits as jb
from benchmarks.promises import (
    BUDGET,
    DELTA,
    ERROR,
    FIXED,
    PROMISES,
    forgetful,
    halving_instance,
    misfiled,
    narrow,
    twin_of,
)

CHANCE = 1e-6  # of failing although the guarantee holds


def keeps_promise(runs, delta):
    """Errors under the `1 - 1e-6` binomial quantile at `delta`; every run has ended."""
    assert runs.stopped.all()
    errors = int((~runs.correct).sum())
    return errors <= stats.binom.ppf(1 - CHANCE, len(runs), delta)


COSTLY = (jb.rage, jb.alba, jb.lazy_track_and_stop)
RUNS = {name: 500 if build in COSTLY else 1000 for name, (_, build) in PROMISES.items()}
# Slow tests: variants of a rule whose other variants are always tested, and most broken twins; the
# others share their loop, or learn as they do.
VARIANTS = ("m_lingape_ratio", "lin_gifa_individual", "lin_game_set", "rage_transductive")
VARIANTS += ("xy_static_soare", "xy_adaptive_basis", "rage_glm", "rage_epsilon")
NARROW, MISFILED = ("rage", "ugape"), ("lingape", "top_two")
every = pytest.mark.parametrize("name", params(PROMISES, slow=VARIANTS))


@every
def test_the_error_rate_is_at_most_delta(name):
    instance, build = PROMISES[name]
    options = {"replications": RUNS[name], "seed": 1, "engine": QUICK}
    assert keeps_promise(simulate(instance, partial(build, delta=DELTA), **options), DELTA)


MANY = {0.01: 5000, 0.05: 5000, 0.1: 20_000, 0.3: 5000}


@pytest.mark.slow
@pytest.mark.optimised
@every
def test_the_error_rate_is_at_most_delta_in_many_runs(name):
    instance, build = PROMISES[name]
    for delta, replications in MANY.items():
        runs = jb.simulate(instance, partial(build, delta=delta), replications=replications, seed=2)
        assert keeps_promise(runs, delta)


@pytest.mark.parametrize(
    ("name", "fault"),
    [*params(PROMISES, narrow, always=NARROW), *params(PROMISES, misfiled, always=MISFILED)],
)
def test_a_broken_twin_errs_more_often_than_delta(name, fault):
    instance, _ = PROMISES[name]
    twin, pulls = twin_of(fault, name)
    with twin as build:
        runs = simulate(
            instance,
            partial(build, delta=DELTA),
            replications=RUNS[name],
            seed=1,
            max_pulls=pulls,
            engine=QUICK,
        )
    runs = dataclasses.replace(runs, stopped=np.ones_like(runs.stopped))
    assert not keeps_promise(runs, DELTA)


def halving_error(draws, gap=1.0, sizes=(16, 8, 4, 2)):
    """Exact error on `canonical`: in some stage the best arm is not in the better half."""
    survive = 1.0
    for size in sizes:
        scale = 1 / np.sqrt(draws / size)

        def stays(x, size=size, scale=scale):
            below = stats.norm.cdf(x / scale)
            ahead = stats.binom.cdf(size // 2 - 1, size - 1, 1 - below)
            return stats.norm.pdf(x, gap, scale) * ahead

        survive *= integrate.quad(stays, gap - 9 * scale, gap + 9 * scale, epsabs=1e-12)[0]
    return 1 - survive


def fixed_budget(build, replications, seed, budget=BUDGET):
    instance = halving_instance()
    runs = jb.simulate(
        instance, partial(build, budget=budget), replications=replications, seed=seed, batch=2500
    )
    assert (runs.pulls == budget).all()
    return float((~runs.correct).mean())


def test_the_stored_exact_error_equals_the_integral():
    np.testing.assert_allclose(halving_error(80), ERROR, atol=5e-7)


@pytest.mark.parametrize("name", params(FIXED, slow=["gse_d_opt"]))
def test_successive_halving_has_its_exact_error(name):
    check_halving(name, 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIXED)
def test_successive_halving_has_its_exact_error_in_many_runs(name):
    check_halving(name, 100_000)


def check_halving(name, replications):
    error = fixed_budget(FIXED[name], replications, seed=5)
    within = 3 * np.sqrt(ERROR * (1 - ERROR) / replications)
    assert abs(error - ERROR) <= within


def test_broken_halving_errs_more():
    within = 3 * np.sqrt(ERROR * (1 - ERROR) / 20_000)
    with forgetful(jb.sequential_halving) as twin:
        assert fixed_budget(twin, 20_000, seed=5) > 0.4
    assert fixed_budget(jb.sequential_halving, 20_000, seed=5, budget=288) - ERROR > within


class Play:
    """Regret of GLM-TSL, and of uniform play, on redrawn logistic problems."""

    @staticmethod
    def cube(key):
        return jb.instances.logistic_cube(key, 20, 3, half_width=1.0)

    @staticmethod
    def uniform(arms):
        zero = jnp.zeros((), int)

        def ask(key, state):
            arm = jax.random.randint(key, (), 0, arms.shape[0])
            return jb.Move(arm, None, jnp.array(False), zero)

        return jb.Algorithm(lambda key: zero, ask, lambda state, move, total: state + 1)

    @staticmethod
    def growth(build, horizon, replications):
        """Mean regret of the last half of the rounds divided by that of the first half."""
        runs = jb.simulate(Play.cube, build, replications=replications, horizon=horizon, seed=6)
        half = np.interp(horizon / 2, runs.rounds, runs.regret.mean(0))
        last = runs.regret[:, -1].mean()
        return (last - half) / half


@pytest.mark.parametrize(
    ("horizon", "replications", "share"),
    [(400, 100, 0.6), pytest.param(10_000, 200, 0.35, marks=pytest.mark.slow)],
    ids=["short", "long"],
)
def test_regret_of_glm_tsl_grows_sublinearly(horizon, replications, share):
    assert Play.growth(jb.glm_tsl, horizon, replications) < share


def test_regret_of_uniform_play_grows_linearly():
    ratio = Play.growth(Play.uniform, 400, 100)
    np.testing.assert_allclose(ratio, 1.0, atol=0.05)
