"""GSE's allocations against plain NumPy twins, stage by stage on the same rewards."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import twins
from hands import Hand, linear_problem, normal_rewards, same_counts

import jaxbandits as jb


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def projected(arms):
    """Coordinates in the span, by singular values."""
    left, values, _ = np.linalg.svd(arms, full_matrices=False)
    kept = values > 1e-9 * values[0]
    return left[:, kept] * values[kept]


def variances(points, weights):
    inverse = np.linalg.inv((points.T * weights) @ points)
    return points @ inverse @ points.T


def frank_wolfe(points):
    """Algorithm 2: the gradient's vertex, the best step, 100 times or until it is 0."""
    points, num = projected(points), len(points)
    weights = np.full(num, 1 / num)
    for _ in range(100):
        table = variances(points, weights)
        widest = int(np.argmax(np.diagonal(table) > np.diagonal(table).max() * (1 - 1e-11)))
        vertex = np.eye(num)[np.argmax(table[widest] ** 2)]

        def worst(rate, vertex=vertex, weights=weights):
            return np.diagonal(variances(points, (1 - rate) * weights + rate * vertex)).max()

        options = {"bounds": (0, 1 - 1e-6), "method": "bounded", "options": {"xatol": 1e-13}}
        found = scipy.optimize.minimize_scalar(worst, **options)
        if found.fun >= worst(0.0) * (1 - 1e-9):
            break
        weights = (1 - found.x) * weights + found.x * vertex
    return weights


def greedy(points, total):
    """Soare et al.: the draw after which the largest variance is least."""
    counts = np.zeros(len(points))
    prior = np.diag(1e-3 * points.shape[1] * (points**2).mean(0))
    for _ in range(total):

        def worst(arm, counts=counts):
            after = counts + (np.arange(len(points)) == arm)
            inverse = np.linalg.inv(prior + (points.T * after) @ points)
            return max(x @ inverse @ x for x in points)

        counts[min(range(len(points)), key=worst)] += 1
    return counts


class Allocated(twins.Halving):
    """`allocate(points, total) -> counts` of the arms alive."""

    def __init__(self, arms, budget, allocate, **options):
        super().__init__(len(arms), budget, twins.least_squares(arms), **options)
        self.arms, self.allocate = arms, allocate

    def ask(self):
        done, answer, _ = super().ask()
        if done:
            return done, answer, None
        counts = np.zeros(self.num_arms)
        counts[self.alive] = self.allocate(self.arms[self.alive], self.totals[self.stage])
        return False, None, counts


def as_a_rounding_of(move, shares, twin):
    """Assert efficient rounding; arms with equal shares may exchange their counts."""
    count, total = np.asarray(move.count), twin.totals[twin.stage]
    right = np.zeros(count.size, int)
    right[twin.alive] = twins.efficient_rounding(shares[twin.alive] / total, total)
    for share in np.unique(np.round(shares, 6)):
        same = np.round(shares, 6) == share
        assert sorted(count[same]) == sorted(right[same])


@pytest.mark.parametrize(
    ("design", "allocate", "compare"),
    [
        ("greedy", greedy, same_counts),
        ("fwg", lambda points, total: total * frank_wolfe(points), as_a_rounding_of),
    ],
    ids=["greedy", "fwg"],
)
def test_designs(design, allocate, compare):
    hand = Hand(partial(jb.gse, design=design), "budget")
    for seed, budget in enumerate([120, 241]):
        rng, arms, theta = linear_problem(50 + seed, 9, 3)
        twin = Allocated(arms, budget, allocate)
        facts, reward = (jnp.asarray(arms), None, (budget,)), normal_rewards(rng, arms @ theta, 1.0)
        hand.play(twin, facts, reward, jax.random.key(seed), compare=compare)


def by_direction(arms, alive):
    """Labels by Lloyd's algorithm from arms far apart, with as many clusters as the rank."""
    points = arms[alive]
    centers = [points[0]]
    while len(centers) < np.linalg.matrix_rank(points):
        far = [min(((x - c) ** 2).sum() for c in centers) for x in points]
        centers.append(points[int(np.argmax(far))])
    for _ in range(50):
        labels = np.array([np.argmin([((x - c) ** 2).sum() for c in centers]) for x in points])
        centers = [points[labels == c].mean(0) for c in range(len(centers))]
    return labels


def test_kmeans():
    """Nine arms along e_1 and one along e_2: the clusters are beyond doubt."""
    hand = Hand(partial(jb.gse, design="kmeans"), "budget")

    def as_clusters_share(move, even, twin):
        count, total = np.asarray(move.count), twin.totals[twin.stage]
        assert count.sum() == total
        assert count[twin.alive].sum() == total
        labels = by_direction(arms, twin.alive)
        parts = [count[twin.alive][labels == c] for c in set(labels)]
        assert max(abs(part.sum() - total / len(parts)) for part in parts) < 1
        assert max(np.ptp(part) for part in parts) <= 1

    for seed, budget in enumerate([80, 203]):
        rng = np.random.default_rng(seed)
        about = 1 + 0.1 * rng.normal(size=9)
        arms = np.vstack([np.stack([about, 0 * about], axis=1), [0, 1]])
        twin = twins.Halving(10, budget, twins.least_squares(arms))
        means = arms @ np.array([1.0, 1.1 - 0.3 * seed])  # the last arm is kept with seed 0 only
        facts, reward = (jnp.asarray(arms), None, (budget,)), normal_rewards(rng, means, 1e-4)
        hand.play(twin, facts, reward, jax.random.key(seed), compare=as_clusters_share)


class Reusing(Allocated):
    """Each fit uses the rewards of all stages."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.seen = np.zeros((2, self.num_arms))

    def tell(self, counts, sums):
        self.seen += counts, sums
        rows = np.repeat(self.arms, self.seen[0].astype(int), axis=0)
        means = np.repeat(self.seen[1] / np.maximum(self.seen[0], 1), self.seen[0].astype(int))
        theta = np.linalg.lstsq(rows, means, rcond=None)[0]
        self.estimate = lambda counts, sums, alive: self.arms[alive] @ theta
        super().tell(counts, sums)


def test_reuse_of_all_rewards():
    hand = Hand(partial(jb.gse, design="greedy", reuse=True), "budget")
    for seed, budget in enumerate([60, 121]):
        rng, arms, theta = linear_problem(60 + seed, 9, 3)
        twin = Reusing(arms, budget, greedy)
        facts, reward = (jnp.asarray(arms), None, (budget,)), normal_rewards(rng, arms @ theta, 4.0)
        hand.play(twin, facts, reward, jax.random.key(seed), compare=same_counts)
