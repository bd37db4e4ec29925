"""Public designs and roundings: the input they refuse, and their precision."""

import jax
import numpy as np
import pytest

import jaxbandits as jb

ARMS, WEIGHTS = np.eye(3), np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jb.rounding.regret(ARMS, [0.5, 0.5], 9), r"shape \(3,\), got \(2,\)"),
        (lambda: jb.rounding.regret(ARMS[0], WEIGHTS, 9), r"arms must be a table \[K, d\]"),
        (lambda: jb.rounding.regret(ARMS, 2 * WEIGHTS, 9), "weights must be non-negative with sum"),
        (lambda: jb.rounding.regret(ARMS, WEIGHTS, -1), "total must be .*got -1"),
        (
            lambda: jb.rounding.regret(ARMS, WEIGHTS, 9, form="random"),
            "form must be one of 'greedy', 'swap', got 'random'",
        ),
        (lambda: jb.design.wynn(ARMS[0]), r"arms must be a table \[K, d\]"),
        (lambda: jb.design.fedorov(ARMS, active=[True]), r"active must have shape \(3,\)"),
        (lambda: jb.design.wolfe_atwood(ARMS, tol=0.0), "tol must be .*got 0.0"),
        (lambda: jb.design.g_optimal_fw(ARMS, max_iterations=0), "max_iterations must be .*got 0"),
        (lambda: jb.design.greedy_allocation(ARMS, 0), "total must be .*got 0"),
        (lambda: jb.design.greedy_allocation(ARMS, 9, v0=-1.0), "v0 must be .*got -1.0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("form", ["greedy", "swap"])
def test_regret_rounding_of_independent_arms_is_near_the_shares(form):
    counts = jb.rounding.regret(ARMS, WEIGHTS, 1000, form=form)
    assert counts.dtype == np.int64
    assert counts.sum() == 1000
    assert np.abs(counts - 1000 * WEIGHTS).max() <= 6  # 4 d draws are chosen one by one
    assert not jax.config.jax_enable_x64


STEPS = ("d_optimal", "fedorov", "g_optimal_fw", "wolfe_atwood", "wynn")


@pytest.mark.parametrize("name", STEPS)
def test_designs_are_in_double_precision_and_of_one_type(name):
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [0.2, 0.1]])
    found = getattr(jb.design, name)(arms, active=[True, False, True], tol=1e-6)
    assert isinstance(found, jb.design.Design)
    assert found.weights.dtype == np.float64
    assert found.weights[1] == 0
    assert bool(found.converged) == (float(found.value) <= 2 * (1 + 1e-6))
    np.testing.assert_allclose(found.weights, [0.5, 0, 0.5], atol=1e-3)


def test_a_greedy_allocation_is_a_design_of_whole_draws():
    arms = np.random.default_rng(0).normal(size=(6, 3))
    found = jb.design.greedy_allocation(arms, 37, active=np.arange(6) != 2)
    counts = 37 * np.asarray(found.weights)
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    np.testing.assert_allclose(counts.sum(), 37)
    assert counts[2] == 0
    matrix = (arms.T * found.weights) @ arms
    widths = np.einsum("ki,ij,kj->k", arms, np.linalg.inv(matrix), arms)
    np.testing.assert_allclose(found.value, np.delete(widths, 2).max())
    assert (int(found.iterations), float(found.bound)) == (37, 3.0)
    few = jb.design.greedy_allocation(arms, 2)
    assert np.isinf(few.value)
    assert not bool(few.converged)
