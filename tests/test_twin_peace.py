"""Peace against a plain NumPy twin, pull by pull on the same rewards."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import Hand, linear_problem, normal_rewards, same_counts
from params import params
from scipy import stats

import jaxbandits as jb
from jaxbandits.kernels.design import gaussian_width


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class Peace:
    """Katz-Samuels et al., Algorithm 2, with `design(alive) -> (weights, gamma)`."""

    def __init__(self, arms, budget, design):
        self.arms, self.design, self.alive = arms, design, list(range(len(arms)))
        self.weights, self.gamma = design(self.alive)
        self.rounds = max(2, int(np.ceil(np.log2(self.gamma))))
        base, more = divmod(budget, self.rounds)
        self.draws = [base] * (self.rounds - more) + [base + 1] * more
        self.counts, self.sums, self.best = np.zeros(len(arms)), np.zeros(len(arms)), None
        self.optimisations, self.sets = 1, [self.alive]

    def ask(self):
        if not self.draws or len(self.alive) == 1:
            return True, self.best, None
        return False, self.best, efficient(self.weights, self.draws[0])

    def tell(self, drawn, total):
        self.draws.pop(0)
        self.counts, self.sums = self.counts + drawn, self.sums + total
        theta = np.linalg.pinv((self.arms.T * self.counts) @ self.arms) @ self.arms.T @ self.sums
        ranked = sorted(self.alive, key=lambda k: -self.arms[k] @ theta)
        self.best = ranked[0]
        if self.draws and len(self.alive) > 2:
            self.alive, self.weights, self.gamma = self.longest(ranked)
            self.sets.append(self.alive)

    def longest(self, ranked):
        found, low, high = (ranked[:1], None, 0.0), 1, len(ranked)
        while high - low > 1:
            middle = (low + high) // 2
            weights, gamma = self.design(ranked[:middle])
            self.optimisations += 1
            if gamma <= self.gamma / 2:
                found, low = (ranked[:middle], weights, gamma), middle
            else:
                high = middle
        return found


def efficient(weights, total):
    """Efficient rounding over the arms with positive weight."""
    used = np.flatnonzero(weights)
    share, counts = weights[used], np.zeros(len(weights))
    part = np.ceil((total - len(used) / 2) * share - 1e-9).clip(0)
    while part.sum() < total:
        part[np.argmin(part / share)] += 1
    while part.sum() > total:
        part[np.argmax(np.where(part > 0, (part - 1) / share, -np.inf))] -= 1
    counts[used] = part
    return counts


@pytest.mark.parametrize("objective", params(["gamma", "rho"], slow=["rho"]))
def test_peace(objective):
    hand, deepest = Hand(partial(jb.peace, objective=objective), "budget"), 0
    for seed, budget in enumerate([200, 901, 77]):
        rng, arms, theta = linear_problem(50 + seed, 12, 4)

        def design(alive, arms=arms):
            mask = np.isin(np.arange(len(arms)), alive)
            if objective == "gamma":
                return minimised(jnp.asarray(arms), jnp.asarray(mask))
            found = jb.design.xy_optimal(arms, arms, active=mask, tol=0.01)
            return found.weights, found.value if len(alive) > 1 else 0.0

        twin = Peace(arms, budget, lambda alive: tuple(map(np.asarray, design(alive))))
        facts = (jnp.asarray(arms), None, (budget,))
        reward = normal_rewards(rng, arms @ theta, 1.0)
        key = jax.random.key(seed)
        number, state = hand.play(twin, facts, reward, key, compare=same_draws)
        last = hand.ask_in(facts, jax.random.key_data(key), number, state)
        assert last.done
        assert int(last.info[0]["optimisations"]) == twin.optimisations
        assert twin.counts.sum() <= budget
        deepest = max(deepest, len(twin.sets))
    assert deepest >= 3


def same_draws(move, counts, twin):
    same_counts(move, counts, twin)
    assert int(move.info[0]["optimisations"]) == twin.optimisations


minimised = jax.jit(gaussian_width.minimised)


@pytest.mark.slow
def test_rounding_does_not_decide_where_rho_is_a_power_of_two():
    """Of eight orthogonal arms it is 16, on any axes: four rounds of 20 draws."""
    for seed in range(6):
        axes = stats.ortho_group.rvs(8, random_state=seed)
        instance, build = jb.instances.linear(axes, axes[0]), partial(jb.peace, objective="rho")
        runs = jb.simulate(instance, partial(build, budget=80), replications=12)
        np.testing.assert_array_equal(runs.pulls % 20, 0)


@pytest.mark.slow
def test_halving_gamma_leaves_about_half_of_independent_arms():
    """Each bisection of n arms makes about log2 n designs; the first round makes one more."""
    instance = jb.instances.canonical(16, gap=0.0, noise_var=1.0)
    runs = jb.simulate(instance, partial(jb.peace, per_arm=20), replications=20)
    assert (runs.pulls <= 320).all()
    assert (runs.pulls > 150).all()
    assert (runs.info["optimisations"] >= 1 + 4 + 2).all()
    assert (runs.info["optimisations"] <= 1 + 4 + 4 + 3 + 3 + 2 + 2).all()


@pytest.mark.slow
def test_peace_without_rewards_errs():
    instance = jb.instances.canonical(6, gap=2.0)
    build = partial(jb.peace, budget=240)
    assert jb.simulate(instance, build, replications=60).correct.mean() > 0.95

    def blind(arms, **options):
        algorithm = jb.peace(arms, **options)
        tell = lambda state, move, total: algorithm.tell(state, move, 0.0 * total)  # noqa: E731
        return algorithm._replace(tell=tell)

    runs = jb.simulate(instance, partial(blind, budget=240), replications=60)
    assert runs.correct.mean() < 0.5


def test_a_single_arm_needs_no_draws():
    alone = jb.instances.linear([[1.0]], [1.0])
    runs = jb.simulate(alone, partial(jb.peace, budget=5, objective="rho"), replications=3)
    assert (runs.pulls.tolist(), runs.answer.tolist()) == ([0, 0, 0], [0, 0, 0])


@pytest.mark.slow
def test_no_arm_is_preferred_where_draws_are_too_few_for_all():
    """With two rounds of four draws for eight arms, half of the arms are never drawn."""
    instance = jb.instances.canonical(8, gap=1e-6)
    build = partial(jb.peace, budget=8, iterations=1)
    runs = jb.simulate(instance, build, replications=800)
    drawn, answered = (runs.arm_pulls > 0).mean(0), np.bincount(runs.answer, minlength=8)
    assert np.ptp(drawn) < 0.15
    assert np.ptp(answered) < 70
