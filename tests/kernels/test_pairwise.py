"""Distances between pairs of many points, against the full table of distances."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.kernels.linalg import pairwise

RNG = np.random.default_rng(0)


def cloud(kind, num=700, dim=3):
    """Normal points, on a sphere, far from the origin, or with two outliers."""
    points = RNG.normal(size=(num, dim))
    if kind == "normal":
        return points
    if kind == "far":
        return points + 1e4
    if kind == "sphere":
        return points / np.linalg.norm(points, axis=1, keepdims=True)
    points[[5, -100]] *= 40.0
    return points


def distances(points, matrix):
    differences = points[:, None] - points
    return np.einsum("abi,ij,abj->ab", differences, matrix, differences)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


MATRIX = np.cov(RNG.normal(size=(3, 9)))
farthest = jax.jit(pairwise.farthest, static_argnums=3)
beaten = jax.jit(pairwise.beaten)


@pytest.mark.parametrize(
    ("kind", "num", "share"),
    [
        ("sphere", 700, 1.0),
        ("sphere", 700, 0.3),
        ("sphere", 700, 0.01),
        ("outliers", 700, 1.0),
        ("outliers", 700, 0.3),
        ("outliers", 700, 0.01),
        ("normal", 700, 1.0),
        ("normal", 700, 0.3),
        ("far", 700, 1.0),
        ("sphere", 101, 0.3),
        ("sphere", 3, 1.0),
    ],
)
def test_the_farthest_pairs_are_found(kind, num, share):
    points = cloud(kind, num)
    alive = RNG.random(num) < share
    exact = np.where(alive[:, None] & alive, distances(points, MATRIX), -1.0)
    found = farthest(jnp.array(points), jnp.array(alive), jnp.array(MATRIX), 4)
    np.testing.assert_allclose(found.sqdist[0], exact.max(), rtol=1e-9)
    pairs = set()
    for first, second, sqdist in zip(*found, strict=True):
        if sqdist > 0:
            np.testing.assert_allclose(sqdist, exact[first, second], rtol=1e-9)
            pairs.add(frozenset((int(first), int(second))))
    assert len(pairs) == (found.sqdist > 0).sum() >= 1
    assert (np.diff(found.sqdist) <= 0).all()


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("size", [700, 100])
def test_fewer_than_two_points_have_no_pair(number, size):
    alive = np.arange(size) < number
    found = farthest(jnp.array(cloud("sphere", size)), jnp.array(alive), jnp.array(MATRIX), 4)
    np.testing.assert_array_equal(found.sqdist, 0.0)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_equal_points_have_no_pair(offset):
    points = np.full((700, 3), offset) + np.arange(3.0)
    found = farthest(jnp.array(points), jnp.ones(700, bool), jnp.array(MATRIX), 4)
    np.testing.assert_array_equal(found.sqdist, 0.0)


@pytest.mark.parametrize("num", [100, 700], ids=["few points", "many points"])
@pytest.mark.parametrize("width", [0.0, 0.3, 1.2, 10.0])
def test_beaten_points_equal_those_of_the_full_table(num, width):
    points, scores = cloud("sphere", num), RNG.normal(size=num)
    alive = RNG.random(num) < 0.5
    ahead = scores[None, :] - scores[:, None]
    exact = (width * np.sqrt(np.abs(distances(points, MATRIX))) < ahead) & alive[None, :]
    found = beaten(*map(jnp.array, (points, alive, scores, MATRIX)), jnp.array(width))
    np.testing.assert_array_equal(found, exact.any(1) & alive)
    assert (num < pairwise.FEW) == (num == 100)


def test_the_best_is_never_beaten_and_equal_points_do_not_beat_each_other():
    points = np.repeat(cloud("sphere", 350), 2, axis=0)
    scores = np.repeat(RNG.normal(size=350), 2)
    alive = np.ones(700, bool)
    found = beaten(*map(jnp.array, (points, alive, scores, MATRIX)), jnp.array(0.0))
    np.testing.assert_array_equal(found, scores < scores.max())
