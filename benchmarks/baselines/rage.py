"""RAGE with Gaussian rewards, one replication after the other, in NumPy that Numba can compile.

The designs come from the interior-point method of the package, on the directions alive alone;
each is computed anew in each replication. `noise [T, K]`, if handed in, is that of a single
replication.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from ..build import numba
from . import designs


class Problem(NamedTuple):
    """Numbers of an instance and of the algorithm."""

    arms: np.ndarray  # float [K, d]
    targets: np.ndarray  # float [M, d]
    means: np.ndarray  # float [K]
    noise_var: float
    delta: float
    epsilon: float  # the loss allowed to rounding
    factor: float  # c in log(c M^2 t^2 / delta)
    tol: float  # of the designs


class Outcome(NamedTuple):
    """What the replications did."""

    pulls: np.ndarray  # int [R]
    answer: np.ndarray  # int [R]


def problem(instance, delta=0.05):
    """The numbers of `jb.rage` with its other options at their defaults."""
    tables = (np.array(x) for x in (instance.arms, instance.targets, instance.means))
    return Problem(*tables, float(instance.noise_var), delta, 0.1, 2.0, 1e-3)


def in_numpy(problem, replications, seed, *, noise=None):
    """NumPy, called by the interpreter."""
    return _play(_program(lambda function: function), problem, replications, seed, noise)


def in_numba(problem, replications, seed, *, noise=None):
    """The same, compiled by Numba."""
    return _play(_compiled(), problem, replications, seed, noise)


def _play(program, problem, replications, seed, noise):
    # A copy, because Numba compiles anew for an array that may not be written.
    noise = np.zeros((0, len(problem.arms))) if noise is None else np.array(noise)
    outcome = Outcome(np.zeros(replications, np.int64), np.zeros(replications, np.int64))
    program(*problem, np.random.default_rng(seed), noise, *outcome)
    return outcome


@functools.cache
def _compiled():
    return _program(numba.njit)


def _program(jit):
    """The loop over replications, its parts put together by `jit`."""
    norms, certify = jit(_norms), jit(_certify)
    parts = (norms, certify, jit(_newton(norms)), jit(_search(norms)), jit(_trim(norms)))
    return jit(_loops(jit(_design(*parts)), jit(designs.efficient)))


def _norms(points, aims, scale):
    """`q_m = y_m^T A(s)^-1 y_m` and the inverse."""
    inverse = np.linalg.inv((points.T * scale) @ points)
    return ((aims @ inverse) * aims).sum(1), inverse


def _certify(points, aims, scale, norms, inverse):
    """Value and lower bound of the normalised design."""
    dual = 1.0 / (1.0 - norms)
    dual /= dual.sum()
    cross = points @ inverse @ aims.T
    return norms.max() * scale.sum(), (dual @ norms) ** 2 / (cross**2 @ dual).max()


def _newton(norms_of):
    def newton(points, aims, scale, barrier):
        """Direction and decrement on `sum(s)/mu - sum log s - sum log(1 - q)`."""
        norms, inverse = norms_of(points, aims, scale)
        half = points @ inverse
        cross, between, pull = half @ aims.T, half @ points.T, 1.0 / (1.0 - norms)
        squares = cross**2
        gradient = scale * (1.0 / barrier - squares @ pull) - 1.0
        curvature = 2.0 * between * ((cross * pull) @ cross.T)
        curvature += (squares * pull**2) @ squares.T
        curvature *= scale.reshape(-1, 1) * scale
        shift = 1.0 + 8.0 * np.finfo(np.float64).eps * np.trace(curvature)
        move = np.linalg.inv(curvature + shift * np.eye(len(scale))) @ gradient
        return -scale * move, math.sqrt(max(0.0, gradient @ move))

    return newton


def _search(norms_of):
    def merit(points, aims, scale, barrier):
        if scale.min() <= 0:
            return np.inf
        norms, _ = norms_of(points, aims, scale)
        if norms.max() >= 1:
            return np.inf
        return scale.sum() / barrier - np.log(scale).sum() - np.log(1.0 - norms).sum()

    return merit


def _trim(norms_of):
    def trim(points, aims, scale, bound, tol):
        """The normalised design, without weights below tol/100 if that is as good."""
        weights = scale / scale.sum()
        kept = weights * (weights >= 0.01 * tol)
        kept /= kept.sum()
        if np.linalg.matrix_rank((points.T * kept) @ points) == points.shape[1]:
            norms, _ = norms_of(points, aims, kept)
            if norms.max() <= (1.0 + tol) * bound:
                return kept, norms.max()
        norms, _ = norms_of(points, aims, weights)
        return weights, norms.max()

    return trim


def _design(norms_of, certify, newton, merit, trim):
    def design(arms, directions, tol):
        """Weights and their `max_m ||y_m||^2`, to relative accuracy `tol`."""
        num_arms = len(arms)
        # In these coordinates the uniform design is the identity.
        whiten = np.linalg.inv(np.linalg.cholesky(arms.T @ arms / num_arms)).T
        points, aims = arms @ whiten, directions @ whiten
        widest = (aims**2).sum(1).max()
        aims /= math.sqrt(widest)
        scale, barrier = np.full(num_arms, 2.0 / num_arms), 1.0 / (num_arms + len(aims))
        value, bound, failures = np.inf, 0.0, 0
        while value > (1.0 + 0.1 * tol) * bound and failures < 3:
            move, decrement = newton(points, aims, scale, barrier)
            here, size = merit(points, aims, scale, barrier), 1.0
            while size > 1e-8:
                there = merit(points, aims, scale + size * move, barrier)
                if there <= here - 0.1 * size * decrement**2:
                    break
                size /= 2
            moved = size > 1e-8
            if moved:
                scale = scale + size * move
            norms, inverse = norms_of(points, aims, scale)
            reached, below = certify(points, aims, scale, norms, inverse)
            value, bound = min(value, reached), max(bound, below)
            failures = 0 if moved else failures + 1
            if decrement < 0.5 or not moved:
                barrier /= 10.0
        weights, value = trim(points, aims, scale, bound, tol)
        return weights, value * widest

    return design


def _loops(design, efficient):
    def loops(
        arms, targets, means, noise_var, delta, epsilon, factor, tol, rng, noise, pulls, answers
    ):
        for r in range(len(pulls)):
            alive, phase = np.arange(len(targets)), 0
            while len(alive) > 1:
                phase += 1
                level = 2.0 * math.log(factor * len(targets) ** 2 * phase**2 / delta)
                first, second = np.triu_indices(len(alive), 1)
                here = targets[alive]
                weights, value = design(arms, here[first] - here[second], tol)
                wanted = 4.0**phase * value * (1.0 + epsilon) * noise_var * level
                least = 2.0 * (weights > 0).sum() / epsilon
                counts = efficient(weights, math.ceil(max(wanted, least)))
                draws = noise[phase - 1] if len(noise) else rng.standard_normal(len(arms))
                sums = counts * means + np.sqrt(counts * noise_var) * draws
                inverse = np.linalg.inv((arms.T * counts) @ arms)
                scores = here @ (inverse @ (arms.T @ sums))
                gram = here @ inverse @ here.T
                own = np.diag(gram)
                squares = np.maximum(0.0, own.reshape(-1, 1) + own - 2.0 * gram)
                gaps = scores - scores.reshape(-1, 1)
                beaten = np.sqrt(noise_var * level * squares) < gaps
                alive = alive[beaten.sum(1) == 0]
                pulls[r] += counts.sum()
            answers[r] = alive[0]

    return loops
