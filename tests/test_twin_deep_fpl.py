"""DeepFPL and DeepFL against a plain NumPy twin, pull by pull on the same contexts and noise."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.engine import episode

ROUNDS, BATCH, SHOWN = 60, 7, 4


class Deep:
    """A network with its own backpropagation and Adam; it keeps all chosen examples and rewards."""

    def __init__(self, features, weights, *, activation, rate):
        self.features, self.activation, self.rate = features, activation, rate
        self.weights = [np.array(w, float) for w in weights]
        self.first = [np.zeros_like(w) for w in self.weights]
        self.second = [np.zeros_like(w) for w in self.weights]
        self.examples, self.rewards = [], []

    def forward(self, rows):
        matrix, biases, head, offset = self.weights
        inner = self.features[rows] @ matrix.T + biases
        hidden = np.maximum(inner, 0.0) if self.activation == "relu" else np.tanh(inner)
        return inner, hidden, hidden @ head + offset

    def ask(self, shown):
        return int(np.argmax(self.forward(shown)[2]))

    def see(self, example, reward):
        self.examples.append(int(example))
        self.rewards.append(float(reward))

    def train(self, noise):
        """One step on the latest examples, oldest first; `noise` is added to their rewards."""
        rows = self.examples[-BATCH:]
        inner, hidden, outputs = self.forward(rows)
        targets = np.array(self.rewards[-BATCH:]) + noise
        error = (1 / (1 + np.exp(-outputs)) - targets) / len(rows)
        back = np.outer(error, self.weights[2])
        back = back * (inner > 0) if self.activation == "relu" else back * (1 - hidden**2)
        gradient = [back.T @ self.features[rows], back.sum(0), hidden.T @ error, error.sum()]
        steps = len(self.rewards)
        for k, g in enumerate(gradient):
            self.first[k] = 0.9 * self.first[k] + 0.1 * g
            self.second[k] = 0.999 * self.second[k] + 0.001 * g * g
            mean = self.first[k] / (1 - 0.9**steps)
            scale = np.sqrt(self.second[k] / (1 - 0.999**steps))
            self.weights[k] = self.weights[k] - self.rate * mean / (scale + 1e-7)


def ordered(ring, rounds):
    """The filled part of a ring buffer, oldest first, after this number of rounds."""
    if rounds <= BATCH:
        return ring[:rounds]
    return np.roll(ring, -(rounds % BATCH))


@pytest.mark.parametrize(
    ("activation", "noise"),
    [
        *(("relu", noise) for noise in ("fresh", "fixed", None)),
        ("tanh", "fresh"),
        *(pytest.param("tanh", noise, marks=pytest.mark.slow) for noise in ("fixed", None)),
    ],
)
def test_deep_fpl(activation, noise):
    rng = np.random.default_rng(5)
    features = rng.normal(size=(40, 6))
    options = {"hidden": 5, "activation": activation, "batch": BATCH, "precision": "double"}
    build = jb.deep_fl if noise is None else partial(jb.deep_fpl, a=0.8, noise=noise)
    chosen = set()
    with jax.enable_x64(True):
        algorithm = build(jnp.asarray(features), rate=0.03, **options)
        init, ask, tell = map(jax.jit, algorithm)
        key = jax.random.key(1)
        state = init(jax.random.fold_in(key, episode.INIT))
        begun = np.asarray(state.network.weights)
        twin = Deep(features, state.network, activation=activation, rate=0.03)
        rings = np.zeros(BATCH)
        for played in range(ROUNDS):
            shown = rng.integers(0, 40, SHOWN)
            move = ask(episode.ask_key(key, played), state, jnp.asarray(shown))
            assert int(move.arm) == twin.ask(shown), f"round {played}"
            assert float(move.info[0]["reward"]) == sum(twin.rewards)
            reward = float(rng.uniform() < 0.2 + 0.6 * (features[shown[int(move.arm)], 0] > 0))
            drawn = jax.random.fold_in(state.key, played)
            if noise == "fresh":
                rings = 0.8 * np.asarray(jax.random.normal(drawn, (BATCH,)))
            elif noise == "fixed":
                rings[played % BATCH] = 0.8 * float(jax.random.normal(drawn))
            state = tell(state, move, jnp.asarray(reward))
            twin.see(shown[int(move.arm)], reward)
            twin.train(ordered(rings, played + 1))
            chosen.add(int(move.arm))
        for ours, theirs in zip(state.network, twin.weights, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    assert chosen == set(range(SHOWN))
    assert (
        np.abs(twin.weights[0] - begun).max() > 0.1
    )  # enough training for twin and package to diverge


def test_initial_weights_are_those_of_glorot_and_bengio():
    with jax.enable_x64(True):
        algorithm = jb.deep_fpl(jnp.zeros((3, 300)), hidden=200, precision="double")
        network = jax.tree.map(np.asarray, jax.jit(algorithm.init)(jax.random.key(0)).network)
    for weights, fans in ((network.weights, 500), (network.head, 201)):
        limit = math.sqrt(6 / fans)
        assert np.abs(weights).max() < limit
        deviation = np.std(weights) / (limit / math.sqrt(3))
        assert abs(deviation - 1) < 4 / math.sqrt(weights.size)
    assert not network.biases.any()
    assert float(network.offset) == 0.0


def test_noise_is_normal_with_the_given_scale():
    with jax.enable_x64(True):
        algorithm = jb.deep_fpl(jnp.eye(3), a=1.5, noise="fresh", batch=2_000, hidden=2)
        init, _, tell = map(jax.jit, algorithm)
        move = jb.Move(jnp.array(0), None, jnp.array(False), 0, ({}, jnp.array(0)))
        state = tell(init(jax.random.key(3)), move, jnp.array(1.0))
        first = np.asarray(state.normals)
        second = np.asarray(tell(state, move, jnp.array(1.0)).normals)
    assert abs(first.mean()) < 4 * 1.5 / math.sqrt(2_000)
    assert abs(first.std() / 1.5 - 1) < 0.07
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.1
