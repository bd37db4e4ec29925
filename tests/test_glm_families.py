"""Each family in each algorithm that supports it: fits and moves against plain NumPy."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special, stats

import jaxbandits as jb

K, D, RIDGE = 24, 2, 0.3
FAMILIES = {  # mean, slope of the mean, a reward
    "logistic": (
        special.expit,
        lambda z: special.expit(z) * special.expit(-z),
        lambda rng, mean: rng.binomial(1, mean),
    ),
    "probit": (stats.norm.cdf, stats.norm.pdf, lambda rng, mean: rng.binomial(1, mean)),
    "poisson": (np.exp, np.exp, lambda rng, mean: rng.poisson(mean)),
    "gaussian": (lambda z: z, np.ones_like, lambda rng, mean: rng.normal(mean)),
}


class Plain:
    """The model of a family; `theta` is where the gradient is 0, by a general root finder."""

    def __init__(self, family, arms, counts, sums):
        self.mean, self.slope, _ = FAMILIES[family]
        self.arms, self.counts, self.sums = arms, counts, sums
        self.theta = self.fitted(sums)

    def hessian(self, theta):
        weights = self.counts * self.slope(self.arms @ theta)
        return (self.arms.T * weights) @ self.arms + RIDGE * np.eye(D)

    def fitted(self, sums, term=0.0):
        def gradient(theta):
            residual = self.counts * self.mean(self.arms @ theta) - sums
            return self.arms.T @ residual + RIDGE * theta - term

        found = optimize.root(gradient, np.zeros(D), jac=self.hessian, tol=1e-13)
        assert np.abs(gradient(found.x)).max() < 1e-8
        return found.x

    def widths(self):
        matrix = (self.arms.T * self.counts) @ self.arms + RIDGE * np.eye(D)
        return np.sqrt(np.einsum("ki,ij,kj->k", self.arms, np.linalg.inv(matrix), self.arms))


def normal(key, size):
    return np.asarray(jax.random.normal(key, (size,), float))


def laplace(plain, key, a):
    hessian = plain.hessian(plain.theta)
    step = np.linalg.solve(hessian, np.linalg.cholesky(hessian) @ normal(key, D))
    return plain.arms @ (plain.theta + a * step)


def perturbed_rewards(plain, key, a):
    noise = a * np.sqrt(plain.counts) * normal(key, K)
    return plain.arms @ plain.fitted(plain.sums + noise)


def perturbed_loss(plain, key, a):
    normals = normal(key, K + D)
    root = np.sqrt(plain.counts * plain.slope(plain.arms @ plain.theta))
    term = plain.arms.T @ (root * normals[:K]) + math.sqrt(RIDGE) * normals[K:]
    return plain.arms @ plain.fitted(plain.sums, a * term)


def high_predictor(plain, key, alpha):
    return plain.arms @ plain.theta + alpha * plain.widths()


def high_mean(plain, key, alpha):
    return plain.mean(plain.arms @ plain.theta) + alpha * plain.widths()


def greedy(plain, key, rate):
    return plain.arms @ plain.theta


CASES = {  # an option, its values, and the quantity that the drawn arm maximises
    "glm_tsl": ("a", (1.5,), laplace),
    "glm_fpl": ("a", (1.5,), perturbed_rewards),
    "evill": ("a", (1.5,), perturbed_loss),
    "ucb_glm": ("alpha", (0.5, 2.0, 8.0, 40.0), high_predictor),
    "glm_ucb": ("alpha", (0.5, 2.0, 8.0, 40.0), high_mean),
    "epsilon_greedy": ("rate", (0.0,), greedy),
}
ALWAYS = {
    ("glm_tsl", "poisson"),
    ("ucb_glm", "poisson"),
    ("glm_ucb", "logistic"),
    ("epsilon_greedy", "probit"),
}


def seen(family):
    """Arms, the indices of those drawn, and their rewards; most arms are never drawn."""
    rng = np.random.default_rng(8)
    angles, theta = 2 * np.pi * np.arange(K) / K, np.array([0.9, 0.6])
    arms = rng.uniform(0.8, 1.2, size=(K, 1)) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    drawn = np.concatenate([[0, 1], rng.permutation(np.repeat([0, 3, 5, 12, 20], [6, 9, 2, 1, 2]))])
    mean, _, reward = FAMILIES[family]
    return arms, drawn, reward(rng, mean(arms[drawn] @ theta)).astype(float)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        pytest.param(n, f, marks=[] if (n, f) in ALWAYS else pytest.mark.slow)
        for n in CASES
        for f in FAMILIES
    ],
)
def test_fits_and_moves_equal_those_of_plain_numpy(name, family):
    option, numbers, values_of = CASES[name]
    arms, drawn, rewards = seen(family)
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(5), 40)

        @jax.jit
        def play(arms, drawn, rewards, keys):
            build = partial(getattr(jb, name), arms, family=family, ridge=RIDGE)
            algorithms = [build(**{option: number}) for number in numbers]

            def draw(state, one):
                move = algorithms[0].ask(keys[0], state)
                return algorithms[0].tell(state, move._replace(arm=one[0]), one[1]), None

            state, _ = jax.lax.scan(draw, algorithms[0].init(keys[0]), (drawn, rewards))
            return state, [jax.vmap(lambda key, a=a: a.ask(key, state))(keys) for a in algorithms]

        state, moves = play(*map(jnp.asarray, (arms, drawn, rewards)), keys)
        counts = np.bincount(drawn, minlength=K)
        plain = Plain(family, arms, counts, np.bincount(drawn, rewards, K))
        np.testing.assert_allclose(state.fit.theta, plain.theta, atol=1e-4)
        assert int(state.missed.report()["unconverged"]) == 0
        for number, move in zip(numbers, moves, strict=True):
            for key, arm in zip(keys, move.arm, strict=True):
                values = values_of(plain, key, number)
                assert values[int(arm)] > values.max() - 2e-4
    if name != "epsilon_greedy":
        assert len({int(arm) for move in moves for arm in move.arm}) > 1


@pytest.mark.parametrize("build", [jb.glm_tsl, jb.glm_fpl, jb.glm_ucb])
@pytest.mark.parametrize(
    ("slopes", "message"),
    [
        ({"kappa": 0.3, "lipschitz": 0.2}, r"kappa must be at most lipschitz, 0.2, got 0.3"),
        # The slope that is not given is that at 0.
        ({"kappa": 0.5}, r"kappa must be at most lipschitz, 0.25, got 0.5"),
        ({"lipschitz": 0.1}, r"kappa must be at most lipschitz, 0.1, got 0.25"),
    ],
)
def test_the_least_slope_is_not_above_the_largest(build, slopes, message):
    with pytest.raises(ValueError, match=message):
        build(np.eye(2), horizon=9, **slopes)
