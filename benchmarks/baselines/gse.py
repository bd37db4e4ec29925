"""GSE with Gaussian rewards and least squares, as plain loops; one replication after the other.

The arguments `noise [S, K]` and `orders [S, K]` are those of a single replication.
"""

import math
from typing import NamedTuple

import numpy as np

from ..build import POINTER, REAL, WHOLE, address, library, numba
from . import designs

ARGUMENTS = (
    POINTER,
    POINTER,
    REAL,
    WHOLE,
    POINTER,
    POINTER,
    WHOLE,
    WHOLE,
    POINTER,
    POINTER,
    POINTER,
)
FLAT = 1e-12  # a pivot below this share of the largest diagonal entry is zero


class Problem(NamedTuple):
    """Numbers of an instance and of the algorithm."""

    arms: np.ndarray  # float [K, d]
    means: np.ndarray  # float [K]
    sigma: float
    draws: np.ndarray  # int [S] of each stage
    sizes: np.ndarray  # int [S] arms alive after each stage


def problem(instance, budget):
    """The numbers of `jb.gse` with its other options at their defaults."""
    sizes = [len(instance.arms)]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + 1) // 2)
    stages = len(sizes) - 1
    draws = [budget // stages + (s >= stages - budget % stages) for s in range(stages)]
    sigma = math.sqrt(float(instance.noise_var))
    arms, means = np.asarray(instance.arms), np.asarray(instance.means)
    return Problem(arms, means, sigma, *(np.array(x, np.int64) for x in (draws, sizes[1:])))


def in_numpy(problem, replications, seed, *, orders=None, noise=None):
    """Answers `[R]`; one normal number gives the sum of an arm's rewards."""
    return _in_numpy(problem, replications, seed, _even, _one_normal, orders, noise)


def in_numpy_pulls(problem, replications, seed, *, orders=None, noise=None):
    """The same with one normal number per draw; given noise is divided among the draws."""
    return _in_numpy(problem, replications, seed, _even, _each_pull, orders, noise)


def in_numpy_d_opt(problem, replications, seed, *, tol=0.01):
    """With D-optimal designs, each computed when a stage begins."""

    def allocate(points, total, rng, order):
        return designs.efficient(designs.d_optimal(points, tol), total)

    return _in_numpy(problem, replications, seed, allocate, _one_normal, None, None)


def _in_numpy(problem, replications, seed, allocate, draw, orders, noise):
    rng, (arms, means, sigma, draws, sizes) = np.random.default_rng(seed), problem
    orders = [None] * len(draws) if orders is None else orders
    noise = [None] * len(draws) if noise is None else noise
    answers = np.zeros(replications, np.int64)
    for r in range(replications):
        alive = np.arange(len(arms))
        for total, keep, order, given in zip(draws, sizes, orders, noise, strict=True):
            points = arms[alive]
            counts = allocate(points, total, rng, None if order is None else order[alive])
            given = None if given is None else given[alive]
            root = np.sqrt(counts)
            # Scaled sums: an arm without draws is a row of zeros and has no effect.
            sums = root * means[alive] + sigma * draw(counts, rng, given)
            theta = np.linalg.lstsq(points * root[:, None], sums)[0]
            alive = alive[np.argsort(-(points @ theta))[:keep]]
        answers[r] = alive[0]
    return answers


def _even(points, total, rng, order):
    num = len(points)
    counts = np.full(num, total // num)
    if total % num:
        order = rng.permutation(num) if order is None else order
        counts[np.argsort(-order)[: total % num]] += 1
    return counts


def _one_normal(counts, rng, given):
    return rng.normal(size=len(counts)) if given is None else given


def _each_pull(counts, rng, given):
    scaled = np.zeros(len(counts))
    for k, count in enumerate(counts):
        total = 0.0
        for _ in range(count):
            total += rng.normal() if given is None else given[k] / math.sqrt(count)
        scaled[k] = total / math.sqrt(count) if count else 0.0
    return scaled


def in_c(problem, replications, seed, *, orders=None, noise=None):
    """Scalar C, compiled for these sizes."""
    num_arms, dim = problem.arms.shape
    answers = np.zeros(replications, np.int64)
    orders = None if orders is None else np.ascontiguousarray(orders, np.int64)
    library("gse", ARGUMENTS, K=num_arms, D=dim).play(
        *map(address, problem[:2]),
        problem.sigma,
        len(problem.draws),
        *map(address, problem[3:]),
        replications,
        seed,
        *(None if x is None else address(x) for x in (orders, noise)),
        address(answers),
    )
    return answers


def in_numba(problem, replications, seed, *, orders=None, noise=None):
    """The loops of the C program in Python, compiled by Numba."""
    nothing = (0, len(problem.arms))
    orders = np.zeros(nothing, np.int64) if orders is None else np.asarray(orders, np.int64)
    noise = np.zeros(nothing) if noise is None else np.asarray(noise)
    answers = np.zeros(replications, np.int64)
    _numba_loop()(*problem, orders, seed, noise, answers)
    return answers


_COMPILED = []


def _numba_loop():
    """Compiles at the first use, so that this file can be imported without Numba."""
    if not _COMPILED:
        parts = [numba.njit(part) for part in (_solve, _to_front, _shuffle)]
        _COMPILED.append(numba.njit(_loops(*parts)))
    return _COMPILED[0]


def _solve(matrix, moment, theta):
    """A solution of the normal equations by elimination with the largest diagonal pivot first.

    Coordinates without a pivot stay zero; all solutions rank the arms in the span of those drawn in
    the same way.
    """
    dim, cut = len(matrix), FLAT * np.diag(matrix).max()
    free = np.ones(dim, np.bool_)
    theta[:] = 0.0
    for _ in range(dim):
        p = -1
        for i in range(dim):
            if free[i] and (p < 0 or matrix[i, i] > matrix[p, p]):
                p = i
        if matrix[p, p] <= cut:
            break
        free[p] = False
        for i in range(dim):
            factor = matrix[i, p] / matrix[p, p]
            if i != p and factor != 0.0:
                moment[i] -= factor * moment[p]
                for j in range(dim):
                    matrix[i, j] -= factor * matrix[p, j]
    for i in range(dim):
        if not free[i]:
            theta[i] = moment[i] / matrix[i, i]


def _to_front(alive, num, front, priority):
    """Move the arms with the largest priorities to the front."""
    for i in range(front):
        best = i
        for j in range(i + 1, num):
            if priority[alive[j]] > priority[alive[best]]:
                best = j
        alive[i], alive[best] = alive[best], alive[i]


def _shuffle(alive, num, front):
    """Move randomly chosen arms to the front."""
    for i in range(front):
        j = i + np.random.randint(num - i)  # noqa: NPY002  Numba's own generator
        alive[i], alive[j] = alive[j], alive[i]


def _loops(solve, to_front, shuffle):
    def loops(arms, means, sigma, draws, sizes, orders, seed, noise, answers):
        num_arms, dim = arms.shape
        np.random.seed(seed)  # noqa: NPY002
        alive, values = np.empty(num_arms, np.int64), np.empty(num_arms)
        matrix, moment, theta = np.empty((dim, dim)), np.empty(dim), np.empty(dim)
        for r in range(len(answers)):
            alive[:] = np.arange(num_arms)
            num = num_arms
            for s in range(len(draws)):
                each, extra = draws[s] // num, draws[s] % num
                if len(orders):
                    to_front(alive, num, extra, orders[s])
                else:
                    shuffle(alive, num, extra)
                matrix[:], moment[:] = 0.0, 0.0
                for i in range(num):
                    arm, count = alive[i], each + (i < extra)
                    draw = noise[s, arm] if len(noise) else np.random.normal()  # noqa: NPY002
                    total = count * means[arm] + sigma * math.sqrt(count) * draw
                    for a in range(dim):
                        moment[a] += total * arms[arm, a]
                        for b in range(dim):
                            matrix[a, b] += count * arms[arm, a] * arms[arm, b]
                solve(matrix, moment, theta)
                for i in range(num):
                    value = 0.0
                    for a in range(dim):
                        value += arms[alive[i], a] * theta[a]
                    values[alive[i]] = value
                to_front(alive, num, sizes[s], values)
                num = sizes[s]
            answers[r] = alive[0]

    return loops
