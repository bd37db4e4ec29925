"""OD-LinBAI against a plain NumPy twin, round by round on the same rewards."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import twins
from hands import Hand, linear_problem, normal_rewards

import jaxbandits as jb


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class OdLinBai:
    """Yang and Tan, Algorithm 1, with the package's counts; `as_good_as_optimal` checks them."""

    def __init__(self, arms, budget):
        self.arms, self.alive, self.round, self.spent = arms, list(range(len(arms))), 1, 0
        self.dim = int(np.linalg.matrix_rank(arms))
        self.rounds = max(1, math.ceil(math.log2(self.dim)))
        self.first, length = len(arms), arms.shape[1]
        if len(arms) > length * (length + 1) / 2:
            self.first = min(len(arms), self.dim * (self.dim + 1) // 2)
        later = sum(math.ceil(self.dim / 2**r) for r in range(1, self.rounds))
        self.each = (budget - self.first - later) / self.rounds

    def ask(self):
        if self.round > self.rounds:
            return True, self.alive[0], None
        return False, None, self.each

    def tell(self, counts, sums):
        values = twins.least_squares(self.arms)(counts, sums, self.alive)
        keep = math.ceil(self.dim / 2**self.round)
        best = sorted(range(len(self.alive)), key=lambda i: -values[i])[:keep]
        self.alive, self.round = [self.alive[i] for i in best], self.round + 1
        self.spent += int(counts.sum())


def as_good_as_optimal(move, each, twin):
    """Assert that counts are ceilings of a design on few arms that is optimal up to 1%."""
    count = np.asarray(move.count)
    alive, support = twin.arms[twin.alive], (count > 0).sum()
    assert count[twin.alive].sum() == count.sum()
    assert each <= count.sum() < each + support
    if twin.round == 1:
        assert support <= twin.first
    best, rank = twins.wolfe_atwood(alive)
    basis = np.linalg.svd(alive, full_matrices=False)[2][:rank].T
    points = alive @ basis
    matrix = (points.T * (count[twin.alive] / each)) @ points
    optimum = np.linalg.slogdet((points.T * best) @ points)[1]
    assert np.linalg.slogdet(matrix)[1] >= optimum - 0.01 * rank - 1e-6
    leverage = np.einsum("ki,ij,kj->k", points, np.linalg.inv(matrix), points)
    assert leverage.max() <= rank * 1.01 * (1 + 1e-6)


FEW = pytest.param(12, 5, marks=pytest.mark.slow)  # so few that the first design may use all arms
PLANE = pytest.param(20, 2, marks=pytest.mark.slow)


@pytest.mark.parametrize(("num_arms", "dim"), [(40, 8), FEW, PLANE, (4, 1)])
def test_od_linbai(num_arms, dim):
    hand = Hand(jb.od_linbai, "budget")
    for seed, budget in enumerate([60, 155, 1001]):
        rng, arms, theta = linear_problem(70 + seed, num_arms, dim)
        if seed == 2 and dim > 2:
            arms[:, -1] = arms[:, 0]  # of rank d - 1
        twin = OdLinBai(arms, budget)
        facts, reward = (jnp.asarray(arms), None, (budget,)), normal_rewards(rng, arms @ theta, 1.0)
        rounds, _ = hand.play(twin, facts, reward, jax.random.key(seed), compare=as_good_as_optimal)
        assert rounds == twin.rounds
        assert twin.spent <= budget


def test_arms_of_zeros_are_drawn_as_one_of_rank_one():
    instance = jb.instances.linear(np.zeros((4, 2)), [1.0, 0.0])
    runs = jb.simulate(instance, partial(jb.od_linbai, budget=60), replications=16)
    assert ((runs.pulls > 50) & (runs.pulls <= 60)).all()
    assert runs.stopped.all()


def test_a_budget_too_small_for_a_round_is_not_spent():
    """With `m = (12 - 10 - 2) / 2 = 0` draws a random arm is answered, and `skipped` reports it."""
    arms, hand = np.random.default_rng(0).normal(size=(12, 4)), Hand(jb.od_linbai, "budget")
    answers = []
    for budget in (12, 13):
        facts = (jnp.asarray(arms), None, (budget,))
        for seed in range(20):
            key = jax.random.key(seed)
            move = hand.ask(facts, key, hand.init(facts, key))
            answers.append(int(move.answer))
            assert bool(move.done) == (budget == 12)
            assert int(move.info[0]["skipped"]) == (budget == 12)
    assert len(set(answers)) > 8
    assert 0 < move.count.sum() <= 11
