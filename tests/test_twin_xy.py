"""XY-static and XY-oracle against plain NumPy, batch by batch or pull by pull."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import Hand, linear_problem, normal_rewards, same_arm

import jaxbandits as jb
from jaxbandits import theory


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class Batches:
    """Fiez et al. (2019), section 5, as their program runs it; the draws are the package's."""

    def __init__(
        self, arms, targets, delta, noise_var, growth, *, truth=None, odd=False, blind=False
    ):
        self.arms, self.targets, self.truth = arms, targets, truth
        self.delta, self.noise_var, self.growth = delta, noise_var, growth
        self.odd, self.blind = odd, blind
        self.counts, self.sums, self.batch = np.zeros(len(arms)), np.zeros(len(arms)), 0

    def power(self, batch):
        return 2 * batch - 1 if self.odd else batch

    def certain(self):
        """Whether the best target passes its test against every other, and which it is."""
        matrix = (self.arms.T * self.counts) @ self.arms
        if not self.blind and np.linalg.matrix_rank(matrix) < matrix.shape[0]:
            return False, None
        inverse = np.linalg.pinv(matrix, hermitian=True)
        theta = inverse @ self.arms.T @ self.sums
        best = int(np.argmax(self.targets @ (theta if self.truth is None else self.truth)))
        number = len(self.targets) ** (2 if self.truth is None else 1)
        level = 2 * math.log(2 * self.power(self.batch) ** 2 * number / self.delta)
        for z in range(len(self.targets)):
            y = self.targets[best] - self.targets[z]
            if z != best and math.sqrt(self.noise_var * (y @ inverse @ y) * level) >= y @ theta:
                return False, best
        return True, best

    def ask(self):
        done, best = (False, None) if self.batch == 0 else self.certain()
        return done, best, math.ceil(self.growth ** self.power(self.batch + 1))

    def tell(self, counts, sums):
        self.counts, self.sums, self.batch = self.counts + counts, self.sums + sums, self.batch + 1


def a_batch(move, total, twin):
    assert int(move.count.sum()) == total
    assert (np.asarray(move.count) >= 0).all()


NUMBERS = ("delta", "noise_var", "growth")


@pytest.mark.parametrize(
    ("odd", "blind"),
    [
        (True, True),
        *(pytest.param(*x, marks=pytest.mark.slow) for x in ((0, 0), (0, 1), (1, 0))),
    ],
    ids=["odd powers, ignore", "all powers, wait", "all powers, ignore", "odd powers, wait"],
)
def test_xy_static(odd, blind):
    options = {"powers": "odd" if odd else "all", "singular": "ignore" if blind else "wait"}
    hand, played = Hand(partial(jb.xy_static, **options), *NUMBERS), []
    for seed, numbers in enumerate([(0.05, 1.0, 1.35), (0.2, 0.4, 1.6)]):
        rng, arms, theta = linear_problem(50 + seed, 5, 3)
        targets = rng.normal(size=(4, 3))
        twin = Batches(arms, targets, *numbers, odd=odd, blind=blind)
        facts = (jnp.asarray(arms), jnp.asarray(targets), numbers)
        reward = normal_rewards(rng, arms @ theta, numbers[1])
        key = jax.random.key(seed)
        played += hand.play(twin, facts, reward, key, rounds=60, compare=a_batch)[:1]
    assert 2 < min(played) <= max(played) < 60


def test_xy_oracle():
    hand = Hand(
        partial(jb.xy_oracle, allocation="rounded"), "delta", "noise_var", "growth", "theta"
    )
    for seed, (delta, noise_var, growth) in enumerate([(0.05, 1.0, 1.1), (0.2, 0.4, 1.3)]):
        rng, arms, theta = linear_problem(60 + seed, 5, 3)
        targets = rng.normal(size=(4, 3))
        twin = Batches(arms, targets, delta, noise_var, growth, truth=theta)
        facts = (jnp.asarray(arms), jnp.asarray(targets), (delta, noise_var, growth, theta))
        reward, key = normal_rewards(rng, arms @ theta, noise_var), jax.random.key(seed)
        played, _ = hand.play(twin, facts, reward, key, rounds=200, compare=a_batch)
        assert 2 < played < 200


