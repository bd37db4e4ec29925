"""Means that are estimates: whether they settle what is right, and what their draws show."""

import dataclasses
import warnings
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from params import params
from programs import QUICK
from scipy.stats import norm
from scipy.stats import t as student

import jaxbandits as jb
from jaxbandits.engine.episode import INSTANCE
from jaxbandits.engine.results import Runs
from jaxbandits.instances import settled
from jaxbandits.instances.environments.finite import finite
from jaxbandits.instances.estimated_regret import SHARE, share_of_means
from jaxbandits.instances.settled import Estimated
from jaxbandits.instances.simulator_means import DRAWS, MOST_DRAWS
from jaxbandits.intervals import standard_error
from jaxbandits.report.table import print_table
from jaxbandits.sweeps.selection import complete
from jaxbandits.sweeps.summaries import last_regret
from jaxbandits.sweeps.until import RULES
from jaxbandits.system.identity import describe

make = jb.instances
NEAR = np.array([0.51, 0.50])


class Noisy(NamedTuple):
    """Noise of one of three kinds; the same program for all."""

    means: Any
    kind: Any  # 0: normal, 1: Cauchy, 2: none
    scale: Any = np.float64(1.0)

    def reward(self, key, arm):
        one, two = jax.random.normal(key, (2,))
        noise = jnp.stack([one, one / two, 0.0])[self.kind]
        return self.means[arm] + self.scale * noise


def noisy(true=NEAR, kind=0, scale=1.0, **options):
    true = np.asarray(true, float)
    simulator = Noisy(true, np.int64(kind), np.float64(scale))
    return make.simulated(np.eye(len(true)), simulator, noise_var=1.0, **options)


@pytest.mark.parametrize("seed", params(range(40), always=map(str, range(12))))
def test_near_means_are_refused_whatever_the_draws(seed):
    with pytest.raises(ValueError, match=r"^simulator: 2,000 draws .* which arm is the best"):
        noisy(seed=seed)


def test_the_error_says_what_to_do_in_a_line():
    with pytest.raises(ValueError, match="draws='until settled'") as caught:
        noisy([1.06, 1.0], seed=3)
    text = str(caught.value)
    assert "\n" not in text
    assert "means=[...]" in text
    number = int(text.split("draws=")[1].split(",")[0])
    assert DRAWS < number <= 200_000
    assert noisy([1.06, 1.0], seed=3, draws=number).means.argmax() == 0


@pytest.mark.parametrize(
    ("true", "seed"),
    [
        ([0.54, 0.5], 0),
        ([0.53, 0.5], 1),  # of more draws than are made in one call
        pytest.param(NEAR, 0, marks=[pytest.mark.optimised, pytest.mark.slow]),
    ],
)
def test_draws_are_doubled_until_the_best_arm_is_settled(true, seed):
    instance = noisy(true, draws="until settled", seed=seed)
    assert instance.means.argmax() == 0
    times = int(instance.draws) // DRAWS
    assert times in 2 ** np.arange(1, 12)
    found = instance.estimated
    assert settled.separation(found) >= 5.0
    np.testing.assert_allclose(found.errors, 1.0 / np.sqrt(int(instance.draws)), rtol=0.02)
    again = noisy(true, draws="until settled", seed=seed)
    np.testing.assert_array_equal(again.means, instance.means)
    fixed = noisy(true, draws=int(instance.draws), seed=seed)  # in one piece
    np.testing.assert_allclose(fixed.means, instance.means, rtol=1e-12)
    np.testing.assert_allclose(fixed.standard_errors, instance.standard_errors, rtol=1e-9)


def test_settled_draws_are_the_default_ones_where_these_settle_it():
    one, two = noisy([1.0, 0.0], draws="until settled"), noisy([1.0, 0.0])
    np.testing.assert_array_equal(one.means, two.means)
    assert int(one.draws) == DRAWS


