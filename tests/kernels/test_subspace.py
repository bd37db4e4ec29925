import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import compiled
from scipy import linalg

from jaxbandits.kernels.linalg import subspace

of, coordinates, fill = map(compiled, (subspace.of, subspace.coordinates, subspace.fill))
inverse_of, project, within = map(compiled, (subspace.inverse, subspace.project, subspace.within))
rank_of, far_apart = compiled(subspace.rank), compiled(subspace.far_apart)
TOLERANCE = {np.float32: 2e-4, np.float64: 1e-9}


def cases():
    rng = np.random.default_rng(0)
    full = rng.normal(size=(6, 4))
    plane = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 4))
    line = np.outer([1.0, -2, 0, 3, 0.5, 1], rng.normal(size=4))
    return {"full": full, "plane": plane, "line": line, "none": np.zeros((6, 4))}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", cases())
def test_rank_basis_and_restricted_inverse(name, dtype):
    arms, close = cases()[name], TOLERANCE[dtype]
    found = of(np.asarray(arms, dtype), np.ones(6, bool))
    assert int(found.rank) == int(found.kept.sum()) == np.linalg.matrix_rank(arms)

    points = np.asarray(coordinates(found, np.asarray(arms, dtype)), np.float64)
    assert (points[:, ~np.asarray(found.kept)] == 0).all()
    basis = np.asarray(found.basis, np.float64)
    np.testing.assert_allclose(points @ basis.T, arms, atol=10 * close)
    assert np.abs(basis).max() < 4  # pivoting keeps the basis far from degenerate

    weights = np.linspace(1, 2, 6)
    matrix = np.array(np.einsum("k,ki,kj->ij", weights, points, points), dtype)
    inverse = np.linalg.inv(np.asarray(fill(found, matrix), np.float64))
    pseudo = np.linalg.pinv(np.einsum("k,ki,kj->ij", weights, arms, arms), rcond=1e-10)
    np.testing.assert_allclose(points @ inverse @ points.T, arms @ pseudo @ arms.T, atol=close)


@pytest.mark.parametrize("name", cases())
def test_inverse_is_a_pseudo_inverse_on_the_span(name):
    with jax.enable_x64(True):
        arms, weights = cases()[name], np.linspace(1, 2, 6)
        matrix = np.einsum("k,ki,kj->ij", weights, arms, arms)
        space = of(arms, np.ones(6, bool))
        found = inverse_of(space, matrix)
        assert bool(found.positive)
        np.testing.assert_allclose(matrix @ found.matrix @ matrix, matrix, atol=1e-9)
        np.testing.assert_allclose(found.matrix @ matrix @ found.matrix, found.matrix, atol=1e-9)
        pseudo = np.linalg.pinv(matrix, rcond=1e-10)
        np.testing.assert_allclose(arms @ found.matrix @ arms.T, arms @ pseudo @ arms.T, atol=1e-9)
        nothing = inverse_of(space, np.zeros((4, 4)))
        assert bool(nothing.positive) == (space.rank == 0)


@pytest.mark.parametrize("name", cases())
def test_project_gives_the_nearest_vector_of_the_span(name):
    with jax.enable_x64(True):
        arms, vector = cases()[name], np.array([1.0, -2.0, 0.5, 3.0])
        found = of(arms, np.ones(6, bool))
        nearest = project(found, vector)
        expected = np.linalg.pinv(arms, rcond=1e-10) @ (np.asarray(arms) @ np.asarray(vector))
        np.testing.assert_allclose(nearest, expected, atol=1e-9)
        assert within(found, arms).all()
        away = vector - nearest
        if found.rank < 4:
            assert not within(found, (nearest + 1e-4 * away)[None])[0]


def test_only_active_arms_count():
    with jax.enable_x64(True):
        arms = cases()["full"]
        masks = [[1, 0, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0] * 6]
        spans = jax.jit(jax.vmap(subspace.of, (None, 0)))(arms, np.array(masks, bool))
        np.testing.assert_array_equal(spans.rank, [1, 2, 3, 0])
        found = of(arms, np.array(masks[1], bool))
        np.testing.assert_array_equal(within(found, arms), [1, 0, 1, 0, 0, 0])


@pytest.mark.parametrize(("dtype", "angle"), [(np.float32, 0.1), (np.float64, 1e-5)])
def test_nearly_parallel_arms_span_the_plane(dtype, angle):
    arms = np.zeros((6, 4))
    arms[0, 0] = 1.0
    arms[1, :2] = np.cos(angle), np.sin(angle)
    assert int(of(np.asarray(arms, dtype), np.ones(6, bool)).rank) == 2


@pytest.mark.parametrize("name", cases())
def test_pseudo_inverse_equals_numpy(name):
    with jax.enable_x64(True):
        arms = cases()[name]
        matrix = arms.T @ (np.arange(1.0, 7.0)[:, None] * arms)
        small = subspace.negligible(jnp.array(arms))
        found = compiled(lambda m: subspace.pseudo_inverse(m, small))(matrix)
        expected = np.linalg.pinv(matrix, rcond=1e-10, hermitian=True)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("name", cases())
@pytest.mark.parametrize("turned", [False, True])
def test_rank_equals_numpy(name, turned):
    with jax.enable_x64(True):
        arms = cases()[name].T if turned else cases()[name]
        assert int(rank_of(arms)) == np.linalg.matrix_rank(arms)


@pytest.mark.parametrize("smallest", [1e-3, 1e-8, 1e-12, 1e-17])
def test_rank_counts_singular_values_that_squares_would_lose(smallest):
    rng = np.random.default_rng(3)
    left, right = (np.linalg.qr(rng.normal(size=(n, 6)))[0] for n in (9, 6))
    arms = left * np.array([1.0, 0.5, 0.1, smallest, smallest / 2, 0.0]) @ right.T
    with jax.enable_x64(True):
        found = int(rank_of(arms))
    assert found == np.linalg.matrix_rank(arms) == (5 if smallest > 1e-15 else 3)


def test_far_apart_chooses_the_basis_of_pivoted_qr():
    """Inactive arms are left out, and so are directions that only they span."""
    rng = np.random.default_rng(3)
    for rank in (1, 2, 4):
        arms = rng.normal(size=(12, rank)) @ rng.normal(size=(rank, 4))
        arms = np.concatenate([arms / np.abs(arms).max(0), 0.9 * rng.normal(size=(3, 4))])
        active = np.arange(15) < 12
        chosen = np.flatnonzero(far_apart(arms, active))
        _, _, pivots = linalg.qr(arms[:12].T, pivoting=True)
        assert sorted(chosen) == sorted(pivots[:rank])
