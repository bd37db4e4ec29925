"""Gap indices against loops over all pairs of arms; sample means against least squares."""

import functools

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
    """For every j: `D_j`, the n-th largest bound over i, and the largest over i not inside."""
    every = range(num_arms)
    worst = [sorted((bound(i, j) for i in every if i != j), reverse=True)[n - 1] for j in every]
    highest = [max(bound(i, j) for i in every if not inside[i]) for j in every]
    return worst, highest


@functools.partial(jax.jit, static_argnames="n")
def both_kinds(means, variances, gram, wide, outside, n):
    """All results of paired and of individual bounds; then columns from single rows of G."""

    def of(bounds):
        columns = jnp.stack([bounds.column(jnp.asarray(j)) for j in (0, means.size - 1)])
        return bounds.nth(n), bounds.highest(outside), columns

    stats = least_squares.Ledger(gram, means, variances, jnp.zeros(()))
    rows = jax.vmap(lambda row, j: gaps.column(stats, row, j, wide))
    return (
        of(gaps.paired(means, variances, gram, wide)),
        of(gaps.individual(means, variances, wide)),
        rows(gram, jnp.arange(means.size)),
    )


def agree(found, bound, num_arms, n):
    inside = np.arange(num_arms) % 3 == 0
    worst, highest = by_loops(bound, num_arms, n, inside)
    np.testing.assert_allclose(found[0], worst, rtol=1e-12)
    np.testing.assert_allclose(found[1], highest, rtol=1e-12)
    for j, column in zip((0, num_arms - 1), found[2], strict=True):
        expected = [bound(i, j) for i in range(num_arms)]
        np.testing.assert_allclose(column, expected, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("n", [1, 3, 5])
@pytest.mark.parametrize("num_arms", [6, 20], ids=["few", "many"])
def test_paired_and_individual_bounds_equal_loops(num_arms, n):
    arms, means, wide = RNG.normal(size=(num_arms, 4)), RNG.normal(size=num_arms), 0.7
    gram = arms @ arms.T
    norms = np.sqrt(np.diag(gram))

    def paired(i, j):
        return means[i] - means[j] + wide * np.linalg.norm(arms[i] - arms[j])

    def individual(i, j):
        return means[i] + wide * norms[i] - (means[j] - wide * norms[j])

    outside = np.arange(num_arms) % 3 != 0
    pairs, single, columns = both_kinds(means, norms**2, gram, wide, outside, n)
    agree(pairs, paired, num_arms, n)
    agree(single, individual, num_arms, n)
    for j, column in enumerate(np.asarray(columns)):
        expected = [paired(i, j) for i in range(num_arms)]  # 0 for i = j, up to rounding
        np.testing.assert_allclose(column, expected, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("num_arms", [7, 40])
def test_nth_largest_counts_equal_entries_separately(num_arms):
    table = RNG.integers(0, 3, (num_arms, 5)).astype(float)
    ranks = (1, 2, num_arms // 2, num_arms)
    found = jax.jit(lambda table: [gaps.nth_largest(table, n) for n in ranks])(table)
    for n, largest in zip(ranks, found, strict=True):
        np.testing.assert_array_equal(largest, np.sort(table, axis=0)[::-1][n - 1])


def test_infinite_bounds_give_no_nan():
    """Arms that were never drawn have infinite intervals."""

    @jax.jit
    def both(variances, among):
        bounds = gaps.individual(jnp.zeros(3), variances, 1.0)
        return bounds.nth(1), bounds.highest(among)

    found = both(np.array([1.0, np.inf, np.inf]), np.array([True, True, False]))
    assert not np.isnan(found).any()


def test_sample_means_are_least_squares_on_orthogonal_arms():
    """The ridge of 1e-9 is negligible."""

    @jax.jit
    def begin():
        fitted = least_squares.ridge(jnp.eye(3), 1e-9, arm_space=True)
        return sample_means.nothing(3), fitted

    @jax.jit
    def observe(plain, fitted, arm, reward):
        fitted = least_squares.observe(fitted, jnp.eye(3), arm, reward, arm_space=True)
        return sample_means.observe(plain, arm, reward), fitted

    plain, fitted = begin()
    assert (np.asarray(plain.means) == 0.0).all()
    assert np.isinf(plain.variances).all()
    for arm, reward in zip([0, 1, 2, 1, 1, 0], RNG.normal(size=6), strict=True):
        plain, fitted = observe(plain, fitted, arm, reward)
    np.testing.assert_array_equal(plain.counts, [2, 3, 1])
    np.testing.assert_allclose(plain.means, fitted.means, rtol=1e-6)
    np.testing.assert_allclose(plain.variances, fitted.variances, rtol=1e-6)


def test_highest_of_others_is_the_maximum_without_each_entry():
    values = np.array([0.3, 2.0, -1.0, 2.0, 1.0])
    expected = [max(np.delete(values, k)) for k in range(5)]
    highest = jax.jit(gaps.highest_of_others)
    np.testing.assert_array_equal(highest(values), expected)
    np.testing.assert_array_equal(highest(np.array([1.0, 3.0])), [3.0, 1.0])
