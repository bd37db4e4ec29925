"""Small weights are cut where the arms left measure all differences, and only there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from designs import norms

from jaxbandits.kernels.design.d_optimal import Design
from jaxbandits.kernels.design.xy import small_weights
from jaxbandits.kernels.estimate import least_squares, of_differences

DIM = 6
ALIVE = np.array([True, True, False])
cut = jax.jit(small_weights.cut)
told, whole = jax.jit(of_differences.inverse), jax.jit(least_squares.batch)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def rotated(seed=0):
    """Six orthogonal arms, in no special coordinates, and a seventh."""
    rng = np.random.default_rng(seed)
    arms = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0] * rng.uniform(0.5, 2.0, size=(DIM, 1))
    return rng, np.vstack([arms, rng.normal(size=DIM)])


def targets_along(rng, arms, parts):
    """Two targets alive that differ by `parts @ arms`, far from the origin, and a third."""
    one, dead = rng.normal(size=(2, DIM))
    return np.array([one, one + np.asarray(parts) @ arms, dead])


def after_cut(arms, targets, weights, *, first=1e-5, loss=1e-3):
    """The design before the cut and after it."""
    weights = np.asarray(weights) / np.sum(weights)
    value = norms(arms, weights, targets[:1] - targets[1:2])[0]
    design = Design(*map(jnp.asarray, (weights, value, 0.999 * value, 1, True)))
    most = (1.0 + loss) * design.value
    return design, cut(arms, targets, jnp.asarray(ALIVE), design, most=most, first=first)


TWO = [1.0, 2.0, 0, 0, 0, 0, 0]  # a difference in the span of the first two arms
OF_TWO = [1 / 3, 2 / 3]  # the best design for it


def test_the_arms_left_need_not_span():
    for seed in range(3):
        rng, arms = rotated(seed)
        targets = targets_along(rng, arms, TWO)
        before, found = after_cut(arms, targets, [*OF_TWO, 9e-6, 1e-6, 5e-6, 0, 2e-6])
        assert list(found.weights > 0) == [True, True, *[False] * 5]
        np.testing.assert_allclose(found.weights.sum(), 1.0, rtol=1e-14)
        expected = norms(arms, found.weights, targets[:1] - targets[1:2])[0]
        np.testing.assert_allclose(found.value, expected, rtol=1e-10)
        np.testing.assert_allclose(found.value, (1 + 2) ** 2, rtol=1e-8)  # Elfving's theorem
        assert found.value < before.value


@pytest.mark.parametrize(("first", "left"), [(1e-4, 2), (1e-5, 3)])
def test_weights_are_cut_at_the_first_level_that_is_allowed(first, left):
    rng, arms = rotated()
    targets = targets_along(rng, arms, TWO)
    _, found = after_cut(arms, targets, [*OF_TWO, 3e-5, 2e-6, 2e-6, 2e-6, 2e-6], first=first)
    assert (found.weights > 0).sum() == left


def test_weights_that_measure_a_difference_stay():
    """The third arm is needed: at 1e-4 it would be lost, at 1e-5 it is not."""
    rng, arms = rotated()
    targets = targets_along(rng, arms, [1.0, 2.0, 1e-4, 0, 0, 0, 0])
    weights = [*OF_TWO, 3e-5, 2e-6, 2e-6, 2e-6, 2e-6]
    _, found = after_cut(arms, targets, weights, first=1e-4)
    assert list(found.weights > 0) == [True] * 3 + [False] * 4
    expected = norms(arms, found.weights, targets[:1] - targets[1:2])[0]
    np.testing.assert_allclose(found.value, expected, rtol=1e-8)
    _, none = after_cut(arms, targets, [*OF_TWO, *[9e-6] * 5])
    np.testing.assert_array_equal(none.weights > 0, True)


def test_a_difference_that_leaves_the_span_by_little_does():
    """By 1e-9 of its length: with a large theta along what is lost, estimates would be wrong."""
    rng, arms = rotated()
    targets = targets_along(rng, arms, [1.0, 2.0, 1e-9, 0, 0, 0, 0])
    before, found = after_cut(arms, targets, [*OF_TWO, *[5e-6] * 5])
    np.testing.assert_array_equal(found.weights, before.weights)
    assert found.value == before.value


def test_a_cut_that_costs_too_much_is_not_made():
    rng, arms = rotated()
    targets = targets_along(rng, arms, TWO)
    # The seventh arm alone would do: a difference along it is measured much worse without it.
    targets[1] = targets[0] + 1e-3 * arms[6]
    weights = [*[1 / 6] * 6, 9e-6]
    before, found = after_cut(arms, targets, weights, loss=1e-7)
    np.testing.assert_array_equal(found.weights, before.weights)
    _, found = after_cut(arms, targets, weights, loss=1e-3)
    assert (found.weights > 0).sum() == 6


def test_without_small_weights_a_design_stays_as_it_is():
    rng, arms = rotated()
    targets = targets_along(rng, arms, TWO)
    before, found = after_cut(arms, targets, [*OF_TWO, 2e-5, 0.1, 0, 0.3, 0], first=1e-5)
    np.testing.assert_array_equal(found.weights, before.weights)
    assert found.value == before.value


def test_estimates_where_the_drawn_arms_do_not_span():
    """Differences of targets alive have their estimate and norm; others are not known."""
    rng, arms = rotated()
    counts = np.array([7, 5, 0, 0, 0, 0, 0])
    sums = rng.normal(size=7) * counts
    targets = targets_along(rng, arms, TWO)
    inverse, known = told(arms, counts, targets, ALIVE)
    theta = inverse @ (arms.T @ sums)
    y = targets[1] - targets[0]
    pseudo = np.linalg.pinv((arms.T * counts) @ arms, rcond=1e-10)
    assert known
    np.testing.assert_allclose(y @ inverse @ y, y @ pseudo @ y, rtol=1e-10)
    np.testing.assert_allclose(y @ theta, y @ pseudo @ arms.T @ sums, rtol=1e-10)
    for off in (1.0, 1e-9):  # of the span, by more than rounding
        far = targets_along(rng, arms, [1.0, 2.0, off, 0, 0, 0, 0])
        inverse, known = told(arms, counts, far, ALIVE)
        assert not known
        assert np.isnan(inverse).all()


def test_estimates_where_they_span_are_those_of_least_squares():
    rng, arms = rotated()
    counts, sums = np.arange(1, 8), rng.normal(size=7)
    inverse, known = told(arms, counts, rng.normal(size=(3, DIM)), ALIVE)
    theta = inverse @ (arms.T @ sums)
    assert known
    expected = whole(arms, counts, sums)
    np.testing.assert_allclose(inverse, expected[0], rtol=1e-12)
    np.testing.assert_allclose(theta, expected[1], rtol=1e-12)
