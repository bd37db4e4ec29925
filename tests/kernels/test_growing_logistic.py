"""Logistic regression on a growing table of observations, against NumPy and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special

from jaxbandits.kernels.estimate import growing_logistic

NUMBERS = "ridge", "tol", "most"
refit = jax.jit(growing_logistic.refit, static_argnames=NUMBERS)
rooted, noted = jax.jit(growing_logistic.rooted), jax.jit(growing_logistic.noted)
learnt, best_step = jax.jit(growing_logistic.learnt), jax.jit(growing_logistic._best_step)
without_data = jax.jit(growing_logistic.without_data, static_argnums=(0, 1, 3))


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def data(seed, number, dim, scale=1.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    rows = (scale * rng.normal(size=(number, dim))).astype(dtype)
    chances = special.expit(rows @ rng.normal(size=dim))
    return rows, (rng.uniform(size=number) < chances).astype(float)


def model_of(rows, rewards, ridge, capacity=None):
    number, dim = rows.shape
    model = without_data(capacity or growing_logistic.capacity_of(number), dim, ridge, rows.dtype)
    # Rows beyond the filled ones must not matter, so they hold large numbers.
    table = np.full(model.rows.shape, 1e6, rows.dtype)
    table[:number] = rows
    padded = np.full(model.rewards.shape, 7.0)
    padded[:number] = rewards
    return model._replace(
        rows=jnp.asarray(table), rewards=jnp.asarray(padded), number=jnp.asarray(number)
    )


def objective(theta, rows, rewards, ridge):
    outputs = rows.astype(float) @ theta
    return (np.logaddexp(0, outputs) - rewards * outputs).sum() + ridge / 2 * theta @ theta


def gradient(theta, rows, rewards, ridge):
    outputs = rows.astype(float) @ theta
    return rows.T.astype(float) @ (special.expit(outputs) - rewards) + ridge * theta


CASES = {
    "one block": (0, 90, 4, 1.0, 1.0, np.float64),
    "blocks": (1, 700, 6, 1.0, 0.5, np.float64),
    "whole blocks": (2, 512, 3, 1.0, 0.1, np.float64),
    "single": (3, 700, 6, 1.0, 1.0, np.float32),
    "separable": (4, 5, 8, 1.0, 1e-2, np.float64),
    "steep": (5, 400, 5, 30.0, 1e-3, np.float64),
}


@pytest.mark.parametrize("name", CASES)
def test_refit_finds_the_maximum(name):
    seed, number, dim, scale, ridge, dtype = CASES[name]
    rows, rewards = data(seed, number, dim, scale, dtype)
    model = model_of(rows, rewards, ridge)
    fit = refit(model, ridge=ridge, tol=1e-9, most=60)
    assert bool(fit.converged)
    args = rows, rewards, ridge
    found = optimize.minimize(
        objective, np.zeros(dim), args, "BFGS", gradient, options={"gtol": 1e-9}
    )
    theta = np.asarray(fit.theta)
    assert objective(theta, *args) <= found.fun + 1e-9 * abs(found.fun)
    np.testing.assert_allclose(gradient(theta, *args), 0.0, atol=1e-4 * scale)
    means = special.expit(rows @ theta)
    hessian = (rows.T * (means * (1 - means))) @ rows + ridge * np.eye(dim)
    inverse = np.linalg.inv(hessian)  # the fit's is from before its last, short step
    np.testing.assert_allclose(fit.inverse, inverse, atol=1e-3 * np.abs(inverse).max())


def test_too_few_steps_are_reported():
    rows, rewards = data(5, 400, 5, 30.0)
    fit = refit(model_of(rows, rewards, 1e-3), ridge=1e-3, tol=1e-9, most=2)
    assert not bool(fit.converged)


def test_a_hessian_that_rounding_makes_indefinite_is_reported():
    """In single precision a ridge of 1e-3 is lost beside sums of 1e10."""
    rows, rewards = data(4, 5, 8, 1e5, np.float32)
    model = model_of(rows, rewards, 1e-3)
    fit = refit(model, ridge=1e-3, tol=1e-3, most=5)
    assert np.abs(gradient(np.asarray(fit.theta), rows, rewards, 1e-3)).max() > 1e3
    assert not bool(fit.converged)
    assert np.isfinite(fit.theta).all()
    np.testing.assert_array_equal(fit.inverse, model.fit.inverse)
    exact = refit(model_of(rows.astype(float), rewards, 1e-3), ridge=1e-3, tol=1e-3, most=60)
    assert bool(exact.converged)


@pytest.mark.parametrize("noise", [1.0, 1e-6], ids=["plain", "nearly parallel"])
def test_updated_roots_equal_those_of_all_rows(noise):
    rng = np.random.default_rng(7)
    base = rng.normal(size=5)
    rows = base + noise * rng.normal(size=(300, 5))
    fit = rooted(model_of(rows[:40], np.zeros(40), 0.5), 0.5)
    root = fit.root

    def grow(root, x):
        return growing_logistic.grown(root, x), None

    root, _ = jax.jit(lambda root: jax.lax.scan(grow, root, jnp.asarray(rows[40:])))(root)
    gram = rows.T @ rows + 0.5 * np.eye(5)
    matrix, inverse = np.asarray(root.matrix), np.asarray(root.inverse)
    np.testing.assert_allclose(matrix @ matrix.T, gram, rtol=1e-9, atol=1e-9 * np.abs(gram).max())
    np.testing.assert_allclose(matrix @ inverse, np.eye(5), atol=1e-7)


def test_one_newton_step_after_an_observation_is_nearly_a_refit():
    rows, rewards = data(8, 400, 4)
    before = model_of(rows[:-1], rewards[:-1], 1.0, capacity=512)
    before = before._replace(fit=refit(before, ridge=1.0, tol=1e-12, most=30))
    model = noted(before, rows[-1], rewards[-1])
    assert int(model.number) == 400
    stepped = learnt(model.fit, rows[-1], rewards[-1])
    exact = refit(model, ridge=1.0, tol=1e-12, most=30)
    moved = np.linalg.norm(exact.theta - before.fit.theta)
    assert moved > 1e-4
    assert np.linalg.norm(exact.theta - stepped.theta) < 0.05 * moved
    np.testing.assert_allclose(stepped.inverse, exact.inverse, rtol=0.05, atol=1e-4)


def test_a_perturbed_theta_has_the_covariance_of_one_newton_step():
    rows, rewards = data(9, 200, 3)
    model = model_of(rows, rewards, 1.0)
    model = model._replace(fit=rooted(model, 1.0))
    fit = refit(model, ridge=1.0, tol=1e-9, most=30)
    normals = np.random.default_rng(0).normal(size=(20_000, 3))
    thetas = np.asarray(
        jax.vmap(lambda z: growing_logistic.sampled(fit, z, 0.5))(jnp.asarray(normals))
    )
    inverse = np.asarray(fit.inverse)
    wanted = 0.25 * inverse @ (rows.T @ rows + np.eye(3)) @ inverse
    np.testing.assert_allclose(np.cov(thetas.T), wanted, atol=0.05 * np.abs(wanted).max())
    np.testing.assert_allclose(thetas.mean(0), fit.theta, atol=5 * np.sqrt(wanted.max() / 20_000))


def test_a_full_table_keeps_no_further_observations():
    model = without_data(growing_logistic.capacity_of(3), 2, 1.0, jnp.float32)
    assert model.rows.shape == (growing_logistic.BLOCK, 2)
    model = model._replace(number=jnp.asarray(growing_logistic.BLOCK))
    after = noted(model, np.ones(2), 1.0)
    assert int(after.number) == growing_logistic.BLOCK + 1
    assert not np.asarray(after.rows).any()
    assert bool(refit(after, ridge=1.0, tol=1e-9, most=3).converged)


def test_an_observation_beyond_the_table_still_moves_theta():
    """The twin of the algorithm tests the rest of `followed`."""
    rows, rewards = data(3, growing_logistic.BLOCK + 3, 3)
    model = model_of(rows[: growing_logistic.BLOCK - 1], rewards[: growing_logistic.BLOCK - 1], 1.0)
    model = model._replace(fit=rooted(model, 1.0))
    follow = jax.jit(
        lambda model, x, reward, age: growing_logistic.followed(
            model, x, reward, age, ridge=1.0, refresh=1, tol=1e-9, most=30
        )
    )
    for row, reward in zip(
        rows[growing_logistic.BLOCK - 1 :], rewards[growing_logistic.BLOCK - 1 :], strict=True
    ):
        x, before = row, model.fit
        model = noted(model, x, reward)
        fit, missed = follow(model, x, reward, np.asarray(model.number) - 10)
        stepped = learnt(before, x, reward)
        fitted = int(model.number) <= growing_logistic.BLOCK
        assert np.allclose(fit.theta, stepped.theta, rtol=1e-9) == (not fitted)
        assert not bool(missed)
        model = model._replace(fit=fit)


def test_best_step_minimises_the_objective_among_the_step_sizes():
    rows, rewards = data(5, 40, 3)
    model = model_of(rows, rewards, 2.0)
    rng, taken = np.random.default_rng(6), set()
    for size in (0.1, 1.0, 10.0, 100.0):
        for ridge in (0.1, 10.0, 1000.0):
            theta, direction = rng.normal(size=(2, 3))
            found = best_step(model, theta, size * direction, ridge)
            values = [
                objective(theta - s * size * direction, rows, rewards, ridge)
                for s in growing_logistic.STEPS
            ]
            assert float(found) == growing_logistic.STEPS[int(np.argmin(values))]
            taken.add(float(found))
    assert len(taken) >= 3
