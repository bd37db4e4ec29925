"""Frank-Wolfe as published against a plain loop; certificates are checked with NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from designs import benchmark, is_design, norms

from jaxbandits.kernels.design import frank_wolfe

solve = jax.jit(frank_wolfe.g_optimal)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def g_optimal(arms, goal, active=None, **options):
    active = np.ones(len(arms), bool) if active is None else active
    return solve(jnp.asarray(arms), jnp.asarray(active), goal, **options)


def plain(arms, goal, limit=4999):
    """Weights and number of steps of the published loop, with a new inverse at each step."""
    weights = np.full(len(arms), 1 / len(arms))
    for step in range(1, limit + 1):
        variances = norms(arms, weights, arms)
        arm = int(np.argmax(variances > variances.max() * (1 - 1e-11)))  # the first of ties
        weights = weights + 2 / (step + 2) * (np.eye(len(arms))[arm] - weights)
        if abs(variances.max() - goal) < 0.01:
            break
    small = weights < 1e-5
    weights[np.argmax(weights)] += weights[small].sum()
    weights[small] = 0
    return weights, step


@pytest.mark.parametrize(("seed", "goal"), [(0, 3.0), (1, 3.0), (2, 2.5)], ids=str)
def test_steps_are_those_of_the_plain_loop(seed, goal):
    arms = np.random.default_rng(seed).normal(size=(8, 3))
    found, (weights, steps) = g_optimal(arms, goal), plain(arms, goal)
    assert int(found.iterations) == steps
    assert steps == 4999 or goal == 3.0
    np.testing.assert_allclose(found.weights, weights, atol=1e-9)
    assert is_design(found.weights)
    np.testing.assert_allclose(found.value, norms(arms, weights, arms).max(), rtol=1e-9)
    assert float(found.bound) == 3
    assert bool(found.converged) == (float(found.value) <= 3.01)


def test_the_first_step_leaves_an_optimal_start():
    found = g_optimal(np.eye(4), 4)
    assert int(found.iterations) == 1
    np.testing.assert_allclose(found.weights, [0.75, 1 / 12, 1 / 12, 1 / 12])
    np.testing.assert_allclose(found.value, 12.0)
    assert not bool(found.converged)


def test_an_unreachable_goal_takes_all_steps_and_ends_near_the_optimum():
    found = g_optimal(benchmark(3, 0.1), 3, np.array([1, 1, 0, 1], bool))
    assert int(found.iterations) == 4999
    assert float(found.bound) == 2
    assert 2 - 1e-9 <= float(found.value) <= 2.01
    assert bool(found.converged)
    assert float(found.weights[2]) == 0


def test_only_active_arms_get_weight_in_a_subspace():
    rng = np.random.default_rng(3)
    low, frame = rng.normal(size=(9, 2)), np.linalg.qr(rng.normal(size=(4, 2)))[0]
    active = np.arange(9) % 3 > 0
    found, alone = g_optimal(low @ frame.T, 2, active), g_optimal(low[active], 2)
    assert (np.asarray(found.weights)[~active] == 0).all()
    np.testing.assert_allclose(np.asarray(found.weights)[active], alone.weights, atol=1e-9)
    assert float(found.bound) == 2


def test_units_of_features_do_not_matter():
    arms = np.random.default_rng(4).normal(size=(8, 3))
    found, scaled = g_optimal(arms, 3), g_optimal(arms * [1.0, 1e-3, 1e-5], 3)
    assert int(found.iterations) == int(scaled.iterations)
    np.testing.assert_allclose(found.weights, scaled.weights, atol=1e-6)