def test_equal_arms_are_never_settled(monkeypatch):
    monkeypatch.setattr("jaxbandits.instances.simulator_means.MOST_DRAWS", 16_000)
    with pytest.raises(ValueError, match=r"16,000 draws .*means=\[...\]") as caught:
        noisy([0.5, 0.5], draws="until settled")
    assert "until settled" not in str(caught.value)
    assert MOST_DRAWS == 4_096_000


def test_equal_means_without_variance_are_not_settled():
    found = Estimated(np.array([0.5, 0.5, 0.4]), np.zeros(3), 2000)
    assert settled.separation(found) == 0.0
    assert settled.separation(found, 2) == np.inf
    assert settled.separation(found, 1, 0.05) == np.inf
    text = "got 0; no number of draws settles means that are .nearly. equal: give .*means="
    for draws in (DRAWS, "until settled"):
        with pytest.warns(UserWarning, match="variance 0"), pytest.raises(ValueError, match=text):
            noisy([0.5, 0.5, 0.4], kind=2, draws=draws)


def test_what_no_number_of_draws_settles_is_no_advice():
    text = "no number of draws settles rewards without a mean or a variance"
    with (
        pytest.warns(UserWarning, match="may have no mean"),
        pytest.raises(ValueError, match=text) as caught,
    ):
        noisy([0.5, 0.5], kind=1)
    assert "draws=" not in str(caught.value)
    near = Estimated(np.array([0.5, 0.501]), np.array([0.001, 0.001]), 4_096_000)
    for means, planned in (([0.5, 0.501], None), ([0.5, 0.505], 12_000_000)):
        found = near._replace(means=np.array(means))
        assert settled.planned_draws(found) == planned
        with pytest.raises(ValueError, match="no number" if planned is None else "12,000,000"):
            settled.check_settled(found, role="instance")


def test_three_arms_of_which_the_first_two_are_clear():
    """What counts is the boundary of the m best, and every arm that may cross it."""
    close = [1.0, 0.51, 0.50]
    assert noisy(close).estimated is not None
    with pytest.raises(ValueError, match="which 2 arms are the best"):
        noisy(close, m=2)
    for m in (0, 3):
        noisy([0.5, 0.5, 0.5], m=m)


def test_small_samples_need_more_standard_errors():
    """With two draws, a standard error is often small by chance."""
    for seed in range(12):
        with pytest.raises(ValueError, match="2 draws of each arm do not settle"):
            noisy(draws=2, seed=seed)


def test_few_draws_need_the_quantile_of_student():
    for draws in (2, 3, 5, 10, 40, 100, 2000):
        needed, exact = settled.needed_separation(draws), student.isf(norm.sf(5.0), draws - 1)
        assert needed > 0.99 * exact
        assert draws < 10 or needed < 1.1 * exact  # below it is far too large, which is safe
    np.testing.assert_allclose(settled.needed_separation(2000), 5.016, rtol=1e-3)


def test_separation_counts_each_arm_that_may_be_among_the_best():
    found = Estimated(np.array([1.0, 0.8, 0.5]), np.array([0.01, 0.01, 0.5]), 2000)
    np.testing.assert_allclose(settled.separation(found), 0.5 / np.hypot(0.01, 0.5))
    np.testing.assert_allclose(settled.separation(found, 2), 0.3 / np.hypot(0.01, 0.5))
    np.testing.assert_allclose(settled.separation(found, 1, 0.15), 0.35 / np.hypot(0.01, 0.5))
    assert settled.separation(found, 0) == settled.separation(found, 3) == np.inf
    exact = found._replace(errors=np.zeros(3))
    assert settled.separation(exact) == np.inf
    with jax.enable_x64(True):
        for m, epsilon in ((1, 0.0), (2, 0.0), (1, 0.15), (0, 0.0)):
            traced = jax.jit(partial(settled.separation, numpy=jnp))(found, m, epsilon)
            np.testing.assert_allclose(traced, settled.separation(found, m, epsilon))


