"""Warm-started maximum likelihood of logistic rewards, round by round, by damped Newton.

The first d - 1 rounds are not fitted, because GLM-TSL needs no estimate there; their theta is 0.
"""

import math
from typing import NamedTuple

import numpy as np

from ..build import POINTER, REAL, WHOLE, address, jitted, library

ARGUMENTS = (POINTER, *[REAL] * 2, *[WHOLE] * 2, *[POINTER] * 4)
ITERATIONS = 30
# Relative to the terms of f: smaller differences are rounding errors.
SLACK = 4.0 * np.finfo(float).eps


class Record(NamedTuple):
    """The arms drawn and their rewards."""

    arms: np.ndarray  # int [R, T]
    rewards: np.ndarray  # float [R, T], 0 or 1


class Fits(NamedTuple):
    """The estimates."""

    theta: np.ndarray  # float [R, T, d]
    missed: np.ndarray  # int [R] fits that took too many steps


def _blank(record, dim):
    return Fits(np.zeros((*record.arms.shape, dim)), np.zeros(len(record.arms), np.int64))


class Likelihood(NamedTuple):
    """`f(theta) = sum_k [n_k b(z_k) - s_k z_k] + ridge/2 ||theta||^2` at a point."""

    value: float
    slack: float
    mean: np.ndarray  # float [K] of a reward, times the draws
    variance: np.ndarray  # float [K] the same


def likelihood(arms, counts, sums, theta, ridge):
    """The likelihood at theta."""
    z = arms @ theta
    small = np.exp(-np.abs(z))
    share = 1.0 / (1.0 + small)
    partition = counts * (np.maximum(z, 0.0) + np.log1p(small))
    fitted, penalty = sums * z, 0.5 * ridge * (theta @ theta)
    return Likelihood(
        partition.sum() - fitted.sum() + penalty,
        SLACK * (partition.sum() + np.abs(fitted).sum() + penalty),
        counts * share * np.where(z > 0, 1.0, small),
        counts * small * share**2,
    )


def curvature(arms, variance, ridge):
    """The Hessian, from the variances at theta."""
    hessian = (arms.T * variance) @ arms
    hessian.flat[:: len(hessian) + 1] += ridge
    return hessian


def fit(arms, counts, sums, theta, ridge, tol):
    """Newton steps until a decrement g^T H^-1 g / 2 is at most tol; that step is taken too.

    Returns theta, the likelihood there, and whether the number of steps exceeded the limit.
    """
    now = likelihood(arms, counts, sums, theta, ridge)
    for _ in range(ITERATIONS):
        gradient = (now.mean - sums) @ arms + ridge * theta
        move = np.linalg.solve(curvature(arms, now.variance, ridge), gradient)
        slope, size = gradient @ move, 1.0
        while True:
            after = likelihood(arms, counts, sums, theta - size * move, ridge)
            low = now.value - 1e-4 * size * slope + now.slack
            if after.value <= low or size <= 2.0**-10:
                break
            size /= 2.0
        theta, now = theta - size * move, after
        if 0.5 * slope <= tol:
            return theta, now, 0
    return theta, now, 1


def in_numpy(arms, record, *, ridge, tol):
    """A loop of NumPy calls over rounds and replications."""
    fits = _blank(record, arms.shape[1])
    for r, (drawn, rewards) in enumerate(zip(*record, strict=True)):
        counts, sums, theta = np.zeros(len(arms)), np.zeros(len(arms)), np.zeros(arms.shape[1])
        for t, (arm, reward) in enumerate(zip(drawn, rewards, strict=True)):
            counts[arm] += 1
            sums[arm] += reward
            if t + 1 < arms.shape[1]:
                continue
            theta, _, missed = fit(arms, counts, sums, theta, ridge, tol)
            fits.theta[r, t] = theta
            fits.missed[r] += missed
    return fits


def in_c(arms, record, *, ridge, tol):
    """Scalar C, compiled for these sizes."""
    fits, (num_arms, dim) = _blank(record, arms.shape[1]), arms.shape
    shape = record.arms.shape
    library("logistic_mle", ARGUMENTS, K=num_arms, D=dim).play(
        address(arms), ridge, tol, *shape, *map(address, (*record, *fits))
    )
    return fits


def in_numba(arms, record, *, ridge, tol):
    """The loops of the C program in Python, compiled by Numba."""
    fits = _blank(record, arms.shape[1])
    _replications(arms, ridge, tol, *record, *fits)
    return fits


