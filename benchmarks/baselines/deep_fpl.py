"""DeepFPL as a plain loop of NumPy calls; one replication after the other."""

from typing import NamedTuple

import numpy as np

BATCH, HIDDEN, RATE, A = 32, 50, np.float32(0.001), np.float32(1.0)
FIRST, SECOND, EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-7)


class Draws(NamedTuple):
    """All random numbers of a replication of T rounds."""

    weights: tuple  # float32 [H, f], [H], [H], []
    shown: np.ndarray  # int [T, K]
    uniforms: np.ndarray  # float [T]
    normals: np.ndarray  # float32 [T, B]


def draws(rng, instance, rounds):
    """Random numbers of a replication, by NumPy."""
    num_examples, num_features = instance.features.shape
    limits = (6 / (num_features + HIDDEN)) ** 0.5, (6 / (HIDDEN + 1)) ** 0.5
    shapes = (HIDDEN, num_features), HIDDEN
    weights, head = (
        rng.uniform(-limit, limit, shape).astype(np.float32)
        for limit, shape in zip(limits, shapes, strict=True)
    )
    return Draws(
        (weights, np.zeros(HIDDEN, np.float32), head, np.zeros((), np.float32)),
        rng.integers(0, num_examples, (rounds, instance.shown)),
        rng.random(rounds),
        rng.standard_normal((rounds, BATCH), np.float32),
    )


def in_numpy(instance, target, drawn):
    """Arms `[T]` of one replication."""
    weights = [w.copy() for w in drawn.weights]
    first = [np.zeros_like(w) for w in weights]
    second = [np.zeros_like(w) for w in weights]
    rounds = len(drawn.shown)
    arms, examples = np.zeros(rounds, int), np.zeros(BATCH, int)
    rewards = np.zeros(BATCH, np.float32)
    for t in range(rounds):
        shown = drawn.shown[t]
        _, hidden = _forward(weights, instance.features[shown])
        arms[t] = (weights[2] @ hidden + weights[3]).argmax()
        example, position = shown[arms[t]], t % BATCH
        chance = instance.high if instance.labels[example] == target else instance.low
        examples[position], rewards[position] = example, drawn.uniforms[t] < chance
        number = min(t + 1, BATCH)
        rows = instance.features[examples[:number]]
        targets = rewards[:number] + A * drawn.normals[t, :number]
        _adam(weights, first, second, _gradient(weights, rows, targets), t + 1)
    return arms


def _forward(weights, rows):
    inner = weights[0] @ rows.T + weights[1][:, None]
    return inner, np.maximum(inner, 0)


def _gradient(weights, rows, targets):
    inner, hidden = _forward(weights, rows)
    outputs = weights[2] @ hidden + weights[3]
    error = (1 / (1 + np.exp(-outputs)) - targets) / np.float32(len(rows))
    back = np.outer(weights[2], error) * (inner > 0)
    return back @ rows, back.sum(1), hidden @ error, error.sum()


def _adam(weights, first, second, gradient, steps):
    for k, g in enumerate(gradient):
        first[k] = FIRST * first[k] + (1 - FIRST) * g
        second[k] = SECOND * second[k] + (1 - SECOND) * g * g
        mean = first[k] / np.float32(1 - float(FIRST) ** steps)
        scale = np.sqrt(second[k] / np.float32(1 - float(SECOND) ** steps))
        weights[k] = weights[k] - RATE * mean / (scale + EPSILON)
