"""Columns of very different scales change no result that in theory does not depend on them."""

import jax
import numpy as np
import pytest

from jaxbandits.kernels import selection
from jaxbandits.kernels.design import d_optimal
from jaxbandits.kernels.estimate.least_squares import gram
from jaxbandits.kernels.linalg import scaling, spd, subspace

power_of_two, optimal = jax.jit(scaling.power_of_two), jax.jit(d_optimal.d_optimal)
of, far_apart = jax.jit(subspace.of), jax.jit(subspace.far_apart)
first_basis = jax.jit(selection.first_basis)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


SIZES = np.array([1.0, 1.9999, 2.0, 0.75, 1e-150, 3e150, -5.0, 0.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_two_are_exact_and_not_above_the_sizes(dtype):
    sizes = np.abs(SIZES if dtype == np.float64 else np.clip(SIZES, -1e30, 1e30)).astype(dtype)
    powers = np.asarray(power_of_two(sizes))
    assert powers.dtype == dtype
    normal = sizes >= np.finfo(dtype).tiny
    np.testing.assert_array_equal(np.frexp(powers)[0], 0.5)
    assert (powers[normal] <= sizes[normal]).all()
    assert (2 * powers[normal].astype(float) > sizes[normal]).all()
    assert (powers[~normal] == 1.0).all()


def test_the_condition_does_not_depend_on_the_scale_of_columns():
    arms = np.random.default_rng(0).normal(size=(40, 4))
    before = scaling.condition(arms)
    after = scaling.condition(arms * 2.0 ** np.array([30, -30, 7, 0]))
    assert before == after
    assert after.rank == 4
    assert after.ratio < 3 < 1e5 < after.limit
    near = arms.copy()
    near[:, 3] = near[:, 2] + 1e-9 * near[:, 3]
    assert scaling.condition(near).ratio > scaling.condition(near).limit
    assert scaling.condition(np.zeros((3, 2))).rank == 0


def tables():
    rng = np.random.default_rng(1)
    yield rng.normal(size=(12, 3)), 3
    yield rng.normal(size=(12, 2)) @ rng.normal(size=(2, 3)), 2


@pytest.mark.parametrize("powers", [(0, -24, 0), (20, 0, -20), (300, 330, 302)])
def test_spans_do_not_depend_on_the_scale_of_columns(powers):
    scales = 2.0 ** np.array(powers)
    for arms, rank in tables():
        every = np.ones(len(arms), bool)
        plain, scaled = (jax.tree.map(np.asarray, of(x, every)) for x in (arms, arms * scales))
        assert int(plain.rank) == int(scaled.rank) == rank
        np.testing.assert_array_equal(plain.kept, scaled.kept)
        np.testing.assert_array_equal(scaled.basis, plain.basis * scales[:, None] / scales)
        basis = [np.flatnonzero(far_apart(x, every)) for x in (arms, arms * scales)]
        np.testing.assert_array_equal(*basis)
        first = [first_basis(x) for x in (arms, arms * scales)]
        np.testing.assert_array_equal(*first)


def test_an_inverse_scales_exactly_with_the_columns():
    arms, _ = next(tables())
    scales = 2.0 ** np.array([20, 0, -20])
    inverse = jax.jit(lambda arms, counts: spd.inverse(gram(arms, counts), may_lack_rank=True))
    plain, scaled = (
        jax.tree.map(np.asarray, inverse(x, np.ones(12))) for x in (arms, arms * scales)
    )
    assert bool(plain.positive & scaled.positive)
    np.testing.assert_array_equal(scaled.matrix, plain.matrix / scales / scales[:, None])
    np.testing.assert_array_equal(scaled.factor, plain.factor * scales[:, None])
    np.testing.assert_allclose(scaled.logdet, plain.logdet, rtol=1e-12)


def test_a_column_of_rounding_errors_among_the_active_arms_adds_no_rank():
    arms = np.array([[1.0, np.cos(np.pi / 2)], [-1.0, 0.0], [0.3, 1.0]])
    active = np.array([True, True, False])
    assert int(of(arms, active).rank) == 1
    assert np.asarray(far_apart(arms, active)).sum() == 1


def test_a_column_whose_only_large_entry_is_inactive_adds_to_the_rank():
    rng = np.random.default_rng(2)
    arms = rng.normal(size=(30, 3)) * [1.0, 1.0, 1e-9]
    arms[0, 2] = 1.0
    active = np.arange(30) > 0
    assert int(of(arms, active).rank) == 3
    found = optimal(arms, active)
    assert bool(found.converged)
    inside = arms[1:] * [1.0, 1.0, 1e9]
    weights = np.asarray(found.weights)[1:]
    inverse = np.linalg.inv((inside.T * weights) @ inside)
    np.testing.assert_allclose(((inside @ inverse) * inside).sum(1).max(), found.value, rtol=1e-6)
