"""GLM-FPL, GLM-UCB and epsilon-greedy against plain NumPy twins, pull by pull, and their scales."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import Hand, binomial_rewards, linear_problem, normal_rewards, same_arm
from params import params
from twins import Pulls, logistic_fit

import jaxbandits as jb
from jaxbandits.engine import episode

K, D, N = 8, 3, 120


class Glm:
    """What the twins share: the first arms, and a fit that is solved anew in each round."""

    def __init__(self, arms, first, ridge, **options):
        self.pulls, self.first, self.ridge = Pulls(arms), first, ridge
        self.arms = arms
        vars(self).update(options)

    def fitted(self, extra=0.0):
        return logistic_fit(self.arms, self.pulls.counts, self.pulls.sums + extra, self.ridge)

    def ask(self):
        if self.pulls.draws < len(self.first):
            return False, None, self.first[self.pulls.draws]
        theta = self.fitted()
        return False, self.answer(self.arms @ theta), int(self.choose(theta))

    def answer(self, predictors):
        return int(np.argmax(predictors))

    def tell(self, arm, reward):
        self.pulls.see(arm, reward)


class GlmFpl(Glm):
    def choose(self, theta):
        noise = self.a * np.sqrt(self.pulls.counts) * self.normal(self.pulls.draws)
        return np.argmax(self.arms @ self.fitted(noise))


class GlmUcb(Glm):
    def choose(self, theta):
        inverse = np.linalg.inv(self.pulls.matrix(self.ridge))
        widths = [math.sqrt(x @ inverse @ x) for x in self.arms]
        alpha = self.alpha(self.pulls.draws) if callable(self.alpha) else self.alpha
        return np.argmax(1 / (1 + np.exp(-self.arms @ theta)) + alpha * np.array(widths))

    def answer(self, predictors):
        return max(range(K), key=lambda k: (self.pulls.counts[k], predictors[k]))


class EpsilonGreedy(Glm):
    def choose(self, theta):
        t = self.pulls.draws
        coin, position = self.uniforms(t)
        fading = 0.025 * math.sqrt(N / (t + 1))
        if coin < (fading if self.rate == "fading" else self.rate):
            return int(position * K)
        return np.argmax(self.arms @ theta)


@jax.enable_x64(True)
def against(twin_of, build, names, settings, begin="basis", seed=40):
    """Play twin and package on the same rewards, once for each setting of the options."""
    hand = Hand(partial(build, begin=begin), *names)
    for number, values in enumerate(settings):
        rng, arms, theta = linear_problem(seed + number, K, D)
        arms[1] = -2 * arms[0]
        first = {"basis": [0, 2, 3], "every": [*range(K)], "pivot": pivoted(arms)}[begin]
        key = jax.random.key(number)
        twin = twin_of(arms, first, key, dict(zip(names, values, strict=True)))
        reward = binomial_rewards(rng, 1 / (1 + np.exp(-arms @ theta)))
        facts = (jnp.asarray(arms), None, values)
        _, state = hand.play(twin, facts, reward, key, rounds=N, compare=same_arm)
        np.testing.assert_allclose(state.fit.theta, twin.fitted(), atol=1e-4)
        assert int(state.missed.report()["unconverged"]) == 0


def pivoted(arms):
    """A basis of arms, by SciPy's QR decomposition with column pivoting."""
    import scipy.linalg

    return [int(k) for k in scipy.linalg.qr(arms.T, pivoting=True)[2][:D]]


def normals(key, size):
    return lambda t: np.asarray(jax.random.normal(episode.ask_key(key, t), (size,)))


@pytest.mark.parametrize("begin", ["basis", pytest.param("pivot", marks=pytest.mark.slow)])
def test_glm_fpl(begin):
    def twin(arms, first, key, options):
        first = (first * 5)[: max(len(first), options.pop("exploration"))]
        return GlmFpl(arms, first, normal=normals(key, K), **options)

    names = "a", "ridge", "exploration"
    against(twin, jb.glm_fpl, names, [(0.5, 1e-3, 1), (2.0, 0.5, 3 * D + 1)], begin)