def test_known_means_are_the_truth():
    given = noisy(means=NEAR, draws=100)
    np.testing.assert_array_equal(given.means, NEAR)
    np.testing.assert_array_equal(given.values, NEAR)
    assert given.means.dtype == np.float64
    assert given.standard_errors is None
    assert given.estimated is None
    single = noisy(means=NEAR.astype(np.float32), draws=100)
    np.testing.assert_array_equal(single.means, NEAR.astype(np.float32).astype(float))


@pytest.mark.parametrize(
    ("true", "budget"),
    [
        ([0.7, 0.5], 300),
        pytest.param(NEAR, 120_000, marks=[pytest.mark.slow, pytest.mark.optimised]),
    ],
    ids=["far", "near"],
)
def test_known_means_give_the_error_rate_and_the_regret_of_normal_arms(true, budget):
    """Estimates in the wrong order made it .95: a normal number is above 1.73 in 42 of 1,000."""
    halving = partial(jb.sequential_halving, budget=budget)
    runs = jb.simulate(noisy(true, means=true, draws=100), halving, replications=400, seed=1)
    low, high = runs.summary()["error_low"], runs.summary()["error_high"]
    assert low < norm.sf(1.732) < high < 0.08
    play = partial(jb.simulate, noisy(true, means=true, draws=100), jb.uniform, replications=50)
    lost = play(horizon=100).regret[:, -1].mean()
    np.testing.assert_allclose(lost, 50 * (true[0] - true[1]), rtol=0.1)


@pytest.mark.parametrize(
    ("means", "message"),
    [
        ([0.5], r"means must have shape \(2,\), got \(1,\)"),
        ([[0.5, 0.4]], r"means must have shape \(2,\), got \(1, 2\)"),
        ([0.5, np.nan], "means must be finite"),
        ([0.5, 1j], "means must be real numbers, got complex"),
        (["0.5", "0.4"], "means must be real numbers, got text"),
    ],
)
def test_means_are_checked(means, message):
    with pytest.raises(ValueError, match=message):
        make.simulated(np.eye(2), Noisy(NEAR, np.int64(0)), means=means, noise_var=1.0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: noisy([9.0, 0.0], scale=10.0), r"arm [01] \(and 1 more\) .*variance of .*noise_v"),
        (lambda: noisy([1.0, 0.0], scale=1.2), "variance of 1.[45]"),
        (lambda: noisy([1.0, 0.0], kind=1, m=0), "may have no mean"),
        (lambda: noisy([1.0, 0.0], kind=2), r"2,000 rewards of arm 0 \(and 1 more\) have varianc"),
        (lambda: noisy([1.0, 0.0], draws=1), "one reward of each arm"),
        (lambda: noisy([1.0, 0.0], means=[1.0, 0.3]), "means: 0.3 of arm 1 is .* standard errors"),
        (lambda: make.recorded(np.eye(2), [[1.0], [0.0]], noise_var=1.0), "samples: one reward"),
        (lambda: make.recorded(np.eye(2), [[1.0, 2.0], [3.0, 3.0]], noise_var=1.0), "of arm 1 ha"),
        (lambda: make.recorded(np.eye(2), [[0.0, 20.0], [3.0, 4.0]], noise_var=1.0), "arm 0 have"),
        (
            lambda: make.recorded(np.eye(2), np.tile([[-2.0, 2.0]], (2, 100)), noise_var=1.0),
            "variance of 4, 4 times",
        ),
    ],
)
def test_what_rewards_show_is_said_once_in_a_line(build, message):
    with pytest.warns(UserWarning, match=message) as caught:
        build()
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    assert caught[0].filename == __file__


def test_rewards_as_they_should_be_give_no_warning():
    """Of normal rewards with the variance that learners are told, and of fair coins."""
    for seed in range(5):
        noisy([1.0, 0.0], seed=seed)
    make.recorded(np.eye(2), np.random.default_rng(0).normal(size=(2, 400)), noise_var=1.0)
    make.recorded(np.eye(2), [[0.0, 1.0] * 50, [1.0, 0.0] * 50], noise_var=0.25)


