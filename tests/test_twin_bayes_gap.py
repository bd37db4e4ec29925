"""BayesGap against a plain NumPy twin, pull by pull on the same rewards."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import Hand, linear_problem, normal_rewards, same_arm

import jaxbandits as jb
from benchmarks.promises import another
from jaxbandits.engine import episode

NAMES = ("budget", "length_scale", "prior_scale", "noise_var", "epsilon")


class BayesGap:
    """The posterior is computed anew in each round, from the covariance matrix of all rewards."""

    def __init__(self, gram, order, *, budget, prior_scale, noise_var, epsilon, gaps=None):
        self.prior, self.order = prior_scale**2 * gram, order
        self.budget, self.noise_var, self.epsilon = budget, noise_var, epsilon
        self.gaps, self.arms, self.rewards, self.found = gaps, [], [], (math.inf, None)

    def posterior(self):
        mine = self.prior[np.ix_(self.arms, self.arms)] + self.noise_var * np.eye(len(self.arms))
        across = self.prior[:, self.arms]
        covariance = self.prior - across @ np.linalg.solve(mine, across.T)
        return across @ np.linalg.solve(mine, self.rewards), np.sqrt(np.diag(covariance))

    def ask(self):
        num_arms, draws = len(self.prior), len(self.arms)
        if draws == self.budget:
            return True, self.found[1], None
        if draws < num_arms:
            return False, None, draws
        every, (means, deviations) = range(num_arms), self.posterior()

        def index(half, k):
            return max(means[i] + half[i] for i in every if i != k) - means[k] + half[k]

        gaps = self.gaps
        if gaps is None:
            gaps = [index(3 * deviations, k) for k in every]
        halves = [max((gap + self.epsilon) / 2, self.epsilon) for gap in gaps]
        hardness = sum(1 / h**2 if h > 0 else math.inf for h in halves)
        information = (self.budget - num_arms) / self.noise_var + sum(1 / np.diag(self.prior))
        half = math.sqrt(information / (4 * hardness)) * deviations
        bounds = [index(half, k) for k in every]
        leader = int(np.argmin(bounds))
        rival = max((k for k in every if k != leader), key=lambda k: means[k] + half[k])
        answer = leader if self.found[1] is None else self.found[1]
        if bounds[leader] < self.found[0]:
            self.found = (bounds[leader], leader)
        wider = deviations[rival] > deviations[leader] * (1 + 1e-9)
        return False, answer, rival if wider else leader

    def tell(self, arm, reward):
        self.arms.append(int(arm))
        self.rewards.append(float(reward))


def gram_of(kernel, arms, length):
    r = np.array([[math.dist(x, y) for y in arms] for x in arms])
    s = math.sqrt(3) * r / length
    return {"linear": arms @ arms.T, "matern32": (1 + s) * np.exp(-s)}[kernel]


@pytest.mark.parametrize(
    ("kernel", "hardness"),
    [("linear", "estimated"), ("matern32", "estimated"), ("linear", "oracle")],
)
def test_bayes_gap(kernel, hardness):
    names = (*NAMES, "gaps") if hardness == "oracle" else NAMES
    with jax.enable_x64(True):
        hand = Hand(partial(jb.bayes_gap, kernel=kernel, hardness=hardness), *names)
        settings = [(60, 1.0, 50.0, 0.5, 0.0), (41, 2.0, 3.0, 1.5, 0.3)]
        for seed, numbers in enumerate(settings):
            rng, arms, theta = linear_problem(seed, 6, 3)
            means, key = arms @ theta, jax.random.key(seed)
            gaps = None
            if hardness == "oracle":
                gaps = [abs(max(np.delete(means, k)) - means[k]) for k in range(6)]
                numbers = (*numbers, jnp.asarray(gaps))
            facts = (jnp.asarray(arms), None, numbers)
            order = hand.init(facts, jax.random.fold_in(key, episode.INIT)).order
            options = dict(zip(NAMES, numbers, strict=False))
            gram = gram_of(kernel, arms, options.pop("length_scale"))
            twin = BayesGap(gram, np.asarray(order), gaps=gaps, **options)
            reward = normal_rewards(rng, means, options["noise_var"])
            played, _ = hand.play(twin, facts, reward, key, compare=same_arm)
            assert played == options["budget"]
            assert len(set(twin.arms[6:])) > 1


def test_an_oracle_knows_the_gaps_of_the_means():
    """In a logistic model these are not the gaps of the predictors."""
    logistic = jb.instances.glm(np.eye(3), [1.0, 0.5, 0.0])
    oracle = partial(jb.bayes_gap, budget=30, hardness="oracle")
    first, second, third = logistic.means
    gaps = np.array([first - second, first - second, first - third])
    given = jb.simulate(logistic, partial(oracle, gaps=gaps), replications=40)
    known = jb.simulate(logistic, oracle, replications=40)
    np.testing.assert_array_equal(given.arm_pulls, known.arm_pulls)
    wrong = jb.simulate(logistic, partial(oracle, gaps=10 * gaps), replications=40)
    assert not np.array_equal(wrong.arm_pulls, known.arm_pulls)


def test_bayes_gap_finds_the_best_arm_and_a_broken_one_does_not():
    """With ten times as many draws the error falls; if rewards are negated it is large."""
    instance = jb.instances.soare(3, angle=0.9)

    def error(budget, build=jb.bayes_gap):
        runs = jb.simulate(instance, partial(build, budget=budget), replications=1000, seed=1)
        assert set(runs.pulls) == {budget}
        return float((~runs.correct).mean())

    def negated(algorithm):
        def tell(state, move, total):
            return algorithm.tell(state, move, -total)

        return algorithm._replace(tell=tell)

    few, many = error(20), error(200)
    assert many < 0.1
    assert few > many + 0.05
    assert error(200, another(jb.bayes_gap, negated)) > 0.9


@pytest.mark.slow
def test_tied_arms_are_answered_equally_often():
    """After one reward 0 or 1 of each arm, equal means differ only by rounding errors."""
    coins = jb.instances.bernoulli(np.eye(8), [0.5] * 8)
    build = partial(jb.bayes_gap, kernel="matern32", per_arm=1)
    answers = np.bincount(jb.simulate(coins, build, replications=800).answer, minlength=8)
    assert np.ptp(answers) < 70


def test_the_leader_is_drawn_where_deviations_are_equal():
    with jax.enable_x64(True):
        init, ask, tell = map(jax.jit, jb.bayes_gap(jnp.eye(4), budget=20))
        key = jax.random.key(0)
        state = init(key)
        for reward in (0.1, 0.9, 0.3, 0.8):
            state = tell(state, ask(key, state), np.float64(reward))
        move = ask(key, state)
        variances = state.stats.variances
        assert np.ptp(variances) < 1e-12
        assert int(move.arm) == int(move.info.arm) == 1
