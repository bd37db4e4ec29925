"""UCB-GLM against a plain NumPy twin, pull by pull on the same rewards."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import Hand, binomial_rewards, linear_problem, same_arm
from twins import Pulls, logistic_fit

import jaxbandits as jb
from benchmarks.promises import another

NAMES = ("alpha", "ridge")


class UcbGlm:
    """Logistic; estimates are solved anew each round, without a warm start."""

    def __init__(self, arms, first, *, alpha, ridge, squared):
        self.pulls, self.first = Pulls(arms), first
        self.alpha, self.ridge, self.squared = alpha, ridge, squared

    def ask(self):
        pulls, arms = self.pulls, self.pulls.arms
        if pulls.draws < len(self.first):
            return False, None, self.first[pulls.draws]
        self.theta = logistic_fit(arms, pulls.counts, pulls.sums, self.ridge)
        inverse = np.linalg.inv(pulls.matrix(self.ridge))
        squares = [float(x @ inverse @ x) for x in arms]
        bonus = squares if self.squared else [math.sqrt(s) for s in squares]
        predictors = arms @ self.theta
        most = max(range(len(arms)), key=lambda k: (pulls.counts[k], predictors[k]))
        return False, most, int(np.argmax(predictors + self.alpha * np.array(bonus)))

    def tell(self, arm, reward):
        self.pulls.see(arm, reward)


@pytest.mark.parametrize(
    ("begin", "bonus", "alpha"),
    [
        ("basis", "norm", "theory"),
        ("every", "squared_norm", 0.5),
        pytest.param("basis", "norm", 0.5, marks=pytest.mark.slow),
    ],
)
def test_ucb_glm(begin, bonus, alpha):
    build = partial(jb.ucb_glm, begin=begin, bonus=bonus)
    if alpha == "theory":  # for 100 rounds, sigma 1/2 and slope 1/4
        build, names = partial(build, alpha=alpha, horizon=100), ("noise_var", "ridge")
        width = 0.5 / 0.25 * math.sqrt(1.5 * math.log(1 + 200 / 3) + math.log(100))
        settings = [(0.25, 0.1)]
    else:
        names, width, settings = NAMES, None, [(0.5, 1e-3), (2.0, 0.5)]
    with jax.enable_x64(True):
        hand = Hand(build, *names)
        for seed, numbers in enumerate(settings):
            rng, arms, theta = linear_problem(40 + seed, 6, 3)
            arms[1] = -2 * arms[0]  # so that the first independent arms are 0, 2 and 3
            first = [0, 2, 3] if begin == "basis" else [*range(6)]
            options = {"alpha": width or numbers[0], "ridge": numbers[1]}
            twin = UcbGlm(arms, first, squared=bonus == "squared_norm", **options)
            reward = binomial_rewards(rng, 1 / (1 + np.exp(-arms @ theta)))
            facts, key = (jnp.asarray(arms), None, numbers), jax.random.key(seed)
            _, state = hand.play(twin, facts, reward, key, rounds=100, compare=same_arm)
            fitted = logistic_fit(arms, twin.pulls.counts, twin.pulls.sums, numbers[1])
            np.testing.assert_allclose(state.fit.theta, fitted, atol=1e-4)
            assert int(state.missed.report()["unconverged"]) == 0


def test_arms_that_do_not_span_begin_with_a_basis_of_their_span():
    arms = np.array([[1.0, 0, 1], [2, 0, 2], [0, 1, 0], [1, 1, 1]])
    instance = jb.instances.glm(arms, [0.5, 0.1, 0.2])
    runs = jb.simulate(instance, jb.ucb_glm, horizon=2, replications=9)
    np.testing.assert_array_equal(runs.arm_pulls, np.tile([1, 0, 1, 0], (9, 1)))


@pytest.mark.slow
def test_regret_grows_sublinearly_unless_rewards_are_misfiled():
    def late_share(build):
        cube = jb.instances.logistic_cube(jax.random.key(0), 6, 2, half_width=1.0)
        runs = jb.simulate(cube, build, replications=100, horizon=800, seed=4)
        half = np.interp(400, runs.rounds, runs.regret.mean(0))
        return (runs.regret[:, -1].mean() - half) / half

    def misfiled(algorithm):
        def tell(state, move, total):
            return algorithm.tell(state, move._replace(arm=(move.arm + 1) % 6), total)

        return algorithm._replace(tell=tell)

    build = partial(jb.ucb_glm, alpha=2.0)
    assert late_share(build) < 0.4
    assert late_share(partial(another(jb.ucb_glm, misfiled), alpha=2.0)) > 0.8
