"""Covariance functions and the posterior of a process against scikit-learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from jaxbandits.kernels.estimate import least_squares
from jaxbandits.kernels.estimate.gp_kernels import COVARIANCES

LENGTH = 0.7
THEIRS = {
    "linear": kernels.DotProduct(sigma_0=0.0),
    "exponential": kernels.Matern(LENGTH, nu=0.5),
    "squared_exponential": kernels.RBF(np.sqrt(LENGTH / 2)),
    "matern32": kernels.Matern(LENGTH, nu=1.5),
    "matern52": kernels.Matern(LENGTH, nu=2.5),
}


def arms_of(num_arms=7, dim=3):
    return np.random.default_rng(0).normal(size=(num_arms, dim))


@pytest.mark.parametrize("name", COVARIANCES)
def test_covariances_are_those_of_scikit_learn(name):
    arms = arms_of()
    found = COVARIANCES[name](jnp.asarray(arms), LENGTH)
    np.testing.assert_allclose(found, THEIRS[name](arms), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", [name for name in COVARIANCES if name != "linear"])
def test_arms_close_to_each_other_keep_their_distance(name):
    """A distance of 2^-30 so far from zero would be lost in a difference of products."""
    near = np.array([[1e3, 0.0], [1e3, 0.0], [1e3, 2.0**-30]])
    far = COVARIANCES[name](jnp.asarray(near), 2.0**-30)
    one = COVARIANCES[name](jnp.array([[0.0], [0.0], [1.0]]), 1.0)
    if name == "squared_exponential":  # in which the distance counts squared
        far = COVARIANCES[name](jnp.asarray(near), 2.0**-60)
    np.testing.assert_allclose(far, one, rtol=1e-12)
    np.testing.assert_array_equal(np.diagonal(far), 1.0)


def observed(stats, arms, pulled, rewards):
    def step(stats, draw):
        return least_squares.observe(stats, arms, *draw, arm_space=True), None

    return jax.jit(lambda *draws: lax.scan(step, stats, draws)[0])(pulled, rewards)


@pytest.mark.parametrize(("name", "length"), [("matern32", 0.7), ("squared_exponential", 50.0)])
def test_the_posterior_of_a_process_is_that_of_scikit_learn(name, length):
    """The second covariance has nearly rank 1."""
    arms, rng, noise_var = arms_of(), np.random.default_rng(1), 0.3
    pulled, rewards = rng.integers(0, 7, 60), rng.normal(size=60)
    scaled = {"matern32": {"length_scale": length}, "squared_exponential": {}}[name]
    theirs = THEIRS[name].clone_with_theta(np.log([length if scaled else np.sqrt(length / 2)]))
    prior = 4.0 * COVARIANCES[name](jnp.asarray(arms), length)
    stats = least_squares.gaussian_process(prior, noise_var)
    stats = observed(stats, jnp.asarray(arms), jnp.asarray(pulled), jnp.asarray(rewards))
    process = GaussianProcessRegressor(
        kernels.ConstantKernel(4.0, "fixed") * theirs, alpha=noise_var, optimizer=None
    ).fit(arms[pulled], rewards)
    means, covariance = process.predict(arms, return_cov=True)
    np.testing.assert_allclose(stats.means, means, rtol=1e-8)
    np.testing.assert_allclose(stats.core * noise_var, covariance, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(stats.variances, np.diagonal(stats.core), rtol=1e-10)


@pytest.mark.optimised
def test_a_linear_process_is_ridge_regression():
    """With ridge `sigma^2 / eta^2`."""
    arms, rng, noise_var, eta = jnp.asarray(arms_of()), np.random.default_rng(2), 0.3, 50.0
    draws = arms, jnp.asarray(rng.integers(0, 7, 40)), jnp.asarray(rng.normal(size=40))
    process = least_squares.gaussian_process(eta**2 * COVARIANCES["linear"](arms, 1.0), noise_var)
    features = least_squares.ridge(arms, noise_var / eta**2, arm_space=True)
    ours, theirs = observed(process, *draws), observed(features, *draws)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
