"""XY designs where arms or directions are many: Newton systems of few dimensions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from designs import benchmark, differences
from solved import certified, conic_optimum, pairs_optimal, xy_opt, xy_pairs

from jaxbandits.kernels.design.xy import barrier, interior_point, newton


def many_arms(number):
    """Arms in the plane: many at close angles, the best arm, and an informative one."""
    angles = 0.78 + 0.1 * np.random.default_rng(number).random(number - 2)
    spread = np.stack([np.cos(angles), np.sin(angles)], 1)
    return np.vstack([spread, [[1.0, 0.0], [-0.707, 0.707]]])


def sphere(number, dim):
    points = np.random.default_rng(number).normal(size=(number, dim))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def two_level(factors):
    """Main effects and two-factor interactions of all layouts with two levels."""
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * factors)).reshape(factors, -1).T
    first, second = np.triu_indices(factors, 1)
    return np.hstack([np.ones((2**factors, 1)), signs, signs[:, first] * signs[:, second]])


def transductive(dim):
    low, high = np.eye(dim)[: dim // 2], np.eye(dim)[dim // 2 :]
    return np.vstack([low, np.cos(0.1) * low + np.sin(0.1) * high])


def to_best(targets, theta):
    """Directions of the complexity."""
    values = targets @ theta
    others = np.arange(len(targets)) != values.argmax()
    return (targets[values.argmax()] - targets[others]) / (values.max() - values[others])[:, None]


@pytest.mark.slow
def test_the_small_newton_system_equals_that_of_all_arms(changed):
    arms = many_arms(120)
    directions = to_best(arms, np.array([1.0, 0.0]))
    assert len(arms) > newton.MANY
    one = xy_opt(arms, directions, tol=1e-5)
    certified(one, arms, directions, 1e-5)
    changed.setattr(newton, "MANY", len(arms))
    other = jax.jit(lambda *args: interior_point.xy_optimal(*args, tol=1e-5))(
        jnp.array(arms), jnp.array(directions), jnp.ones(len(directions), bool)
    )
    assert abs(int(one.iterations) - int(other.iterations)) <= 1
    np.testing.assert_allclose(one.value, other.value, rtol=1e-5)


def test_all_differences_of_many_arms_are_solved(changed):
    """Without a table of the squares of directions, too."""
    arms = many_arms(120)
    changed.setattr(barrier, "TABLE", 0)
    solve = jax.jit(lambda *args: pairs_optimal.__wrapped__(*args))
    found = solve(jnp.array(arms), jnp.array(arms), jnp.ones(len(arms), bool), 1e-3)
    certified(found, arms, differences(arms), 1e-3)
    np.testing.assert_allclose(found.value, 4.0, rtol=1e-3)
    few = np.arange(len(arms)) % 17 == 0
    found = solve(jnp.array(arms), jnp.array(arms), jnp.array(few), 1e-3)
    certified(found, arms, differences(arms[few]), 1e-3)


def test_a_looser_tolerance_ends_earlier():
    arms = benchmark(5, 0.1)
    steps = [int(xy_opt(arms, differences(arms), tol=tol).iterations) for tol in (0.3, 1e-3, 1e-6)]
    assert steps[0] < steps[1] < steps[2] <= 12


def test_duplicates_of_arms_and_targets_do_not_change_the_value():
    rng = np.random.default_rng(13)
    arms, targets = rng.normal(size=(6, 4)), rng.normal(size=(5, 4))
    plain = xy_pairs(np.vstack([arms] * 2), targets, tol=1e-5)
    exact = conic_optimum(arms, differences(targets))
    certified(plain, np.vstack([arms] * 2), differences(targets), 1e-5)
    np.testing.assert_allclose(plain.value, exact, rtol=1e-5)
    twice = xy_pairs(np.vstack([arms] * 2), targets[[0, 1, 2, 3, 4, 0, 1]], tol=1e-5)
    np.testing.assert_allclose(twice.value, exact, rtol=1e-5)
    assert bool(twice.converged)
    same = xy_pairs(np.vstack([arms] * 2), targets[[0, 0, 0, 0, 0]])
    assert (float(same.value), float(same.bound), bool(same.converged)) == (0, 0, True)
    np.testing.assert_allclose(same.weights, 1 / 12)


@pytest.mark.slow
def test_duplicate_arms_in_a_subspace_do_not_change_the_value():
    rng = np.random.default_rng(14)
    frame = np.linalg.qr(rng.normal(size=(4, 2)))[0]
    low, aims = rng.normal(size=(6, 2)), rng.normal(size=(10, 2))
    twice = np.vstack([low, low])
    found = xy_opt(twice @ frame.T, aims @ frame.T, tol=1e-5)
    certified(found, twice, aims, 1e-5)
    np.testing.assert_allclose(found.value, conic_optimum(low, aims), rtol=1e-5)


PAPERS = {
    "benchmark 15": (benchmark(15, 0.01), None, 2 * np.eye(15)[0], 30.0),
    "benchmark 35": (benchmark(35, 0.1), None, 2 * np.eye(35)[0], 70.0),
    "transductive 12": (np.eye(12), transductive(12), np.eye(12)[0], 14.384),
    "transductive 40": (np.eye(40), transductive(40), np.eye(40)[0], None),
    "transductive 80": (np.eye(80), transductive(80), np.eye(80)[0], None),
    "transductive 160": (np.eye(160), transductive(160), np.eye(160)[0], None),
    "sphere 20": (sphere(20, 9), None, sphere(20, 9)[0], None),
    "sphere 100": (sphere(100, 9), None, sphere(100, 9)[0], None),
    "sphere 250": (sphere(250, 9), None, sphere(250, 9)[0], None),
    "sphere 1000": (sphere(1000, 9), None, sphere(1000, 9)[0], None),
    "many arms 10": (many_arms(10), None, np.eye(2)[0], 4.0),
    "many arms 1000": (many_arms(1000), None, np.eye(2)[0], 4.0),
    "two levels 4": (two_level(4), None, np.logspace(0, -2, 11), 24.0),
    "two levels 5": (two_level(5), None, np.logspace(0, -2, 16), 36.0),
    "two levels 8": (two_level(8), None, np.logspace(0, -2, 37), 80.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_instances_of_the_papers_are_solved_in_few_steps(name):
    """The values are checked with norms by NumPy."""
    arms, targets, theta, value = PAPERS[name]
    targets = arms if targets is None else targets
    for tol in (0.1, 1e-3):
        found = xy_pairs(arms, targets, tol=tol)
        certified(found, arms, differences(targets), tol)
        assert int(found.iterations) <= 25
        assert value is None or float(found.bound) * (1 - 1e-4) <= value <= float(found.value) * (
            1 + 1e-4
        )
        directions = to_best(targets, theta)
        found = xy_opt(arms, directions, tol=tol)
        certified(found, arms, directions, tol)
        assert int(found.iterations) <= 25


@pytest.mark.slow
@pytest.mark.parametrize("alive", [2, 10, 16, 40])
def test_few_of_many_targets_are_solved(alive):
    """The optimal design lacks rank, and its Newton system needs exact sums."""
    arms = two_level(8)
    chosen = np.random.default_rng(alive).permutation(len(arms))[:alive]
    found = xy_pairs(arms, arms, np.isin(np.arange(len(arms)), chosen))
    certified(found, arms, differences(arms[chosen]), 1e-3)
