import jax
import jax.numpy as jnp
import numpy as np
import plain
import pytest
from designs import benchmark, differences, is_design, norms

from jaxbandits.kernels.design.directions import Pairs
from jaxbandits.kernels.design.xy import frank_wolfe, interior_point

solve = jax.jit(frank_wolfe.xy_frank_wolfe)
optimal = jax.jit(interior_point.xy_optimal)


def wolfe(arms, directions, active=None, *, tol=0.01, max_iterations=5000):
    """Every option is passed, so that one shape compiles once."""
    active = np.ones(len(directions), bool) if active is None else active
    arms, directions = jnp.asarray(arms), jnp.asarray(directions)
    return solve(arms, directions, jnp.array(active), tol=tol, max_iterations=max_iterations)


@jax.jit
def wolfe_pairs(arms, targets):
    pairs = Pairs(targets)
    return frank_wolfe.xy_frank_wolfe(arms, pairs, jnp.ones(pairs.indices[0].size, bool))


def random_problem(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(12, 4)), rng.normal(size=(10, 4))


def sound(found, arms, directions):
    """The value is that of the design returned, and the bound is below the optimum."""
    assert is_design(found.weights)
    np.testing.assert_allclose(found.value, norms(arms, found.weights, directions).max(), rtol=1e-9)
    exact = optimal(arms, directions, np.ones(len(directions), bool))
    assert 0.2 * float(found.value) < float(found.bound) <= float(exact.value)
    assert float(exact.bound) <= float(found.value) < 1.2 * float(exact.value)


def test_equals_its_twin_step_by_step():
    for seed in range(3):
        arms, directions = random_problem(seed)
        for tol in (0.1, 0.01):
            weights, steps = plain.frank_wolfe(arms, directions, tol=tol)
            found = wolfe(arms, directions, tol=tol)
            assert int(found.iterations) == steps
            assert bool(found.converged)
            np.testing.assert_allclose(found.weights, weights, atol=1e-9)
            sound(found, arms, directions)


@pytest.mark.parametrize("dim", [3, 5])
@pytest.mark.parametrize("angle", [0.1, pytest.param(0.01, marks=pytest.mark.slow)])
def test_symmetric_arms_reach_the_value_of_the_twin(dim, angle):
    """Rounding breaks ties, so designs may differ; the optimum 2 d is reached within 2 percent."""
    arms = benchmark(dim, angle)
    found = wolfe_pairs(arms, arms)
    weights, _ = plain.frank_wolfe(arms, differences(arms))
    twin = norms(arms, weights, differences(arms)).max()
    np.testing.assert_allclose(found.value, twin, rtol=2e-3)
    assert 2 * dim * (1 - 1e-9) <= float(found.value) <= 2 * dim * 1.02
    assert float(found.bound) <= 2 * dim * (1 + 1e-9)


@pytest.mark.parametrize(
    ("angle", "psi", "least", "most"), [(0.1, 110.86, 1.05, 1.1), (0.01, 10100.84, 1.01, 1.03)]
)
def test_the_stopping_rule_ends_above_the_optimum_of_the_benchmark(angle, psi, least, most):
    """A short step says little about the optimum: the value ends 1 to 10 percent above it."""
    arms = benchmark(5, angle)
    directions = (arms[0] - arms[1:]) / (2 * (1 - arms[1:, :1]))
    found = wolfe(arms, directions)
    assert least < float(found.value) / psi < most
    assert float(found.bound) <= psi
    weights, steps = plain.frank_wolfe(arms, directions)
    assert int(found.iterations) == steps
    np.testing.assert_allclose(found.weights, weights, atol=1e-9)


def test_pairs_equal_their_list():
    arms, targets = random_problem(4)
    one, other = wolfe_pairs(arms, targets[:5]), wolfe(arms, differences(targets[:5]))
    assert int(one.iterations) == int(other.iterations)
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-9)
    np.testing.assert_allclose(one.bound, other.bound, rtol=1e-6)


def test_only_active_directions_count():
    arms, directions = random_problem(5)
    directions[3] *= 1e3
    active = np.arange(10) % 2 == 0
    found = wolfe(arms, directions, active)
    weights, _ = plain.frank_wolfe(arms, directions[active])
    np.testing.assert_allclose(found.weights, weights, atol=1e-9)
    none = wolfe(arms, directions, np.zeros(10, bool))
    assert (float(none.value), float(none.bound), int(none.iterations)) == (0, 0, 0)
    assert bool(none.converged)
    np.testing.assert_allclose(none.weights, 1 / 12)


def test_cap_is_reported():
    found = wolfe(*random_problem(6), max_iterations=7)
    assert int(found.iterations) == 7
    assert not bool(found.converged)


def test_arms_in_a_subspace_measure_its_directions_alone():
    rng = np.random.default_rng(7)
    frame = np.linalg.qr(rng.normal(size=(4, 2)))[0]
    low, aims = rng.normal(size=(12, 2)), rng.normal(size=(10, 2))
    found = wolfe(low @ frame.T, aims @ frame.T)
    weights, steps = plain.frank_wolfe(low, aims)
    assert int(found.iterations) == steps
    np.testing.assert_allclose(found.weights, weights, atol=1e-9)
    lost = wolfe(low @ frame.T, rng.normal(size=(10, 4)))
    assert np.isinf(lost.value)
    assert not bool(lost.converged)


def test_bad_scaling_changes_nothing():
    arms, directions = random_problem(8)
    scale = np.logspace(0, -5, 4)
    one, other = wolfe(arms, directions), wolfe(arms * scale, directions * scale)
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-7)
    np.testing.assert_allclose(one.value, other.value, rtol=1e-6)


def test_full_rank_is_kept_where_no_direction_asks_for_it():
    """Weights that fall below the threshold are needed for the rank."""
    arms, direction = np.eye(3), np.array([[1.0, 0.2, 0.0]])
    found = wolfe(arms, direction, tol=1e-3)
    assert 0 < float(found.weights[2]) < 1e-5
    assert bool(found.converged)
    np.testing.assert_allclose(found.value, 1.44, rtol=1e-2)  # (sum of |y|)^2


def test_vmap_equals_a_python_loop():
    arms, directions = random_problem(9)
    masks = np.random.default_rng(9).random((4, 10)) < 0.5
    masks[0] = False
    together = jax.jit(jax.vmap(frank_wolfe.xy_frank_wolfe, (None, None, 0)))(
        jnp.array(arms), jnp.array(directions), jnp.array(masks)
    )
    for row, mask in enumerate(masks):
        alone = wolfe(arms, directions, mask)
        assert int(together.iterations[row]) == int(alone.iterations)
        np.testing.assert_allclose(together.weights[row], alone.weights, atol=1e-9)
