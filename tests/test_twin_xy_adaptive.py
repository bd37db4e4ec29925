"""XY-adaptive against a plain NumPy twin, phase by phase on the same rewards."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import Hand, linear_problem, normal_rewards, same_counts

import jaxbandits as jb

OPTIONS = ("delta", "noise_var", "alpha")
MASK = 2**32 - 1


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def priority(number, arm):
    """MurmurHash3's finaliser, in Python's own integers."""
    x = (number * 0x85EBCA6B + arm * 0x9E3779B9) & MASK
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = ((x ^ (x >> shift)) * factor) & MASK
    return (x ^ (x >> 16)) >> 1


class XYAdaptive:
    """A phase is planned one arm at a time; for each candidate the inverse is computed anew."""

    def __init__(self, arms, variant, begin, retest, *, delta, noise_var, alpha):
        self.arms, self.variant, self.begin, self.retest = arms, variant, begin, retest
        self.delta, self.noise_var, self.alpha = delta, noise_var, alpha
        dim = arms.shape[1]
        self.alive, self.phase, self.answer = list(range(len(arms))), 1, 0
        self.rho, self.number = 1.0, dim * (dim + 1) + 1
        self.ties, self.returned = 0, False

    def inverse(self, counts):
        ridge = np.eye(self.arms.shape[1]) * (self.begin == "ridge")
        return np.linalg.inv((self.arms.T * counts) @ self.arms + ridge)

    def widest(self, counts):
        inverse = self.inverse(counts)
        pairs = [self.arms[a] - self.arms[b] for a, b in itertools.combinations(self.alive, 2)]
        return max(y @ inverse @ y for y in pairs)

    def counted(self, counts):
        return sum(counts) + self.arms.shape[1] * (self.begin == "ridge")

    def begun(self):
        counts = [int(self.begin == "every")] * len(self.arms)
        if self.begin == "basis":
            for k in range(len(self.arms)):
                chosen = [i for i, n in enumerate(counts) if n] + [k]
                counts[k] = int(np.linalg.matrix_rank(self.arms[chosen]) == len(chosen))
        return counts

    def next(self, counts):
        tried = [[n + (i == k) for i, n in enumerate(counts)] for k in range(len(counts))]
        scores = [self.widest(after) for after in tried]
        tied = [k for k, score in enumerate(scores) if score <= min(scores) * (1 + 1e-12)]
        self.ties += len(tied) > 1
        return max(tied, key=lambda k: priority(sum(counts), k))

    def enough(self, counts):
        if self.variant == "rage":
            measure, before = self.widest(counts) / self.counted(counts), self.rho / self.number
            return measure <= self.alpha * before
        return self.widest(counts) <= self.alpha * self.rho

    def ask(self):
        if len(self.alive) == 1:
            return True, self.answer, None
        counts = self.begun()
        while True:
            counts[self.next(counts)] += 1
            if self.enough(counts):
                return False, self.answer, np.array(counts)

    def width(self, y, counts, inverse):
        size = len(self.arms) ** 2
        if self.variant == "rage":
            term = 2 * math.log(math.pi**2 * size * self.phase**2 / (3 * self.delta))
        else:
            drawn = sum(int(n) for n in counts)
            term = 8 * math.log(6 * drawn**2 * size / (math.pi**2 * self.delta))
        return math.sqrt(self.noise_var * (y @ inverse @ y) * term)

    def tell(self, counts, sums):
        inverse = self.inverse(counts)
        theta = inverse @ self.arms.T @ sums

        def beats(z, x):
            y = self.arms[z] - self.arms[x]
            return y @ theta > self.width(y, counts, inverse)

        tested = range(len(self.arms)) if self.retest else self.alive
        left = [x for x in tested if not any(beats(z, x) for z in tested if z != x)]
        self.returned = self.returned or not set(left) <= set(self.alive)
        self.rho, self.number = self.widest(counts), self.counted(counts)
        self.alive, self.phase = left, self.phase + 1
        self.answer = max(left, key=lambda x: self.arms[x] @ theta)


def play_twin(hand, arms, theta, numbers, rng, *rules):
    twin = XYAdaptive(arms, *rules, **dict(zip(OPTIONS, numbers, strict=True)))
    reward = normal_rewards(rng, arms @ theta, numbers[1])
    facts = (jnp.asarray(arms), None, numbers)
    phases, state = hand.play(twin, facts, reward, jax.random.key(0), compare=same_counts)
    assert phases == twin.phase - 1
    assert int(state.capped) == 0
    np.testing.assert_allclose(state.widest, twin.rho, rtol=1e-9)
    return twin


@pytest.mark.parametrize(
    ("rules", "options"),
    [
        (("rage", "ridge", False), {}),
        (("rage", "basis", False), {"begin": "basis"}),
        (("soare", "every", True), {"variant": "soare"}),
        (("soare", "every", False), {"variant": "soare", "retest": False}),
    ],
    ids=["rage", "rage without a ridge", "soare", "soare without return"],
)
def test_xy_adaptive(rules, options):
    """This includes the defaults of each variant."""
    hand, twins = Hand(partial(jb.xy_adaptive, **options), *OPTIONS), []
    for seed, numbers in enumerate([(0.05, 0.1, 0.3), (0.2, 0.4, 0.3)]):
        rng, arms, theta = linear_problem(50 + seed, 5, 3)
        twins.append(play_twin(hand, arms, theta, numbers, rng, *rules))
    rng, arms = np.random.default_rng(0), np.vstack([np.eye(3), np.outer([0.5, 0.2], np.eye(3)[0])])
    twins.append(play_twin(hand, arms, 2 * arms[0], (0.05, 0.1, 0.3), rng, *rules))
    assert max(twin.phase for twin in twins) > 3
    assert twins[-1].ties > 0
    assert any(twin.returned for twin in twins) == rules[-1]
