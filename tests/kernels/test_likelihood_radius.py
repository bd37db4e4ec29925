"""Levels and radii from likelihoods against their definitions; an inequality on paths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special

from jaxbandits.kernels.confidence import likelihood_radius
from jaxbandits.kernels.estimate import online_logistic


def test_the_level_of_a_likelihood_ratio_is_a_minimum_over_shares():
    with jax.enable_x64(True):
        for dim, climb in ((2, 0.0), (2, 1.9), (3, 50.0), (5, 1e6)):
            shares = np.exp(-np.linspace(0, 20, 400_001))
            least = (dim * np.log(1 / shares) + climb * shares).min() + np.log(20)
            np.testing.assert_allclose(
                likelihood_radius.likelihood_ratio(0.05, dim, climb), least, rtol=1e-9
            )


def test_the_radius_of_the_online_estimate_is_its_formula():
    with jax.enable_x64(True):
        found = likelihood_radius.online_logistic(0.05, 3.0, 0.5, 2.0, 4.0)
        np.testing.assert_allclose(found, np.sqrt(0.5 * 4 + 6 * (np.log(20) + 4)))
        # The cost of the steps has no lower bound if theta is longer than S.
        assert likelihood_radius.online_logistic(0.05, 3.0, 0.5, 2.0, -4.0) == 0.0


def loss(z, reward):
    return np.logaddexp(0, z) - reward * z


def path(rng, eta_share):
    """The largest excess of the distance to theta over the proof's bound, on a path of rewards."""
    dim, norm, ridge = 2, 3.0, rng.uniform(0.1, 2)
    theta = rng.normal(size=dim)
    theta *= norm / np.linalg.norm(theta)
    arms = rng.normal(size=(60, dim))
    arms /= np.linalg.norm(arms, axis=1)[:, None]
    # Rewards that theta makes unlikely are the worst.
    rewards = np.where(rng.random(60) < 0.8, arms @ theta < 0, rng.random(60))
    eta = eta_share * (1 + norm)
    now, weight, allowed = online_logistic.begin(dim, ridge, float), ridge * np.eye(dim), 0.0
    worst, step = -np.inf, jax.jit(online_logistic.observe)
    for x, y in zip(arms, rewards.astype(float), strict=True):
        after = step(now, jnp.array(x), jnp.array(y), norm=jnp.array(norm), eta=jnp.array(eta))
        move = np.asarray(after.theta - now.theta)
        least = loss(x @ after.theta, y) + move @ weight @ move / (2 * eta)
        allowed += 2 * eta * (loss(x @ theta, y) - least)
        slope = special.expit(x @ after.theta) * special.expit(-x @ after.theta)
        weight = weight + slope * np.outer(x, x)
        off = np.asarray(after.theta) - theta
        worst = max(worst, off @ weight @ off - ridge * theta @ theta - allowed)
        now = after
    np.testing.assert_allclose(now.inverse, np.linalg.inv(weight), rtol=1e-9)
    assert bool(now.converged)
    return worst


def test_the_inequality_behind_the_online_radius_holds_on_every_path():
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        assert max(path(rng, 1.0) for _ in range(10)) < 1e-9
        assert max(path(rng, 0.1) for _ in range(10)) > 0.1


@pytest.mark.parametrize(
    ("start", "variance", "most"),
    [(0.5, 0.7, 2.0), (-8.0, 40.0, 3.0), (9.0, 1e4, 5.0), (4, 1e-6, 5)],
)
def test_predictors_move_to_the_minimum(start, variance, most):
    def value(z, reward):
        return float(loss(z, reward) + (z - start) ** 2 / (2 * variance))

    with jax.enable_x64(True):
        rewards = jnp.array([0.3, 0.0, 1.0])
        start, variance, most = (jnp.asarray(x, float) for x in (start, variance, most))
        found = jax.jit(online_logistic.moved)(start, variance, most, rewards)
        assert bool(found.converged)
        for z, cost, y in zip(found.predictor, found.cost, rewards, strict=True):
            least = optimize.minimize_scalar(
                value, args=(float(y),), bounds=(-most, most), method="bounded"
            )
            np.testing.assert_allclose(z, least.x, atol=1e-4)
            np.testing.assert_allclose(cost, value(float(z), y), rtol=1e-12)
            assert cost <= least.fun + 1e-12


def test_an_arm_of_zeros_changes_nothing():
    with jax.enable_x64(True):
        now = online_logistic.begin(2, 1.0, float)
        one = jnp.ones(())
        after = online_logistic.observe(now, jnp.zeros(2), one, norm=2 * one, eta=3 * one)
        np.testing.assert_array_equal(after.theta, now.theta)
        np.testing.assert_array_equal(after.inverse, now.inverse)
        assert float(after.growth) == 0.0
