"""ALBA against a plain NumPy twin, batch by batch on the same draws."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import Hand, linear_problem, normal_rewards
from params import params
from scipy import stats

import jaxbandits as jb
from jaxbandits.kernels.confidence import radius


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class Alba:
    """Y-ElimTil in stages; `design(candidates, alive) -> weights` of the candidates' indices.

    The package draws the counts from the design: the twin says how many draws there are and which
    arms may be drawn, and observes the counts with the rewards.
    """

    def __init__(self, arms, design, *, delta, noise_var, theta_norm):
        self.arms, (num_arms, self.dim) = arms, arms.shape
        self.delta, self.sigma, self.design = delta, math.sqrt(noise_var), design
        self.norm = theta_norm / self.sigma
        self.alive, self.answer = list(range(num_arms)), None
        self.stage, self.batch, self.size = 0, 1, num_arms
        self._begin()

    def _begin(self):
        """Skip the stages that have nothing to do."""
        while self.stage <= self.dim and len(self.alive) <= self.dim // 2**self.stage:
            self.stage, self.batch, self.size = self.stage + 1, 1, len(self.alive)

    def ask(self):
        if len(self.alive) == 1:
            return True, self.alive[0], None
        stage_level = 6 * self.delta / (math.pi**2 * (self.stage + 1) ** 2)
        level = 6 * stage_level / (math.pi**2 * self.batch**2)
        u, c = 4 / 1.1**self.batch, max(4 * self.norm**2, 3)
        self.length = 4 * c * (2 + (6 + u) * self.dim) / u**2
        total = math.ceil(self.length * math.log(5 * self.size**2 / (2 * level)))
        self.weights = np.zeros(len(self.arms))
        self.weights[self.candidates()] = self.design(self.candidates(), self.alive)
        return False, self.answer, total

    def candidates(self):
        span = self.arms[self.alive]
        rank = np.linalg.matrix_rank(span)
        rows = range(len(self.arms))
        return [k for k in rows if np.linalg.matrix_rank(np.vstack([span, self.arms[k]])) == rank]

    def estimate(self, counts, sums):
        matrix = sum(w * np.outer(x, x) for w, x in zip(self.weights, self.arms, strict=True))
        inverse = np.linalg.pinv(matrix, rcond=1e-10)
        theta = inverse @ (self.arms.T @ sums) / counts.sum() / self.sigma
        return inverse, theta, max(self.alive, key=lambda k: self.arms[k] @ theta)

    def tell(self, counts, sums):
        inverse, theta, best = self.estimate(counts, sums)
        kept = []
        for k in self.alive:
            y = self.arms[best] - self.arms[k]
            if min(self.widths(y, inverse, theta)) >= y @ theta:
                kept.append(k)
        self.alive, self.answer, self.batch = kept, best, self.batch + 1
        self._begin()

    def widths(self, y, inverse, theta):
        d, e, n, bound = self.dim, 2.0**-self.batch, self.length, self.norm
        v = math.sqrt(max(0.0, y @ inverse @ y))
        moment = 0.0
        for w, x in zip(self.weights, self.arms, strict=True):
            moment += w * (y @ inverse @ x * (abs(x @ theta) + e / 2)) ** 2
        noise = math.sqrt(2 * ((v**2 / n) * math.sqrt(3 * d / n) + v**2 / n))
        length = math.sqrt(y @ y)
        worst = math.sqrt(2) * bound * v / math.sqrt(n)
        worst += 2 * bound * (length + v * math.sqrt(d)) / (3 * n)
        learnt = math.sqrt(2 * moment / n)
        learnt += (2 * (abs(y @ theta) + e / 2) + bound * v * math.sqrt(d)) / (3 * n)
        return worst + noise, learnt + noise


def variances(points, weights):
    """`||x||^2` of all points in the pseudo-inverse of A(weights)."""
    matrix = np.einsum("k,ki,kj->ij", weights, points, points)
    return np.einsum("ki,ij,kj->k", points, np.linalg.pinv(matrix, rcond=1e-10), points)


def certified(arms):
    """The package's design, after a check that it is optimal up to its tolerance."""

    def design(candidates, alive):
        active = np.isin(np.arange(len(arms)), candidates)
        found = np.asarray(jb.design.d_optimal(arms, active=active, tol=1e-3).weights)
        points = arms[candidates]
        rank = np.linalg.matrix_rank(points)
        assert variances(points, found[active]).max() <= rank * 1.001 * (1 + 1e-9)
        assert (found[~active] == 0).all()
        return found[active]

    return design


def stepping_first(arms):
    """Frank-Wolfe that steps before it tests; the test is against min(d, number of arms alive)."""

    def design(candidates, alive):
        points, goal = arms[candidates], min(arms.shape[1], len(alive))
        weights = np.full(len(points), 1 / len(points))
        for k in range(1, 5000):
            norms = variances(points, weights)
            step = 2 / (k + 2)
            weights = weights * (1 - step)
            weights[np.argmax(norms > norms.max() * (1 - 1e-11))] += step
            if abs(norms.max() - goal) < 0.01:
                break
        dropped = weights < 1e-5
        weights[np.argmax(weights)] += weights[dropped].sum()
        weights[dropped] = 0
        return weights

    return design


