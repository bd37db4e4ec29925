"""Public designs and roundings: the input they refuse, and their precision."""

from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from params import params

import jaxbandits as jb
from jaxbandits import rounding

ARMS, WEIGHTS = np.eye(3), np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jb.rounding.regret(ARMS, [0.5, 0.5], 9), r"shape \(3,\), got \(2,\)"),
        (lambda: jb.rounding.regret(ARMS[0], WEIGHTS, 9), r"arms must be a table \[K, d\]"),
        (lambda: jb.rounding.regret(ARMS, 2 * WEIGHTS, 9), "weights must be non-negative with sum"),
        (lambda: jb.rounding.regret(ARMS, WEIGHTS, -1), "total must be .*got -1"),
        *(
            (lambda rule=rule: rule(WEIGHTS, 2**49 + 1), f"total must be at most {2**49} in this")
            for rule in (
                jb.rounding.efficient,
                jb.rounding.largest_remainder,
                partial(jb.rounding.regret, ARMS),
            )
        ),
        (lambda: jb.rounding.efficient(WEIGHTS, 2**70), f"total must be at most {2**49}"),
        (
            lambda: jb.rounding.regret(ARMS, WEIGHTS, 9, form="random"),
            "form must be one of 'greedy', 'swap', got 'random'",
        ),
        (lambda: jb.design.wynn(ARMS[0]), r"arms must be a table \[K, d\]"),
        (lambda: jb.design.fedorov(ARMS, active=[True]), r"active must have shape \(3,\)"),
        (lambda: jb.design.d_optimal(ARMS, active=["a", "b", "c"]), "active must be real .* text"),
        (
            lambda: jb.design.xy_optimal(ARMS, ARMS, active=[0.0, 0.5, np.nan]),
            r"active must be bool, or 0 and 1, got \[0.5, nan\]",
        ),
        (
            lambda: jb.design.wynn(ARMS, active=np.ma.masked_equal([True, True, False], False)),
            "active must have all entries",
        ),
        (lambda: jb.design.wolfe_atwood(ARMS, tol=0.0), "tol must be .*got 0.0"),
        (lambda: jb.design.g_optimal_fw(ARMS, max_iterations=0), "max_iterations must be .*got 0"),
        (lambda: jb.design.greedy_allocation(ARMS, 0), "total must be .*got 0"),
        (lambda: jb.design.greedy_allocation(ARMS, 9, v0=-1.0), "v0 must be .*got -1.0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


ROUNDINGS = {
    "efficient": jb.rounding.efficient,
    "largest_remainder": jb.rounding.largest_remainder,
    "regret": lambda weights, total: jb.rounding.regret(np.eye(len(weights)), weights, total),
    "swap": lambda weights, total: jb.rounding.regret(
        np.eye(len(weights)), weights, total, form="swap"
    ),
}


@pytest.mark.parametrize("name", params(ROUNDINGS, slow=["regret", "swap"]))
def test_counts_sum_to_the_total_where_weights_sum_to_nearly_1(name):
    single = np.random.default_rng(1).dirichlet(np.ones(6)).astype(np.float32)
    assert single.astype(float).sum() != 1.0
    for weights, total in (([0.5, 0.5 + 9e-7], 10**8), (single, 10**10), (jnp.array(single), 7)):
        assert ROUNDINGS[name](weights, total).sum() == total


@pytest.mark.parametrize("name", params(ROUNDINGS, slow=["regret", "swap"]))
def test_counts_sum_to_the_largest_totals(name):
    # Halves of an odd total are the first that rounding takes for whole numbers.
    for weights in ([1.0], [0.5, 0.5], [0.25, 0.25, 0.5], [0.1] * 10):
        for total in (2**49, 2**49 - 1, 2**48 + 1):
            assert ROUNDINGS[name](weights, total).sum() == total
            assert ROUNDINGS[name](weights, np.int64(total)).sum() == total


def test_a_total_may_be_an_array_of_32_bits():
    np.testing.assert_array_equal(jb.rounding.efficient(WEIGHTS, jnp.asarray(10)), [5, 3, 2])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weights_with_sum_1_are_rounded_as_they_are(dtype):
    weights = np.array([0.5, 0.3, 0.2]) if dtype == np.float64 else np.array([0.75, 0.25], dtype)
    kept, total = rounding._check(weights, 9)
    assert (kept.dtype, kept.tobytes(), int(total)) == (dtype, weights.tobytes(), 9)


AS_FLOATS = {
    "a mask without an entry": lambda table: np.ma.masked_array(table, mask=False),
    "numbers of Python": lambda table: np.asarray(table, object),
    "fractions": lambda table: np.vectorize(Fraction, otypes=[object])(table),
}


@pytest.mark.parametrize("kind", AS_FLOATS)
def test_tables_that_instances_take_are_taken_by_all_kernels(kind):
    as_kind = AS_FLOATS[kind]
    arms, weights, counts = ARMS + 0.5, np.array([0.5, 0.25, 0.25]), np.array([9.0, 5.0, 4.0])
    instance = jb.instances.linear(as_kind(arms), as_kind(weights))
    np.testing.assert_array_equal(instance.arms, arms)
    calls = {
        "d_optimal": lambda to: jb.design.d_optimal(to(arms)).weights,
        "active": lambda to: jb.design.d_optimal(arms, active=to(np.array([1, 0, 1]))).weights,
        "xy_optimal": lambda to: jb.design.xy_optimal(to(arms), to(arms)).weights,
        "log_det": lambda to: jb.design.log_det(to(arms), to(weights)),
        "ratios": lambda to: jb.design.ratios(to(arms)),
        "efficient": lambda to: jb.rounding.efficient(to(weights), 9),
        "regret": lambda to: jb.rounding.regret(to(arms), to(weights), 9),
        "fit_glm": lambda to: jb.fit_glm(to(arms), to(counts), to(0.5 * counts)).theta,
    }
    for name, call in calls.items():
        np.testing.assert_array_equal(call(as_kind), call(np.asarray), err_msg=name)


@pytest.mark.parametrize("value", ["a", None, 1j, 10**400], ids=["text", "None", "complex", "huge"])
def test_objects_that_are_no_numbers_are_refused_as_by_instances(value):
    table = np.array([[value, 1.0], [0.0, 1.0]], object)
    for call in (
        lambda: jb.instances.linear(table, [1.0, 0.0]),
        lambda: jb.design.d_optimal(table),
        lambda: jb.design.d_optimal(table.tolist()),
        lambda: jb.rounding.efficient(table[0], 9),
        lambda: jb.fit_glm(np.eye(2), [9, 9], table[0]),
    ):
        with pytest.raises(ValueError, match=r"^(arms|weights|sums) must be "):
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