@pytest.mark.parametrize(("name", "noise_var"), [("glm_tsl", 0.002), ("glm_fpl", 1e-4)])
def test_theory_draws_the_first_arms_until_the_design_is_large(name, noise_var):
    """As often as the theorem on its regret asks; the experiments draw each of them once."""
    arms = np.array([[0.6, 0.0], [1.2, 0.0], [0.3, 0.9], [-0.5, 0.5]])
    instance, n = jb.instances.glm(arms, [1.0, 0.5]), 500
    model = {"noise_var": noise_var, "kappa": 0.2, "lipschitz": 0.25}
    bound = getattr(jb.theory, f"{name}_regret_bound")(instance, n, **model)
    build = partial(getattr(jb, name), horizon=n, exploration="theory", **model)
    runs = jb.simulate(instance, build, horizon=bound.exploration, replications=8)
    assert 4 < bound.exploration < n
    half = bound.exploration // 2
    np.testing.assert_array_equal(runs.arm_pulls, np.tile([half, 0, half, 0], (8, 1)))
    basis = arms[[0, 2]]
    least = [np.linalg.eigvalsh(k * basis.T @ basis)[0] for k in (half - 1, half)]
    assert least[0] < bound.eigenvalue <= least[1]


def test_glm_ucb():
    def twin(arms, first, key, options):
        return GlmUcb(arms, first, **options)

    against(twin, jb.glm_ucb, ("alpha", "ridge"), [(0.5, 1e-3), (2.0, 0.5)], "every")


@pytest.mark.parametrize("alpha", params(["theory", "theory_horizon"], slow=["theory"]))
def test_glm_ucb_with_the_width_of_theory(alpha):
    def twin(arms, first, key, options):
        norm = (arms**2).sum(1).max()
        rho = math.sqrt(3 + 2 * math.log(1 + 2 * norm / 1.0))

        def width(t):
            late = t + 1 if alpha == "theory" else N
            return 2 * rho * math.sqrt(2 * D * math.log(late) * math.log(2 * D * N * N))

        return GlmUcb(arms, first, alpha=width, **options)

    build = partial(jb.glm_ucb, alpha=alpha, horizon=N)
    against(twin, build, ("ridge",), [(0.1,)])


@pytest.mark.parametrize("rate", params([0.3, "fading"], slow=["0.3"]))
def test_epsilon_greedy(rate):
    def uniforms(key):
        return lambda t: np.asarray(jax.random.uniform(episode.ask_key(key, t), (2,)))

    def twin(arms, first, key, options):
        return EpsilonGreedy(arms, first, rate=rate, uniforms=uniforms(key), **options)

    build = partial(jb.epsilon_greedy, rate=rate, horizon=N)
    against(twin, build, ("ridge",), [(0.1,)])


class Normal(Glm):
    """Normal rewards: formulas are written with sigma, in the unit that the rewards have.

    V is the ridge and the sum of x x^T; the fit is least squares with that ridge.
    """

    @property
    def matrix(self):
        return self.pulls.matrix(self.ridge)

    @property
    def sigma(self):
        return math.sqrt(self.noise_var)

    def fitted(self, extra=0.0):
        return np.linalg.solve(self.matrix, self.arms.T @ (self.pulls.sums + extra))

    @property
    def widths(self):
        return np.sqrt(np.diag(self.arms @ np.linalg.inv(self.matrix) @ self.arms.T))

    def of_glm_tsl(self, theta):
        factor = np.linalg.cholesky(self.matrix)
        normal = self.normals(D)(self.pulls.draws)
        return theta + self.sigma * self.a * np.linalg.solve(self.matrix, factor @ normal)

    def of_glm_fpl(self, theta):
        normal = self.normals(K)(self.pulls.draws)
        return self.fitted(self.sigma * self.a * np.sqrt(self.pulls.counts) * normal)

    def of_evill(self, theta):
        normal = self.normals(K + D)(self.pulls.draws)
        seen = self.arms.T @ (np.sqrt(self.pulls.counts) * normal[:K])
        term = self.sigma * self.a * (seen + math.sqrt(self.ridge) * normal[K:])
        return theta + np.linalg.solve(self.matrix, term)

    def choose(self, theta):
        if self.name in ("glm_ucb", "ucb_glm"):
            return np.argmax(self.arms @ theta + self.sigma * self.alpha * self.widths)
        return np.argmax(self.arms @ getattr(self, f"of_{self.name}")(theta))

    def answer(self, predictors):
        return GlmUcb.answer(self, predictors) if "ucb" in self.name else np.argmax(predictors)


