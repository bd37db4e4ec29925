"""Kernels that are called on known numbers are compiled with options that take less time."""

import jax
import numpy as np
import pytest
from programs import as_for_users

import jaxbandits as jb
from jaxbandits.system import kept_calls

ARMS = np.random.default_rng(5).normal(size=(7, 3))


@pytest.fixture
def asked(monkeypatch):
    """How often the options were asked for, with nothing compiled yet."""
    calls, whole = [], kept_calls.quick
    monkeypatch.setattr(kept_calls, "quick", lambda: calls.append(True) or whole())
    kept_calls._program.cache_clear()
    yield calls
    kept_calls._program.cache_clear()


def test_they_are_used_once_for_a_kernel_and_only_outside_of_traces(asked):
    with as_for_users():
        first = jb.design.d_optimal(ARMS, tol=1e-6)
        assert len(asked) == 1
        jb.design.d_optimal(2.0 * ARMS, tol=1e-6)
        traced = jax.jit(lambda arms: jb.design.d_optimal(arms, tol=1e-3).value)(ARMS)
        assert len(asked) == 1
        sums = np.arange(7) % 2 * 3.0
        fit = jb.fit_glm(ARMS, np.full(7, 4.0), sums, family="logistic", ridge=0.1)
        assert len(asked) == 2
    assert traced == pytest.approx(3.0, rel=2e-3)
    assert first.value == pytest.approx(3.0, rel=1e-5)
    means = 1.0 / (1.0 + np.exp(-ARMS @ fit.theta))
    np.testing.assert_allclose(ARMS.T @ (sums - 4.0 * means), 0.1 * fit.theta, atol=1e-8)


def test_fewer_optimisations_of_the_user_come_first(asked):
    assert jax.config.values["jax_disable_most_optimizations"]  # as the tests are compiled
    assert jb.design.d_optimal(ARMS, tol=1e-6).converged
    assert not asked


def test_a_kernel_is_called_on_known_numbers_while_another_function_is_traced():
    solved = kept_calls.kept(lambda x: 2.0 * x, quickly=True)

    @jax.jit
    def outer(y):
        return y + solved(np.arange(3.0))

    with as_for_users():
        np.testing.assert_array_equal(outer(1.0), [1.0, 3.0, 5.0])