@pytest.mark.parametrize(("pairs", "size"), [(20, 2.0), (100, 1.002)])
def test_few_rewards_or_a_little_more_variance_give_no_warning(pairs, size):
    make.recorded(np.eye(2), np.tile([[-size, size]], (2, pairs)), noise_var=1.0)


def test_the_arm_whose_variance_is_largest_is_named():
    samples = np.tile([[-2.0, 2.0], [-3.0, 3.0]], 100)
    with pytest.warns(UserWarning, match=r"arm 1 \(and 1 more\) have a variance of 9"):
        make.recorded(np.eye(2), samples, noise_var=1.0)


@pytest.mark.parametrize("gap", [0.007, 0.0123, 0.05, 0.1])
def test_planned_draws_are_enough_by_at_most_a_tenth(gap):
    found = Estimated(np.array([0.5, 0.5 + gap, 0.0]), np.array([0.02, 0.03, 0.01]), 2000)
    exact = 2000 * (settled.PLANNED * np.hypot(0.02, 0.03) / gap) ** 2
    assert exact <= settled.planned_draws(found) <= 1.1 * exact
    assert settled.planned_draws(found._replace(means=np.ones(3))) is None


@pytest.mark.parametrize("seed", range(5))
def test_rewards_without_a_mean_are_noticed(seed):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        noisy([1.0, 0.0], kind=1, m=0, seed=seed)
    assert ["may have no mean" in str(warning.message) for warning in caught] == [True]


def test_standard_errors_are_kept_and_shown():
    instance = noisy([1.0, 0.0])
    np.testing.assert_allclose(instance.standard_errors, 1.0 / np.sqrt(DRAWS), rtol=0.1)
    assert "standard errors of means 0.02" in repr(instance)
    assert "(2,000 draws)" in repr(instance)
    assert "standard error" not in repr(make.tabular(means=[1.0, 0.0]))
    stressed = make.stressed(instance, variance_ratio=4.0)
    np.testing.assert_allclose(
        stressed.standard_errors, np.sqrt([1.0, 4.0]) * instance.standard_errors
    )


def test_cells_know_an_instance_by_its_means_alone():
    """As they did before standard errors were kept."""
    instance = noisy([1.0, 0.0])
    described = describe(instance, lambda _: "")
    assert set(described) == {
        *("arms", "targets", "means", "values", "theta", "noise_var", "theta_norm", "samples"),
        *("simulator", "rewards", "family"),
    }
    assert described == describe(dataclasses.replace(instance, draws=None), lambda _: "")


TOP = partial(jb.lucb, delta=0.1)


@pytest.mark.parametrize(
    ("algorithm", "options", "message"),
    [
        (partial(TOP, m=2), {}, "which 2 arms are the best"),
        (jb.lingape, {"m": 2, "theta_norm": 2.0}, "which arm is the best"),
        (partial(jb.lin_ucb, alpha=1.0), {"m": 2}, "which arm is the best"),
    ],
)
def test_an_algorithm_is_judged_by_the_boundary_that_it_seeks(algorithm, options, message):
    means = [1.0, 0.99, 0.5, 0.0] if "m" in options else [1.0, 0.5, 0.49, 0.0]
    instance = noisy(means, **options)
    horizon = 10 if "alpha" in getattr(algorithm, "keywords", ()) else None
    with pytest.raises(ValueError, match=f"^instance: .*{message}"):
        jb.simulate(instance, algorithm, replications=2, horizon=horizon)


def near(key, gap):
    best = 0.5 + gap * jax.random.uniform(key)
    simulator = Noisy(jnp.array([0.5, 0.5]).at[0].set(best), jnp.array(0), jnp.array(1.0))
    return make.simulated(np.eye(2), simulator, noise_var=1.0, draws=500)


