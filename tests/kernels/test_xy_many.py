"""XY designs of many arms from subsets of them: certificates, and the optimum of all arms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from designs import differences, is_design, norms
from solved import conic_optimum

import jaxbandits as jb
from jaxbandits.design.envelope import best_for_gaps, best_for_pairs
from jaxbandits.kernels.design import directions
from jaxbandits.kernels.design.xy import many_arms
from jaxbandits.kernels.design.xy.by_name import (
    MOST_LISTED,
    VERY_MANY,
    are_many,
    bytes_needed,
    named,
)
from jaxbandits.kernels.design.xy.interior_point import xy_optimal

RNG = np.random.default_rng(3)
SLOW = pytest.mark.slow


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def sphere(num, dim):
    points = RNG.normal(size=(num, dim))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def arc(num):
    """Fiez et al. (2019), section 5: many arms close together, two far from them."""
    angles = 0.78 + 0.1 * RNG.random(num - 2)
    return np.vstack([np.c_[np.cos(angles), np.sin(angles)], [[1, 0], [-0.707, 0.707]]])


between = jax.jit(
    lambda arms, targets, alive, tol: named("interior_point", tol).between(arms, targets, alive)
)
along = jax.jit(
    lambda arms, vectors, active, tol: named("interior_point", tol).along(arms, vectors, active)
)


@jax.jit
def at_once(arms, targets, alive):
    pairs = directions.Pairs(targets)
    first, second = pairs.indices
    return xy_optimal(arms, pairs, alive[first] & alive[second], tol=1e-4)


@pytest.mark.parametrize("tol", [pytest.param(0.1, marks=SLOW), 1e-3])
@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("sphere", 0.05),
        pytest.param("arc", 1.0, marks=SLOW),
        pytest.param("sphere", 1.0, marks=SLOW),
    ],
    ids=["some", "arc", "all"],
)
def test_the_value_equals_that_with_all_arms_at_once(name, share, tol):
    arms = sphere(150, 3) if name == "sphere" else arc(150)
    assert are_many(150, 3, 1)
    alive = RNG.random(150) < share
    found = between(jnp.array(arms), jnp.array(arms), jnp.array(alive), tol)
    assert found.converged
    assert found.iterations <= 10  # as soon as the tolerance is reached
    assert found.bound <= found.value <= (1 + tol) * found.bound
    assert is_design(found.weights)
    reached = norms(arms, found.weights, differences(arms[alive])).max()
    np.testing.assert_allclose(found.value, reached, rtol=1e-8)
    best = at_once(jnp.array(arms), jnp.array(arms), jnp.array(alive))
    assert found.bound <= best.value * (1 + 1e-9)
    assert best.bound <= found.value * (1 + 1e-9)


def test_listed_directions_reach_the_optimum():
    arms, vectors = sphere(150, 3), RNG.normal(size=(400, 3))
    active = RNG.random(400) < 0.5
    found = along(jnp.array(arms), jnp.array(vectors), jnp.array(active), 1e-3)
    assert found.converged
    np.testing.assert_allclose(
        found.value, norms(arms, found.weights, vectors[active]).max(), rtol=1e-8
    )
    best = jax.jit(lambda *args: xy_optimal(*args, tol=1e-4))(
        *map(jnp.array, (arms, vectors, active))
    )
    assert best.bound <= found.value <= 1.002 * best.value


def test_many_arms_and_directions_at_once_reach_the_optimum(changed):
    """As in many dimensions; more than there are directions, too."""
    changed.setattr(many_arms, "FEW", 2)
    changed.setattr(many_arms, "added", lambda dim: 9)
    arms, vectors = jnp.array(sphere(150, 3)), RNG.normal(size=(7, 3))
    solve = jax.jit(lambda *args: named("interior_point", 1e-3).along(*args))
    found = solve(arms, jnp.array(vectors), jnp.ones(7, bool))
    assert found.converged
    np.testing.assert_allclose(
        found.value, norms(np.asarray(arms), found.weights, vectors).max(), rtol=1e-8
    )
    np.testing.assert_allclose(found.value, conic_optimum(np.asarray(arms), vectors), rtol=1e-3)


def test_more_are_added_at_once_in_more_dimensions():
    assert [many_arms.added(dim) for dim in (1, 5, 10, 20, 50, 200)] == [4, 4, 9, 35, 212, 256]


@pytest.mark.slow
def test_arms_of_lower_rank_reach_the_optimum():
    rotation = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    flat = np.hstack([sphere(150, 2), np.zeros((150, 1))])
    one = between(*map(jnp.array, (flat @ rotation, flat @ rotation, np.ones(150, bool))), 1e-3)
    other = at_once(*map(jnp.array, (flat[:, :2], flat[:, :2], np.ones(150, bool))))
    assert one.converged
    np.testing.assert_allclose(one.value, other.value, rtol=1.2e-3)


@pytest.mark.parametrize("size", [150, 700])
@pytest.mark.parametrize("number", [2, 3])
def test_what_does_not_count_does_not_matter(number, size):
    """Fewer directions than are added at once: the others are not measured, and bound nothing."""
    arms = sphere(size, 3)
    alive = np.isin(np.arange(size), [7, 50, 149][:number])
    found = between(jnp.array(arms), jnp.array(arms), jnp.array(alive), 1e-3)
    optimum = conic_optimum(arms, differences(arms[alive]))
    assert found.bound <= optimum * (1 + 1e-6)
    np.testing.assert_allclose(found.value, optimum, rtol=1.1e-3)


@pytest.mark.parametrize("number", [1, 3])
def test_listed_directions_that_do_not_count_do_not_matter(number):
    arms, vectors = sphere(150, 3), RNG.normal(size=(400, 3))
    active = np.isin(np.arange(400), [7, 50, 149][:number])
    found = along(jnp.array(arms), jnp.array(vectors), jnp.array(active), 1e-3)
    optimum = conic_optimum(arms, vectors[active])
    assert found.bound <= optimum * (1 + 1e-6)
    np.testing.assert_allclose(found.value, optimum, rtol=1.1e-3)


@pytest.mark.parametrize("number", [0, 1])
def test_fewer_than_two_targets_give_uniform_weights(number):
    arms = jnp.array(sphere(150, 3))
    found = between(arms, arms, jnp.arange(150) < number, 1e-3)
    assert found.converged
    assert found.value == found.bound == 0
    np.testing.assert_allclose(found.weights, 1 / 150)


def test_the_cap_is_reported():
    arms = jnp.array(sphere(150, 3))
    pairs = directions.Pairs(arms)
    first, second = map(jnp.asarray, pairs.indices)

    def worst(inverse, number):
        norms = pairs.sqnorms(inverse)
        order = jnp.argsort(-norms)[:number]
        return many_arms.Found(jnp.stack([first[order], second[order]], 1), norms[order])

    aims = many_arms.Aims(
        worst, lambda ends: arms[ends[:, 0]] - arms[ends[:, 1]], lambda span: jnp.array(False)
    )
    solve = jax.jit(lambda cap: many_arms.xy_many(arms, aims, tol=1e-9, max_rounds=cap)[0])
    found = solve(2)
    assert not found.converged
    assert found.bound < found.value
    assert found.iterations == 2


def test_no_table_of_all_pairs_is_made(monkeypatch):
    monkeypatch.setattr(directions.Pairs, "indices", None)  # of as many numbers as there are pairs
    arms = jax.ShapeDtypeStruct((5000, 3), np.float64)
    found = jax.eval_shape(lambda arms: jb.design.xy_optimal(arms, arms), arms)
    assert found.weights.shape == (5000,)


@pytest.mark.parametrize("dim", [1, 2, 10, 50, 300])
@pytest.mark.parametrize("number", [1, 5, 2000, 10**6])
def test_a_small_problem_has_room_for_what_is_added(number, dim):
    arms, width = many_arms.sizes(number, dim)
    assert arms == number or arms + many_arms.added(dim) <= number
    assert width >= 2 * many_arms.added(dim)


@pytest.mark.parametrize(
    "shape", [(30, 6), *(pytest.param(shape, marks=SLOW) for shape in [(400, 12), (600, 20)])]
)
def test_the_memory_of_a_design_is_about_what_is_said(shape):
    table = jax.ShapeDtypeStruct(shape, np.float64)
    number = directions.Pairs(table).number
    solve = lambda arms: named("interior_point", 0.01).between(arms, arms, arms[:, 0] > 0)  # noqa: E731
    needed = jax.jit(solve).lower(table).compile().memory_analysis().temp_size_in_bytes
    assert needed / 4 < bytes_needed(*shape, number) < 4 * needed + 2**18


def test_a_few_arms_with_very_many_directions_are_many():
    assert not are_many(20, 5, VERY_MANY)
    assert are_many(20, 5, VERY_MANY + 1)


def test_listed_pairs_of_targets_are_many_sooner():
    """Their design is that of one problem with all of them, up to its tolerance."""
    arms = jnp.array(sphere(40, 3))
    lengths = jnp.linspace(0.2, 2.0, MOST_LISTED + 1)[:, None]
    vectors = jnp.array(sphere(MOST_LISTED + 1, 3)) * lengths
    active = jnp.arange(MOST_LISTED + 1) % 3 > 0
    solver = named("interior_point", 1e-4)
    some, every = (
        jax.jit(solver.among)(arms, vectors, active),
        jax.jit(solver.along)(arms, vectors, active),
    )
    assert some.converged & every.converged
    np.testing.assert_allclose(some.value, every.value, rtol=2e-4)
    assert some.iterations != every.iterations  # rounds of small problems, and steps of one
    reached = norms(arms, some.weights, np.asarray(vectors)[np.asarray(active)]).max()
    np.testing.assert_allclose(some.value, reached, rtol=1e-8)
    assert not are_many(40, 3, MOST_LISTED + 1)


@pytest.mark.parametrize("copied", ["all", "some"])
def test_copies_of_arms_take_no_room(copied):
    """The small problem would be full of copies of the arms and directions that violate most."""
    arms = np.repeat(sphere(10, 3), 15, 0)
    if copied == "some":
        arms[100:] = sphere(50, 3)
    found = between(jnp.array(arms), jnp.array(arms), jnp.ones(150, bool), 1e-3)
    assert found.converged
    assert found.iterations <= 15
    once = np.isin(np.arange(150), np.unique(arms, axis=0, return_index=True)[1])
    reached = norms(arms, found.weights, differences(arms[once])).max()
    np.testing.assert_allclose(found.value, reached, rtol=1e-8)
    best = at_once(jnp.array(arms), jnp.array(arms), jnp.array(once))
    np.testing.assert_allclose(found.value, best.value, rtol=1.2e-3)


def test_a_direction_outside_of_the_span_cannot_be_measured():
    flat = sphere(150, 3) * [1.0, 1.0, 0.0]
    alive = np.arange(150) < 100
    above = flat + np.eye(3)[2]  # their differences are in the span
    dead = np.where((np.arange(150) == 140)[:, None], above, flat)  # only one that is not alive
    cases = (flat, True), (above, True), (dead, True), (sphere(150, 3), False)
    for targets, inside in cases:
        found = between(jnp.array(flat), jnp.array(targets), jnp.array(alive), 1e-3)
        assert bool(found.converged) == inside
        assert np.isfinite(found.value) == np.isfinite(found.bound) == inside
    for far in 0, 7:  # seen from a target far away, the one outside is in the plane
        targets = flat * np.where(np.arange(150) == far, 1e6, 1.0)[:, None]
        targets[3, 2] = 0.1
        assert np.isinf(between(*map(jnp.array, (flat, targets, alive)), 1e-3).value)
    same = np.repeat(flat[:3], 50, 0)  # their centre is off the plane by rounding
    turned = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    found = between(*map(jnp.array, (flat @ turned, same @ turned, alive)), 1e-3)
    assert np.isfinite(found.value)
    vectors = np.vstack([flat, flat, flat[:100]])
    vectors[7, 2] = 1.0
    for active in np.arange(400) != 7, np.arange(400) < 400:
        found = along(jnp.array(flat), jnp.array(vectors), jnp.array(active), 1e-3)
        assert np.isfinite(found.value) == (not active[7])


def test_the_value_has_the_derivative_of_the_optimum():
    arms, change = RNG.normal(size=(2, 150, 3))
    active = np.ones(150, bool)
    solve = jax.jit(lambda arms: best_for_pairs(arms, arms, active, 1e-6).design.value)
    slope = jax.jit(lambda *both: jax.jvp(solve, *both))((arms,), (change,))[1]
    below, above = (solve(arms + step * change) for step in (-1e-5, 1e-5))
    np.testing.assert_allclose(slope, (above - below) / 2e-5, rtol=1e-3)


@pytest.mark.slow
def test_the_value_for_known_gaps_has_the_derivative_of_the_optimum():
    arms, change = RNG.normal(size=(2, 150, 3))
    theta = np.array([1.0, 0.5, -0.2])
    solve = jax.jit(lambda arms: best_for_gaps(arms, arms, arms @ theta, 1e-6).design.value)
    slope = jax.jvp(solve, (arms,), (change,))[1]
    below, above = (solve(arms + step * change) for step in (-1e-5, 1e-5))
    np.testing.assert_allclose(slope, (above - below) / 2e-5, rtol=1e-3)
