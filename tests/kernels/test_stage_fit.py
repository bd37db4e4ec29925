from functools import partial

import jax
import numpy as np
import pytest

from jaxbandits.kernels.estimate import stage_fit


@partial(jax.jit, static_argnames=("subspace", "family"))
def fit(arms, counts, sums, alive, subspace, family="gaussian"):
    options = {"family": family, "ridge": 1e-6, "subspace": subspace}
    return stage_fit.fit(arms, counts, sums, alive, **options)


CASES = {
    "all": np.array([3, 1, 2, 4, 1, 1, 2, 5]),
    "just enough": np.array([3, 0, 2, 4, 0, 0, 2, 5]),
    "too few": np.array([3, 0, 2, 0, 0, 0, 0, 5]),
    "one": np.array([0, 0, 0, 0, 0, 0, 0, 5]),
}


@pytest.mark.parametrize("subspace", stage_fit.SUBSPACES)
@pytest.mark.parametrize("name", CASES)
def test_least_squares_has_the_least_norm(name, subspace):
    rng = np.random.default_rng(0)
    arms = rng.normal(size=(8, 5)) * np.logspace(0, -3, 5)
    counts, means = CASES[name], rng.normal(size=8)
    alive = np.arange(8) != 5
    found = fit(arms, counts, counts * means, alive, subspace)
    root = np.sqrt(counts)
    theta = np.linalg.lstsq(arms * root[:, None], means * root, rcond=1e-12)[0]
    np.testing.assert_allclose(found.predictors, arms @ theta, rtol=1e-7, atol=1e-9)
    assert bool(found.valid) == (np.linalg.matrix_rank(arms[counts > 0]) == 5)
    assert bool(found.converged)


@pytest.mark.parametrize("subspace", stage_fit.SUBSPACES)
def test_eliminated_arms_need_not_be_spanned(subspace):
    arms = np.eye(4)
    found = fit(
        arms, np.array([2, 1, 0, 0]), np.array([3.0, 1.0, 0, 0]), arms[0] + arms[1] > 0, subspace
    )
    assert bool(found.valid)
    np.testing.assert_allclose(found.predictors, [1.5, 1.0, 0.0, 0.0])


def test_maximum_likelihood_of_independent_arms_is_their_success_rate():
    arms = np.random.default_rng(1).normal(size=(4, 4))
    counts, sums = np.array([10, 20, 10, 5]), np.array([3.0, 11.0, 9.0, 1.0])
    found = fit(arms, counts, sums, np.ones(4, bool), "projection", "logistic")
    np.testing.assert_allclose(1 / (1 + np.exp(-found.predictors)), sums / counts, atol=1e-5)
    assert bool(found.converged)