def test_the_share_of_unsettled_replications_is_shown():
    play = partial(jb.simulate, replications=40, engine=QUICK)
    halving = partial(jb.sequential_halving, budget=20)
    few, all_ = (play(partial(near, gap=gap), halving) for gap in (2.0, 0.001))
    assert all_.meta["unsettled"] == 1.0
    assert 0.0 < few.meta["unsettled"] == few.facts["unsettled"].mean() < 0.5
    assert "not settled" in repr(few)
    parts = [jb.results.first_of(few, 7), few]
    assert jb.results.joined(parts).meta["unsettled"] == few.meta["unsettled"]
    assert parts[0].meta["unsettled"] == few.facts["unsettled"][:7].mean()
    assert (
        "unsettled"
        not in jb.simulate(make.canonical(2, gap=1.0), halving, replications=2, engine=QUICK).meta
    )


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("means", np.array([1.0, 0.0], np.float32), None),
        ("means", [1, 0], None),
        ("noise_var", 1, None),
        ("arms", np.eye(2, dtype=np.float32), None),
        ("means", [1.0, 2.0], "values must be the means where the targets are the arms"),
        ("means", np.float32([0.9, 0.1]), "got 1.0 and 0.89.* for arm 0: where one is replaced"),
        ("means", [1.0], r"means must have shape \(2,\), got \(1,\)"),
        ("means", ["1", "0"], "means must be real numbers, got text"),
        ("rewards", "gamma", "rewards must be one of"),
        ("rewards", "recorded", "samples must be given for rewards 'recorded'"),
        ("rewards", "simulated", "simulator must be given"),
        ("rewards", "student", "stress must be given"),
        ("family", "gamma", "family must be one of"),
        ("samples", np.ones(3), r"samples must be a table \[2, N\]"),
    ],
)
def test_replaced_fields_are_converted_or_refused(field, value, message):
    instance = dataclasses.replace(make.tabular(means=[1.0, 0.0]), **{field: value})
    play = partial(jb.simulate, replications=2, engine=QUICK)
    halving = partial(jb.sequential_halving, budget=20)
    if message is None:
        assert play(instance, halving).pulls.tolist() == [20, 20]
        return
    with pytest.raises(ValueError, match=message) as caught:
        play(instance, halving)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("field", ["means", "values"])
def test_a_field_in_single_precision_is_said_to_be_one(field):
    instance = make.tabular(means=[0.9, 0.1])
    replaced = dataclasses.replace(instance, **{field: np.float32([0.9, 0.1])})
    with pytest.raises(ValueError, match=f"0.8999.*: the {field} are rounded to float32: give"):
        jb.simulate(replaced, jb.uniform, replications=1, horizon=2)


def test_fields_replaced_where_an_instance_is_drawn_are_converted():
    def draw(key):
        instance = make.tabular(means=[1.0, 0.0])
        means = jnp.array([2.0, 0.0], jnp.float32)
        return dataclasses.replace(instance, means=means, values=means)

    halving = partial(jb.sequential_halving, budget=20)
    runs = jb.simulate(draw, halving, replications=4, engine=QUICK)
    assert runs.correct.sum() >= 3


