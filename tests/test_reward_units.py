"""Rewards in another unit: c times the rewards and c^2 times `noise_var` change no draw.

`pytest tests/test_reward_units.py` holds the law against every algorithm whose rewards have a unit,
with `-m "slow or not slow"` against their variants and both engines too. Normal rewards have a
unit, and so have recorded and simulated ones. Rewards of 0 and 1, and Poisson rewards, have none.
Numbers c are powers of two, for which multiplication is exact: all draws, answers and diagnostics
are then equal, and the regret is exactly c times as large. Nothing is compiled anew.
"""

from collections.abc import Mapping
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

import at_random
import cases
import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from counting import compilations
from params import params
from programs import QUICK, simulate

import jaxbandits as jb
from jaxbandits.algorithms.loops import top_m

FACTORS = (8.0, 1024.0, 1 / 1024)
FAR = (2.0**400, 2.0**-400)  # rewards of 1e120, whose variance is near the largest allowed
ENGINES = ("xla", "native") if QUICK == "native" else ("xla",)


def check(problem, *, engine="auto", factors=FACTORS + FAR, **options):
    """The law for `problem(c) -> (instance, constructor)`, in units of 1/c."""
    plain = simulate(*problem(1.0), engine=engine, **options)
    assert plain.stopped.all()
    for factor in factors:
        scaled_problem = problem(factor)
        with compilations() as seen:
            scaled = simulate(*scaled_problem, engine=engine, **options)
        assert seen == []
        for name in ("pulls", "arm_pulls", "answer", "correct", "stopped"):
            np.testing.assert_array_equal(getattr(scaled, name), getattr(plain, name))
        chex.assert_trees_all_equal(scaled.info, plain.info)
        if plain.regret is not None:
            np.testing.assert_array_equal(scaled.regret, factor * plain.regret)
    return plain


def scaled(instance, build, names=()):
    """The problem `c -> (instance, constructor)`; `names` are options in units of a reward."""

    def problem(factor):
        made = at_random.in_reward_units(instance, factor)
        return made, at_random.options_in_reward_units(build, names, factor)

    return problem


WITH_UNITS = tuple(case for case in cases.CASES if cases.has_reward_units(case.instance))


@pytest.mark.parametrize("case", cases.law(WITH_UNITS), scope="module")
def test_another_unit_of_rewards_changes_no_draw(case):
    check(scaled(case.instance, case.build, case.in_reward_units), **case.options)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", WITH_UNITS, ids=attrgetter("name"), scope="module")
def test_another_unit_of_rewards_changes_no_draw_in_any_engine(case, engine):
    problem = scaled(case.instance, case.build, case.in_reward_units)
    check(problem, engine=engine, **case.options)


# Algorithms of generalised models, whose other families have no unit.
FAMILIES = ("glm_tsl", "glm_fpl", "glm_ucb", "ucb_glm", "epsilon_greedy", "evill", "ofu_glb")
GAUSSIAN = tuple(cases.named(name) for name in (*FAMILIES, "watched"))


def as_gaussian(case):
    """The arms and theta of a logistic case with normal rewards, the family "gaussian"."""
    return jb.instances.linear(case.instance.arms, case.instance.theta)


@pytest.mark.parametrize("case", cases.law(GAUSSIAN), scope="module")
def test_another_unit_changes_no_draw_of_the_gaussian_family(case):
    problem = scaled(as_gaussian(case), case.build)
    plain = check(problem, **case.options)
    # Not a power of two: up to rounding, which may decide near a tolerance.
    small = simulate(*problem(0.01), **case.options)
    np.testing.assert_allclose(small.regret.mean(0), 0.01 * plain.regret.mean(0), rtol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", GAUSSIAN, ids=attrgetter("name"), scope="module")
def test_another_unit_changes_no_draw_of_the_gaussian_family_in_any_engine(case, engine):
    check(scaled(as_gaussian(case), case.build), engine=engine, **case.options)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["glm_tsl", "glm_fpl", "glm_ucb", "ucb_glm", "evill"])
