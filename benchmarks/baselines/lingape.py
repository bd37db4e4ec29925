"""LinGapE, greedy, pairwise threshold, as plain loops; one replication after the other."""

import math
from typing import NamedTuple

import numpy as np

from ..build import POINTER, REAL, WHOLE, address, library, numba

ARGUMENTS = (*[POINTER] * 3, *[REAL] * 4, WHOLE, WHOLE, *[POINTER] * 4)


class Problem(NamedTuple):
    """Numbers of an instance and of the algorithm."""

    arms: np.ndarray  # float [K, d]
    means: np.ndarray  # float [K]
    sigma: float
    level: float  # 2 log(K^2 / delta)
    bias: float  # sqrt(v0) ||theta|| / sigma
    v0: float


class Outcome(NamedTuple):
    """Results of the replications."""

    pulls: np.ndarray  # int [R]
    answer: np.ndarray  # int [R]
    arm_pulls: np.ndarray  # int [R, K]


def problem(instance, delta=0.05, v0=1.0):
    """The numbers of `jb.lingape` with its other options at their defaults."""
    sigma = math.sqrt(float(instance.noise_var))
    bias = math.sqrt(v0) * float(instance.theta_norm) / sigma
    level = 2.0 * math.log(len(instance.arms) ** 2 / delta)
    return Problem(np.asarray(instance.arms), np.asarray(instance.means), sigma, level, bias, v0)


def in_arm_space(arms):
    """Whether `X V^-1 X^T` is cheaper to update than `V^-1`."""
    return len(arms) <= 2 * arms.shape[1]


def in_numpy(problem, replications, seed, *, order=None, noise=None):
    """A loop of NumPy calls, with V^-1 kept by rank-one updates."""
    rng, (num_arms, dim) = np.random.default_rng(seed), problem.arms.shape
    order = np.arange(num_arms) if order is None else order
    done = []
    for _ in range(replications):
        source = iter(noise) if noise is not None else _normals(rng)
        done.append(_in_numpy(problem, order, source, num_arms, dim))
    return Outcome(*map(np.array, zip(*done, strict=True)))


def _normals(rng):
    while True:
        yield from rng.normal(size=1024)


def _in_numpy(problem, order, noise, num_arms, dim):
    arms, mu, sigma, level, bias, v0 = problem
    inverse, means, logdet = np.eye(dim) / v0, np.zeros(num_arms), 0.0
    variances, counts = (arms**2).sum(1) / v0, np.zeros(num_arms, int)
    for t, z in enumerate(noise):
        leader = means.argmax()
        from_leader = arms @ (inverse @ arms[leader])
        squares = np.maximum(0.0, variances + variances[leader] - 2.0 * from_leader)
        bounds = (
            means - means[leader] + sigma * (math.sqrt(level + logdet) + bias) * np.sqrt(squares)
        )
        bounds[leader] = -np.inf
        rival = bounds.argmax()
        if t >= num_arms and bounds[rival] <= 0:
            return t, leader, counts
        arm = t
        if t >= num_arms:
            scores = (from_leader - arms @ (inverse @ arms[rival])) ** 2 / (1.0 + variances)
            arm = np.where(scores == scores.max(), order, -1).argmax()
        direction = inverse @ arms[arm]
        column = arms @ direction
        scale = 1.0 / (1.0 + column[arm])
        means = means + scale * (mu[arm] + sigma * z - means[arm]) * column
        variances = variances - scale * column**2
        inverse = inverse - scale * np.outer(direction, direction)
        logdet += math.log1p(column[arm])
        counts[arm] += 1
    raise ValueError("the given noise is too short")


