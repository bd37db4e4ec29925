"""The square root of the inverse against the inverse itself, refactorised from all draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxbandits.kernels.estimate import sqrt_least_squares


def observed(arms, pulled, rewards, v0):
    @jax.jit
    def play(arms, pulled, rewards):
        def step(root, draw):
            return sqrt_least_squares.observe(root, *draw), None

        return lax.scan(step, sqrt_least_squares.ridge(arms, v0), (pulled, rewards))[0]

    return play(jnp.asarray(arms), jnp.asarray(pulled), jnp.asarray(rewards))


@pytest.mark.parametrize(
    ("num_arms", "dim", "v0", "dtype", "rtol"),
    [
        (6, 5, 0.7, np.float64, 1e-11),
        (3, 7, 0.7, np.float64, 1e-11),
        (6, 5, 0.7, np.float32, 2e-3),
        (6, 5, 1e-8, np.float64, 1e-6),  # variances fall by ten orders of magnitude
    ],
)
def test_covariance_and_means(num_arms, dim, v0, dtype, rtol):
    rng = np.random.default_rng(0)
    arms = rng.normal(size=(num_arms, dim))
    pulled = rng.integers(0, num_arms, 1000)
    rewards = arms[pulled] @ rng.normal(size=dim) + rng.normal(size=1000)
    root = observed(*(x.astype(dtype) for x in (arms,)), pulled, rewards.astype(dtype), v0)
    matrix = v0 * np.eye(dim) + arms[pulled].T @ arms[pulled]
    covariance = arms @ np.linalg.solve(matrix, arms.T)
    means = arms @ np.linalg.solve(matrix, arms.T[:, pulled] @ rewards)
    np.testing.assert_allclose(root.means, means, rtol=rtol)
    size = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.abs(root.rows @ root.rows.T - covariance).max() <= rtol * size.max()


def test_a_sample_is_the_root_times_normal_numbers():
    """A sample is linear in them, so that its covariance `scale^2 R R^T` needs no draws."""
    root = observed(np.eye(3)[:2], [0, 0, 1], [1.0, 2.0, 4.0], 1.0)
    samples = [sqrt_least_squares.sampled(root, e, 2.0) - root.means for e in jnp.eye(3)]
    covariance = np.array(samples).T @ np.array(samples)
    np.testing.assert_allclose(root.means, [1.0, 2.0], rtol=1e-12)
    np.testing.assert_allclose(covariance, np.diag([4 / 3, 2.0]), rtol=1e-12, atol=1e-15)
