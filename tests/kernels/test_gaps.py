"""Gap indices against loops over all pairs of arms, and averages against a ledger."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.kernels.confidence import gaps
from jaxbandits.kernels.estimate import least_squares, sample_means

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def by_loops(bound, num_arms, n, inside):
    """`D_j`, and the largest bound of any arm not inside, for every j."""
    every = range(num_arms)
    worst = [sorted((bound(i, j) for i in every if i != j), reverse=True)[n - 1] for j in every]
    highest = [max(bound(i, j) for i in every if not inside[i]) for j in every]
    return worst, highest


def agree(bounds, bound, num_arms, n):
    inside = np.arange(num_arms) % 3 == 0
    worst, highest = by_loops(bound, num_arms, n, inside)
    np.testing.assert_allclose(bounds.nth(n), worst, rtol=1e-12)
    np.testing.assert_allclose(bounds.highest(jnp.asarray(~inside)), highest, rtol=1e-12)
    for j in (0, num_arms - 1):
        column = [bound(i, j) for i in range(num_arms)]
        np.testing.assert_allclose(bounds.column(jnp.asarray(j)), column, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("n", [1, 3, 5])
@pytest.mark.parametrize("num_arms", [6, 20], ids=["few", "many"])
def test_both_kinds(num_arms, n):
    arms, means, wide = RNG.normal(size=(num_arms, 4)), RNG.normal(size=num_arms), 0.7
    gram = arms @ arms.T
    norms = np.sqrt(np.diag(gram))

    def paired(i, j):
        return means[i] - means[j] + wide * np.linalg.norm(arms[i] - arms[j])

    def individual(i, j):
        return means[i] + wide * norms[i] - (means[j] - wide * norms[j])

    given = jnp.asarray(means), jnp.asarray(norms**2)
    agree(gaps.paired(*given, jnp.asarray(gram), wide), paired, num_arms, n)
    agree(gaps.individual(*given, wide), individual, num_arms, n)
    for j in range(num_arms):
        stats = least_squares.Ledger(jnp.asarray(gram), *given, jnp.zeros(()))
        column = gaps.column(stats, jnp.asarray(gram[j]), jnp.asarray(j), wide)
        expected = [paired(i, j) for i in range(num_arms)]  # 0 for i = j, but for rounding
        np.testing.assert_allclose(column, expected, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("num_arms", [7, 40])
def test_equal_entries_count_apart(num_arms):
    table = RNG.integers(0, 3, (num_arms, 5)).astype(float)
    for n in (1, 2, num_arms // 2, num_arms):
        expected = np.sort(table, axis=0)[::-1][n - 1]
        np.testing.assert_array_equal(gaps.nth_largest(jnp.asarray(table), n), expected)


def test_what_is_infinite_stays():
    """Arms that were never drawn have infinite intervals, and no NaN comes of them."""
    bounds = gaps.individual(jnp.zeros(3), jnp.asarray([1.0, jnp.inf, jnp.inf]), 1.0)
    assert not jnp.isnan(bounds.nth(1)).any()
    assert not jnp.isnan(bounds.highest(jnp.asarray([True, True, False]))).any()


def test_averages_are_least_squares_on_orthogonal_arms():
    """A ridge of 1e-9 hardly shows."""
    arms, plain = jnp.eye(3), sample_means.nothing(3)
    fitted = least_squares.ridge(arms, 1e-9, arm_space=True)
    assert (plain.means == 0.0).all()
    assert jnp.isinf(plain.variances).all()
    for arm, reward in zip([0, 1, 2, 1, 1, 0], RNG.normal(size=6), strict=True):
        plain = sample_means.observe(plain, jnp.asarray(arm), reward)
        fitted = least_squares.observe(fitted, arms, jnp.asarray(arm), reward, arm_space=True)
    np.testing.assert_array_equal(plain.counts, [2, 3, 1])
    np.testing.assert_allclose(plain.means, fitted.means, rtol=1e-6)
    np.testing.assert_allclose(plain.variances, fitted.variances, rtol=1e-6)


def test_the_highest_of_the_others():
    values = np.array([0.3, 2.0, -1.0, 2.0, 1.0])
    expected = [max(np.delete(values, k)) for k in range(5)]
    np.testing.assert_array_equal(gaps.highest_of_others(jnp.asarray(values)), expected)
    np.testing.assert_array_equal(gaps.highest_of_others(jnp.array([1.0, 3.0])), [3.0, 1.0])
