import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from designs import benchmark, information, is_design, norms

from jaxbandits.kernels.design import d_optimal as designs

d_optimal = jax.jit(designs.d_optimal)


def d_opt(arms, active=None, *, tol=0.01, max_iterations=20_000):
    arms = jnp.asarray(arms)
    active = jnp.ones(arms.shape[0], bool) if active is None else jnp.array(active, bool)
    return d_optimal(arms, active, tol=tol, max_iterations=max_iterations)


def test_basis_arms_get_equal_weights():
    found = d_opt(np.eye(5))
    np.testing.assert_allclose(found.weights, 0.2)
    np.testing.assert_allclose(found.value, 5.0)
    assert (int(found.iterations), bool(found.converged)) == (0, True)


def test_quadratic_regression_has_its_known_design():
    u = np.linspace(-1, 1, 21)
    found = d_opt(np.stack([u**0, u, u**2], axis=1), tol=1e-5)
    assert bool(found.converged)
    np.testing.assert_allclose(found.weights[jnp.array([0, 10, 20])], 1 / 3, atol=1e-3)
    np.testing.assert_allclose(found.value, 3.0, rtol=1e-5)


def test_a_regular_polygon_gets_equal_weights():
    angle = 2 * np.pi * np.arange(7) / 7
    found = d_opt(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    np.testing.assert_allclose(found.weights, 1 / 7)
    np.testing.assert_allclose(found.value, 2.0)


def test_one_dimension_takes_the_longest_arm():
    found = d_opt(np.array([[0.5], [-2.0], [1.0]]), tol=1e-8)
    np.testing.assert_allclose(found.weights, [0, 1, 0], atol=1e-6)


def test_the_optimum_is_found_where_frank_wolfe_on_the_maximum_stalls():
    found = d_opt(np.array([[2.0, 1], [0, -1], [-1, -2]]), tol=1e-6)
    np.testing.assert_allclose(found.weights, [0.5, 0, 0.5], atol=1e-5)
    np.testing.assert_allclose(found.value, 2.0, rtol=1e-6)


def test_the_disturbing_arm_of_the_benchmark_gets_almost_no_weight():
    arms = benchmark(5, 0.1)
    assert norms(arms, np.full(6, 1 / 6), arms).max() == pytest.approx(6.0)
    found = d_opt(arms, tol=1e-4)
    assert bool(found.converged)
    assert float(found.weights[5]) < 0.02
    np.testing.assert_allclose(found.weights[1:5], 0.2, atol=1e-3)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_the_certificate_holds(dtype):
    arms = np.random.default_rng(0).normal(size=(30, 5))
    found = d_opt(jnp.array(arms, dtype))
    widths = norms(arms, found.weights, arms)
    assert is_design(found.weights)
    assert found.value.dtype == dtype
    assert bool(found.converged)
    assert float(found.bound) == 5
    np.testing.assert_allclose(widths.max(), found.value, rtol=1e-4)
    assert 5 - 1e-9 <= widths.max() <= 5 * 1.0101
    np.testing.assert_allclose(np.asarray(found.weights, float) @ widths, 5.0, rtol=1e-6)


def test_equals_a_conic_solver():
    arms = np.random.default_rng(0).normal(size=(30, 5))
    weights = cvxpy.Variable(30, nonneg=True)
    logdet = cvxpy.log_det(arms.T @ cvxpy.diag(weights) @ arms)
    cvxpy.Problem(cvxpy.Maximize(logdet), [cvxpy.sum(weights) == 1]).solve(cvxpy.CLARABEL)
    found = d_opt(arms, tol=1e-6)
    ours = np.linalg.slogdet(information(arms, found.weights))[1]
    assert ours == pytest.approx(logdet.value, abs=1e-5)
    np.testing.assert_allclose(found.weights, weights.value, atol=2e-3)


def test_determinant_never_falls():
    arms = np.random.default_rng(1).normal(size=(30, 5)) * np.linspace(1, 9, 30)[:, None]
    path = [d_opt(arms, tol=0.0, max_iterations=steps) for steps in range(25)]
    logdets = [np.linalg.slogdet(information(arms, found.weights))[1] for found in path]
    assert (np.diff(logdets) > -1e-12).all()
    assert logdets[-1] > logdets[0] + 0.1
    assert not bool(path[5].converged)
    assert int(path[5].iterations) == 5


def test_only_active_arms_get_weight():
    arms = np.random.default_rng(2).normal(size=(30, 5))
    active = np.arange(30) % 3 == 0
    found, alone = d_opt(arms, active, tol=1e-3), d_opt(arms[active], tol=1e-3)
    assert (np.asarray(found.weights)[~active] == 0).all()
    np.testing.assert_allclose(np.asarray(found.weights)[active], alone.weights, rtol=1e-6)
    np.testing.assert_allclose(found.value, alone.value, rtol=1e-9)


def test_arms_in_a_subspace_have_the_design_of_the_subspace():
    rng = np.random.default_rng(3)
    low, frame = rng.normal(size=(30, 3)), np.linalg.qr(rng.normal(size=(5, 3)))[0]
    found, plain = d_opt(low @ frame.T, tol=1e-3), d_opt(low, tol=1e-3)
    assert float(found.bound) == 3
    assert float(found.value) <= 3.003
    # In other coordinates the steps differ, but the optimum is the same.
    logdets = [np.linalg.slogdet(information(low, x.weights))[1] for x in (found, plain)]
    np.testing.assert_allclose(*logdets, atol=3e-3)


@pytest.mark.parametrize(("dtype", "decades"), [(jnp.float32, 1.5), (jnp.float64, 5.0)])
def test_bad_scaling_changes_nothing(dtype, decades):
    # The problem is affinely invariant, so units of the features must not matter.
    arms = np.random.default_rng(4).normal(size=(30, 5))
    scaled = arms * np.logspace(0, -decades, 5)
    found, plain = d_opt(jnp.array(scaled, dtype)), d_opt(arms)
    assert bool(found.converged)
    assert float(found.bound) == 5
    np.testing.assert_allclose(found.weights, plain.weights, atol=1e-4)


def test_vmap_equals_a_python_loop():
    arms = jnp.array(np.random.default_rng(5).normal(size=(30, 5)))
    masks = jnp.array(np.random.default_rng(6).random((8, 30)) < 0.5)
    together = jax.jit(jax.vmap(designs.d_optimal, in_axes=(None, 0)))(arms, masks)
    assert len(set(np.asarray(together.iterations))) > 1
    for row, mask in enumerate(masks):
        alone = d_opt(arms, mask)
        assert int(alone.iterations) == int(together.iterations[row])
        np.testing.assert_allclose(together.weights[row], alone.weights, atol=1e-10)
