"""Lazy track-and-stop against a plain NumPy twin, pull by pull on the same rewards."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import Hand, linear_problem, normal_rewards, same_arm
from params import params
from ratio_twins import Estimate, Ridge

import jaxbandits as jb
from jaxbandits.engine import episode
from jaxbandits.kernels.design import oracle
from jaxbandits.kernels.design.xy import by_name

OPTIONS = ("delta", "noise_var", "laziness", "u")
SOLVE = by_name.named("interior_point", 1e-2)
estimated = jax.jit(lambda arms, means: oracle.estimated(arms, arms, means, SOLVE))


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class LazyTrackAndStop(Ridge):
    """Jedra and Proutiere, Algorithm 1; `design(means)` gives the weights to follow."""

    def __init__(self, arms, order, design, *, laziness, u, **facts):
        super().__init__(arms, order, threshold=None, **facts)
        self.design, self.laziness, self.u = design, laziness, u
        self.weights = self.wanted = np.full(len(arms), 1 / len(arms))
        self.basis, self.forced, self.due = [], 0, arms.shape[1]
        for k in range(len(arms)):
            if np.linalg.matrix_rank(arms[[*self.basis, k]]) > len(self.basis):
                self.basis.append(k)
        chosen = arms[self.basis]
        self.floor = (1 - 1e-9) * np.linalg.eigvalsh(chosen.T @ chosen)[0] / math.sqrt(len(chosen))

    def ask(self):
        pulls = self.pulls
        matrix = pulls.matrix(0.0)
        if pulls.draws < pulls.dim:
            return False, None, self.next_of_basis()
        estimate = Estimate(pulls.arms, matrix, pulls.arms.T @ pulls.sums)
        c = (1 - 1e-9) * max(x @ x for x in pulls.arms)
        least = np.linalg.eigvalsh(matrix)[0]
        determinant = np.linalg.det(np.eye(pulls.dim) + matrix / (self.u * c))
        beta = (1 + self.u) * self.facts["noise_var"]
        beta *= math.log(math.sqrt(determinant) / self.facts["delta"])
        if estimate.ratio / 2 >= beta and least > c:
            return True, estimate.leader, None
        if least < self.floor * math.sqrt(pulls.draws):
            return False, estimate.leader, self.next_of_basis()
        return False, estimate.leader, self.first(self.wanted - pulls.counts)

    def next_of_basis(self):
        self.forced += 1
        return self.basis[(self.forced - 1) % len(self.basis)]

    def tell(self, arm, reward):
        super().tell(arm, reward)
        pulls = self.pulls
        if pulls.draws >= self.due:
            means = Estimate(pulls.arms, pulls.matrix(0.0), pulls.arms.T @ pulls.sums).means
            self.weights = self.design(means)
            self.due = max(math.ceil((1 + self.laziness) * pulls.draws), pulls.draws + 1)
        self.wanted = self.wanted + self.weights


def certified(arms):
    """The package's design, after a check of its value and of its certificate."""

    def design(means):
        found = estimated(jnp.asarray(arms), jnp.asarray(means))
        weights, leader = np.asarray(found.weights), int(np.argmax(means))
        inverse = np.linalg.inv(arms.T @ (weights[:, None] * arms))
        others = [j for j in range(len(arms)) if j != leader]
        lengths = [(y := arms[leader] - arms[j]) @ inverse @ y for j in others]
        worst = max(lengths / (means[leader] - means[others]) ** 2)
        np.testing.assert_allclose(found.value, worst, rtol=1e-7)
        assert found.converged
        assert worst <= 1.01 * found.bound
        return weights

    return design


SHAPES = {"arm space": (5, 3), "feature space": (7, 2)}


@pytest.mark.parametrize("space", params(SHAPES, slow=["feature space"]))
def test_lazy_track_and_stop(space):
    num_arms, dim = SHAPES[space]
    hand, played, forced = Hand(jb.lazy_track_and_stop, *OPTIONS), [], []
    for seed, numbers in enumerate([(0.05, 0.5, 1.0, 0.1), (0.2, 0.3, 0.2, 3.0)]):
        rng, arms, theta = linear_problem(seed, num_arms, dim)
        facts, key = (jnp.asarray(arms), None, numbers), jax.random.key(seed)
        order = hand.init(facts, jax.random.fold_in(key, episode.INIT)).order
        options = dict(zip(OPTIONS, numbers, strict=True))
        twin = LazyTrackAndStop(arms, np.asarray(order), certified(arms), **options)
        reward = normal_rewards(rng, arms @ theta, numbers[1])
        rounds, state = hand.play(twin, facts, reward, key, rounds=1000, compare=same_arm)
        played, forced = [*played, rounds], [*forced, twin.forced]
        assert int(state.forced) == twin.forced
        assert int(state.unsolved) == 0
    assert max(played) > 5 * num_arms
    assert max(forced) > dim
