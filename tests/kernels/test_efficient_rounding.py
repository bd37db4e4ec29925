import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxbandits.kernels.allocate import efficient_rounding

K = 8
efficient, largest_remainder = (
    jax.jit(efficient_rounding.efficient),
    jax.jit(efficient_rounding.largest_remainder),
)
few = settings(max_examples=60, deadline=None, derandomize=True)
# Shares are small integers, so that the exact weights are simple fractions.
designs = st.lists(st.integers(0, 16), min_size=K, max_size=K).filter(any)


def exact(shares):
    return [Fraction(share, sum(shares)) for share in shares]


def apportion(weights, total):
    """Efficient rounding in rational arithmetic; removing a draw reverses adding one."""
    support = [k for k in range(len(weights)) if weights[k] > 0]
    counts = [0] * len(weights)
    for k in support:
        counts[k] = max(0, math.ceil((total - Fraction(len(support), 2)) * weights[k]))
    while sum(counts) > total:
        taken = max(
            (k for k in support if counts[k] > 0),
            key=lambda k: (Fraction(counts[k] - 1) / weights[k], k),
        )
        counts[taken] -= 1
    while sum(counts) < total:
        counts[min(support, key=lambda k: (Fraction(counts[k]) / weights[k], k))] += 1
    return counts


def rounded(rule, shares, total):
    with jax.enable_x64(True):
        weights = jnp.array([float(w) for w in exact(shares)])
        return np.asarray(rule(weights, jnp.asarray(total)))


@few
@given(designs, st.integers(0, 10_000))
def test_efficient_rounding_meets_the_total_and_the_efficiency_condition(shares, total):
    counts, weights = rounded(efficient, shares, total), exact(shares)
    support = [k for k in range(K) if weights[k] > 0]
    assert counts.sum() == total
    assert counts.min() >= 0
    assert all(counts[k] == 0 for k in range(K) if k not in support)
    if total >= len(support):
        assert all(counts[k] >= 1 for k in support)
        share = 1 - Fraction(len(support), total)
        assert all(int(counts[k]) >= share * total * weights[k] for k in support)
        highest = max(Fraction(int(counts[k]) - 1) / weights[k] for k in support)
        lowest = min(Fraction(int(counts[k])) / weights[k] for k in support)
        assert highest <= lowest * (1 + Fraction(1, 10**12))  # rounding errors at ties


@few
@given(
    st.sampled_from([(1, 1, 2, 4, 8, 0, 0, 0), (3, 0, 5, 8, 0, 0, 0, 0), (2,) * K]),
    st.integers(8, 3000),
)
def test_efficient_rounding_equals_rational_arithmetic(shares, total):
    # The sum of shares is a power of two: weights are exact, and ties are broken alike.
    np.testing.assert_array_equal(
        rounded(efficient, shares, total), apportion(exact(shares), total)
    )


@few
@given(designs, st.integers(1, 2000))
def test_efficient_rounding_is_monotone_in_the_total(shares, total):
    total = max(total, sum(share > 0 for share in shares))
    before, after = rounded(efficient, shares, total), rounded(efficient, shares, total + 1)
    assert (after >= before).all()


def test_efficient_rounding_guarantee_on_random_designs():
    rng = np.random.default_rng(0)
    for _ in range(40):
        weights = rng.dirichlet(np.full(K, 0.7))
        arms, total = rng.normal(size=(K, 3)), int(rng.integers(2 * K, 40 * K))
        counts = np.asarray(efficient(jnp.array(weights), jnp.asarray(total)))
        design = np.einsum("k,ki,kj->ij", weights, arms, arms)
        drawn = np.einsum("k,ki,kj->ij", counts, arms, arms)
        # The worst direction has N times the largest generalised eigenvalue.
        inflation = total * np.linalg.eigvals(np.linalg.solve(drawn, design)).real.max()
        assert inflation <= 1 + 2 * K / total


