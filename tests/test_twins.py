"""Algorithms against plain NumPy twins, pull by pull on the same rewards."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import twins
from hands import Hand, binomial_rewards, linear_problem, normal_rewards, same_arm, same_counts
from params import params

import jaxbandits as jb
from jaxbandits.engine import episode
from jaxbandits.kernels.confidence import radius


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


LINGAPE = ("delta", "epsilon", "noise_var", "theta_norm", "v0")


ARMS, FEATURES = (5, 3), (7, 2)  # in which space the algorithm computes: that of fewer dimensions
SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("num_arms", "dim", "threshold", "selection"),
    [
        (*ARMS, "pairwise", "greedy"),
        (*FEATURES, "heuristic", "greedy"),
        (*FEATURES, "pairwise", "ratio"),
        pytest.param(*FEATURES, "pairwise", "greedy", marks=SLOW),
        pytest.param(*ARMS, "heuristic", "greedy", marks=SLOW),
        pytest.param(*ARMS, "pairwise", "ratio", marks=SLOW),
    ],
)
def test_lingape(num_arms, dim, threshold, selection):
    hand = Hand(partial(jb.lingape, threshold=threshold, selection=selection), *LINGAPE)
    played = []
    for seed, numbers in enumerate([(0.05, 0.0, 0.5, 1.0, 1.0), (0.2, 0.3, 1.5, 1.3, 0.2)]):
        rng, arms, theta = linear_problem(seed, num_arms, dim)
        facts, key = (jnp.asarray(arms), None, numbers), jax.random.key(seed)
        options = dict(zip(LINGAPE, numbers, strict=True))
        if selection == "ratio":
            begun = hand.init(facts, jax.random.fold_in(key, episode.INIT))
            options["order"] = np.asarray(begun.order)
        twin = twins.LinGapE(arms, threshold=threshold, **options)
        reward = normal_rewards(rng, arms @ theta, numbers[2])
        played += hand.play(twin, facts, reward, key, rounds=3000, compare=same_arm)[:1]
    assert max(played) > 2 * num_arms


RATIO, ONE = partial(jb.lingape, selection="ratio"), jb.instances.soare(3, angle=0.5)
MORE = {"replications": 20, "seed": 5}


@pytest.mark.slow
@pytest.mark.optimised
def test_the_table_of_ratios_may_be_given():
    table = jb.design.ratios(ONE.arms)
    solved = jb.simulate(ONE, RATIO, **MORE)
    given = jb.simulate(ONE, partial(RATIO, ratios=table), **MORE)
    assert solved.arm_pulls[:, 1].min() > 30
    np.testing.assert_array_equal(solved.arm_pulls, given.arm_pulls)
    other = jb.simulate(ONE, partial(RATIO, ratios=np.roll(table, 1, axis=2)), **MORE)
    assert not np.array_equal(solved.arm_pulls, other.arm_pulls)


@pytest.mark.slow
def test_the_table_of_ratios_may_be_solved_in_each_replication():
    """As where each replication draws its own arms."""
    solved = jb.simulate(ONE, RATIO, **MORE)
    found = jb.simulate(lambda key: ONE, RATIO, **MORE)
    np.testing.assert_array_equal(solved.arm_pulls, found.arm_pulls)


@pytest.mark.parametrize(
    "threshold",
    params(sorted(radius.THRESHOLDS), always=["heuristic", "pairwise", "self_normalised"]),
)
def test_m_lingape(threshold):
    hand, played = Hand(partial(jb.m_lingape, threshold=threshold, m=2), *LINGAPE), []
    for seed, numbers in enumerate([(0.1, 0.0, 0.25, 1.0, 0.025), (0.2, 0.4, 1.0, 1.2, 0.5)]):
        rng, arms, theta = linear_problem(10 + seed, 6, 3)
        options = dict(zip(LINGAPE, numbers, strict=True))
        twin = twins.LinGapE(arms, m=2, threshold=threshold, **options)
        facts = (jnp.asarray(arms), None, numbers)
        reward = normal_rewards(rng, arms @ theta, numbers[2])
        key = jax.random.key(seed)
        played += hand.play(twin, facts, reward, key, rounds=1500, compare=same_arm)[:1]
    assert min(played) > 6


def test_m_lingape_with_m_1_is_lingape():
    """Only the initial rounds, the ridge and the threshold distinguish the two."""
    options = {"threshold": "heuristic", "v0": 0.3}
    numbers = {"replications": 20, "seed": 4}
    instance = jb.instances.soare(3, angle=0.6)
    one = jb.simulate(instance, partial(jb.lingape, **options), **numbers)
    other = jb.simulate(instance, partial(jb.m_lingape, m=1, **options), **numbers)
    np.testing.assert_array_equal(one.arm_pulls, other.arm_pulls)
    np.testing.assert_array_equal(one.answer, other.answer.argmax(1))


@pytest.mark.parametrize(("num_arms", "budget"), [(8, 48), (5, 90)])
def test_sequential_halving(num_arms, budget):
    hand = Hand(jb.sequential_halving, "budget")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        means = rng.normal(size=num_arms)
        twin = twins.Halving(num_arms, budget, twins.sample_means)
        facts = (jnp.eye(num_arms), None, (budget,))
        reward = normal_rewards(rng, means, 1.0)
        hand.play(twin, facts, reward, jax.random.key(seed), compare=same_counts)


def same_stage(move, even, twin):
    """Assert the total of the stage, and a rounded equal share for each arm alive."""
    count = np.asarray(move.count)
    alive = even > 0
    assert count.sum() == twin.totals[twin.stage]
    assert (count[~alive] == 0).all()
    assert np.abs(count[alive] - even[alive]).max() < 1


def test_sequential_halving_with_a_remainder():
    hand = Hand(jb.sequential_halving, "budget")
    for seed, budget in enumerate([101, 102, 103, 40]):
        rng = np.random.default_rng(seed)
        twin = twins.Halving(8, budget, twins.sample_means)
        facts, reward = (jnp.eye(8), None, (budget,)), normal_rewards(rng, rng.normal(size=8), 1.0)
        hand.play(twin, facts, reward, jax.random.key(seed), compare=same_stage)


@pytest.mark.parametrize("eta", [2, 3])
def test_gse_uniform(eta):
    """Ten arms in three dimensions; with eta = 2 the later stages do not span."""
    hand = Hand(partial(jb.gse, eta=eta), "budget")
    for seed, budget in enumerate([240, 241, 1000]):
        rng, arms, theta = linear_problem(seed, 10, 3)
        twin = twins.Halving(10, budget, twins.least_squares(arms), eta)
        facts, reward = (jnp.asarray(arms), None, (budget,)), normal_rewards(rng, arms @ theta, 1.0)
        hand.play(twin, facts, reward, jax.random.key(seed), compare=same_stage)


def test_gse_d_opt():
    """The twin certifies the package's counts by its own design, then eliminates by itself."""
    hand, tol = Hand(partial(jb.gse, design="d_opt"), "budget", "tol"), 0.01
    rng, arms, theta = linear_problem(5, 10, 3)

    def as_good_as_optimal(move, even, twin):
        count, total = np.asarray(move.count), twin.totals[twin.stage]
        assert count.sum() == total
        alive = arms[twin.alive]
        used = count[twin.alive]
        assert used.sum() == total
        best, rank = twins.wolfe_atwood(alive)
        basis = np.linalg.svd(alive, full_matrices=False)[2][:rank].T
        points = alive @ basis
        matrix = (points.T * (used / total)) @ points
        leverage = np.einsum("ki,ij,kj->k", points, np.linalg.inv(matrix), points)
        loss = 1 - (used > 0).sum() / total  # efficient rounding keeps this share of each weight
        assert leverage.max() <= rank * (1 + tol) / loss * (1 + 1e-4)
        optimum = np.linalg.slogdet((points.T * best) @ points)[1]
        reached = np.linalg.slogdet(matrix)[1]
        assert reached >= optimum - rank * (tol - np.log(loss)) - 1e-6

    for seed, budget in enumerate([240, 1001]):
        twin = twins.Halving(10, budget, twins.least_squares(arms))
        facts = (jnp.asarray(arms), None, (budget, tol))
        reward = normal_rewards(rng, arms @ theta, 1.0)
        hand.play(twin, facts, reward, jax.random.key(seed), compare=as_good_as_optimal)


