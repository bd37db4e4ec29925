import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import linalg

from jaxbandits.kernels.linalg import spd

inverse = jax.jit(spd.inverse)


def conditioned(condition, dim=6, seed=0):
    frame = np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0]
    return (frame * np.geomspace(1.0, 1.0 / condition, dim)) @ frame.T


@pytest.mark.parametrize(
    ("dtype", "condition"), [(jnp.float32, 1e2), (jnp.float64, 1e2), (jnp.float64, 1e9)]
)
def test_inverse_and_determinant_equal_scipy(dtype, condition):
    matrix = conditioned(condition)
    found = inverse(jnp.array(matrix, dtype))
    size = np.finfo(dtype).eps * condition * 20  # what a stable method may lose
    exact = linalg.cho_solve(linalg.cho_factor(matrix), np.eye(6))
    assert bool(found.positive)
    assert found.matrix.dtype == dtype
    np.testing.assert_allclose(found.matrix, exact, atol=size * condition)
    np.testing.assert_allclose(found.logdet, np.linalg.slogdet(matrix)[1], rtol=size)
    np.testing.assert_array_equal(found.matrix, found.matrix.T)
    # Forward error alone could hide a wrong column: the residual is small as well.
    residual = np.asarray(found.matrix, float) @ matrix - np.eye(6)
    assert np.abs(residual).max() <= size * condition**0.5


WIDE = 300  # columns, which are swept in blocks, the last one filled up


def test_a_wide_matrix_equals_scipy():
    matrix = conditioned(1e9, WIDE)
    assert spd.WIDE < WIDE
    assert WIDE % spd.BLOCK
    found, size = inverse(jnp.array(matrix)), np.finfo(float).eps * 1e9 * WIDE
    exact = linalg.cho_solve(linalg.cho_factor(matrix), np.eye(WIDE))
    assert bool(found.positive)
    assert linalg.norm(found.matrix - exact) <= size * linalg.norm(exact)
    np.testing.assert_allclose(found.logdet, np.linalg.slogdet(matrix)[1], rtol=1e-9)
    np.testing.assert_array_equal(found.matrix, found.matrix.T)
    factor = np.linalg.cholesky(matrix)
    for lower in (found.factor, jax.jit(spd.cholesky)(jnp.array(matrix))):
        np.testing.assert_array_equal(lower, np.tril(lower))
        np.testing.assert_allclose(lower @ lower.T, matrix, atol=1e-14)
        np.testing.assert_allclose(lower, factor, atol=1e-9)


@pytest.mark.parametrize("at", [0, 130, WIDE - 1])
@pytest.mark.parametrize("eigenvalue", [0.0, -0.3, np.nan])
def test_a_wide_matrix_that_is_not_positive_definite_is_flagged(eigenvalue, at):
    diagonal = np.full(WIDE, 2.0)
    diagonal[at] = eigenvalue
    assert not bool(inverse(jnp.diag(diagonal)).positive)
    factor = jax.jit(spd.cholesky)(jnp.diag(diagonal))
    assert bool(jnp.isnan(factor[at, at]))
    assert not bool(jnp.isnan(jnp.diagonal(factor)[:at]).any())


@pytest.mark.parametrize("eigenvalue", [0.0, -0.3, np.nan])
def test_a_matrix_that_is_not_positive_definite_is_flagged(eigenvalue):
    matrix = np.diag([1.0, 2.0, 3.0, 1.0, 1.0, 1.0])
    matrix[2, 2] = eigenvalue
    assert not bool(inverse(jnp.array(matrix)).positive)


def test_vmap_equals_a_python_loop():
    stack = jnp.array([conditioned(10.0, seed=seed) for seed in range(4)]).at[2].multiply(-1.0)
    together = jax.jit(jax.vmap(spd.inverse))(stack)
    np.testing.assert_array_equal(together.positive, [True, True, False, True])
    for row, matrix in enumerate(stack):
        np.testing.assert_allclose(together.matrix[row], inverse(matrix).matrix, rtol=1e-12)


def test_back_substitution_equals_scipy():
    factor = np.linalg.cholesky(conditioned(1e6))
    vector = np.arange(1.0, 7.0)
    found = jax.jit(spd.back_substitute)(jnp.array(factor), jnp.array(vector))
    expected = linalg.solve_triangular(factor, vector, trans="T", lower=True)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_quadratic_forms_equal_products():
    vectors, matrix = np.random.default_rng(1).normal(size=(5, 6)), conditioned(10.0)
    found = spd.quadratic(jnp.array(vectors), jnp.array(matrix))
    np.testing.assert_allclose(found, [v @ matrix @ v for v in vectors])
    assert bool(spd.all_finite(found))
    assert not bool(spd.all_finite(found.at[3].set(jnp.nan)))


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e9])
def test_the_least_eigenvalue_is_found_from_below(condition):
    matrix = 7.0 * conditioned(condition)
    exact = np.linalg.eigvalsh(matrix)[0]
    found = float(jax.jit(spd.least_eigenvalue)(jnp.array(matrix)))
    assert abs(found - exact) <= 1e-12 * np.trace(matrix)
    assert bool(spd.positive(jnp.array(matrix - found * np.eye(6))))


@pytest.mark.parametrize("shift", [-1e-9, 1e-9])
def test_positive_tells_the_sign_of_the_least_eigenvalue(shift):
    for seed in range(5):
        matrix = conditioned(50.0, seed=seed)
        least = np.linalg.eigvalsh(matrix)[0]
        found = spd.positive(jnp.array(matrix - (1 + shift) * least * np.eye(6)))
        assert bool(found) == (shift < 0)
    assert not bool(spd.positive(jnp.array(np.diag([1.0, np.nan]))))


def of_rank(rank, dim, seed, scale=1.0):
    """A Gram matrix of integers: of `rank` arms, each drawn some thousand times."""
    rng = np.random.default_rng(seed)
    arms = np.where(rng.random((rank, dim)) < 0.5, -1.0, 1.0)
    return scale * (arms.T * rng.integers(1, 2000, rank)) @ arms


def test_a_singular_matrix_is_flagged_despite_rounding():
    """Elimination ends with pivots that should be 0, and rounding makes some of them positive."""
    positive_of = jax.jit(lambda matrix: spd.inverse(matrix, may_lack_rank=True).positive)
    fooled = 0
    for seed in range(200):
        matrix = jnp.array(of_rank(2 + seed % 8, 11, seed, scale=1 / 3), jnp.float64)
        assert not bool(positive_of(matrix))
        fooled += bool(inverse(matrix).positive)
    assert fooled > 0
    for condition in (1e2, 1e6, 1e9):
        assert bool(positive_of(jnp.array(conditioned(condition))))


def test_matrices_are_factored_with_diagonals_just_below_one():
    """Up to 1, sweeps are exact; and the larger the pivots, the smaller the rounding errors."""
    diagonal = np.random.default_rng(0).uniform(0.5, 2.0, 200) * 2.0 ** np.arange(-100, 100)
    matrix = np.diag(np.append(diagonal, [2.0**-40, 4.0, 0.25, 1.0]))
    with jax.enable_x64(True):
        shrink = np.asarray(spd._shrink(jnp.asarray(matrix)))
    assert (np.log2(shrink) == np.round(np.log2(shrink))).all()
    shrunk = np.diagonal(matrix) * shrink**2
    assert (shrunk >= 0.25).all()
    assert (shrunk < 1.0).all()
