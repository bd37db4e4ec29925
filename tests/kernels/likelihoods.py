"""Data for maximum likelihood, and the package's fit, for tests of the kernels."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special, stats

from jaxbandits.kernels.estimate import irls

K, D = 12, 3


@functools.partial(jax.jit, static_argnames="family")
def solve(arms, counts, sums, init, ridge, tol, max_iterations, *, family):
    return irls.fit(
        arms, counts, sums, family=family, ridge=ridge, init=init, tol=tol,
        max_iterations=max_iterations,
    )  # fmt: skip


def padded(table):
    """Append arms of zeros that are never drawn, so that all tests have one shape."""
    table = np.asarray(table, float)
    return np.concatenate([table, np.zeros((K - len(table), *table.shape[1:]))])


def fit(arms, counts, sums, family, *, ridge=0.0, tol=1e-18, init=None, cap=30, dtype=jnp.float64):
    init = np.zeros(D) if init is None else init
    numbers = (*map(padded, (arms, counts, sums)), init, ridge)
    return solve(*(np.asarray(x, dtype) for x in numbers), tol, cap, family=family)


def data(family, seed=0, most=60):
    """Counts and reward sums with so many draws of every arm that the data are not separable."""
    rng = np.random.default_rng(seed)
    arms = rng.uniform(-1, 1, (K, D))
    counts = rng.integers(20, most, K)
    z = arms @ rng.normal(size=D)
    sums = {
        "gaussian": lambda: counts * z + np.sqrt(counts) * rng.normal(size=K),
        "logistic": lambda: rng.binomial(counts, special.expit(z)),
        "poisson": lambda: rng.poisson(counts * np.exp(z)),
        "probit": lambda: rng.binomial(counts, stats.norm.cdf(z)),
    }[family]()
    return arms, counts, np.asarray(sums, float)