@jitted
def looped_likelihood(columns, counts, sums, theta, ridge, mean, variance):
    """The value and its slack; fills in mean and variance."""
    value = size = norm = 0.0
    z = mean  # reuses the array, which is free until the means are known
    z[:] = 0.0
    for i in range(len(theta)):
        norm += theta[i] * theta[i]
        for k in range(len(z)):
            z[k] += columns[i, k] * theta[i]
    for k in range(len(z)):
        if counts[k] == 0:
            mean[k] = variance[k] = 0.0
            continue
        small, high = math.exp(-abs(z[k])), max(z[k], 0.0)
        share, fitted = 1.0 / (1.0 + small), sums[k] * z[k]
        partition = counts[k] * (high + math.log1p(small))
        mean[k] = counts[k] * share * (1.0 if high > 0 else small)
        variance[k] = counts[k] * small * share * share
        value += partition - fitted
        size += partition + abs(fitted)
    penalty = 0.5 * ridge * norm
    return value + penalty, SLACK * (size + penalty)


@jitted
def looped_factor(arms, variance, ridge, factor):
    """The Cholesky factor U of the Hessian, U^T U; its lower triangle is arbitrary."""
    num_arms, dim = arms.shape
    factor[:] = 0.0
    for k in range(num_arms):
        if variance[k] == 0:
            continue
        for i in range(dim):
            weight = variance[k] * arms[k, i]
            for j in range(dim):
                factor[i, j] += weight * arms[k, j]
    for i in range(dim):
        factor[i, i] += ridge
    for m in range(dim):
        scale = 1.0 / math.sqrt(factor[m, m])
        for j in range(m, dim):
            factor[m, j] *= scale
        for i in range(m + 1, dim):
            for j in range(i, dim):
                factor[i, j] -= factor[m, i] * factor[m, j]


@jitted
def _solve_transposed(factor, x):
    for i in range(len(x)):
        x[i] /= factor[i, i]
        for j in range(i + 1, len(x)):
            x[j] -= factor[i, j] * x[i]


@jitted
def looped_solve(factor, x):
    """Solves `U x = x` in place."""
    for i in range(len(x) - 1, -1, -1):
        for j in range(i + 1, len(x)):
            x[i] -= factor[i, j] * x[j]
        x[i] /= factor[i, i]


@jitted
def looped_fit(arms, columns, counts, sums, theta, ridge, tol, mean, variance, factor):
    """`fit` in place: writes theta, mean and variance; returns whether it failed."""
    num_arms, dim = arms.shape
    move, candidate = np.empty(dim), np.empty(dim)
    value, slack = looped_likelihood(columns, counts, sums, theta, ridge, mean, variance)
    for _ in range(ITERATIONS):
        for i in range(dim):
            move[i] = ridge * theta[i]
        for k in range(num_arms):
            for i in range(dim):
                move[i] += arms[k, i] * (mean[k] - sums[k])
        looped_factor(arms, variance, ridge, factor)
        _solve_transposed(factor, move)
        slope, size = (move**2).sum(), 1.0
        looped_solve(factor, move)
        while True:
            for i in range(dim):
                candidate[i] = theta[i] - size * move[i]
            after, left = looped_likelihood(columns, counts, sums, candidate, ridge, mean, variance)
            if after <= value - 1e-4 * size * slope + slack or size <= 2.0**-10:
                break
            size /= 2.0
        theta[:], value, slack = candidate, after, left
        if 0.5 * slope <= tol:
            return 0
    return 1


@jitted
def _replications(arms, ridge, tol, drawn, rewards, thetas, missed):
    (num_arms, dim), columns = arms.shape, np.ascontiguousarray(arms.T)
    mean, variance, factor = np.empty(num_arms), np.empty(num_arms), np.empty((dim, dim))
    for r in range(len(drawn)):
        counts, sums, theta = np.zeros(num_arms), np.zeros(num_arms), np.zeros(dim)
        for t in range(drawn.shape[1]):
            counts[drawn[r, t]] += 1
            sums[drawn[r, t]] += rewards[r, t]
            if t + 1 < dim:
                continue
            missed[r] += looped_fit(
                arms, columns, counts, sums, theta, ridge, tol, mean, variance, factor
            )
            thetas[r, t] = theta
