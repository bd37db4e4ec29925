import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.kernels import span

of = jax.jit(span.of)
TOLERANCE = {jnp.float32: 2e-4, jnp.float64: 1e-9}


def cases():
    rng = np.random.default_rng(0)
    full = rng.normal(size=(6, 4))
    plane = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 4))
    line = np.outer([1.0, -2, 0, 3, 0.5, 1], rng.normal(size=4))
    return {"full": full, "plane": plane, "line": line, "none": np.zeros((6, 4))}


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("name", cases())
def test_rank_frame_and_restricted_inverse(name, dtype):
    arms, close = cases()[name], TOLERANCE[dtype]
    found = of(jnp.array(arms, dtype), jnp.ones(6, bool))
    assert int(found.rank) == int(found.kept.sum()) == np.linalg.matrix_rank(arms)
    np.testing.assert_allclose(found.frame.T @ found.frame, np.diag(found.kept), atol=close)

    points = np.asarray(span.coordinates(found, jnp.array(arms, dtype)), np.float64)
    assert (points[:, ~np.asarray(found.kept)] == 0).all()
    np.testing.assert_allclose(points @ points.T, arms @ arms.T, atol=10 * close)

    weights = np.linspace(1, 2, 6)
    matrix = jnp.array(np.einsum("k,ki,kj->ij", weights, points, points), dtype)
    inverse = np.linalg.inv(np.asarray(span.fill(found, matrix), np.float64))
    pseudo = np.linalg.pinv(np.einsum("k,ki,kj->ij", weights, arms, arms), rcond=1e-10)
    np.testing.assert_allclose(points @ inverse @ points.T, arms @ pseudo @ arms.T, atol=close)


def test_only_active_arms_count():
    arms = jnp.array(cases()["full"])
    masks = jnp.array([[1, 0, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0] * 6], bool)
    ranks = jax.vmap(lambda mask: span.of(arms, mask).rank)(masks)
    np.testing.assert_array_equal(ranks, [1, 2, 3, 0])
    found = of(arms, masks[1])
    frame = np.asarray(found.frame)
    outside = np.linalg.norm(np.asarray(arms) - np.asarray(arms) @ frame @ frame.T, axis=1)
    np.testing.assert_allclose(outside[[0, 2]], 0, atol=1e-12)
    assert (outside[[1, 3, 4, 5]] > 1e-2).all()


@pytest.mark.parametrize(("dtype", "angle"), [(jnp.float32, 0.1), (jnp.float64, 1e-5)])
def test_nearly_parallel_arms_span_the_plane(dtype, angle):
    arms = np.zeros((6, 4))
    arms[0, 0] = 1.0
    arms[1, :2] = np.cos(angle), np.sin(angle)
    assert int(of(jnp.array(arms, dtype), jnp.ones(6, bool)).rank) == 2
