"""Multinomial counts and random subsets against the exact law."""

import collections
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxbandits.compilers.lanewise import lanewise
from jaxbandits.kernels import sampling
from jaxbandits.kernels.sampling import multinomial

CHANCE = 1e-6  # that a test fails although the law is right


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


NUMBER, MOST = 10_000, 7
compiled = jax.jit(jax.vmap(multinomial, (0, None, None)))


def draws(total, weights, seed=0):
    """Counts `[NUMBER, K]`, one row per key; all calls share a program."""
    keys = jax.random.split(jax.random.key(seed), NUMBER)
    padded = np.pad(weights, (0, MOST - len(weights)))
    counts = np.asarray(compiled(keys, jnp.asarray(total), jnp.asarray(padded)))
    assert (counts[:, len(weights) :] == 0).all()
    return counts[:, : len(weights)]


def test_small_totals_have_the_exact_law():
    total, weights = 4, np.array([0.5, 0.0, 0.3, 0.2])
    counts = draws(total, weights)
    outcomes = [c for c in itertools.product(range(5), repeat=4) if sum(c) == total and not c[1]]
    expected = stats.multinomial.pmf(outcomes, total, weights) * NUMBER
    found = [(counts == outcome).all(1).sum() for outcome in outcomes]
    assert stats.chisquare(found, expected).pvalue > CHANCE
    uneven = stats.multinomial.pmf(outcomes, total, [0.47, 0.0, 0.31, 0.22]) * NUMBER
    assert stats.chisquare(found, uneven).pvalue < CHANCE


def test_single_precision_has_exact_totals():
    weights = jnp.asarray([0.25, 0.0, 0.75], jnp.float32)
    with jax.enable_x64(False):
        draw = jax.jit(lambda total: multinomial(jax.random.key(1), total, weights))
        for total in (0, 5, 2**24):
            counts = draw(total)
            assert counts.dtype == np.int32
            assert (int(counts.sum()), int(counts[1])) == (total, 0)
        assert int(draw(2**30).sum()) == 2**24


@pytest.mark.parametrize("total", [0, 1, 700, 30_000_000])
def test_counts_of_any_total_are_multinomial(total):
    weights = np.array([1e-6, 0.4, 0.0, 0.25, 0.35 - 2e-6, 1e-6, 0.0])
    counts = draws(total, weights, seed=1)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts.sum(1), total)
    assert (counts[:, weights == 0] == 0).all()
    assert (counts >= 0).all()
    # The quantile of a count, at random within the probability of that count, is uniform.
    uniform = np.random.default_rng(2).random(len(counts))
    for count, weight in zip(counts.T, weights, strict=True):
        law = stats.binom(total, weight)
        quantile = law.cdf(count - 1) + uniform * law.pmf(count)
        assert stats.kstest(quantile, "uniform").pvalue > CHANCE
    if total > 1000:
        covariance = total * (np.diag(weights) - np.outer(weights, weights))
        deviation = np.sqrt(np.diag(covariance))
        common = deviation > 0
        scaled = (counts - total * weights)[:, common] / deviation[common]
        right = covariance[np.ix_(common, common)] / np.outer(deviation[common], deviation[common])
        np.testing.assert_allclose(scaled.T @ scaled / len(counts), right, atol=6 / NUMBER**0.5)


def test_one_weight_takes_all():
    for k in range(3):
        np.testing.assert_array_equal(draws(50, np.eye(3)[k])[:2], 50 * np.eye(3)[[k, k]])


def test_lanewise_draws_equal_vmap():
    """Also in a lane whose weights are all zero, as they are before it has begun."""
    rng = np.random.default_rng(3)
    weights = rng.dirichlet(np.ones(5), size=8).T
    weights[:, 1], weights[:, 2] = np.eye(5)[4], 0.0
    totals, keys = (
        jnp.array([1000, 7, 9, 0, 40, 10**7, 3, 10**5]),
        jax.random.split(jax.random.key(4), 8),
    )
    arguments = keys, totals, jnp.array(weights)
    found = jax.jit(lambda unit, *given: lanewise(multinomial, 8, unit)(*given))(1.0, *arguments)
    expected = jax.vmap(multinomial, (0, 0, -1), -1)(*arguments)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found.sum(0), totals.at[2].set(0))


@pytest.mark.parametrize(("total", "num"), [(5, 3), (4, 4), (3, 1)])
def test_distinct_numbers_are_a_random_sequence(total, num):
    keys = jax.random.split(jax.random.key(7), 24_000)
    draw = functools.partial(sampling.distinct, total=total, num=num)
    rows = np.asarray(jax.jit(jax.vmap(draw))(keys))
    every = list(itertools.permutations(range(total), num))
    found = collections.Counter(map(tuple, rows.tolist()))
    assert set(found) <= set(every)
    assert stats.chisquare([found[one] for one in every]).pvalue > 1e-4


def test_numbers_from_a_huge_range_are_distinct():
    rows = np.asarray(sampling.distinct(jax.random.key(1), 2**40, 64))
    assert len(set(rows.tolist())) == 64
    assert rows.max() > 2**39


def test_an_index_is_any_of_the_numbers():
    keys = jax.random.split(jax.random.key(3), 24_000)
    found = np.bincount(jax.vmap(lambda key: sampling.index(key, 6))(keys))
    assert len(found) == 6
    assert stats.chisquare(found).pvalue > 1e-4
