"""Stressed instances: the effect of each option on rewards, what is observed, and refusals."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from counting import refused
from params import params
from programs import QUICK
from run_settings import assert_same_runs
from scipy import stats

import jaxbandits as jb
from jaxbandits import theory
from jaxbandits.instances.environments.stressed import delayed, stressed
from jaxbandits.instances.environments.student import MOST
from jaxbandits.sweeps import grid, spec
from jaxbandits.system.identity import describe

make = jb.instances
LEVEL = 1e-4  # of each test, at a fixed seed
ARMS, MEANS = np.eye(3), np.array([0.4, -1.0, 2.0])
NORMAL = make.tabular(ARMS, MEANS, noise_var=2.5)
COIN = make.bernoulli(ARMS, [0.3, 0.05, 0.9])
SAMPLES = np.array([[0.0, 1.0, 5.0, 2.0], [1.0, 1.0, 1.0, 3.0], [-2.0, 0.5, 0.5, 0.5]])
RECORDED = make.recorded(ARMS, SAMPLES, noise_var=1.0)
RATIO = [1.0, 4.0, 0.25]


class Dial(NamedTuple):
    scale: Any

    def reward(self, key, arm):
        return self.scale[arm] + jax.random.uniform(key) - 0.5


SIMULATED = make.simulated(ARMS, Dial(np.array([1.0, 2.0, 3.0])), noise_var=1.0, draws=100)


@partial(jax.jit, static_argnames="num")
def _singles(instance, arm, num, pulls, key):
    env = stressed(instance)
    move = jb.Move(arm, None, jnp.array(False), 0)
    return jax.vmap(lambda z: env.reward(z, move, *pulls))(env.noise(key, (num,), False))


@partial(jax.jit, static_argnames="num")
def _sums(instance, counts, num, pulls, key):
    env = stressed(instance)
    move = jb.Move(jnp.arange(3), counts, jnp.array(False), 0)
    keys = jax.random.split(key, num)
    return jax.vmap(lambda k: env.reward(env.noise(k, (3,), True), move, *pulls))(keys)


FEW, MANY, BATCHES = 2000, 40_000, 50  # few different numbers, as each compiles another program


def singles(instance, arm, num=FEW, pulls=(), seed=0):
    """Rewards of one arm, one move each."""
    with jax.enable_x64(True):
        return np.asarray(_singles(instance, jnp.int64(arm), num, pulls, jax.random.key(seed)))


def sums(instance, counts, num=BATCHES, pulls=(), seed=1):
    """`[num, 3]` sums of batches of `counts [3]`."""
    with jax.enable_x64(True):
        return np.asarray(_sums(instance, jnp.asarray(counts), num, pulls, jax.random.key(seed)))


def has_variance(drawn, variance):
    """Assert the variance of numbers that are normal, at least nearly."""
    low, high = stats.chi2.ppf([LEVEL / 2, 1 - LEVEL / 2], len(drawn) - 1) / (len(drawn) - 1)
    assert low < drawn.var(ddof=1) / variance < high


@pytest.mark.parametrize("df", [1.5, 3.0, 12.0])
def test_students_t(df):
    instance = make.stressed(NORMAL, df=df)
    assert float(instance.noise_var) == 2.5
    scale = np.sqrt(2.5 * ((df - 2) / df if df > 2 else 1.0))
    drawn = singles(instance, 2, MANY)
    law = stats.t(df, loc=2.0, scale=scale)
    assert stats.kstest(drawn, law.cdf).pvalue > LEVEL
    batches = sums(instance, [5, 0, 70], 2000)
    np.testing.assert_array_equal(batches[:, 1], 0.0)
    for arm, count in ((0, 5), (2, 70)):
        single_draws = law.rvs((2000, count), random_state=3) - 2.0 + MEANS[arm]
        assert stats.ks_2samp(batches[:, arm], single_draws.sum(1)).pvalue > LEVEL
    assert abs(stats.spearmanr(batches[:, 0], batches[:, 2]).statistic) < 4.5 / np.sqrt(2000)
    if df > 8:  # whose eighth moment is finite
        assert abs(drawn.mean() - 2.0) < 4.5 * np.sqrt(2.5 / len(drawn))
        assert abs(drawn.var() / 2.5 - 1) < 0.05
        assert abs(stats.kurtosis(drawn) - 6 / (df - 4)) < 0.3
        large = sums(instance, [1000, 0, 3000], 200)
        for arm, count in ((0, 1000), (2, 3000)):
            z = (large[:, arm] - count * MEANS[arm]) / np.sqrt(count * 2.5)
            assert abs(z.mean()) < 4.5 / np.sqrt(200)
            has_variance(z, 1.0)


def test_a_sum_of_too_many_draws_is_nan():
    instance = make.stressed(NORMAL, df=3.0)
    assert np.isnan(sums(instance, [MOST, 0, 1], 200)[:, [0, 2]]).all()


@pytest.mark.parametrize("instance", [NORMAL, RECORDED, SIMULATED], ids=lambda x: x.rewards)
def test_unequal_noise(instance):
    uneven = make.stressed(instance, variance_ratio=RATIO)
    np.testing.assert_array_equal(uneven.means, instance.means)
    assert uneven.noise_var == instance.noise_var
    for arm, ratio in enumerate(RATIO):
        before, after = (singles(x, arm) for x in (instance, uneven))
        away = np.sqrt(ratio) * (before - instance.means[arm])
        np.testing.assert_allclose(after - instance.means[arm], away, rtol=1e-9, atol=1e-12)
    counts = np.array([40, 0, 9])
    before, after = (sums(x, counts) - counts * x.means for x in (instance, uneven))
    np.testing.assert_allclose(after, before * np.sqrt(RATIO), rtol=1e-9, atol=1e-9)
    geometric = make.stressed(NORMAL, variance_ratio=9.0).stress.variances
    np.testing.assert_allclose(geometric, 2.5 * np.array([1.0, 3.0, 9.0]))


def test_unequal_noise_and_heavy_tails_together():
    both = make.stressed(NORMAL, variance_ratio=RATIO, df=12.0)
    for arm, ratio in enumerate(RATIO):
        law = stats.t(12, loc=MEANS[arm], scale=np.sqrt(2.5 * ratio * 10 / 12))
        assert stats.kstest(singles(both, arm, MANY), law.cdf).pvalue > LEVEL


EVERY = [NORMAL, COIN, RECORDED, SIMULATED]


@pytest.mark.parametrize("instance", EVERY, ids=lambda x: x.rewards)
def test_moved_means(instance):
    moved = make.stressed(instance, deviation=0.08)
    off = moved.means - instance.means
    within = 0.05 if instance is COIN else 0.08  # the least probability is cut off at 0
    assert ((np.abs(off) <= 0.08 + 1e-12) & (np.abs(off) >= within - 1e-12)).all()
    np.testing.assert_array_equal(moved.values, moved.means)
    np.testing.assert_array_equal(moved.theta, instance.theta)
    many = np.array([make.stressed(instance, deviation=0.08, seed=s).means for s in range(20)])
    up = (many > instance.means).sum(0)
    assert (up > 2).all()
    assert (up < 18).all()
    if instance is not COIN:
        before, after = sums(instance, [3, 0, 9]), sums(moved, [3, 0, 9])
        expected = np.tile(np.array([3, 0, 9]) * off, (BATCHES, 1))
        np.testing.assert_allclose(after - before, expected, atol=1e-9)
    else:
        assert abs(singles(moved, 0, MANY).mean() - moved.means[0]) < 4.5 * 0.5 / np.sqrt(MANY)


def test_values_of_other_targets_do_not_move():
    instance = make.transductive(4, angle=0.3)
    moved = make.stressed(instance, deviation=0.1)
    np.testing.assert_array_equal(moved.values, instance.values)
    assert (moved.means != instance.means).all()


def test_a_wrong_noise_variance_changes_no_reward():
    for instance in (NORMAL, COIN):
        stressed = make.stressed(instance, noise_var_factor=0.25)
        assert stressed.noise_var == 0.25 * instance.noise_var
        for drawn in (partial(singles, arm=1), partial(sums, counts=[2, 0, 7])):
            np.testing.assert_allclose(drawn(stressed), drawn(instance), rtol=1e-12)
    both = make.stressed(NORMAL, variance_ratio=RATIO, noise_var_factor=4.0)
    assert both.noise_var == 10.0
    np.testing.assert_allclose(both.stress.variances, 2.5 * np.array(RATIO))


@pytest.mark.parametrize("instance", EVERY, ids=lambda x: x.rewards)
def test_drifting_means(instance):
    drifting = make.stressed(instance, drift=0.3, period=50.0)
    phases = drifting.stress.drift.phases
    for pulls in (0, 7, 1031):

        def means(time):
            moved = instance.means + 0.3 * np.sin(2 * np.pi * (time / 50 + phases))
            return np.clip(moved, 0, 1) if instance is COIN else moved

        now = means(pulls)
        if instance is COIN:
            drawn = singles(drifting, 0, MANY, (pulls,), seed=pulls)
            assert abs(drawn.mean() - now[0]) < 4.5 * 0.5 / np.sqrt(MANY)
            continue
        before, after = singles(instance, 1), singles(drifting, 1, pulls=(pulls,))
        np.testing.assert_allclose(after - before, (now - instance.means)[1], atol=1e-9)
        before, after = sums(instance, [3, 0, 8]), sums(drifting, [3, 0, 8], pulls=(pulls,))
        off = np.array([3, 0, 8]) * (means(pulls + 5) - instance.means)
        np.testing.assert_allclose(after - before, np.tile(off, (BATCHES, 1)), atol=1e-9)
        with jax.enable_x64(True):
            move = jb.Move(jnp.int64(1), None, jnp.array(False), 0)
            loss, mean_loss = (stressed(drifting).regret(move, *x) for x in ((pulls,), ()))
        np.testing.assert_allclose(loss, now.max() - now[1], rtol=1e-9)
        np.testing.assert_allclose(mean_loss, instance.means.max() - instance.means[1])
    assert len(set(phases)) == 3


@pytest.mark.parametrize("shape", [(), (2,)], ids=["one arm", "a batch"])
def test_rewards_are_observed_late(shape):
    """The algorithm observes exactly the moves and rewards of three rounds before."""

    def ask(key, state):
        arms = jnp.broadcast_to(state[0], shape)
        return jb.Move(arms, None, jnp.array(False), state[0], {"told": state[0]})

    def tell(state, move, total):
        return state[0] + 1, state[1] * 0.5 + (total + 10.0 * move.arm).sum()

    plain = jb.Algorithm(lambda key: (jnp.zeros((), int), jnp.zeros(())), ask, tell)
    algorithm = delayed(plain, 3)
    ask, tell = jax.jit(algorithm.ask), jax.jit(algorithm.tell)
    state, expected = jax.jit(algorithm.init)(jax.random.key(0)), 0.0
    totals = np.arange(12) ** 2.0
    for number, total in enumerate(totals):
        move = ask(jax.random.key(1), state)
        np.testing.assert_array_equal(move.arm, max(0, number - 3))
        state = tell(state, move, np.full(shape, total))
        if number >= 3:
            each = totals[number - 3] + 10.0 * max(0, number - 6)
            expected = expected * 0.5 + each * (shape or (1,))[0]
    np.testing.assert_allclose(state.inner[1], expected)
    assert int(state.inner[0]) == 9


SOARE = make.soare(2, angle=0.6)
ALL = {"df": 4.0, "variance_ratio": 2.0, "deviation": 0.05, "noise_var_factor": 0.8}
ALL |= {"drift": 0.1, "period": 200.0, "delay": 3}
PLAYED = {
    "one arm a round": (make.stressed(SOARE, **ALL), partial(jb.lingape, delta=0.1, v0=0.1)),
    "phases": (
        make.stressed(SOARE, **(ALL | {"delay": 0})),
        partial(jb.sequential_halving, budget=90),
    ),
}


@pytest.mark.parametrize("name", params(PLAYED, slow=["phases"]))
def test_replications_do_not_depend_on_engine_or_batch(name):
    play = partial(jb.simulate, *PLAYED[name], replications=24, seed=3, max_pulls=3000)
    runs = play(batch=8)  # the native engine chooses a larger one
    assert_same_runs(runs, play(engine="native"))
    # In phases the rewards decide only which arm is dropped first.
    assert len({tuple(row) for row in runs.arm_pulls}) > (1 if name == "phases" else 3)


@pytest.mark.slow
def test_a_wrong_variance_raises_errors_above_delta_and_delay_costs_only_pulls():
    algorithm = partial(jb.lingape, delta=0.05, v0=0.1)
    play = partial(jb.simulate, algorithm=algorithm, replications=300, engine=QUICK)
    same = play(make.stressed(SOARE, noise_var_factor=1.0))
    assert_same_runs(same, play(SOARE))
    assert make.stressed(SOARE).stress is None
    runs = play(make.stressed(SOARE, noise_var_factor=0.02))
    most = stats.binom.ppf(1 - 1e-6, 300, 0.05)
    assert (~runs.correct).sum() > most > (~same.correct).sum()
    late = play(make.stressed(SOARE, delay=40))
    assert (~late.correct).sum() <= most
    more = late.pulls.mean() - same.pulls.mean()
    assert more > 40 - 4 * np.hypot(late.summary()["pulls_se"], same.summary()["pulls_se"])


SWEEP = """
replications = 8
[instances.heavy]
name = "stressed"
instance = "soare"
dim = 2
angle = 0.6
[instances.drawn]
name = "stressed"
instance = "logistic_cube"
num_arms = 3
dim = 2
drift = 0.1
[algorithms.halving]
name = "sequential_halving"
budget = 30
[axes]
deviation = [0.3]
"""


def parsed(old="", new=""):
    import tomllib

    return spec.parse(tomllib.loads(SWEEP.replace(old, new)))


def test_stressed_instances_in_a_sweep(tmp_path):
    assert len(grid.check(parsed())) == 2
    plan = parsed(SWEEP[SWEEP.index("[instances.drawn]") : SWEEP.index("[algorithms")], "")
    dataset = grid.run(plan, out=tmp_path)
    assert len(list(tmp_path.glob("cells/*.npz"))) == 1
    by_hand = jb.simulate(
        make.stressed(make.soare(2, angle=0.6), deviation=0.3),
        partial(jb.sequential_halving, budget=30),
        replications=8,
    )
    stored = dataset.correct.sel(instance="heavy", deviation=0.3, algorithm="halving")
    np.testing.assert_array_equal(stored, by_hand.correct)
    names = {str(describe(make.stressed(SOARE, **x))) for x in ({"df": 3.0}, {"df": 4.0}, ALL)}
    assert len(names) == 3
    assert "stress" not in describe(SOARE)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('instance = "soare"\n', "", "needs the option 'instance'"),
        ('instance = "soare"', 'instance = "soar"', "unknown instance of stressed 'soar'; did"),
        ("angle = 0.6", "df = 1.0", r"\[instances.heavy\] df must be .*above 1, got 1.0"),
        ("angle = 0.6", "angel = 0.6", "unknown option of stressed 'angel'"),
    ],
)
def test_bad_options_in_a_sweep_are_refused(old, new, message):
    with pytest.raises(ValueError, match=message):
        grid.check(parsed(old, new))


def test_each_random_instance_has_its_own_deviations():
    draw = make.stressed(partial(make.sphere, num_arms=3, dim=2), deviation=0.1)
    plain = partial(make.sphere, num_arms=3, dim=2)
    offs = [draw(key).means - plain(key).means for key in jax.random.split(jax.random.key(0), 8)]
    np.testing.assert_allclose(np.abs(offs), 0.1)
    assert len({tuple(off > 0) for off in offs}) > 2
    assert draw.func == make.stressed(make.sphere).func  # programs are shared
    assert draw.func.__name__ == "stressed(sphere)"


@pytest.mark.parametrize(
    ("instance", "options", "message"),
    [
        (COIN, {"df": 3.0}, "df must go with normal rewards, got 'bernoulli'"),
        (COIN, {"variance_ratio": 2.0}, "variance_ratio must go with .*got 'bernoulli'"),
        (NORMAL, {"variance_ratio": [1.0, 2.0]}, r"variance_ratio must have shape \(3,\)"),
        (NORMAL, {"variance_ratio": [1.0, 0.0, 2.0]}, "variance_ratio must be .*above 0"),
        (NORMAL, {"df": 1.0}, "df must be a finite number above 1, got 1.0"),
        (NORMAL, {"df": np.inf}, "df must be a finite number"),
        (NORMAL, {"deviation": -0.1}, "deviation must be .*got -0.1"),
        (NORMAL, {"delay": 1.5}, "delay must be a whole number from 0 to 100,000, got 1.5"),
        (NORMAL, {"delay": 10**7}, "delay must be a whole number from 0 to 100,000, got 10000000"),
        (NORMAL, {"df": "3"}, "df must be a finite number above 1, got '3'"),
        (NORMAL, {"period": 0.0, "drift": 1.0}, "period must be"),
        (make.stressed(NORMAL, df=3.0), {"drift": 1.0}, "under stress already"),
        (3, {}, "instance must be an Instance or make one, got int"),
    ],
    ids=str,
)
def test_bad_options_are_refused(instance, options, message):
    refused(lambda: make.stressed(instance, **options), message)


def test_bad_combinations_are_refused_when_played():
    late = make.stressed(SOARE, delay=2)
    phases = partial(jb.sequential_halving, budget=30)
    refused((late, phases), "delay must be 0 for an algorithm that plays phases, got 2")
    for limit in ({"horizon": 2}, {"max_pulls": 2}):
        message = "its rewards come 2 rounds late, and a replication has 2 at most"
        refused((late, partial(jb.lin_ucb, alpha=1.0), limit), message)
    labelled = make.stressed(lambda key: 1, df=3.0)
    with pytest.raises(ValueError, match="instance must be an Instance, got int"):
        labelled(jax.random.key(0))
    for switches in ({"drift": 0.1}, {"df": 3.0}, {"noise_var_factor": 2.0}, {"deviation": 0.1}):
        with pytest.raises(ValueError, match="instance"):
            theory.characteristic_time(make.stressed(SOARE, **switches))
