"""Designs and roundings in plain NumPy, for tests of kernels and for twins."""

import math

import numpy as np


def frank_wolfe(arms, directions, *, tol=0.01, cap=5000, negligible=1e-5):
    """Frank-Wolfe with steps `2 / (k + 2)` from the uniform design: design and number of steps."""
    weights = np.full(len(arms), 1 / len(arms))
    for k in range(1, cap + 1):
        inverse = np.linalg.pinv((arms.T * weights) @ arms)
        y = directions[np.argmax([y @ inverse @ y for y in directions])]
        step = -weights.copy()
        step[np.argmax([(x @ inverse @ y) ** 2 for x in arms])] += 1
        step *= 2 / (k + 2)
        small = np.linalg.norm(step) < tol * np.linalg.norm(weights)
        weights = weights + step
        if small:
            break
    weights[weights < negligible] = 0
    return weights / weights.sum(), k


def whitened(arms, shares):
    """Arms in coordinates where `sum of s x x^T` is the identity on its range."""
    values, vectors = np.linalg.eigh((arms.T * shares) @ arms)
    range_ = values > 1e-12 * values.max()
    return arms @ vectors[:, range_] / np.sqrt(values[range_])


def worst(arms, weights, counts):
    """`lambda_min` of the counts' matrix, in coordinates where the design's is the identity."""
    points = whitened(arms, counts.sum() * weights)
    return np.linalg.eigvalsh((points.T * counts) @ points)[0]


def shift_of(values, alpha):
    """c with `sum of (c + alpha b)^-2 = 1`, by bisection."""
    low = -alpha * values.min()
    high = low + math.sqrt(len(values))
    for _ in range(200):
        middle = 0.5 * (low + high)
        above = middle + alpha * values
        if (above <= 0).any() or (1 / above**2).sum() > 1:
            low = middle
        else:
            high = middle
    return high


def leader(matrix, alpha):
    """The square root of follow-the-regularised-leader's matrix, by an eigendecomposition."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors / (shift_of(values, alpha) + alpha * values)) @ vectors.T


def greedy(arms, shares, total):
    """The greedy form of regret-minimisation rounding, one draw at a time."""
    points = whitened(arms, shares)
    dim = points.shape[1]
    alpha = math.sqrt(dim) * max(4.0, math.sqrt(2 * total / dim))
    matrix, counts = np.zeros((dim, dim)), np.zeros(len(arms), int)
    for _ in range(total):
        root = leader(matrix, alpha)
        ratios = [y @ root @ root @ y / (1 + alpha * (y @ root @ y)) for y in points]
        arm = max(np.flatnonzero(shares > 0), key=lambda k: ratios[k])
        counts[arm] += 1
        matrix = matrix + np.outer(points[arm], points[arm])
    return counts


def in_two_parts(arms, weights, total):
    """Round shares down first; the greedy form places the remaining draws."""
    rank = np.linalg.matrix_rank(arms[weights > 0])
    part = max(0.0, 1 - 4 * rank / total)
    first = np.floor(part * total * weights).astype(int)
    return first + greedy(arms, total * weights - first, total - first.sum())