@pytest.mark.parametrize(
    "bound",
    [
        lambda instance: jb.theory.lucb_complexity(instance, 1),
        lambda instance: jb.theory.m_lingape_complexity(instance, 1),
        lambda instance: jb.theory.sequential_halving_error_bound(instance, 100),
        lambda instance: jb.theory.gse_error_bound(linear(instance), budget=100),
        pytest.param(
            lambda instance: jb.theory.rage_pull_bound(linear(instance), 0.05),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_bound_from_estimated_means_says_so(bound):
    with pytest.warns(UserWarning, match="means are estimates with standard errors of up to 0.02"):
        bound(noisy([1.0, 0.0]))


def linear(instance):
    """The instance with the parameter that gives its estimated means."""
    return dataclasses.replace(instance, theta=instance.means)


def test_there_is_no_characteristic_time_of_simulated_rewards():
    for function in (jb.theory.characteristic_time, partial(jb.theory.pull_lower_bound, delta=0.1)):
        with pytest.raises(ValueError, match="its rewards must be normal, got 'simulated'"):
            function(linear(noisy([1.0, 0.0])))


def test_sweeps_and_comparisons_show_the_share_too(capsys):
    halving = partial(jb.sequential_halving, budget=20)
    found = jb.compare(
        {"20": halving}, partial(near, gap=2.0), replications=40, bounds=False, engine=QUICK
    )
    share = float(found.dataset.unsettled.mean())
    assert 0.0 < share < 0.5
    said = f"In up to {share:.3g} of the replications of a cell, estimated means do not settle"
    assert said in repr(found)
    print_table(found.dataset)
    assert said[:40] in capsys.readouterr().out
    exact = jb.compare(
        {"20": halving}, make.canonical(2, gap=1.0), replications=4, bounds=False, engine=QUICK
    )
    assert "unsettled" not in exact.dataset
    assert "estimated" not in repr(exact)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["xla", "native"])
def test_draws_go_on_until_settled_where_an_instance_is_drawn_anew(engine):
    """The same numbers as outside of a simulation, but for rounding."""
    gaps = []

    def draw(key):
        best = 0.56 + 0.2 * jax.random.uniform(key)
        simulator = Noisy(jnp.array([0.5, 0.5]).at[0].set(best), jnp.array(0), jnp.array(1.0))
        return make.simulated(np.eye(2), simulator, noise_var=1.0, draws="until settled")

    halving = partial(jb.sequential_halving, budget=400)
    runs = jb.simulate(draw, halving, replications=6, batch=8, engine=engine)
    assert runs.meta["unsettled"] == 0.0
    assert runs.correct.mean() > 0.5
    for number in range(6):
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), number), INSTANCE)
        with jax.enable_x64(True):
            instance, traced = draw(key), jax.jit(draw)(key)
        assert int(instance.draws) == int(traced.draws)
        np.testing.assert_allclose(instance.means, traced.means, rtol=1e-12)
        np.testing.assert_allclose(instance.standard_errors, traced.standard_errors, rtol=1e-9)
        gaps.append(int(instance.draws))
    assert len(set(gaps)) > 1


class Single(NamedTuple):
    """Normal rewards in single precision, of one arm or several."""

    means: Any

    def reward(self, key, arm):
        return (self.means[arm] + jax.random.normal(key)).astype(jnp.float32)


def test_rewards_in_single_precision_are_added_up_in_double_precision():
    def build(means):
        return make.simulated(np.eye(2), Single(means), noise_var=1.0, draws="until settled")

    known = build(np.array([0.6, 0.5]))
    with jax.enable_x64(True):
        traced = jax.jit(build)(jnp.array([0.6, 0.5]))
    for instance in (known, traced):
        assert instance.means.dtype == instance.standard_errors.dtype == np.float64
    assert int(known.draws) == int(traced.draws) > DRAWS
    np.testing.assert_allclose(known.means, traced.means, rtol=1e-6)


def test_a_single_arm_is_the_best():
    assert make.simulated([[1.0]], Single(np.ones(1)), noise_var=1.0).estimated is not None


HORIZON, TRUE = 1000, np.array([1.0, 0.5, 0.2])


@jax.jit
def regret_errors(instance, pulls):
    return jax.vmap(finite(instance).regret_errors)(pulls)


def uniform_runs(seed):
    """`Runs` of uniform draws, measured against means that are estimated from 2,000 draws."""
    random = np.random.default_rng(seed)
    means = TRUE + random.normal(size=3) / np.sqrt(DRAWS)
    instance = dataclasses.replace(
        make.tabular(means=means), standard_errors=np.full(3, 1 / np.sqrt(DRAWS)), draws=DRAWS
    )
    pulls = random.multinomial(HORIZON, np.full(3, 1 / 3), 200)
    yes = np.ones(len(pulls), bool)
    lost = (pulls @ (means.max() - means))[:, None]
    return Runs(
        *(np.arange(len(pulls)), pulls.sum(1), yes.astype(int), yes, yes, pulls),
        rounds=np.array([HORIZON]),
        regret=lost,
        regret_errors=np.asarray(regret_errors(instance, pulls)),
    )