def test_the_regret_of_a_small_deviation_is_that_of_deviation_1(name):
    """Once it was 385, 371, 324, 324 and 385 deviations, nearly as much as at random."""
    plain, small = (
        jb.simulate(
            jb.instances.canonical(3, gap=0.6 * sd, noise_var=sd**2),
            getattr(jb, name),
            replications=100,
            horizon=1000,
            engine=QUICK,
        ).regret[:, -1]
        / sd
        for sd in (1.0, 0.01)
    )
    np.testing.assert_allclose(small.mean(), plain.mean(), rtol=0.02)
    assert plain.mean() < 150  # 400 at random


class Variant(NamedTuple):
    """An algorithm with options, of which some are in units of a reward."""

    build: Any
    names: tuple[str, ...] = ()
    instance: Any = jb.instances.soare(3, angle=0.5, scale=2.0)
    options: Mapping[str, Any] = MappingProxyType({})


GAPS = np.array([0.3, 0.5, 0.2, 0.4])
REGRET = {"horizon": cases.HORIZON}
VARIANTS = {
    "glm_tsl, theory": Variant(partial(jb.glm_tsl, a="theory"), options=REGRET),
    "glm_fpl, theory": Variant(partial(jb.glm_fpl, a="theory"), options=REGRET),
    "glm_ucb, theory": Variant(partial(jb.glm_ucb, alpha="theory"), options=REGRET),
    "ucb_glm, theory": Variant(partial(jb.ucb_glm, alpha="theory"), options=REGRET),
    "ucb_glm, squared": Variant(partial(jb.ucb_glm, bonus="squared_norm"), options=REGRET),
    "ofu_glb, ellipsoid": Variant(partial(jb.ofu_glb, form="ellipsoid"), options=REGRET),
    "lin_ucb": Variant(jb.lin_ucb, options=REGRET),
    "lin_ucb, proved": Variant(partial(jb.lin_ucb, alpha="self_normalised_det"), options=REGRET),
    "lin_ucb, disjoint": Variant(partial(jb.lin_ucb, disjoint=True), options=REGRET),
    "lin_ts, number": Variant(partial(jb.lin_ts, scale=0.5), ("scale",), options=REGRET),
    "lin_ts, theory": Variant(partial(jb.lin_ts, scale="theory"), options=REGRET),
    "lingape, epsilon": Variant(partial(jb.lingape, epsilon=0.2), ("epsilon",)),
    "lucb, epsilon": Variant(partial(jb.lucb, m=2, epsilon=0.2), ("epsilon",)),
    "lin_gifa, individual": Variant(partial(jb.lin_gifa, m=2, indices="individual")),
    "lin_game, m": Variant(partial(jb.lin_game, m=2)),
    "rage, regret": Variant(partial(jb.rage, rounding="regret")),
    "rage, epsilon": Variant(partial(jb.rage, epsilon=0.2), ("epsilon",)),
    "xy_adaptive, basis": Variant(partial(jb.xy_adaptive, begin="basis")),
    "xy_oracle, published": Variant(
        partial(jb.xy_oracle, powers="odd", singular="ignore", design="frank_wolfe")
    ),
    "peace, rho": Variant(partial(jb.peace, budget=60, objective="rho")),
    "gse, greedy": Variant(partial(jb.gse, budget=60, design="greedy", reuse=True)),
    "bayes_gap, given": Variant(
        partial(jb.bayes_gap, budget=60, prior_scale=3.0, epsilon=0.1), ("prior_scale", "epsilon")
    ),
    "bayes_gap, oracle": Variant(
        partial(jb.bayes_gap, budget=60, hardness="oracle", gaps=GAPS), ("gaps",)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", VARIANTS)
def test_another_unit_of_rewards_changes_no_draw_of_variants(name, engine):
    variant = VARIANTS[name]
    problem = scaled(variant.instance, variant.build, variant.names)
    check(problem, engine=engine, **variant.options)


ARMS = cases.named("lingape").instance.arms
SAMPLES = np.random.default_rng(0).normal(size=(4, 20)) + np.array([[1.0], [0.0], [0.3], [0.5]])


class Noisy(NamedTuple):
    """A simulator of rewards that are not normal."""

    means: Any

    def reward(self, key, arm):
        mean = self.means[arm]
        scale = jnp.abs(self.means).max()
        return mean + scale * (jax.random.uniform(key) - 0.5)


def under_stress(**options):
    """A maker of `c -> instance` of rewards that are not as told; some options have a unit."""
    with_unit = {name: options.pop(name) for name in ("deviation", "drift") if name in options}

    def instance(factor):
        plain = at_random.in_reward_units(cases.named("lingape").instance, factor)
        grown = {name: factor * value for name, value in with_unit.items()}
        return jb.instances.stressed(plain, **options, **grown)

    return instance


LAWS = {
    "recorded": lambda c: jb.instances.recorded(ARMS, c * SAMPLES, noise_var=c**2, theta_norm=c),
    "simulated": lambda c: jb.instances.simulated(
        ARMS, Noisy(c * np.array([1.0, 0.2, 0.1, 0.5])), noise_var=0.1 * c**2, theta_norm=c
    ),
    "unequal variances": under_stress(variance_ratio=3.0),
    "student": under_stress(df=3.0),
    "deviation": under_stress(deviation=0.1),
    "drift": under_stress(drift=0.3, period=50.0),
    "late": under_stress(delay=2),
}


@pytest.mark.parametrize("name", params(LAWS, always=["recorded", "student"]))
def test_another_unit_changes_no_draw_whatever_the_law_of_rewards(name):
    options = {} if name in ("recorded", "simulated", "deviation") else {"max_pulls": 20_000}
    problem = LAWS[name]
    check(lambda c: (problem(c), partial(jb.lingape, delta=0.1)), engine=QUICK, **options)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [name for name in LAWS if name != "late"])
def test_another_unit_changes_no_phase_whatever_the_law_of_rewards(name, engine):
    problem = LAWS[name]
    check(lambda c: (problem(c), jb.rage), engine=engine, factors=FACTORS)


@pytest.mark.slow
@pytest.mark.parametrize("build", [jb.glm_ucb, partial(jb.m_lingape, m=1)])
def test_live_runs_ask_for_the_same_arms_in_any_unit(build):
    rng = np.random.default_rng(1)
    rewards = rng.normal(size=(60, len(ARMS)))

    def asked(factor):
        options = {"noise_var": factor**2, "theta_norm": 2.0 * factor, "family": "gaussian"}
        run = jb.Live(build, ARMS, **options)
        arms = []
        for row in rewards:
            arms.append(int(run.ask()))
            run.tell(factor * row[arms[-1]])
        return arms, np.asarray(run.answer).tolist()

    expected = asked(1.0)
    for factor in FACTORS:
        assert asked(factor) == expected


def test_the_ridge_of_the_top_m_paper_is_the_default_at_its_variance_alone():
    """`v0="paper"` has the unit of the rewards, and says so; the default has none."""
    with jax.enable_x64(True):
        named = [float(top_m.ridge("paper", noise_var, code=1.0)) for noise_var in (0.25, 1.0)]
    assert named == [top_m.USUAL_RIDGE, 0.05]


@pytest.mark.slow
@pytest.mark.parametrize("build", [jb.m_lingape, jb.lin_gifa])
def test_pulls_with_the_ridge_of_the_top_m_paper(build):
    def pulls(v0, factor):
        plain = jb.instances.classic_top_m(4, 2, angle=0.8)
        made = at_random.in_reward_units(plain, factor)
        return simulate(made, partial(build, m=2, **v0), engine=QUICK).pulls

    np.testing.assert_array_equal(pulls({"v0": "paper"}, 1.0), pulls({}, 1.0))
    assert pulls({"v0": "paper"}, 1024.0).mean() > 1.2 * pulls({"v0": "paper"}, 1.0).mean()
