"""LinGapE, greedy, pairwise threshold, as plain loops; one replication after the other.

All three keep `G = X V^-1 X^T` by rank-one updates: at both sizes that are measured it is faster
than `V^-1` and products with the arms.
"""

import math
from typing import NamedTuple

import numpy as np

from .common import blank, call_c, gather, jit, normals, priorities


class Problem(NamedTuple):
    """Numbers of an instance and of the algorithm."""

    arms: np.ndarray  # float [K, d]
    means: np.ndarray  # float [K]
    sigma: float
    level: float  # 2 log(K^2 / delta)
    bias: float  # sqrt(v0) ||theta|| / sigma
    v0: float


def problem(instance, delta=0.05, v0=1.0):
    """The numbers of `jb.lingape` with its other options at their defaults."""
    sigma = math.sqrt(float(instance.noise_var))
    bias = math.sqrt(v0) * float(instance.theta_norm) / sigma
    level = 2.0 * math.log(len(instance.arms) ** 2 / delta)
    return Problem(np.asarray(instance.arms), np.asarray(instance.means), sigma, level, bias, v0)


def in_numpy(problem, replications, seed, *, order=None, noise=None):
    """A loop of NumPy calls."""
    rng, order = np.random.default_rng(seed), priorities(order, len(problem.means))
    return gather([_replicate(problem, order, normals(rng, noise)) for _ in range(replications)])


def _replicate(problem, order, noise):
    arms, mu, sigma, level, bias, v0 = problem
    num_arms = len(mu)
    gram, means, logdet = arms @ arms.T / v0, np.zeros(num_arms), 0.0
    variances, counts = (arms**2).sum(1) / v0, np.zeros(num_arms, int)
    for t, z in enumerate(noise):
        leader = means.argmax()
        leading, width = gram[leader], sigma * (math.sqrt(level + logdet) + bias)
        squares = np.maximum(variances + variances[leader] - 2.0 * leading, 0.0)
        bounds = means - means[leader] + width * np.sqrt(squares)
        bounds[leader] = -np.inf
        rival = bounds.argmax()
        if t >= num_arms and bounds[rival] <= 0:
            return t, leader, counts
        arm = t
        if t >= num_arms:
            scores = (leading - gram[rival]) ** 2 / (1.0 + variances)
            tied = (scores == scores.max()).nonzero()[0]
            arm = tied[order[tied].argmax()] if len(tied) > 1 else tied[0]
        column = gram[arm].copy()
        scaled = column / (1.0 + column[arm])
        logdet += math.log1p(column[arm])
        means += (mu[arm] + sigma * z - means[arm]) * scaled
        variances -= scaled * column
        gram -= scaled[:, None] * column
        counts[arm] += 1


def in_c(problem, replications, seed, *, order=None, noise=None):
    """C with vectors over arms, compiled for these sizes."""
    num_arms, dim = problem.arms.shape
    outcome, order = blank(replications, num_arms), priorities(order, num_arms)
    call_c(
        "lingape", *problem, order, replications, seed, noise, *outcome, K=num_arms, D=dim
    )
    return outcome


def in_numba(problem, replications, seed, *, order=None, noise=None):
    """Plain loops in Python, compiled by Numba."""
    num_arms = len(problem.means)
    outcome, order = blank(replications, num_arms), priorities(order, num_arms)
    _loops(*problem, order, seed, np.zeros(0) if noise is None else noise, *outcome)
    return outcome


@jit
def _loops(arms, mu, sigma, level, bias, v0, order, seed, given, pulls, answers, counts):
    num_arms = len(mu)
    np.random.seed(seed)  # noqa: NPY002  Numba's own generator
    values = np.empty(num_arms)
    for r in range(len(pulls)):
        gram, means, variances = arms @ arms.T / v0, np.zeros(num_arms), (arms**2).sum(1) / v0
        logdet, t = 0.0, 0
        while True:
            leader = means.argmax()
            width = sigma * (math.sqrt(level + logdet) + bias)
            for k in range(num_arms):
                square = variances[k] + variances[leader] - 2.0 * gram[leader, k]
                values[k] = means[k] - means[leader] + width * math.sqrt(max(square, 0.0))
            values[leader] = -np.inf
            rival, arm = values.argmax(), t
            if t >= num_arms:
                if values[rival] <= 0:
                    break
                arm = _greedy(gram, variances, leader, rival, order, values)
            z = given[t] if given.size else np.random.normal()  # noqa: NPY002
            logdet += _observe(gram, means, variances, arm, mu[arm] + sigma * z)
            counts[r, arm] += 1
            t += 1
        pulls[r], answers[r] = t, leader


@jit
def _greedy(gram, variances, leader, rival, order, values):
    for k in range(len(values)):
        gap = gram[leader, k] - gram[rival, k]
        values[k] = gap * gap / (1.0 + variances[k])
    arm = values.argmax()
    for k in range(arm + 1, len(values)):
        if values[k] == values[arm] and order[k] > order[arm]:
            arm = k
    return arm


@jit
def _observe(gram, means, variances, arm, reward):
    """Update in place; returns what the log-determinant gains."""
    column = gram[arm].copy()
    scale = 1.0 / (1.0 + column[arm])
    error = scale * (reward - means[arm])
    for k in range(len(column)):
        means[k] += error * column[k]
        variances[k] -= scale * column[k] * column[k]
        factor = scale * column[k]
        for j in range(len(column)):
            gram[k, j] -= factor * column[j]
    return math.log1p(column[arm])
