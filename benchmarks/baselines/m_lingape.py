"""m-LinGapE, paired indices, greedy, heuristic threshold, as plain loops in arm space.

Ties go to the first index: arms with features in general position, each drawn once, never tie.
"""

import math
from typing import NamedTuple

import numpy as np

from ..build import POINTER, REAL, WHOLE, address, jitted, library

ARGUMENTS = (*[POINTER] * 2, *[REAL] * 2, *[WHOLE] * 2, *[POINTER] * 4)
RIDGE = 1.0 / 40.0  # v0, the default of the package


class Problem(NamedTuple):
    """Numbers of an instance and of the algorithm."""

    gram: np.ndarray  # float [K, K] X X^T / v0, all that is needed of the features
    means: np.ndarray  # float [K]
    m: int
    sigma: float
    delta: float


class Outcome(NamedTuple):
    """Results of the replications."""

    pulls: np.ndarray  # int [R]
    answer: np.ndarray  # int [R, K], 1 for a member
    arm_pulls: np.ndarray  # int [R, K]


def problem(instance, m, delta=0.05):
    """The numbers of `jb.m_lingape` with its other options at their defaults."""
    arms, sigma = np.asarray(instance.arms), math.sqrt(float(instance.noise_var))
    return Problem(arms @ arms.T / RIDGE, np.asarray(instance.means), m, sigma, delta)


def _blank(replications, num_arms):
    shapes = ((replications,), (replications, num_arms), (replications, num_arms))
    return Outcome(*(np.zeros(shape, np.int64) for shape in shapes))


def in_numpy(problem, replications, seed, *, noise=None):
    """A loop of NumPy calls, with `X V^-1 X^T` kept by rank-one updates."""
    rng, num_arms = np.random.default_rng(seed), len(problem.means)
    outcome = _blank(replications, num_arms)
    for r in range(replications):
        source = iter(noise) if noise is not None else _normals(rng)
        pulls, members, counts = _in_numpy(problem, source, num_arms)
        outcome.pulls[r], outcome.arm_pulls[r] = pulls, counts
        outcome.answer[r, members] = 1
    return outcome


def _normals(rng):
    while True:
        yield from rng.normal(size=1024)


def _in_numpy(problem, noise, num_arms):
    gram, mu, m, sigma, delta = problem
    core, means, counts = gram.copy(), np.zeros(num_arms), np.zeros(num_arms, int)
    variances = core.diagonal()  # a view, which changes with the core
    for t, z in enumerate(noise):
        arm = t
        if t >= num_arms:
            ranked = means.argsort()
            outside, inside = ranked[:-m, None], ranked[-m:]
            width = sigma * math.sqrt(2.0 * math.log((1.0 + math.log(t)) / delta))
            squares = variances[outside] + variances[inside] - 2.0 * core[outside, inside]
            bounds = means[outside] - means[inside] + width * np.sqrt(np.maximum(0.0, squares))
            index = bounds.argmax()
            if bounds.flat[index] <= 0:
                return t, inside, counts
            weakest, challenger = inside[index % m], outside[index // m, 0]
            arm = ((core[weakest] - core[challenger]) ** 2 / (1.0 + variances)).argmax()
        column = core[arm]
        scale = 1.0 / (1.0 + column[arm])
        means += scale * (mu[arm] + sigma * z - means[arm]) * column
        core -= np.outer(scale * column, column)
        counts[arm] += 1
    raise ValueError("the given noise is too short")


def in_c(problem, replications, seed, *, noise=None):
    """Scalar C, compiled for these sizes."""
    num_arms = len(problem.means)
    outcome = _blank(replications, num_arms)
    library("m_lingape", ARGUMENTS, K=num_arms, M=problem.m).play(
        *map(address, (problem.gram, problem.means)),
        problem.sigma,
        problem.delta,
        replications,
        seed,
        None if noise is None else address(noise),
        *map(address, outcome),
    )
    return outcome


def in_numba(problem, replications, seed, *, noise=None):
    """The loops of the C program in Python, compiled by Numba."""
    outcome = _blank(replications, len(problem.means))
    given = np.zeros(0) if noise is None else np.asarray(noise)
    _replications(*problem, seed, given, *outcome)
    return outcome


@jitted
def _split(means, m, inside, outside):
    members = others = 0
    for k in range(len(means)):
        rank = 0
        for other in means:
            rank += other > means[k]
        if rank < m:
            inside[members] = k
            members += 1
        else:
            outside[others] = k
            others += 1


@jitted
def _most_doubtful(core, means, width, inside, outside):
    weakest, challenger, most = 0, 0, -np.inf
    for i in outside:
        for j in inside:
            square = core[i, i] + core[j, j] - 2.0 * core[i, j]
            bound = means[i] - means[j] + width * math.sqrt(max(square, 0.0))
            if bound > most:
                weakest, challenger, most = j, i, bound
    return weakest, challenger, most


@jitted
def _greedy(core, weakest, challenger):
    best, arm = -1.0, 0
    for k in range(len(core)):
        score = (core[weakest, k] - core[challenger, k]) ** 2 / (1.0 + core[k, k])
        if score > best:
            best, arm = score, k
    return arm


@jitted
def _observe(core, means, column, arm, reward):
    column[:] = core[arm]
    scale = 1.0 / (1.0 + column[arm])
    error = scale * (reward - means[arm])
    for i in range(len(means)):
        means[i] += error * column[i]
        for j in range(len(means)):
            core[i, j] -= scale * column[i] * column[j]


@jitted
def _replications(gram, mu, m, sigma, delta, seed, given, pulls, answers, counts):
    num_arms = len(mu)
    np.random.seed(seed)  # noqa: NPY002  Numba's own generator
    inside, outside = np.empty(m, np.int64), np.empty(num_arms - m, np.int64)
    core, means, column = np.empty((num_arms, num_arms)), np.empty(num_arms), np.empty(num_arms)
    for r in range(len(pulls)):
        core[:], means[:], t = gram, 0.0, 0
        while True:
            arm = t
            if t >= num_arms:
                _split(means, m, inside, outside)
                width = sigma * math.sqrt(2.0 * math.log((1.0 + math.log(t)) / delta))
                weakest, challenger, most = _most_doubtful(core, means, width, inside, outside)
                if most <= 0:
                    break
                arm = _greedy(core, weakest, challenger)
            noise = given[t] if given.size else np.random.normal()  # noqa: NPY002
            _observe(core, means, column, arm, mu[arm] + sigma * noise)
            counts[r, arm] += 1
            t += 1
        pulls[r] = t
        answers[r, inside] = 1
