"""Gaussian widths and designs for them: against closed forms, quadrature and another minimiser."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from designs import benchmark
from params import params
from scipy import integrate, optimize, stats

from jaxbandits.kernels.design import gaussian_width
from jaxbandits.kernels.linalg import subspace


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def largest_of(n):
    """Mean of the largest of n standard normal numbers."""
    density = lambda x: x * n * stats.norm.pdf(x) * stats.norm.cdf(x) ** (n - 1)  # noqa: E731
    return integrate.quad(density, -10, 10)[0]


value, minimised = jax.jit(gaussian_width.value), jax.jit(gaussian_width.minimised)


@pytest.mark.parametrize("num", [3, 9])
def test_the_width_of_independent_arms_is_the_mean_of_a_maximum(num):
    arms, weights = np.eye(num), np.full(num, 1 / num)
    expected = num * largest_of(num) ** 2
    found = value(arms, weights, np.ones(num, bool))
    assert float(found) == pytest.approx(expected, rel=0.06)  # the kernel averages 2000 draws
    three = value(arms, weights, np.arange(num) < 3)
    assert float(three) == pytest.approx(num * largest_of(3) ** 2, rel=0.08)
    assert float(value(arms, weights, np.arange(num) < 1)) < 0.05


def sphere(seed, num, dim):
    arms = np.random.default_rng(seed).normal(size=(num, dim))
    return arms / np.linalg.norm(arms, axis=1, keepdims=True)


@pytest.mark.slow
def test_a_larger_set_is_wider():
    arms = sphere(2, 12, 4)
    weights = np.full(12, 1 / 12)
    values = [float(value(arms, weights, np.arange(12) < k)) for k in range(1, 13)]
    assert (np.diff(values) >= 0).all()
    assert values[1] < 0.7 * values[-1]


def plain_width(arms, weights, active, normals):
    """The width by NumPy: a mean over normal vectors, each used with its negative."""
    factor = np.linalg.cholesky((arms.T * weights) @ arms)
    scores = (arms @ np.linalg.solve(factor.T, normals.T))[active]
    return 0.5 * (scores.max(0) - scores.min(0)).mean()


def test_slopes_are_finite_differences_of_the_width():
    """Derivatives for one draw depend on the square root of the covariance; means do not."""
    rng = np.random.default_rng(3)
    arms, weights = rng.normal(size=(6, 3)), rng.dirichlet(np.ones(6))
    active, normals = np.arange(6) != 2, rng.normal(size=(400_000, 3))

    @jax.jit
    def slopes(arms, *others):
        space = subspace.of(arms, jnp.ones(6, bool))
        return gaussian_width._slopes(space, arms, *others)

    found = slopes(arms, weights, active, normals)
    step = 1e-4 * np.eye(6)
    expected = [
        (
            plain_width(arms, weights + one, active, normals)
            - plain_width(arms, weights - one, active, normals)
        )
        / 2e-4
        for one in step
    ]
    np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.01)
    assert np.ptp(expected) > 0.5


@pytest.mark.parametrize("case", params(["sphere", "soare, a few", "flat"], slow=["sphere"]))
def test_designs_are_near_the_optimum(case):
    if case == "sphere":
        arms = sphere(1, 12, 4)
        active = np.ones(12, bool)
    else:
        arms = benchmark(9, 0.1)
        active = np.arange(10) < 3 if case == "soare, a few" else np.ones(10, bool)
    if case == "flat":  # three dimensions, of which the arms span two
        arms = arms[[0, 1, 9]][:, :3] @ np.diag([1.0, 3.0, 1.0])
        active = np.ones(3, bool)
    found = jax.tree.map(np.asarray, minimised(arms, active))
    assert found.weights.sum() == pytest.approx(1.0)
    basis = np.linalg.svd(arms, full_matrices=False)[2][: np.linalg.matrix_rank(arms)].T
    normals = np.random.default_rng(0).normal(size=(4000, basis.shape[1]))

    def gamma(logits):
        weights = np.exp(logits - logits.max())
        return plain_width(arms @ basis, weights / weights.sum(), active, normals) ** 2

    best = optimize.minimize(gamma, np.zeros(len(arms)), options={"maxiter": 60}).fun
    assert gamma(np.log(found.weights)) < 1.04 * best
    if case != "flat":
        assert gamma(np.zeros(len(arms))) > 1.02 * best
    assert float(found.value) == pytest.approx(gamma(np.log(found.weights)), rel=0.08)
