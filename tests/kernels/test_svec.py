import numpy as np
from compiled import compiled

from jaxbandits.kernels.linalg import svec

of, packed, between = compiled(svec.of), compiled(svec.packed), compiled(svec.between)
fourth, fourth_of_pairs = compiled(svec.fourth), compiled(svec.fourth_of_pairs)
unpacked, symmetric = compiled(svec.unpacked, "dim"), compiled(svec.symmetric, "dim")
product, pairs = compiled(svec.product), compiled(svec.pairs)
RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(7, 4))
HALF = RNG.normal(size=(4, 4))
MATRIX = HALF @ HALF.T


def outer_products(vectors):
    return np.einsum("ni,nj->nij", vectors, vectors)


def test_inner_products_are_the_squares_of_those_of_vectors():
    table = of(VECTORS)
    assert table.shape == (7, svec.size(4)) == (7, 10)
    np.testing.assert_allclose(table @ table.T, (VECTORS @ VECTORS.T) ** 2, rtol=1e-12)


def test_a_matrix_packed_gives_its_quadratic_form():
    found = of(VECTORS) @ packed(MATRIX)
    np.testing.assert_allclose(found, np.einsum("ni,ij,nj->n", VECTORS, MATRIX, VECTORS))
    back = unpacked(packed(MATRIX), 4)
    np.testing.assert_allclose(back, MATRIX, rtol=1e-14)


def test_weighted_sums_are_sums_of_outer_products():
    weights = RNG.random(7)
    found = unpacked(weights @ of(VECTORS), 4)
    np.testing.assert_allclose(found, VECTORS.T @ np.diag(weights) @ VECTORS, rtol=1e-12)


def test_between_gives_the_bilinear_form():
    other = RNG.normal(size=(7, 4))
    found = between(VECTORS, other) @ packed(MATRIX)
    np.testing.assert_allclose(found, np.einsum("ni,ij,nj->n", VECTORS, MATRIX, other))


def test_fourth_is_a_sum_of_squared_quadratic_forms():
    """A quadratic form on symmetric matrices B: `sum of w (x^T B x)^2`."""
    weights = RNG.random(7)
    form = packed(MATRIX)
    found = form @ fourth(VECTORS, weights) @ form
    traces = np.einsum("nij,ij->n", outer_products(VECTORS), MATRIX)
    np.testing.assert_allclose(found, weights @ traces**2, rtol=1e-12)


def test_fourth_of_pairs_equals_fourth_of_their_differences():
    weights = RNG.random((7, 7))
    weights = weights + weights.T
    np.fill_diagonal(weights, 0.0)
    first, second = np.triu_indices(7, 1)
    plain = fourth(VECTORS[first] - VECTORS[second], weights[first, second])
    found = fourth_of_pairs(VECTORS, weights)
    np.testing.assert_allclose(found, plain, atol=1e-12 * np.abs(plain).max())


def test_product_is_a_form_of_two_matrices():
    other = np.diag([1.0, -2.0, 0.5, 3.0])
    found = product(MATRIX, other)
    for a in VECTORS:
        matrix = np.outer(a, a) + HALF + HALF.T
        p = packed(matrix)
        np.testing.assert_allclose(p @ found @ p, np.trace(matrix @ MATRIX @ matrix @ other))


def test_pairs_hold_each_product_once():
    found = pairs(VECTORS)
    first, second = np.triu_indices(4)
    np.testing.assert_allclose(found, VECTORS[:, first] * VECTORS[:, second], rtol=1e-14)
    matrix = symmetric(np.arange(7) @ found, 4)
    np.testing.assert_allclose(matrix, VECTORS.T @ np.diag(np.arange(7)) @ VECTORS, rtol=1e-12)
