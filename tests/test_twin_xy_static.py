"""XY-static, one arm at a time, against plain NumPy on the same rewards."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import Hand, linear_problem, normal_rewards
from programs import QUICK

import jaxbandits as jb

BUILD = partial(jb.xy_static, variant="soare")
TIED = 1e-9


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class XYStatic:
    """Xu et al. (2018), section 6: for each candidate arm the inverse is computed anew."""

    def __init__(self, arms, targets, delta, noise_var, v0):
        self.arms, self.targets = arms, targets
        self.delta, self.noise_var, self.v0 = delta, noise_var, v0
        self.counts, self.sums, self.ties = np.zeros(len(arms)), np.zeros(len(arms)), 0

    def inverse(self, counts):
        return np.linalg.inv(
            (self.arms.T * counts) @ self.arms + self.v0 * np.eye(self.arms[0].size)
        )

    def widest(self, counts):
        inverse = self.inverse(counts)
        pairs = itertools.combinations(self.targets, 2)
        return max((z - other) @ inverse @ (z - other) for z, other in pairs)

    def ask(self):
        """Whether it ends, its answer, and the scores of the arms."""
        num_arms, num_targets, draws = len(self.arms), len(self.targets), int(self.counts.sum())
        if draws < num_arms:
            return False, None, draws
        inverse = self.inverse(self.counts)
        theta = inverse @ self.arms.T @ self.sums
        best = int(np.argmax(self.targets @ theta))
        level = math.log(6 * draws**2 * num_targets**2 / (math.pi**2 * self.delta))
        scale = 2 * math.sqrt(2 * self.noise_var * level)
        directions = [self.targets[best] - z for z in self.targets]
        done = all(y @ theta >= scale * math.sqrt(y @ inverse @ y) for y in directions)
        scores = [self.widest(self.counts + one) for one in np.eye(num_arms)]
        return done, best, scores

    def tell(self, arm, reward):
        self.counts[arm] += 1
        self.sums[arm] += reward


def no_worse(move, wanted, twin):
    """Assert the arm itself in the first rounds, then any arm whose score is the best."""
    if isinstance(wanted, int):
        assert int(move.arm) == wanted
        return
    assert wanted[int(move.arm)] <= min(wanted) * (1 + TIED)
    twin.ties += np.count_nonzero(np.array(wanted) <= min(wanted) * (1 + TIED)) > 1


@pytest.mark.parametrize("v0", [pytest.param(0.0, marks=pytest.mark.slow), 0.5])
def test_xy_static(v0):
    hand, played = Hand(BUILD, "delta", "noise_var", "v0"), []
    for seed, (delta, noise_var) in enumerate([(0.05, 0.3), (0.2, 0.1)]):
        rng, arms, theta = linear_problem(80 + seed, 5, 3)
        targets = rng.normal(size=(4, 3))
        twin = XYStatic(arms, targets, delta, noise_var, v0)
        facts = (jnp.asarray(arms), jnp.asarray(targets), (delta, noise_var, v0))
        reward, key = normal_rewards(rng, arms @ theta, noise_var), jax.random.key(seed)
        played += hand.play(twin, facts, reward, key, rounds=4000, compare=no_worse)[:1]
    assert 10 < min(played) <= max(played) < 4000


def test_tied_arms_are_drawn_equally_often():
    """With basis arms there are many ties, and all counts stay nearly equal."""
    arms, theta = np.eye(4), np.array([1.0, 0.4, 0.0, 0.0])
    hand, twin = Hand(BUILD, "delta", "noise_var", "v0"), XYStatic(arms, arms, 0.05, 0.2, 0.0)
    rng = np.random.default_rng(0)
    facts, reward = (jnp.asarray(arms), None, (0.05, 0.2, 0.0)), normal_rewards(rng, theta, 0.2)
    played, _ = hand.play(twin, facts, reward, jax.random.key(0), compare=no_worse)
    assert twin.ties > played / 2
    assert np.ptp(twin.counts) <= 2


def test_fewer_arms_than_dimensions():
    """With a ridge there is an estimate; without one the arms must span."""
    arms = np.random.default_rng(3).normal(size=(4, 6))
    instance = jb.instances.linear(arms, 2.0 * arms[0], noise_var=0.1)
    runs = jb.simulate(instance, partial(BUILD, v0=0.01), replications=20)
    assert runs.correct.all()
    assert runs.pulls.min() >= 4
    with pytest.raises(ValueError, match=r"arms must span R\^6"):
        jb.simulate(instance, BUILD, replications=2)
    with pytest.raises(ValueError, match=r"arms must span R\^6"):
        jb.simulate(instance, partial(jb.xy_static, v0=0.01), replications=2)


def test_draws_do_not_depend_on_rewards():
    """Two replications draw the same arms as long as both are running."""
    instance = jb.instances.soare(3, angle=0.5, scale=2.0)
    runs = jb.simulate(instance, BUILD, replications=30)
    order = np.argsort(runs.pulls)
    assert np.unique(runs.pulls).size > 10
    assert (np.diff(runs.arm_pulls[order], axis=0) >= 0).all()


@pytest.mark.slow
def test_equally_informative_arms_are_drawn_equally_often():
    """Shares 1/2 : 1 : 1 : 1 : 1 : 1/2 on the first benchmark, as printed by Xu et al. (2018)."""
    instance = jb.instances.soare(5, angle=0.1, scale=2.0)
    runs = jb.simulate(instance, BUILD, replications=20, engine=QUICK)
    shares = runs.arm_pulls.sum(0) / runs.arm_pulls[:, 2].sum()
    np.testing.assert_allclose(shares[1:5], 1.0, atol=0.02)
    np.testing.assert_allclose(shares[[0, 5]], 0.5, atol=0.15)
    np.testing.assert_allclose(shares[0] + shares[5], 1.1, atol=0.05)
