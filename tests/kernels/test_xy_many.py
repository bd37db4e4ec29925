"""XY designs of many arms from subsets of them: certificates, and the optimum of all arms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from designs import differences, is_design, norms
from solved import conic_optimum

import jaxbandits as jb
from jaxbandits.kernels.design import directions
from jaxbandits.kernels.design.xy import many_arms
from jaxbandits.kernels.design.xy.by_name import named
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
    assert len(arms) >= 2 * many_arms.room(arms.shape[1])
    alive = RNG.random(150) < share
    found = between(jnp.array(arms), jnp.array(arms), jnp.array(alive), tol)
    assert found.converged
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
    assert [many_arms.added(dim) for dim in (1, 5, 10, 20, 50, 200)] == [4, 4, 4, 17, 106, 256]
    assert all(many_arms.added(dim) < many_arms.room(dim) for dim in range(1, 300))


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
    pairs = directions.Pairs(arms).vectors

    def worst(inverse, number):
        norms = ((pairs @ inverse) * pairs).sum(1)
        order = jnp.argsort(-norms)[:number]
        return many_arms.Found(pairs[order], norms[order])

    found = jax.jit(lambda cap: many_arms.xy_many(arms, worst, tol=1e-9, max_rounds=cap))(2)
    assert not found.converged
    assert found.bound < found.value
    assert found.iterations == 2


def test_no_table_of_all_pairs_is_made(monkeypatch):
    monkeypatch.setattr(directions.Pairs, "indices", None)  # of as many numbers as there are pairs
    arms = jax.ShapeDtypeStruct((5000, 3), np.float64)
    found = jax.eval_shape(lambda arms: jb.design.xy_optimal(arms, arms), arms)
    assert found.weights.shape == (5000,)
