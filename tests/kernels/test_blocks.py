"""Very many vectors: the same numbers as from all at once, and far less memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.kernels.estimate import least_squares
from jaxbandits.kernels.linalg import blocks, spd, subspace

RNG = np.random.default_rng(0)
SIZE = 40, 3
WEIGHTS = RNG.integers(0, 4, SIZE[0])


@pytest.fixture(params=[7, 30, 60, 10**6])
def most(request, changed):
    """Numbers of a block: of a few vectors, of ten, of twenty without a rest; all in one."""
    changed.setattr(blocks, "MOST", request.param)


@pytest.mark.usefixtures("most")
def test_sums_and_forms_equal_those_of_numpy():
    vectors, matrix = RNG.normal(size=SIZE), RNG.normal(size=(3, 3))
    gram = jax.jit(lambda x, w: least_squares.gram(x, w))(vectors, WEIGHTS)
    np.testing.assert_allclose(gram, vectors.T @ np.diag(WEIGHTS) @ vectors, rtol=1e-12)
    total = jax.jit(lambda x, w: blocks.weighted_sum(x, w))(vectors, WEIGHTS.astype(float))
    np.testing.assert_allclose(total, WEIGHTS @ vectors, rtol=1e-12)
    forms = jax.jit(lambda x, m: spd.quadratic(x, m))(vectors, matrix)
    expected = np.einsum("kd,de,ke->k", vectors, matrix, vectors)
    np.testing.assert_allclose(forms, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("most")
def test_vectors_of_a_plane_are_told_from_others():
    vectors = RNG.normal(size=SIZE)
    inside = np.arange(SIZE[0]) % 3 > 0
    vectors[inside, 2] = vectors[inside] @ [1.0, 2.0, 0.0]
    space = jax.jit(lambda x, a: subspace.of(x, a))(vectors, inside)
    found = jax.jit(lambda s, x: subspace.within(s, x))(space, vectors)
    np.testing.assert_array_equal(found, inside)


def test_a_lane_needs_no_table_of_all_vectors():
    def needed(function, *shapes):
        given = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes]
        return jax.jit(function).lower(*given).compile().memory_analysis().temp_size_in_bytes

    number, dim, lanes = 20_000, 30, 8
    table = 8 * number * dim  # of the vectors alone
    gram = jax.vmap(least_squares.gram, (None, 0))
    assert needed(gram, (number, dim), (lanes, number)) < table + 8 * lanes * blocks.MOST
    forms = jax.vmap(spd.quadratic, (None, 0))
    assert needed(forms, (number, dim), (lanes, dim, dim)) < table + 16 * lanes * blocks.MOST
