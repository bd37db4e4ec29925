"""GLM-TSL with logistic rewards as plain loops; one replication after the other."""

from typing import NamedTuple

import numpy as np

from ..build import POINTER, REAL, WHOLE, address, jitted, library
from .logistic_mle import curvature, fit, looped_factor, looped_fit, looped_solve

ARGUMENTS = (*[POINTER] * 2, *[REAL] * 3, *[WHOLE] * 3, *[POINTER] * 5)


class Problem(NamedTuple):
    """Numbers of an instance and of the algorithm; the first d arms must be independent."""

    arms: np.ndarray  # float [K, d]
    means: np.ndarray  # float [K]
    a: float
    ridge: float
    tol: float  # tolerance on the Newton decrement


class Outcome(NamedTuple):
    """Results of the replications."""

    arms: np.ndarray  # int [R, T]
    rewards: np.ndarray  # float [R, T], 0 or 1
    missed: np.ndarray  # int [R] fits that took too many steps


def problem(instance):
    """The numbers of `jb.glm_tsl` with its options at their defaults."""
    arms, dim = np.asarray(instance.arms), instance.arms.shape[1]
    assert np.linalg.matrix_rank(arms[:dim]) == dim
    return Problem(arms, np.asarray(instance.means), 1.0, 1e-3, 1e-6)


def _blank(replications, rounds):
    shape = (replications, rounds)
    return Outcome(np.zeros(shape, np.int64), np.zeros(shape), np.zeros(replications, np.int64))


def in_numpy(problem, replications, rounds, seed, *, normals=None, uniforms=None):
    """A loop of NumPy calls; `normals [T, d]` and `uniforms [T]` replace the generator."""
    rng, dim = np.random.default_rng(seed), problem.arms.shape[1]
    outcome = _blank(replications, rounds)
    for r in range(replications):
        z = rng.normal(size=(rounds, dim)) if normals is None else normals
        u = rng.random(rounds) if uniforms is None else uniforms
        _in_numpy(problem, z, u, outcome.arms[r], outcome.rewards[r], outcome.missed[r : r + 1])
    return outcome


def _in_numpy(problem, normals, uniforms, drawn, rewards, missed):
    arms, mu, a, ridge, tol = problem
    (num_arms, dim), at = arms.shape, None
    counts, sums, theta = np.zeros(num_arms), np.zeros(num_arms), np.zeros(dim)
    for t in range(len(drawn)):
        arm = t
        if t >= dim:
            factor = np.linalg.cholesky(curvature(arms, at.variance, ridge))
            arm = (arms @ (theta + a * np.linalg.solve(factor.T, normals[t]))).argmax()
        drawn[t], rewards[t] = arm, uniforms[t] < mu[arm]
        counts[arm] += 1
        sums[arm] += rewards[t]
        if t + 1 >= dim:
            theta, at, failed = fit(arms, counts, sums, theta, ridge, tol)
            missed += failed


def in_c(problem, replications, rounds, seed, *, normals=None, uniforms=None):
    """Scalar C, compiled for these sizes."""
    num_arms, dim = problem.arms.shape
    outcome = _blank(replications, rounds)
    library("glm_tsl", ARGUMENTS, K=num_arms, D=dim).play(
        *map(address, (problem.arms, problem.means)),
        *problem[2:],
        replications,
        rounds,
        seed,
        *(None if given is None else address(given) for given in (normals, uniforms)),
        *map(address, outcome),
    )
    return outcome


def in_numba(problem, replications, rounds, seed, *, normals=None, uniforms=None):
    """The loops of the C program in Python, compiled by Numba."""
    outcome = _blank(replications, rounds)
    z = np.zeros((0, 0)) if normals is None else normals
    u = np.zeros(0) if uniforms is None else uniforms
    _replications(*problem, seed, z, u, *outcome)
    return outcome


@jitted
def _sampled(columns, a, theta, factor, z, values):
    looped_solve(factor, z)
    values[:] = 0.0
    for i in range(len(z)):
        for k in range(len(values)):
            values[k] += columns[i, k] * (theta[i] + a * z[i])
    return values.argmax()


@jitted
def _replications(arms, mu, a, ridge, tol, seed, normals, uniforms, drawn, rewards, missed):
    (num_arms, dim), columns = arms.shape, np.ascontiguousarray(arms.T)
    np.random.seed(seed)  # noqa: NPY002  Numba's own generator
    mean, variance, values = np.empty(num_arms), np.empty(num_arms), np.empty(num_arms)
    factor, z = np.empty((dim, dim)), np.empty(dim)
    for r in range(len(drawn)):
        counts, sums, theta = np.zeros(num_arms), np.zeros(num_arms), np.zeros(dim)
        for t in range(drawn.shape[1]):
            arm = t
            if t >= dim:
                for i in range(dim):
                    z[i] = normals[t, i] if normals.size else np.random.normal()  # noqa: NPY002
                looped_factor(arms, variance, ridge, factor)
                arm = _sampled(columns, a, theta, factor, z, values)
            uniform = uniforms[t] if uniforms.size else np.random.random()  # noqa: NPY002
            reward = 1.0 if uniform < mu[arm] else 0.0
            drawn[r, t], rewards[r, t] = arm, reward
            counts[arm] += 1
            sums[arm] += reward
            if t + 1 >= dim:
                missed[r] += looped_fit(
                    arms, columns, counts, sums, theta, ridge, tol, mean, variance, factor
                )
