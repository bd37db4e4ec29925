import jax.numpy as jnp
import numpy as np

from jaxbandits.kernels.linalg import svec

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(7, 4))
HALF = RNG.normal(size=(4, 4))
MATRIX = HALF @ HALF.T


def outer_products(vectors):
    return np.einsum("ni,nj->nij", vectors, vectors)


def test_inner_products_are_squares():
    table = svec.of(jnp.array(VECTORS))
    assert table.shape == (7, svec.size(4)) == (7, 10)
    np.testing.assert_allclose(table @ table.T, (VECTORS @ VECTORS.T) ** 2, rtol=1e-12)


def test_a_matrix_packed_gives_its_quadratic_form():
    found = svec.of(jnp.array(VECTORS)) @ svec.packed(jnp.array(MATRIX))
    np.testing.assert_allclose(found, np.einsum("ni,ij,nj->n", VECTORS, MATRIX, VECTORS))
    back = svec.unpacked(svec.packed(jnp.array(MATRIX)), 4)
    np.testing.assert_allclose(back, MATRIX, rtol=1e-14)


def test_sums_of_outer_products():
    weights = RNG.random(7)
    found = svec.unpacked(jnp.array(weights) @ svec.of(jnp.array(VECTORS)), 4)
    np.testing.assert_allclose(found, VECTORS.T @ np.diag(weights) @ VECTORS, rtol=1e-12)


def test_mixed_products_are_the_symmetric_part():
    other = RNG.normal(size=(7, 4))
    found = svec.between(jnp.array(VECTORS), jnp.array(other)) @ svec.packed(jnp.array(MATRIX))
    np.testing.assert_allclose(found, np.einsum("ni,ij,nj->n", VECTORS, MATRIX, other))


def test_fourth_powers():
    """As a form on symmetric matrices: `sum of w (x^T B x)^2`."""
    weights = RNG.random(7)
    form = np.asarray(svec.packed(jnp.array(MATRIX)))
    found = form @ svec.fourth(jnp.array(VECTORS), jnp.array(weights)) @ form
    traces = np.einsum("nij,ij->n", outer_products(VECTORS), MATRIX)
    np.testing.assert_allclose(found, weights @ traces**2, rtol=1e-12)


def test_fourth_powers_of_pairs():
    weights = RNG.random((7, 7))
    weights = weights + weights.T
    np.fill_diagonal(weights, 0.0)
    first, second = np.triu_indices(7, 1)
    plain = svec.fourth(
        jnp.array(VECTORS[first] - VECTORS[second]), jnp.array(weights[first, second])
    )
    found = svec.fourth_of_pairs(jnp.array(VECTORS), jnp.array(weights))
    np.testing.assert_allclose(found, plain, atol=1e-12 * float(jnp.abs(plain).max()))


def test_a_form_of_two_matrices():
    other = np.diag([1.0, -2.0, 0.5, 3.0])
    found = svec.product(jnp.array(MATRIX), jnp.array(other))
    for a in VECTORS:
        matrix = np.outer(a, a) + HALF + HALF.T
        p = svec.packed(jnp.array(matrix))
        np.testing.assert_allclose(p @ found @ p, np.trace(matrix @ MATRIX @ matrix @ other))


def test_pairs_hold_each_product_once():
    found = svec.pairs(jnp.array(VECTORS))
    first, second = np.triu_indices(4)
    np.testing.assert_allclose(found, VECTORS[:, first] * VECTORS[:, second], rtol=1e-14)
    matrix = svec.symmetric(jnp.array(np.arange(7)) @ found, 4)
    np.testing.assert_allclose(matrix, VECTORS.T @ np.diag(np.arange(7)) @ VECTORS, rtol=1e-12)