def drawn_from_the_design(move, total, twin):
    """Assert the number of draws, and that no count is improbable under the design."""
    counts, weights = np.asarray(move.count), twin.weights
    assert counts.sum() == total
    assert (counts[weights == 0] == 0).all()
    chance = stats.binom.cdf(counts, total, weights), stats.binom.sf(counts - 1, total, weights)
    assert min(map(np.min, chance)) > 1e-9


NUMBERS = ("delta", "noise_var", "theta_norm")


@pytest.mark.parametrize("name", params(["d_opt", "frank_wolfe"], slow=["d_opt"]))
def test_alba(name):
    """Random arms; in the last setting arms of a plane in R^4, two of them parallel."""
    design_of = {"d_opt": certified, "frank_wolfe": stepping_first}[name]
    hand, phases, plane = Hand(partial(jb.alba, design=name), *NUMBERS), [], None
    settings = [(0.05, 1.0, 1.0), (0.2, 0.3, 1.5), (0.1, 2.0, 0.2)]
    for seed, numbers in enumerate(settings):
        rng, arms, theta = linear_problem(50 + seed, 8, 4)
        if seed == 2:
            plane = np.linalg.qr(rng.normal(size=(4, 2)))[0].T
            arms = rng.normal(size=(8, 2)) @ plane
            arms[3] = 0.5 * arms[0]
        twin = Alba(arms, design_of(arms), **dict(zip(NUMBERS, numbers, strict=True)))
        facts = (jnp.asarray(arms), None, numbers)
        reward = normal_rewards(rng, arms @ theta, numbers[1])
        key = jax.random.key(seed)
        played, state = hand.play(twin, facts, reward, key, compare=drawn_from_the_design)
        assert np.flatnonzero(state.alive).tolist() == twin.alive == [np.argmax(arms @ theta)]
        assert int(state.phases) == played
        phases.append(played)
    assert max(phases) >= 8


@pytest.mark.slow
def test_widths_of_all_directions(monkeypatch):
    """Eliminations alone would not detect errors in the smaller terms."""
    seen = {}

    def spied(name, function):
        return lambda *facts: seen.setdefault(name, function(*facts))

    for name in ("alba_worst_case", "alba_empirical"):
        monkeypatch.setattr(radius, name, spied(name, getattr(radius, name)))
    numbers = {"delta": 0.05, "noise_var": 0.4, "theta_norm": 1.2}
    rng, arms, theta = linear_problem(60, 8, 4)
    algorithm = jb.alba(jnp.asarray(arms), **numbers)
    state = algorithm.init(jax.random.key(0))._replace(batch=jnp.array(3))
    move = algorithm.ask(jax.random.key(1), state)
    counts = np.asarray(move.count)
    sums = normal_rewards(rng, arms @ theta, 0.4)(counts)
    algorithm.tell(state, move, jnp.asarray(sums))

    twin = Alba(arms, certified(arms), **numbers)
    twin.batch = 3
    assert twin.ask()[2] == counts.sum()
    inverse, estimate, best = twin.estimate(counts, sums)
    expected = [twin.widths(arms[best] - x, inverse, estimate) for x in arms]
    np.testing.assert_allclose(list(seen.values()), np.transpose(expected), rtol=1e-9)


def test_batches_that_are_cut_to_what_can_be_drawn_exactly_are_counted():
    """Their widths are those of more draws."""
    instance = jb.instances.canonical(2, gap=3e-9)
    runs = jb.simulate(instance, jb.alba, replications=16, max_pulls=2**62)
    assert (runs.info["unsolved"] > 0).all()
    easy = jb.simulate(jb.instances.canonical(2, gap=1.0), jb.alba, replications=16)
    assert not easy.info["unsolved"].any()


def test_counts_are_independent_draws_from_the_design():
    arms = np.random.default_rng(6).normal(size=(5, 2))
    algorithm = jb.alba(jnp.asarray(arms), theta_norm=1.0)
    state = jax.jit(algorithm.init)(jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 3000)
    moves = jax.jit(jax.vmap(algorithm.ask, (0, None)))(keys, state)
    counts, (_, design) = np.asarray(moves.count), moves.info
    weights, total = np.asarray(design.weights[0]), counts[0].sum()
    assert (counts.sum(1) == total).all()
    expected = total * weights
    deviation = np.sqrt(total * weights * (1 - weights))
    used = weights > 0
    assert used.sum() >= 2
    off = (counts.mean(0) - expected)[used] / deviation[used] * np.sqrt(len(counts))
    assert np.abs(off).max() < 5
    np.testing.assert_allclose(counts.std(0)[used], deviation[used], rtol=0.1)
