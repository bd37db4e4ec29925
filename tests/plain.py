"""Designs and roundings in plain NumPy, step by step, for tests of kernels and for twins."""

import math

import numpy as np


def frank_wolfe(arms, directions, *, tol=0.01, cap=5000, negligible=1e-5):
    """Steps of `2 / (k + 2)` from the uniform design; the design and how many there were."""
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
    """Arms in coordinates where `sum of s x x^T` is the identity of its range."""
    values, vectors = np.linalg.eigh((arms.T * shares) @ arms)
    range_ = values > 1e-12 * values.max()
    return arms @ vectors[:, range_] / np.sqrt(values[range_])


def worst(arms, weights, counts):
    """`lambda_min` of the counts where the design is the identity."""
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
    """Q^{1/2}, by an eigendecomposition."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors / (shift_of(values, alpha) + alpha * values)) @ vectors.T


def greedy(arms, shares, total):
    """The greedy form of regret-minimisation rounding, draw by draw."""
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
    """Whole shares first, what is left of them by the greedy form."""
    rank = np.linalg.matrix_rank(arms[weights > 0])
    part = max(0.0, 1 - 4 * rank / total)
    first = np.floor(part * total * weights).astype(int)
    return first + greedy(arms, total * weights - first, total - first.sum())
