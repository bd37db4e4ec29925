"""Inverses by the native engine against `jax.vmap` and NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import LANES, by_native, same

from jaxbandits.kernels import selection
from jaxbandits.kernels.linalg import spd

RNG = np.random.default_rng(8)


def covariances(dim, number=LANES):
    """Positive definite matrices `[dim, dim, number]` of condition about 100."""
    half = RNG.normal(size=(number, dim, 2 * dim)) * np.linspace(1.0, 5.0, dim)[:, None]
    return np.moveaxis(half @ half.transpose(0, 2, 1), 0, -1)


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 12, 21])
def test_inverses_equal_vmap_and_numpy(dim):
    matrices = covariances(dim)
    found = same(spd.inverse, matrices, rtol=1e-9, atol=1e-9)
    for lane in range(LANES):
        one = matrices[..., lane]
        np.testing.assert_allclose(found.matrix[..., lane] @ one, np.eye(dim), atol=1e-11)
        np.testing.assert_allclose(found.logdet[lane], np.linalg.slogdet(one)[1], rtol=1e-12)
        np.testing.assert_allclose(found.factor[..., lane], np.linalg.cholesky(one), atol=1e-11)
        np.testing.assert_array_equal(found.matrix[..., lane], found.matrix[..., lane].T)
    assert found.positive.all()


def test_each_result_of_an_inverse_may_be_used_alone():
    matrices = covariances(6)
    parts = [lambda m, name=name: getattr(spd.inverse(m), name) for name in spd.Inverse._fields]
    for part in (*parts, lambda m: (spd.inverse(m).factor, spd.inverse(m).positive)):
        same(part, matrices, rtol=1e-10, atol=1e-12)


def test_matrices_that_are_not_positive_definite_are_flagged():
    matrices = covariances(5)
    matrices[..., 3] *= -1.0
    matrices[2, 2, 5] = -1.0
    matrices[..., 7] = np.nan
    matrices[..., 9] = 0.0
    found = same(lambda m: spd.inverse(m).positive, matrices)
    np.testing.assert_array_equal(found, ~np.isin(np.arange(LANES), [3, 5, 7, 9]))
    singular_or_not = np.moveaxis(
        np.stack([np.ones((3, 3)) + np.eye(3) * (k % 2) for k in range(LANES)]), 0, -1
    )
    found = same(lambda m: spd.inverse(m, may_lack_rank=True).positive, singular_or_not)
    np.testing.assert_array_equal(found, np.arange(LANES) % 2 == 1)


def of_ranks(dim, ranks):
    """Semi-definite matrices `[dim, dim, lanes]` of these ranks, with columns of several sizes."""
    sizes = 4.0 ** np.arange(dim)[::-1]
    halves = [RNG.normal(size=(dim, rank)) * sizes[:, None] for rank in ranks]
    return np.stack([half @ half.T for half in halves], -1)


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 8, 13])
def test_partial_inverses_of_every_rank_equal_vmap_and_numpy(dim):
    ranks = np.arange(LANES) % (dim + 1)
    matrices = of_ranks(dim, ranks)
    found = same(lambda m: spd.partial_inverse(m, 1e-11), matrices, rtol=1e-6, atol=1e-11)
    np.testing.assert_array_equal(found.kept.sum(0), ranks)
    for lane in range(LANES):
        one, kept = matrices[..., lane], np.asarray(found.kept[:, lane])
        inverse = np.linalg.inv(one[np.ix_(kept, kept)])
        part = found.matrix[..., lane][np.ix_(kept, kept)]
        np.testing.assert_allclose(part, inverse, 1e-6, 1e-6 * np.abs(inverse).max(initial=0.0))
        np.testing.assert_array_equal(found.matrix[..., lane], found.matrix[..., lane].T)


def sweeps(matrix, least):
    """What a branch, a NaN, an infinity, and pivots that tie may spoil."""
    swept = lambda: spd.partial_inverse(matrix, 1e-11)  # noqa: E731
    other = lambda: spd.Partial(matrix, matrix[0] > 0)  # noqa: E731
    near = jnp.eye(5) + jnp.where(jnp.eye(5) > 0, 0.0, 1e-3 * jnp.tanh(matrix))
    return (
        jax.lax.cond(matrix[0, 0] > least, swept, other),
        spd.sweep_largest(matrix, jnp.diagonal(matrix), least),
        spd.sweep_largest(near, jnp.ones(5), jnp.where(least > 1, 0.5, 2.0)),
        spd.sweep_largest(near, jnp.ones(5), 0.5)[1],
    )


def test_sweeps_of_nan_infinity_and_equal_pivots_in_a_branch_equal_vmap():
    matrices = of_ranks(5, np.full(LANES, 4))
    matrices[..., 3], matrices[1, 1, 6], matrices[2, 2, 7] = np.nan, np.nan, np.inf
    least = np.where(np.arange(LANES) % 3, 1e-9, np.median(matrices[0, 0, :3]))
    same(sweeps, matrices, least, rtol=1e-6, atol=1e-6)


def test_shared_matrices_and_single_precision_equal_vmap():
    matrices, shared = covariances(4), jnp.asarray(covariances(4, 1)[..., 0])
    same(lambda m: spd.inverse(shared).matrix @ m, matrices, rtol=1e-9, atol=1e-9)
    same(lambda m: spd.inverse(m.astype(jnp.float32)), matrices, rtol=1e-3, atol=1e-3)


def test_primitives_within_vmap_equal_numpy():
    many = np.stack([covariances(4) for _ in range(3)])

    def mapped(tables):
        inverses = jax.vmap(lambda m: spd.inverse(m).matrix)(tables)
        values, order = tables[:, 1], jnp.arange(4)
        return (
            inverses,
            jax.vmap(selection.best)(values),
            jax.vmap(selection.argmax, (0, None))(values, order),
        )

    found = by_native(mapped, jnp.asarray(many))
    for k in range(3):
        products = np.einsum("ijl,jkl->ikl", found[0][k], many[k])
        np.testing.assert_allclose(products, np.eye(4)[..., None] + np.zeros(LANES), atol=1e-11)
        np.testing.assert_array_equal(found[1].arm[k], many[k][1].argmax(0))
        np.testing.assert_array_equal(found[2][k], many[k][1].argmax(0))
