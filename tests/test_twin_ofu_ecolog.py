"""OFU-ECOLog against a plain NumPy twin; whether its ellipsoid contains theta; its regret."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from hands import Hand, binomial_rewards, linear_problem, same_arm
from scipy import optimize, special, stats
from test_twin_evill import filed

import jaxbandits as jb
from jaxbandits.kernels.linalg import spd


class OfuEcolog:
    """It keeps W, inverts it anew in each round, and finds minima by a general root finder."""

    def __init__(self, arms, *, norm, delta, ridge):
        self.arms, self.norm, self.delta, self.ridge = arms, norm, delta, ridge
        self.theta, self.matrix = np.zeros(arms.shape[1]), ridge * np.eye(arms.shape[1])
        self.growth, self.eta = 0.0, 1 + norm * np.linalg.norm(arms, axis=1).max()

    def ask(self):
        inverse = np.linalg.inv(self.matrix)
        log = math.log(1 / self.delta) + self.growth
        width = math.sqrt(self.ridge * self.norm**2 + 2 * self.eta * log)
        norms = np.array([math.sqrt(x @ inverse @ x) for x in self.arms])
        answer = int(np.argmax(self.arms @ self.theta)) if self.growth else None  # all are 0
        return False, answer, int(np.argmax(self.arms @ self.theta + width * norms))

    def step(self, x, reward):
        """The predictor that minimises the loss of a reward, and the minimum."""
        start, most = x @ self.theta, self.norm * np.linalg.norm(x)
        variance = self.eta * (x @ np.linalg.solve(self.matrix, x))

        def slope(z):
            return (z - start) / variance + special.expit(z) - reward

        far = abs(start) + variance + 1
        z = np.clip(optimize.brentq(slope, -far, far, xtol=1e-14), -most, most)
        return z, np.logaddexp(0, z) - reward * z + (z - start) ** 2 / (2 * variance)

    def tell(self, arm, reward):
        x = self.arms[arm]
        z, _ = self.step(x, reward)
        self.growth += math.log(sum(math.exp(-self.step(x, y)[1]) for y in (0, 1)))
        toward = np.linalg.solve(self.matrix, x)
        self.theta = self.theta + (z - x @ self.theta) / (x @ toward) * toward
        self.matrix = self.matrix + special.expit(z) * special.expit(-z) * np.outer(x, x)


def test_ofu_ecolog():
    with jax.enable_x64(True):
        hand = Hand(jb.ofu_ecolog, "delta", "theta_norm", "ridge")
        for seed, numbers in enumerate([(0.05, 1.0, 0.1), (0.5, 4.0, 10.0)]):
            rng, arms, theta = linear_problem(70 + seed, 6, 3)
            arms /= 1 + np.linalg.norm(arms, axis=1)[:, None]
            twin = OfuEcolog(arms, delta=numbers[0], norm=numbers[1], ridge=numbers[2])
            reward = binomial_rewards(rng, special.expit(4 * arms @ theta))
            facts, key = (jnp.asarray(arms), None, numbers), jax.random.key(seed)
            _, state = hand.play(twin, facts, reward, key, rounds=300, compare=same_arm)
            np.testing.assert_allclose(state.online.theta, twin.theta, atol=1e-9)
            np.testing.assert_allclose(state.online.growth, twin.growth, rtol=1e-9)
            assert int(state.unconverged) == 0


def watched(arms, *, theta, theta_norm, delta, part):
    """OFU-ECOLog that reports whether theta ever left the ellipsoid with `part` of its width."""
    inner = jb.ofu_ecolog(arms, theta_norm=theta_norm, delta=delta)

    def ask(key, state):
        move = inner.ask(key, state[0])
        online, off = state[0].online, theta - state[0].online.theta
        distance = jnp.sqrt(off @ spd.inverse(online.inverse).matrix @ off)
        left = state[1] | (distance > part * move.info["width"])
        return move._replace(info={**move.info, "left": left})

    def tell(state, move, total):
        return inner.tell(state[0], move, total), move.info["left"]

    return jb.Algorithm(lambda key: (inner.init(key), jnp.array(False)), ask, tell)


def circle(num_arms, norm, angle=0.4):
    angles = 2 * np.pi * np.arange(num_arms) / num_arms
    arms = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return jb.instances.glm(arms, norm * np.array([np.cos(angle), np.sin(angle)]))


def test_the_ellipsoid_contains_theta_unless_its_width_is_a_quarter():
    delta, replications, out = 0.1, 200, {}
    for part in (1.0, 0.25):
        build = partial(watched, delta=np.float64(delta), part=np.float64(part))
        runs = jb.simulate(circle(6, 1.5), build, replications=replications, horizon=300, seed=3)
        out[part] = int(runs.info["left"].sum())
    assert out[1.0] <= stats.binom.ppf(1 - 1e-6, replications, delta) < out[0.25]


def test_regret_grows_sublinearly_unless_rewards_are_misfiled():
    shares = []
    for off in (0, 1):
        build = partial(filed, build=partial(jb.ofu_ecolog, theta_norm=2.0), off=np.int64(off))
        runs = jb.simulate(circle(6, 2.0, 0.0), build, replications=16, horizon=20_000, seed=4)
        half = np.interp(10_000, runs.rounds, runs.regret.mean(0))
        shares.append((runs.regret[:, -1].mean() - half) / half)
    assert shares[0] < 0.5
    assert shares[1] > 0.8