def test_gse_logistic():
    hand = Hand(partial(jb.gse, family="logistic"), "budget", "ridge")
    for seed, (budget, ridge) in enumerate([(240, 0.1), (2400, 1e-6), (2401, 1e-3)]):
        rng, arms, theta = linear_problem(20 + seed, 10, 3)
        twin = twins.Halving(10, budget, twins.max_likelihood(arms, ridge))
        means = 1 / (1 + np.exp(-arms @ theta))
        facts, reward = (jnp.asarray(arms), None, (budget, ridge)), binomial_rewards(rng, means)
        hand.play(twin, facts, reward, jax.random.key(seed), compare=same_stage)


RAGE = ("delta", "noise_var", "log_factor", "rounding_epsilon")


def certified(arms, targets):
    """The package's design for the targets alive, as RAGE asks for it."""

    def design(alive):
        mask = np.isin(np.arange(len(targets)), alive)
        found = jb.design.xy_optimal(arms, targets, active=mask, tol=1e-3)
        assert found.converged
        return found.weights, 1.001 * found.bound

    return design


def test_rage():
    hand, phases = Hand(jb.rage, *RAGE), []
    settings = [(0.05, 1.0, 2.0, 0.1), (0.1, 0.3, 1.0, 0.2)]
    for seed, numbers in enumerate(settings):
        rng, arms, theta = linear_problem(30 + seed, 5, 3)
        targets = rng.normal(size=(6, 3))
        delta, noise_var, c, eps = numbers
        design = certified(arms, targets)
        twin = twins.Rage(arms, targets, design, delta=delta, noise_var=noise_var, c=c, eps=eps)
        facts = (jnp.asarray(arms), jnp.asarray(targets), numbers)
        reward = normal_rewards(rng, arms @ theta, noise_var)
        key = jax.random.key(seed)
        phases += hand.play(twin, facts, reward, key, compare=same_counts)[:1]
    assert max(phases) >= 2


