"""Properties of designs in plain NumPy, for tests of the kernels."""

import numpy as np


def information(arms, weights):
    """The information matrix A(w)."""
    return np.einsum("k,ki,kj->ij", np.asarray(weights, float), arms, arms)


def norms(arms, weights, vectors):
    """`||v||^2` in the pseudo-inverse of A(w), by NumPy."""
    inverse = np.linalg.pinv(information(arms, weights), rcond=1e-11)
    return np.einsum("ni,ij,nj->n", vectors, inverse, vectors)


def is_design(weights):
    """Whether these are nonnegative weights with sum 1."""
    weights = np.asarray(weights, float)
    return (weights >= 0).all() and abs(weights.sum() - 1) < 1e-6


def benchmark(dim, angle):
    """The unit vectors, and one more arm at `angle` to the first."""
    extra = np.zeros(dim)
    extra[:2] = np.cos(angle), np.sin(angle)
    return np.vstack([np.eye(dim), extra])


def differences(targets):
    """`z_a - z_b` for a < b."""
    first, second = np.triu_indices(len(targets), 1)
    return targets[first] - targets[second]