SCALE_OF = {"glm_ucb": "alpha", "ucb_glm": "alpha", "glm_tsl": "a", "glm_fpl": "a", "evill": "a"}


@pytest.mark.parametrize("name", params(SCALE_OF, always=["glm_tsl", "glm_ucb"]))
@jax.enable_x64(True)
def test_normal_rewards_of_any_variance(name):
    """As the family "gaussian", whose variance is told: once it was taken for 1."""
    option = SCALE_OF[name]
    names = (option, "ridge", "noise_var")
    hand = Hand(partial(getattr(jb, name), family="gaussian"), *names)
    for number, numbers in enumerate([(1.0, 1e-3, 1e-4), (2.0, 0.5, 9.0)]):
        rng, arms, theta = linear_problem(50 + number, K, D)
        theta, key = math.sqrt(numbers[-1]) * theta, jax.random.key(number)
        options = dict(zip(names, numbers, strict=True))
        twin = Normal(arms, range(D), name=name, normals=partial(normals, key), **options)
        reward = normal_rewards(rng, arms @ theta, numbers[-1])
        facts = (jnp.asarray(arms), None, numbers)
        _, state = hand.play(twin, facts, reward, key, rounds=N, compare=same_arm)
        np.testing.assert_allclose(twin.sigma * state.fit.theta, twin.fitted(), rtol=1e-9)


# Dimension, `a` of GLM-TSL, `a` of GLM-FPL, for n = 50,000, sigma 1/2 and slopes 1/4.
SCALES = [(5, 8.23, 4.11), (10, 10.33, 5.17), (20, 13.35, 6.67)]


@pytest.mark.parametrize(("dim", "tsl", "fpl"), SCALES)
def test_scales_of_theory(dim, tsl, fpl):
    from jaxbandits.kernels.confidence import glm_radius

    facts = (50_000, dim, 0.25, 0.25, 0.25)
    assert round(float(glm_radius.glm_tsl(*facts)), 2) == tsl
    assert round(float(glm_radius.glm_fpl(*facts)), 2) == fpl
    # d log(n / d) + 2 log n is negative for small n.
    least = [float(glm_radius.glm_tsl(n, *facts[1:])) for n in (1, dim)]
    np.testing.assert_allclose(least, math.sqrt(2 * math.log(dim)), rtol=1e-6)


@pytest.mark.parametrize(("dim", "width"), [(5, 248), (10, 388), (20, 604)])
def test_width_of_glm_ucb(dim, width):
    from jaxbandits.kernels.confidence import glm_radius

    numbers = {"max_sqnorm": dim / 3, "eigenvalue": 1.0, "kappa": 0.25, "lipschitz": 0.25}
    found = glm_radius.glm_ucb(50_000, 1 / 50_000, 50_000, dim, **numbers)
    assert round(float(found)) == width


SCALE = 0.5 / 0.25 * math.sqrt(3 * math.log(40 / 3) + 2 * math.log(40))  # c_1 for 40 rounds


@pytest.mark.parametrize(
    ("build", "option", "name", "number"),
    [
        (jb.glm_tsl, "a", "theory", SCALE * 0.5),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (jb.glm_tsl, "a", "informal", 1.0),
                (jb.glm_fpl, "a", "informal", 0.5),
                (jb.glm_fpl, "a", "theory", SCALE * 0.25),
                (jb.ucb_glm, "alpha", "informal", 0.5),
                (jb.glm_ucb, "alpha", "informal", 0.5),
            )
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_named_scales_are_those_numbers(build, option, name, number):
    """ "informal" and "theory" play like the numbers they stand for."""
    cube = jb.instances.logistic_cube(jax.random.key(2), 10, 3, half_width=1.0)
    play = partial(jb.simulate, cube, replications=16, horizon=40)
    named, given = (play(partial(build, **{option: x})) for x in (name, number))
    np.testing.assert_allclose(named.regret, given.regret, rtol=1e-9)