def in_c(problem, replications, seed, *, order=None, noise=None):
    """Scalar C, compiled for these sizes."""
    num_arms, dim = problem.arms.shape
    sizes = {"K": num_arms, "D": dim, "ARM_SPACE": int(in_arm_space(problem.arms))}
    order = np.arange(num_arms) if order is None else np.asarray(order)
    outcome = _blank(replications, num_arms)
    library("lingape", ARGUMENTS, **sizes).play(
        *map(address, (problem.arms, problem.means, order.astype(np.int64))),
        *problem[2:],
        replications,
        seed,
        None if noise is None else address(noise),
        *map(address, outcome),
    )
    return outcome


def _blank(replications, num_arms):
    shapes = ((replications,), (replications,), (replications, num_arms))
    return Outcome(*(np.zeros(shape, np.int64) for shape in shapes))


def in_numba(problem, replications, seed, *, order=None, noise=None):
    """The loops of the C program in Python, compiled by Numba."""
    num_arms = len(problem.arms)
    order = np.arange(num_arms) if order is None else np.asarray(order)
    given = np.zeros(0) if noise is None else np.asarray(noise)
    outcome = _blank(replications, num_arms)
    arm_space = in_arm_space(problem.arms)
    _numba_loop()(*problem, order, seed, given, arm_space, *outcome)
    return outcome


_COMPILED = []


def _numba_loop():
    """Compiles at the first use, so that this file can be imported without Numba."""
    if not _COMPILED:
        row = numba.njit(_row)
        _COMPILED.append(numba.njit(_loops(row)))
    return _COMPILED[0]


def _row(core, arms, arm, arm_space, direction, out):
    num_arms, dim = arms.shape
    if arm_space:
        for k in range(num_arms):
            out[k] = direction[k] = core[arm, k]
        return
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += core[i, j] * arms[arm, j]
        direction[i] = total
    for k in range(num_arms):
        total = 0.0
        for j in range(dim):
            total += arms[k, j] * direction[j]
        out[k] = total


def _loops(row):
    def loops(
        arms, mu, sigma, level, bias, v0, order, seed, given, arm_space, pulls, answers, counts
    ):
        num_arms, dim = arms.shape
        size = num_arms if arm_space else dim
        np.random.seed(seed)  # noqa: NPY002  Numba's own generator
        direction, other = np.empty(size), np.empty(size)
        from_leader, from_rival = np.empty(num_arms), np.empty(num_arms)
        column = np.empty(num_arms)
        for r in range(len(pulls)):
            core = arms @ arms.T / v0 if arm_space else np.eye(dim) / v0
            means, variances, logdet, t = np.zeros(num_arms), (arms**2).sum(1) / v0, 0.0, 0
            while True:
                leader, rival, arm = means.argmax(), 0, 0
                row(core, arms, leader, arm_space, direction, from_leader)
                width, most = sigma * (math.sqrt(level + logdet) + bias), -np.inf
                for k in range(num_arms):
                    square = variances[k] + variances[leader] - 2.0 * from_leader[k]
                    bound = means[k] - means[leader] + width * math.sqrt(max(square, 0.0))
                    if k != leader and bound > most:
                        most, rival = bound, k
                if t >= num_arms and most <= 0:
                    break
                if t < num_arms:
                    arm = t
                else:
                    row(core, arms, rival, arm_space, other, from_rival)
                    best = -1.0
                    for k in range(num_arms):
                        score = (from_leader[k] - from_rival[k]) ** 2 / (1.0 + variances[k])
                        if score > best or (score == best and order[k] > order[arm]):
                            best, arm = score, k
                noise = given[t] if given.size else np.random.normal()  # noqa: NPY002
                row(core, arms, arm, arm_space, direction, column)
                scale = 1.0 / (1.0 + column[arm])
                error = scale * (mu[arm] + sigma * noise - means[arm])
                logdet += math.log1p(column[arm])
                for k in range(num_arms):
                    means[k] += error * column[k]
                    variances[k] -= scale * column[k] ** 2
                for i in range(size):
                    for j in range(size):
                        core[i, j] -= scale * direction[i] * direction[j]
                counts[r, arm] += 1
                t += 1
            pulls[r], answers[r] = t, leader

    return loops