@pytest.mark.parametrize("rule", [efficient, largest_remainder])
@pytest.mark.parametrize("total", [8, 12, 16, 8_004])
def test_weights_that_should_be_equal_are_rounded_as_if_they_were(rule, total):
    rng = np.random.default_rng(total)
    for _ in range(20):
        order, error = jnp.asarray(rng.permutation(8)), 2e-13 * rng.uniform(-1, 1, 8)
        equal = rule(jnp.full(8, 0.125), jnp.asarray(total), order)
        nearly = rule(jnp.asarray(0.125 * (1.0 + error)), jnp.asarray(total), order)
        np.testing.assert_array_equal(nearly, equal)


@pytest.mark.parametrize("rule", [efficient, largest_remainder])
def test_extreme_weights_and_totals_are_rounded_to_the_total(rule):
    weights = jnp.array([1.0 - 2e-12, 1e-12, 1e-12, 0, 0, 0, 0, 0])
    for total in (3, 10_000_000, 10**13):
        counts = np.asarray(rule(weights, jnp.asarray(total)))
        assert counts.sum() == total
        assert (counts[3:] == 0).all()


@pytest.mark.parametrize(
    "rule", [efficient_rounding.efficient, efficient_rounding.largest_remainder]
)
@pytest.mark.parametrize("total", [20, 1_000_000])
def test_single_precision_still_meets_the_total(rule, total):
    with jax.enable_x64(False):
        weights = np.random.default_rng(1).dirichlet(np.ones(K)).astype(np.float32)
        counts = np.asarray(jax.jit(rule)(jnp.array(weights), jnp.asarray(total)))
    assert counts.dtype == np.int32
    assert counts.sum() == total
    np.testing.assert_allclose(counts, total * weights, rtol=1e-5, atol=K)


def test_vmap_equals_a_python_loop():
    rng = np.random.default_rng(2)
    weights, totals = rng.dirichlet(np.full(K, 0.3), 16), rng.integers(8, 500, 16)
    together = jax.jit(jax.vmap(efficient_rounding.efficient))(
        jnp.array(weights), jnp.array(totals)
    )
    alone = [efficient(jnp.array(w), jnp.asarray(n)) for w, n in zip(weights, totals, strict=True)]
    np.testing.assert_array_equal(together, np.array(alone))


@few
@given(designs, st.integers(0, 10_000))
def test_largest_remainder_is_within_one_of_the_share(shares, total):
    counts, weights = rounded(largest_remainder, shares, total), exact(shares)
    assert counts.sum() == total
    errors = [int(n) - total * w for n, w in zip(counts, weights, strict=True)]
    assert max(map(abs, errors)) <= 1
    raised = [w * total % 1 for n, w, e in zip(counts, weights, errors, strict=True) if e > 0]
    cut = [w * total % 1 for n, w, e in zip(counts, weights, errors, strict=True) if e < 0]
    if raised and cut:
        assert min(raised) >= max(cut) - Fraction(1, 10**9)


def test_largest_remainder_breaks_ties_by_index():
    counts = largest_remainder(jnp.full(K, 1 / K), jnp.asarray(11))
    np.testing.assert_array_equal(counts, [2, 2, 2, 1, 1, 1, 1, 1])


@few
@given(
    st.sampled_from([(1, 1, 2, 4, 8, 0, 0, 0), (3, 0, 5, 8, 0, 0, 0, 0), (2,) * K]),
    st.integers(0, 3000),
)
def test_ceilings_cover_every_share_and_exceed_the_total(shares, total):
    counts = rounded(efficient_rounding.ceil, shares, total)
    assert counts.tolist() == [math.ceil(total * w) for w in exact(shares)]
    assert total <= counts.sum() < total + sum(share > 0 for share in shares)


def test_rounding_errors_do_not_raise_the_ceiling_of_a_whole_share():
    with jax.enable_x64(True):
        counts = efficient_rounding.ceil(jnp.array([0.1, 0.2, 0.7]), jnp.asarray(30))
    np.testing.assert_array_equal(counts, [3, 6, 21])
