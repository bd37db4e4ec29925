"""Rewards: sums of batches against single draws, and the documented noise stream."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import key_of
from scipy import stats

import jaxbandits as jb
from jaxbandits.engine import episode
from jaxbandits.instances.environments.finite import finite
from jaxbandits.instances.environments.poisson import poisson

SAMPLES = np.array([[0.0, 1.0, 5.0, 2.0], [1.0, 1.0, 1.0, 3.0], [-2.0, 0.5, 0.5, 0.5]])
INSTANCES = {
    "normal": jb.instances.tabular(np.eye(3), [0.3, -1.0, 2.0], noise_var=2.5),
    "bernoulli": jb.instances.bernoulli(np.eye(3), [0.3, 0.05, 0.9]),
    "sign": dataclasses.replace(jb.instances.tabular(np.eye(3), [0.3, -0.9, 0]), rewards="sign"),
    "poisson": jb.instances.glm(np.eye(3), np.log([0.7, 3.0, 12.0]), family="poisson"),
    "recorded": jb.instances.recorded(np.eye(3), SAMPLES, noise_var=1.0),
}
every = pytest.mark.parametrize("name", INSTANCES)
LEVEL = 1e-4  # of each test, at a fixed seed


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


BLOCKS, BATCHES = 1500, 4000  # every test draws so many, so that all share one program


@jax.jit
def _blocks(instance, arm, seed):
    env = finite(instance)
    move = jb.Move(arm, None, jnp.array(False), 0)

    def block(key):
        return jax.vmap(lambda z: env.reward(z, move))(env.noise(key, (episode.BLOCK,), False))

    return jax.vmap(block)(jax.random.split(jax.random.key(seed), BLOCKS))


@jax.jit
def _batches(instance, counts):
    env = finite(instance)
    move = jb.Move(jnp.arange(3), counts, jnp.array(False), 0)
    keys = jax.random.split(jax.random.key(1), BATCHES)
    return jax.vmap(lambda key: env.reward(env.noise(key, (3,), True), move))(keys)


def singles(name, arm, num, seed=0):
    """`num` rewards of one arm, one move each, in blocks as the engine draws them."""
    drawn = np.asarray(_blocks(INSTANCES[name], np.int64(arm), seed)).ravel()
    assert num <= len(drawn)
    return drawn[:num]


def sums(name, counts):
    """`[BATCHES, K]` sums of batches of `counts [K]`."""
    return np.asarray(_batches(INSTANCES[name], np.array(counts)))


def law(name, arm):
    """Mean, variance and SciPy distribution (None for samples) of one reward, by definition."""
    mean = float(INSTANCES[name].means[arm])
    if name == "recorded":
        row = SAMPLES[arm]
        return row.mean(), row.var(), None
    if name == "sign":
        return mean, 1 - mean**2, None
    frozen = {
        "normal": stats.norm(mean, np.sqrt(2.5)),
        "bernoulli": stats.binom(1, mean),
        "poisson": stats.poisson(mean),
    }[name]
    return mean, frozen.var(), frozen


@every
@pytest.mark.parametrize("arm", [0, 1, 2])
def test_single_rewards_have_their_distribution(name, arm):
    drawn = singles(name, arm, 20_000)
    _, _, frozen = law(name, arm)
    if name == "normal":
        assert stats.kstest(drawn, frozen.cdf).pvalue > LEVEL
        return
    if name == "recorded":
        values, times = np.unique(SAMPLES[arm], return_counts=True)
        chances = times / 4
    elif name == "sign":
        mean = INSTANCES[name].means[arm]
        values, chances = np.array([-1.0, 1.0]), np.array([1 - mean, 1 + mean]) / 2
    else:
        values = np.arange(0, 2 if name == "bernoulli" else drawn.max() + 1)
        chances = frozen.pmf(values)
    assert np.isin(drawn, values).all()
    seen = np.array([(drawn == value).sum() for value in values])
    common = chances * len(drawn) >= 5
    seen = np.append(seen[common], len(drawn) - seen[common].sum())
    expected = np.append(chances[common], 1 - chances[common].sum()) * len(drawn)
    keep = expected > 1e-6
    expected = expected[keep] * seen[keep].sum() / expected[keep].sum()
    assert stats.chisquare(seen[keep], expected).pvalue > LEVEL


@every
def test_a_batch_is_the_sum_of_single_draws(name):
    counts = np.array([5, 1, 12])
    batches = sums(name, counts)
    for arm, count in enumerate(counts):
        repeated = singles(name, arm, BATCHES * count, seed=2).reshape(BATCHES, count).sum(1)
        if name == "normal":
            assert stats.ks_2samp(batches[:, arm], repeated).pvalue > LEVEL
            continue
        both = np.concatenate([batches[:, arm], repeated]).round(9)
        values, where = np.unique(both, return_inverse=True)
        table = np.zeros((2, len(values)))
        np.add.at(table, (np.repeat([0, 1], BATCHES), where), 1)
        rare = table.sum(0) < 20
        table = np.column_stack([table[:, ~rare], table[:, rare].sum(1)])
        table = table[:, table.sum(0) > 0]
        assert stats.chi2_contingency(table).pvalue > LEVEL


@every
@pytest.mark.parametrize("count", [1000, 1_000_000])
def test_large_batches_have_their_mean_and_variance(name, count):
    num = BATCHES
    batches = sums(name, [count, 0, 3 * count])
    np.testing.assert_array_equal(batches[:, 1], 0.0)
    for arm, n in ((0, count), (2, 3 * count)):
        mean, variance, _ = law(name, arm)
        z = (batches[:, arm].mean() - n * mean) / np.sqrt(n * variance / num)
        assert abs(z) < 4.5
        ratio = batches[:, arm].var(ddof=1) / (n * variance)
        low, high = stats.chi2.ppf([LEVEL / 2, 1 - LEVEL / 2], num - 1) / (num - 1)
        assert low < ratio < high
    if name in ("bernoulli", "sign", "poisson"):
        np.testing.assert_array_equal(batches, np.round(batches))
    if name == "bernoulli":
        assert (batches <= np.array([count, 0, 3 * count])).all()
    if name == "sign":
        assert (np.abs(batches) <= np.array([count, 0, 3 * count])).all()
        assert ((batches - np.array([count, 0, 3 * count])) % 2 == 0).all()


@pytest.mark.parametrize("rate", [1.001e5, 3e6, 3.6e7, 1e10])
def test_large_poisson_rates_have_their_law(rate):
    drawn = np.asarray(_poisson_draws(jnp.full(100_000, rate)))
    frozen = stats.poisson(rate)
    edges = frozen.ppf(np.linspace(0, 1, 41)[1:-1])
    seen = np.bincount(np.searchsorted(edges, drawn), minlength=40)
    chances = np.diff([0.0, *frozen.cdf(edges), 1.0])
    assert stats.chisquare(seen, chances * drawn.size).pvalue > LEVEL
    np.testing.assert_array_equal(drawn, np.round(drawn))


def test_large_poisson_rates_change_no_others():
    rates = jnp.array([0.0, 0.7, 40.0, 9e4, 1e5, 2e8, jnp.inf, jnp.nan])
    plain = jax.random.poisson(jax.random.key(3), rates).astype(float)
    found = _poisson_draws(rates)
    large = np.array([5])
    np.testing.assert_array_equal(np.delete(found, large), np.delete(plain, large))
    assert abs(found[5] - 2e8) < 6 * np.sqrt(2e8)


def _poisson_draws(rates):
    return jax.jit(poisson)(jax.random.key(3), rates)


@every
def test_arms_of_a_batch_are_independent(name):
    batches = sums(name, [50, 50, 50])
    correlations = np.corrcoef(batches.T)[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(BATCHES)


class Watch:
    """Draws the arms in turn and remembers every reward."""

    @staticmethod
    def algorithm(arms, rounds):
        zeros = jnp.zeros(rounds)

        def ask(key, state):
            time = state[0]
            return jb.Move(time % arms.shape[0], None, time >= rounds, time % 1)

        def tell(state, move, total):
            return state[0] + 1, state[1].at[state[0]].set(total)

        return jb.Algorithm(lambda key: (jnp.zeros((), int), zeros), ask, tell)


@pytest.mark.parametrize("replication", [0, 3])
def test_the_noise_stream_is_the_documented_one(replication):
    """Block b of replication r: `normal(fold_in(fold_in(key, r), b), (32,))`."""
    instance, rounds = INSTANCES["normal"], 70
    env, algorithm = finite(instance), Watch.algorithm(instance.arms, rounds)
    run = episode.start(key_of(replication, seed=9), env, algorithm)
    run = jax.jit(lambda run: episode.advance(run, env, algorithm, 100))(run)
    key = jax.random.fold_in(jax.random.key(9, impl="threefry2x32"), replication)
    blocks = [jax.random.normal(jax.random.fold_in(key, b), (32,)) for b in range(3)]
    noise = np.concatenate(blocks)[:rounds]
    rewards = instance.means[np.arange(rounds) % 3] + np.sqrt(2.5) * noise
    np.testing.assert_allclose(run.state[1], rewards, rtol=1e-13, atol=1e-13)
    assert (int(run.rounds), int(run.pulls)) == (rounds, rounds)
    gaps = (instance.means.max() - instance.means)[np.arange(rounds) % 3]
    np.testing.assert_allclose(run.regret, gaps.sum(), rtol=1e-12)


@every
def test_the_regret_of_a_move_is_the_sum_of_gaps(name):
    instance = INSTANCES[name]
    env = finite(instance)
    gaps = instance.means.max() - instance.means
    one = jb.Move(jnp.int64(1), None, jnp.array(False), 0)
    many = jb.Move(jnp.arange(3), jnp.array([2, 0, 7]), jnp.array(False), 0)
    np.testing.assert_allclose(env.regret(one), gaps[1])
    np.testing.assert_allclose(env.regret(many), 2 * gaps[0] + 7 * gaps[2])


@pytest.mark.parametrize(
    ("answer", "epsilon", "right"),
    [
        (0, 0.0, True),
        (1, 0.0, True),  # a second best arm with the same mean
        (2, 0.0, False),
        (2, 0.1, True),
        (3, 0.1, False),
        ([True, True, False, False], 0.0, True),
        ([True, False, True, False], 0.0, False),
        ([True, False, True, False], 0.1, True),
        ([True, True, True, False], 0.0, True),
        ([True, True, False, True], 0.0, False),
        ([False, False, False, False], 0.0, False),
    ],
    ids=str,
)
def test_answers_within_epsilon_of_the_best_are_correct(answer, epsilon, right):
    instance = jb.instances.tabular(np.eye(4), [1.0, 1.0, 0.95, 0.0])
    env = finite(instance, epsilon=epsilon)
    assert bool(env.correct(jnp.asarray(answer))) == right