def holds(runs):
    digest = runs.summary()
    return digest["regret_low"] <= HORIZON / 3 * (1.0 - TRUE).sum() <= digest["regret_high"]


def test_intervals_of_regret_hold_the_error_of_estimated_means():
    with jax.enable_x64(True):
        found = [uniform_runs(seed) for seed in range(100)]
    assert np.mean([holds(runs) for runs in found]) >= 0.9
    without = [dataclasses.replace(runs, regret_errors=None) for runs in found]
    assert np.mean([holds(runs) for runs in without]) < 0.5
    runs, known = found[0], without[0]
    assert share_of_means(runs.regret, runs.regret_errors)[SHARE] > 0.5
    assert known.summary()["regret_se"] == standard_error(known.regret[:, -1])
    assert "regret_se_of_means" not in known.summary()
    # More replications do not reduce it, and do not end a cell sooner or later for it.
    assert RULES["regret_se"](runs.summary()) == pytest.approx(known.summary()["regret_se"])


def test_errors_of_means_cancel_in_paired_differences():
    with jax.enable_x64(True):
        one, two = uniform_runs(0), uniform_runs(0)
    assert jb.results.paired_difference(one, two, of="regret")["se"] == 0.0
    exact = dataclasses.replace(two, regret=0 * two.regret, regret_errors=None)
    assert jb.results.paired_difference(one, exact, of="regret")["se"] == pytest.approx(
        one.summary()["regret_se"]
    )


def test_the_error_of_means_is_in_all_that_shows_regret(tmp_path):
    instance = noisy(TRUE)
    algorithms = {"uniform": jb.uniform, "again": partial(jb.uniform)}
    found = jb.compare(algorithms, instance, replications=20, horizon=100, engine=QUICK)
    runs = jb.simulate(instance, jb.uniform, replications=20, horizon=100, engine=QUICK)
    apart = runs.arm_pulls.mean(0) - 100 * (np.arange(3) == 0)
    part = np.linalg.norm(apart * instance.standard_errors)
    spread, digest = standard_error(runs.regret[:, -1]), runs.summary()
    assert digest["regret_se"] == pytest.approx(np.hypot(spread, part), rel=1e-12)
    assert runs.meta[SHARE] == pytest.approx(part**2 / (spread**2 + part**2))
    assert "of the variance of the mean regret" in repr(runs)
    assert found.table.regret_se.iloc[0] == pytest.approx(digest["regret_se"])
    assert found.table.regret_se.iloc[0] > 1.01 * spread
    assert found.table.difference_high.iloc[1] == 0.0
    width = last_regret(complete(found.dataset).isel(instance=0, algorithm=0))[1]
    assert width == pytest.approx(digest["regret_high"] - digest["regret_mean"])
    for figure in (jb.plot.regret(found).figure, found.plot()):
        band = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
        assert np.ptp(band[np.isclose(band, band.max())]) < 1e-9
        assert band.max() == pytest.approx(digest["regret_high"], rel=1e-6)
    runs.save(tmp_path / "runs.npz")
    again = jb.results.load(tmp_path / "runs.npz")
    np.testing.assert_array_equal(again.regret_errors, runs.regret_errors)
    half = jb.results.first_of(runs, 10)
    assert jb.results.joined([half, runs]).meta[SHARE] == pytest.approx(runs.meta[SHARE])
    older = dataclasses.replace(half, regret_errors=None)  # as an earlier version has stored it
    assert np.isnan(jb.results.joined([older, runs]).regret_errors[:10]).all()
    assert jb.results.joined([older, runs]).summary()["regret_se"] > spread


def test_replications_of_their_own_instances_have_errors_in_common():
    """The draws of each have the same keys: here they are wrong by the same amount."""
    runs = jb.simulate(
        partial(near, gap=1.0), jb.uniform, replications=40, horizon=50, engine=QUICK
    )
    error = runs.summary()["regret_se_of_means"]
    assert error == pytest.approx(np.linalg.norm(runs.regret_errors.mean(0)))
    assert error == pytest.approx(25 * np.sqrt(2 / 500), rel=0.1)
