import jax
import jax.numpy as jnp
import numpy as np
import pytest
from designs import information, is_design

from jaxbandits.kernels.design import sparsify

reduced = jax.jit(sparsify.reduced)


@pytest.mark.parametrize(("num_arms", "dim"), [(24, 2), (40, 4), (12, 1)])
@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_fewer_arms_keep_the_information(num_arms, dim, scale):
    rng = np.random.default_rng(num_arms)
    arms = rng.normal(size=(num_arms, dim)) * np.logspace(0, np.log10(scale), dim)
    weights, most = rng.dirichlet(np.ones(num_arms)), dim * (dim + 1) // 2
    weights[:3] = 0.0
    weights /= weights.sum()
    found = np.asarray(reduced(arms, weights, most))
    assert is_design(found)
    assert (found > 0).sum() <= most
    assert (found[:3] == 0).all()
    before, after = information(arms, weights), information(arms, found)
    ratio = np.linalg.eigvals(np.linalg.solve(before, after)).real.min()
    assert ratio >= 1 - 1e-6


def test_arms_in_a_plane_keep_the_information():
    rng = np.random.default_rng(0)
    low = rng.normal(size=(20, 2))
    arms, weights = low @ rng.normal(size=(2, 5)), rng.dirichlet(np.ones(20))
    found = np.asarray(reduced(arms, weights, 3))
    assert (found > 0).sum() <= 3
    ratio = np.linalg.solve(information(low, weights), information(low, found))
    assert np.linalg.eigvals(ratio).real.min() >= 1 - 1e-6


def test_the_smallest_weights_are_dropped_where_fewer_arms_are_wanted():
    weights = np.array([0.1, 0.4, 0.2, 0.3])
    found = reduced(np.eye(4), weights, 2)
    np.testing.assert_allclose(found, [0, 4 / 7, 0, 3 / 7])


def test_few_arms_keep_their_weights():
    arms, weights = np.random.default_rng(1).normal(size=(3, 2)), np.array([0.2, 0.3, 0.5])
    np.testing.assert_array_equal(reduced(arms, weights, 3), weights)
    assert reduced(jnp.asarray(arms), jnp.asarray(weights), 3).dtype == jnp.float64
