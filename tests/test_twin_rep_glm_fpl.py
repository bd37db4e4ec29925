"""repGLM-FPL against a plain NumPy twin, pull by pull on the same contexts and noise."""

import importlib
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import test_twin_deep_fpl as deep
from counting import compilations
from scipy import special

import jaxbandits as jb
from jaxbandits.engine import episode

SHOWN = deep.SHOWN


class RepGlmFpl:
    """Each fit of the model starts at zero and runs until it converges."""

    def __init__(self, features, weights, *, first, a, ridge, refresh):
        self.net = deep.Deep(features, weights, activation="tanh", rate=0.05)
        self.first, self.a, self.ridge, self.refresh = first, a, ridge, refresh

    def phi(self, rows):
        return np.column_stack([self.net.forward(rows)[1], np.ones(len(rows))])

    def ask(self, shown, position, normal):
        if len(self.net.rewards) < self.first:
            return position
        step = np.linalg.solve(self.hessian, self.a * self.root @ normal)
        return int(np.argmax(self.phi(shown) @ (self.theta + step)))

    def tell(self, example, reward):
        self.net.see(example, reward)
        late = len(self.net.rewards) - self.first
        if late <= 0:
            self.net.train(0.0)
        if late == 0:
            rows = self.phi(self.net.examples)
            self.root = np.linalg.cholesky(rows.T @ rows + self.ridge * np.eye(rows.shape[1]))
        if late > 0:
            (x,) = self.phi([example])
            chance = special.expit(x @ self.theta)
            self.hessian = self.hessian + chance * (1 - chance) * np.outer(x, x)
            self.theta = self.theta + np.linalg.solve(self.hessian, (reward - chance) * x)
            w = np.linalg.solve(self.root, x)
            values, vectors = np.linalg.eigh(np.eye(len(w)) + np.outer(w, w))
            self.root = self.root @ (vectors * np.sqrt(values)) @ vectors.T
        if late >= 0 and late % self.refresh == 0:
            self.fit()

    def fit(self):
        rows, rewards = self.phi(self.net.examples), np.array(self.net.rewards)
        self.theta = np.zeros(rows.shape[1])
        for _ in range(50):
            chances = special.expit(rows @ self.theta)
            slope = rows.T @ (chances - rewards) + self.ridge * self.theta
            self.hessian = (rows.T * (chances * (1 - chances))) @ rows
            self.hessian += self.ridge * np.eye(len(slope))
            self.theta = self.theta - np.linalg.solve(self.hessian, slope)


@pytest.mark.parametrize(
    ("percent", "refresh"), [(25.0, 7), pytest.param(1.0, 1, marks=pytest.mark.slow)]
)
def test_rep_glm_fpl(percent, refresh, monkeypatch):
    module = importlib.import_module("jaxbandits.algorithms.regret.rep_glm_fpl")
    monkeypatch.setattr(module, "TOL", 1e-20)
    monkeypatch.setattr(module, "MOST_STEPS", 30)
    rng, rounds = np.random.default_rng(6), 120
    features = rng.normal(size=(40, 6))
    first = max(1, math.ceil(percent * rounds / 100))
    numbers = {"a": 0.7, "ridge": 0.8, "refresh": refresh}
    with jax.enable_x64(True):
        algorithm = jb.rep_glm_fpl(
            jnp.asarray(features),
            horizon=rounds,
            percent=percent,
            hidden=5,
            activation="tanh",
            batch=deep.BATCH,
            rate=0.05,
            precision="double",
            **numbers,
        )
        init, ask, tell = map(jax.jit, algorithm)
        key = jax.random.key(1)
        state = init(jax.random.fold_in(key, episode.INIT))
        twin = RepGlmFpl(features, state.deep.network, first=first, **numbers)
        for played in range(rounds):
            shown, own = rng.integers(0, 40, SHOWN), episode.ask_key(key, played)
            position = int(jax.random.randint(own, (), 0, SHOWN))
            normal = np.asarray(jax.random.normal(own, (6,)))
            move = ask(own, state, jnp.asarray(shown))
            arm = int(move.arm)
            assert arm == twin.ask(shown, position, normal), f"round {played}"
            reward = float(rng.uniform() < 0.2 + 0.6 * (features[shown[arm], 0] > 0))
            state = tell(state, move, jnp.asarray(reward))
            twin.tell(shown[arm], reward)
        np.testing.assert_allclose(state.model.fit.theta, twin.theta, rtol=1e-6, atol=1e-8)
        rows = np.asarray(state.model.rows)[:rounds]
    np.testing.assert_allclose(rows, twin.phi(twin.net.examples), rtol=1e-9, atol=1e-12)


KEY = jax.random.key(0)
POINTS = np.random.default_rng(3).normal(size=(300, 5))
INSTANCE = jb.instances.labelled(POINTS, (POINTS[:, 0] > 0.8) + 0, shown=5, target=1)


def average(build, replications=16, horizon=400):
    runs = jb.simulate(INSTANCE, build, replications=replications, horizon=horizon, seed=3)
    return INSTANCE.average_reward(runs)[:, -1], runs


@pytest.mark.slow
def test_rewards_exceed_those_of_random_choices_and_fits_converge():
    learnt, runs = average(jb.rep_glm_fpl)
    assert learnt.mean() > INSTANCE.random_average() + 0.1
    assert not runs.info["unconverged"].any()


@pytest.mark.slow
def test_the_first_rounds_choose_at_random():
    """In the first `percent` of the rounds the chosen positions do not depend on rewards."""
    with jax.enable_x64(True):
        algorithm = jb.rep_glm_fpl(jnp.asarray(POINTS), horizon=50, percent=33.0, hidden=4)
        init, ask, tell = map(jax.jit, algorithm)

        def positions(reward):
            key, found = jax.random.key(4), []
            state = init(key)
            for played in range(40):
                shown = jnp.arange(played, played + 10)
                move = ask(episode.ask_key(key, played), state, shown)
                found.append(int(move.arm))
                state = tell(state, move, jnp.asarray(reward(played)))
            return np.array(found)

        one, two = positions(lambda t: 1.0), positions(lambda t: float(t % 2))
    np.testing.assert_array_equal(one[:17], two[:17])
    assert (one[17:] != two[17:]).any()


def test_arms_may_be_traced():
    """The number of stored rows follows from the horizon alone."""
    build = lambda arms: jb.rep_glm_fpl(arms, horizon=300)  # noqa: E731
    state = jax.eval_shape(lambda arms: build(arms).init(KEY), POINTS)
    assert state.model.rows.shape == (512, 51)


@pytest.mark.slow
def test_horizons_share_a_program():
    """Horizons share it if their tables have the same number of rows."""
    average(jb.rep_glm_fpl, horizon=400)
    with compilations() as seen:
        longer = average(jb.rep_glm_fpl, horizon=500)[1]
    assert seen == []
    assert set(longer.pulls.tolist()) == {500}
    same = average(partial(jb.rep_glm_fpl, capacity=500), horizon=500)[1]
    np.testing.assert_array_equal(longer.regret, same.regret)


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="horizon must be given, got None"):
        jb.rep_glm_fpl(POINTS)
    with pytest.raises(ValueError, match="capacity must be given where the horizon is traced"):
        jax.eval_shape(lambda horizon: jb.rep_glm_fpl(POINTS, horizon=horizon).init(KEY), 9)
    for name, value in (("percent", 0.0), ("percent", 100.0), ("refresh", 0), ("ridge", 0.0)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            jb.rep_glm_fpl(POINTS, horizon=9, **{name: value})