class Oracle:
    """Xu et al. (2018), section 6: XY-oracle, one arm at a time; `weights` is an argument."""

    def __init__(self, arms, theta, weights, delta, noise_var):
        self.arms, self.theta, self.weights = arms, theta, weights
        self.delta, self.noise_var = delta, noise_var
        self.counts = np.zeros(len(arms))

    def ask(self):
        draws, arms = int(self.counts.sum()), self.arms
        best = int(np.argmax(arms @ self.theta))
        if draws < len(arms):
            return False, best, draws
        inverse = np.linalg.inv(np.eye(arms.shape[1]) + (arms.T * self.counts) @ arms)
        level = math.log(6 * draws**2 * len(arms) / (math.pi**2 * self.delta))
        scale = 2 * math.sqrt(2 * self.noise_var * level)
        done = all(
            (arms[best] - x) @ self.theta
            >= scale * math.sqrt((arms[best] - x) @ inverse @ (arms[best] - x))
            for i, x in enumerate(arms)
            if i != best
        )
        used = [a for a in range(len(arms)) if self.weights[a] > 0]
        return done, best, min(used, key=lambda a: (self.counts[a] + 1) / self.weights[a])

    def tell(self, arm, reward):
        self.counts[arm] += 1


def test_xy_oracle_one_arm_at_a_time():
    hand = Hand(partial(jb.xy_oracle, variant="soare"), "delta", "noise_var", "theta")
    for seed, (delta, noise_var) in enumerate([(0.05, 0.3), (0.2, 0.1)]):
        rng, arms, theta = linear_problem(70 + seed, 5, 3)
        numbers, key = (delta, noise_var, theta), jax.random.key(seed)
        facts = (jnp.asarray(arms), None, numbers)
        weights = np.asarray(hand.init(facts, key).weights)
        # The package's weights attain the characteristic time.
        gaps = (arms @ theta).max() - arms @ theta
        directions = arms[gaps.argmin()] - arms
        norms = np.einsum(
            "ki,ij,kj->k", directions, np.linalg.inv((arms.T * weights) @ arms), directions
        )
        found = theory.characteristic_time(jb.instances.linear(arms, theta))
        reached = (norms[gaps > 0] / gaps[gaps > 0] ** 2).max()
        np.testing.assert_allclose(reached, found.value, rtol=1e-5)
        twin = Oracle(arms, theta, weights, delta, noise_var)
        reward = normal_rewards(rng, arms @ theta, noise_var)
        played, _ = hand.play(twin, facts, reward, key, rounds=4000, compare=same_arm)
        assert 10 < played < 4000


@pytest.mark.slow
def test_pulls_at_the_large_angle_are_those_of_another_program():
    """Table 1 of Xu et al. (2018): 2,742,457 at angle 0.01; another program: 21,495 at 0.1."""
    build = partial(jb.xy_oracle, variant="soare")
    runs = jb.simulate(jb.instances.soare(5, angle=0.1, scale=2.0), build, replications=1)
    assert runs.pulls[0] == 21_495


@pytest.mark.slow
def test_pulls_at_the_small_angle_are_those_of_the_paper():
    build = partial(jb.xy_oracle, variant="soare")
    runs = jb.simulate(jb.instances.soare(5, angle=0.01, scale=2.0), build, replications=1)
    assert runs.pulls[0] == 2_742_457
    printed = [13646, 2728606, 68, 68, 68, 1]
    np.testing.assert_allclose(runs.arm_pulls[0], printed, rtol=1e-3, atol=2)


@pytest.mark.parametrize("allocation", ["rounded", pytest.param("iid", marks=pytest.mark.slow)])
def test_growing_batches(allocation):
    """Batches of `ceil(1.35^t)`; rounded ones add up to the design, random ones on average."""
    instance = jb.instances.soare(3, angle=0.1, scale=2.0)
    build = partial(jb.xy_static, allocation=allocation)
    runs = jb.simulate(instance, build, replications=200, seed=1)
    totals = np.cumsum([math.ceil(1.35**t) for t in range(1, 60)])
    assert np.isin(runs.pulls, totals).all()
    weights = jb.design.xy_optimal(instance.arms, instance.targets, tol=1e-3).weights
    if allocation == "rounded":
        for counts, total in zip(runs.arm_pulls, runs.pulls, strict=True):
            np.testing.assert_array_equal(counts, jb.rounding.efficient(weights, total))
    else:
        drawn, total = runs.arm_pulls.sum(0), runs.pulls.sum()
        error = np.sqrt(total * weights * (1 - weights)) + 1e-9
        assert (np.abs(drawn - total * weights) < 5 * error).all()


@pytest.mark.slow
def test_an_unmeasured_direction_may_look_certain_if_singular_is_ignore():
    """Why `singular` is "wait": two draws of e_1 may end a run of the published program."""
    instance = jb.instances.soare(2, angle=0.5, scale=20.0)
    more = {"replications": 200, "seed": 2}
    blind = jb.simulate(instance, partial(jb.xy_static, singular="ignore"), **more)
    patient = jb.simulate(instance, jb.xy_static, **more)
    assert blind.pulls.min() == 2
    assert (patient.arm_pulls > 0).sum(1).min() >= 2
