"""RAGE with Gaussian rewards, one replication after the other, in NumPy that Numba can compile.

The designs are computed by the package's interior-point method, in textbook algebra and only on the
directions that are alive; every replication computes its own. The argument `noise [T, K]` is that
of a single replication.
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
    """Results of the replications."""

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
    """The loop over replications and its parts, each compiled by `jit`."""
    room = jit(_room)
    step = jit(_step(jit(_information), room))
    trim = jit(_trim)
    return jit(
        _loops(jit(_design(jit(_information), jit(_certify), step, trim)), jit(designs.efficient))
    )


def _information(points, scale, mixed):
    """`A(s)` with a little of the uniform design, which is the identity here."""
    return (points.T * scale) @ points + mixed * scale.sum() * np.eye(points.shape[1])


def _room(values, changes):
    """The largest step that keeps all values positive."""
    falling = changes < 0
    if not falling.any():
        return np.inf
    return (-values[falling] / changes[falling]).min()


def _certify(points, norms, inverse, scale, dual, aims, mixed):
    """Value of the design and a lower bound on the optimum."""
    half = points @ inverse
    slopes = ((half @ aims.T) ** 2 @ dual).max()
    value = norms.max() * scale.sum() * (1.0 + mixed)
    return value, (dual @ norms) ** 2 / (dual.sum() * slopes)


def _step(information, room):
    def step(points, aims, scale, slack, dual, price, inverse, norms, mixed):
        """One step of Mehrotra's method, in place."""
        number = len(scale) + len(dual)
        half, own = points @ inverse, aims @ inverse
        slopes = (half @ aims.T) ** 2 + mixed * (own**2).sum(1)
        lost = norms + slack - 1.0
        total = (aims.T * dual) @ aims
        turned = half @ total
        cross = ((turned @ inverse) * half).sum(1)
        both = (half @ points.T) * (turned @ half.T) + mixed * (cross.reshape(-1, 1) + cross)
        both += mixed**2 * np.trace(inverse @ inverse @ total @ inverse)
        unit = np.sqrt(scale / price)
        system = 2.0 * both + (slopes * (dual / slack)) @ slopes.T
        system = system * unit.reshape(-1, 1) * unit + np.eye(len(scale))
        here = (dual @ slack + scale @ price) / number
        toward, apart = np.zeros(len(slack)), np.zeros(len(scale))
        for corrected in range(2):
            right = slopes @ ((toward + dual * lost) / slack) - 1.0 + apart / scale
            s = unit * np.linalg.solve(system, unit * right)
            t = slopes.T @ s - lost
            v = (toward - dual * t) / slack - dual
            u = (apart - price * s) / scale - price
            primal = min(room(scale, s), room(slack, t))
            other = min(room(dual, v), room(price, u))
            if corrected == 0:
                first, second = min(1.0, primal), min(1.0, other)
                far = (dual + second * v) @ (slack + first * t)
                far = (far + (scale + first * s) @ (price + second * u)) / number
                unmet = np.abs(scale * (1.0 - slopes @ dual - price)).sum()
                unmet = (unmet + np.abs(dual * lost).sum()) / number
                aim = max(here * min(1.0, max(0.03, (far / here) ** 3)), 0.1 * unmet)
                toward, apart = aim - t * v, aim - s * u
        primal, other = min(1.0, 0.9 * primal), min(1.0, 0.9 * other)
        scale += primal * s
        slack += primal * t
        dual += other * v
        price += other * u
        inverse = np.linalg.inv(information(points, scale, mixed))
        return inverse, ((aims @ inverse) * aims).sum(1)

    return step


def _trim(points, aims, weights, value, bound, tol):
    """The design without weights below tol/100, if it is as good without them, and its value."""
    kept = weights * (weights >= 0.01 * tol)
    kept /= kept.sum()
    matrix = (points.T * kept) @ points
    if np.linalg.matrix_rank(matrix) == points.shape[1]:
        trimmed = ((aims @ np.linalg.inv(matrix)) * aims).sum(1).max()
        if trimmed <= (1.0 + tol) * bound:
            return kept, trimmed
    return weights, value


def _design(information, certify, step, trim):
    def design(arms, directions, tol):
        """Weights and their `max_m ||y_m||^2`, to relative accuracy `tol`."""
        num_arms, mixed = len(arms), 0.1 * tol
        # In these coordinates the uniform design is the identity.
        whiten = np.linalg.inv(np.linalg.cholesky(arms.T @ arms / num_arms)).T
        points, aims = arms @ whiten, directions @ whiten
        widest = (aims**2).sum(1).max()
        aims /= math.sqrt(widest)
        scale = np.full(num_arms, 2.0 / num_arms)
        inverse = np.linalg.inv(information(points, scale, mixed))
        norms = ((aims @ inverse) * aims).sum(1)
        slack = 1.0 - norms
        slopes = (points @ inverse @ aims.T) ** 2 + mixed * ((aims @ inverse) ** 2).sum(1)
        dual = 1.0 / slack
        most = (slopes @ dual).max()
        dual *= 0.5 / most
        price = 1.0 - slopes @ dual
        best, value, bound = scale, 1.0, 0.0
        while value > (1.0 + 0.3 * tol) * bound:
            inverse, norms = step(points, aims, scale, slack, dual, price, inverse, norms, mixed)
            reached, below = certify(points, norms, inverse, scale, dual, aims, mixed)
            bound = max(bound, below)
            if reached < value:
                value, best = reached, scale.copy()
        weights = (best / best.sum() + mixed / num_arms) / (1.0 + mixed)
        weights, value = trim(points, aims, weights, value, bound, tol)
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
