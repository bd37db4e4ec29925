"""RAGE-GLM against a plain NumPy twin, phase by phase on the same rewards."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import plain
import pytest
import twins
from hands import Hand, binomial_rewards, linear_problem, same_counts
from params import params

import jaxbandits as jb
from jaxbandits.kernels.design.xy.by_name import named


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


OPTIONS = ("delta", "theta_norm", "rounding_epsilon")


def curvature(z):
    return 1 / (2 + math.exp(z) + math.exp(-z))


def noise_length(exponent, dim, reach):
    """`sqrt(d)` plus the root t of `t^2 = L (2 (1 + 2 reach sqrt(d)) + 3 reach t)`."""
    b, c = 3 * reach * exponent, 2 * exponent * (1 + 2 * reach * math.sqrt(dim))
    return math.sqrt(dim) + (b + math.sqrt(b**2 + 4 * c)) / 2


def radius_of(exponent, dim, reach):
    length = noise_length(exponent, dim, reach)
    if reach * length >= 1:
        return math.inf
    bound = -math.log(1 - reach * length)
    for iteration in range(13):
        excess = (math.exp(bound) - 1) / bound - 1
        width = math.sqrt(2 * exponent) + reach * exponent / 3
        width += excess * length * bound / (1 - math.exp(-bound))
        bound = min(bound, reach * width) if iteration < 12 else bound
    return width


def reach_of(exponent, dim):
    """The reach whose product with the length of the noise is 1/2, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        below = middle * noise_length(exponent, dim, middle) < 0.5
        low, high = (middle, high) if below else (low, middle)
    return low


def norm(vector, matrix):
    return math.sqrt(vector @ np.linalg.solve(matrix, vector))


class RageGlm:
    """`design(arms, directions) -> weights` is an argument, all else is the twin's own code."""

    def __init__(self, arms, targets, design, *, delta, theta_norm, eps):
        self.arms, self.targets, self.design = arms, targets, design
        self.delta, self.eps = delta, eps
        self.alive, self.phase = list(range(len(targets))), 0
        self.floors = np.array([curvature(np.linalg.norm(x) * theta_norm) for x in arms])

    def exponent(self):
        num_bounds = 2 * len(self.arms) + len(self.targets) * (len(self.targets) - 1) + 1
        return math.log(num_bounds * (self.phase + 1) ** 2 * math.pi**2 / 6 / self.delta)

    def information(self, counts):
        return sum(
            n * f * np.outer(x, x) for n, f, x in zip(counts, self.floors, self.arms, strict=True)
        )

    def ask(self):
        if len(self.alive) == 1:
            return True, self.alive[0], None
        facts = self.exponent(), self.arms.shape[1]
        close = reach_of(*facts)
        worst = radius_of(*facts, close)
        pairs = [self.targets[a] - self.targets[b] for a in self.alive for b in self.alive if a < b]
        pairs = pairs if self.phase else []
        wanted = [x / close for x in self.arms] + [2**self.phase * worst * y for y in pairs]
        weights = self.design(np.sqrt(self.floors)[:, None] * self.arms, np.array(wanted))
        one = self.information(weights)
        far = max(norm(x, one) for x in self.arms)
        longest = max([norm(y, one) for y in pairs], default=0.0)
        slack = math.sqrt(1 + self.eps)

        def required(draws):
            """The draws that the phase needs if its radius is that after `draws` draws."""
            width = radius_of(*facts, min(close, slack * far / math.sqrt(draws)))
            return max((slack * far / close) ** 2, (slack * 2**self.phase * width * longest) ** 2)

        draws = max((slack * far / close) ** 2, (slack * 2**self.phase * worst * longest) ** 2)
        for _ in range(10):
            draws = required(required(draws))
        assert required(draws) <= draws * (1 + 1e-9)
        total = math.ceil(max(draws, 2 * (weights > 0).sum() / self.eps))
        return False, None, twins.efficient_rounding(weights, total)

    def tell(self, counts, sums):
        theta = twins.logistic_fit(self.arms, counts, sums, 0.0)
        matrix = self.information(counts)
        reach = max(norm(x, matrix) for x in self.arms)
        width = radius_of(self.exponent(), self.arms.shape[1], reach)

        def beats(z, other):
            y = self.targets[z] - self.targets[other]
            return width * norm(y, matrix) < y @ theta

        alive = self.alive
        self.alive = [z for z in alive if not any(beats(a, z) for a in alive if a != z)]
        for k, x in enumerate(self.arms):
            least = curvature(abs(x @ theta) + width * norm(x, matrix))
            self.floors[k] = max(self.floors[k], least)
        self.phase += 1


def certified(arms, vectors):
    """The package's design, padded to one shape; its kernels are tested elsewhere."""
    padded = np.zeros((20, arms.shape[1]))
    padded[: len(vectors)] = vectors
    found = SOLVE(jnp.asarray(arms), jnp.asarray(padded), jnp.arange(20) < len(vectors))
    assert found.converged
    return np.asarray(found.weights)


SOLVE = jax.jit(named("interior_point").along)
DESIGNS = {
    "interior_point": certified,
    "frank_wolfe": lambda arms, vectors: plain.frank_wolfe(arms, vectors)[0],
}


@pytest.mark.parametrize("design", params(DESIGNS, slow=["frank_wolfe"]))
def test_rage_glm(design):
    hand, phases = Hand(partial(jb.rage_glm, design=design), *OPTIONS), []
    for seed, numbers in enumerate([(0.05, 1.5, 0.1), (0.2, 2.0, 0.3)]):
        rng, arms, theta = linear_problem(50 + seed, 5, 3)
        arms, targets = arms / 2, rng.normal(size=(6, 3))
        delta, theta_norm, eps = numbers
        options = {"delta": delta, "theta_norm": theta_norm, "eps": eps}
        twin = RageGlm(arms, targets, DESIGNS[design], **options)
        facts = (jnp.asarray(arms), jnp.asarray(targets), numbers)
        reward = binomial_rewards(rng, 1 / (1 + np.exp(-arms @ theta)))
        key = jax.random.key(seed)
        played, state = hand.play(twin, facts, reward, key, compare=same_counts)
        assert (int(state.unsolved), int(state.unfitted)) == (0, 0)
        np.testing.assert_allclose(state.floors, twin.floors, rtol=1e-6)
        phases.append(played)
    assert max(phases) >= 3
