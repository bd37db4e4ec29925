import jax
import numpy as np
import pytest
from compiled import compiled

from jaxbandits.kernels.design.directions import (
    Listed,
    Pairs,
    compact,
    distinct,
    sqdist,
    without_copies,
)
from jaxbandits.kernels.linalg import svec

distances, distinct_mask = compiled(sqdist), compiled(distinct)
differences = compiled(lambda points: Pairs(points).vectors)
POINTS = np.random.default_rng(0).normal(size=(12, 3))


def test_pairs_are_ordered_by_their_first_index():
    pairs = [(a, b) for a in range(12) for b in range(a + 1, 12)]
    first, second = Pairs(POINTS).indices
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == pairs
    np.testing.assert_array_equal(differences(POINTS), [POINTS[a] - POINTS[b] for a, b in pairs])


def test_mapping_the_points_maps_their_differences():
    rotation = np.random.default_rng(1).normal(size=(3, 3))
    mapped = compiled(lambda points: Pairs(points).mapped(lambda x: x @ rotation).vectors)
    np.testing.assert_allclose(mapped(POINTS), differences(POINTS) @ rotation, atol=1e-12)


@pytest.mark.parametrize("number", [4, 12], ids=["listed is less work", "pairs are less work"])
def test_fourth_powers_of_pairs_equal_those_of_their_list(number):
    points = POINTS[:number]
    weights = np.random.default_rng(2).random(number * (number - 1) // 2)

    @compiled
    def fourths(points, weights):
        pairs = Pairs(points)
        listed = Listed(pairs.vectors)
        assert (pairs.fourth_cost < listed.fourth_cost) == (number == 12)
        expected = svec.fourth(listed.vectors, weights)
        return expected, pairs.fourth(weights), listed.fourth(weights)

    expected, *both = fourths(points, weights)
    for found in both:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("positions", [(), (0, 3, 65), (1, 2, 3, 4, 64)])
def test_compact_keeps_the_directions_with_weight(positions):
    vectors, weights, at = differences(POINTS), np.zeros(66), list(positions)
    weights[at] = np.arange(1.0, len(positions) + 1)
    found, kept = jax.jit(compact, static_argnums=2)(vectors, weights, 5)
    np.testing.assert_array_equal(
        kept, [*range(1, len(positions) + 1), *[0] * (5 - len(positions))]
    )
    np.testing.assert_array_equal(np.asarray(found)[: len(positions)], vectors[at])


def test_sqdist_gives_the_distances_of_all_pairs():
    matrix = np.cov(np.random.default_rng(3).normal(size=(3, 9)))
    points = np.vstack([POINTS, POINTS[:1]])  # rounding must not make 0 negative
    found = distances(points, matrix)
    offsets = points[:, None] - points
    np.testing.assert_allclose(
        found, np.einsum("abi,ij,abj->ab", offsets, matrix, offsets), atol=1e-12
    )
    assert (found >= 0).all()


def test_distinct_marks_the_first_of_equal_points():
    points = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [0.0, 0.0], [-0.0, 0.0], [1.0, 2.0]])
    expected = [True, True, False, True, False, False]
    np.testing.assert_array_equal(distinct_mask(points), expected)


def test_distinct_marks_the_first_of_equal_points_among_many():
    points = np.random.default_rng(4).integers(-2, 3, (700, 4)) * 1.0  # 625 values, -0.0 included
    points[::3] *= -1.0
    first = {tuple(row + 0.0): number for number, row in reversed([*enumerate(points)])}
    expected = np.isin(np.arange(len(points)), list(first.values()))
    assert 0.1 < expected.mean() < 0.9
    np.testing.assert_array_equal(distinct_mask(points), expected)


def test_points_without_copies_stand_for_all_active_ones():
    points = POINTS[np.random.default_rng(4).integers(0, 12, 400)]
    active = np.random.default_rng(5).random(400) < 0.03
    found = compiled(without_copies)(points, active)
    assert not found[~active].any()
    left = points[np.asarray(found)]
    np.testing.assert_array_equal(np.unique(left, axis=0), np.unique(points[active], axis=0))
    assert len(left) == len(np.unique(left, axis=0)) < active.sum()


def test_points_that_differ_stay_even_if_their_numbers_are_equal(changed):
    changed.setattr(np.random, "default_rng", lambda seed: Zeros)
    points = np.repeat(POINTS, 2, 0)
    found = jax.jit(without_copies)(points, np.ones(24, bool))
    np.testing.assert_array_equal(found, np.arange(24) % 2 == 0)


class Zeros:
    """Stands for a generator whose numbers do not tell points apart."""

    @staticmethod
    def normal(size):
        return np.zeros(size)