@pytest.mark.slow
@pytest.mark.parametrize(("c", "size"), [(1.0, 417), (2.0, 461)])
def test_the_first_phase_of_rage(c, size):
    """`ceil(8 rho (1 + eps) log(c M^2 / delta))` with rho = 7.192, M = 6."""
    instance, delta = jb.instances.transductive(6), 0.05
    build = partial(jb.rage, delta=delta, log_factor=c)
    runs = jb.simulate(instance, build, replications=1, max_pulls=size)
    less = jb.simulate(instance, build, replications=1, max_pulls=size - 1)
    assert (runs.pulls[0], less.pulls[0]) == (size, 0)
    found = jb.design.xy_optimal(instance.arms, instance.targets, tol=1e-3)
    np.testing.assert_allclose([found.value, found.bound], 7.192, rtol=1.5e-3)
    assert size == np.ceil(8 * found.value * 1.1 * np.log(c * 36 / delta))


def test_glm_tsl():
    hand = Hand(partial(jb.glm_tsl, family="logistic"), "a", "ridge")
    for seed, (a, ridge) in enumerate([(1.0, 1e-3), (0.4, 0.5)]):
        rng, arms, theta = linear_problem(40 + seed, 8, 3)
        arms[1] = -2 * arms[0]  # so that the first independent arms are 0, 2 and 3
        key = jax.random.key(seed)

        def normal(t, key=key):
            return np.asarray(jax.random.normal(episode.ask_key(key, t), (3, 1)))[:, 0]

        twin = twins.GlmTsl(arms, normal, a=a, ridge=ridge)
        means = 1 / (1 + np.exp(-arms @ theta))
        facts, reward = (jnp.asarray(arms), None, (a, ridge)), binomial_rewards(rng, means)
        _, state = hand.play(twin, facts, reward, key, rounds=150, compare=same_arm)
        pulls = twin.pulls
        fitted = twins.logistic_fit(arms, pulls.counts, pulls.sums, ridge)
        np.testing.assert_allclose(state.fit.theta, fitted, atol=1e-5)
        np.testing.assert_array_equal(state.counts, pulls.counts)
        assert int(state.missed.report()["unconverged"]) == 0
