import jax
import jax.numpy as jnp
import numpy as np
import pytest
from designs import benchmark, differences, norms
from params import params
from scipy import optimize
from solved import certified, conic_optimum, xy_opt, xy_pairs

from jaxbandits.kernels.design.xy import interior_point


@pytest.mark.parametrize("angle", [0.1, 0.01])
@pytest.mark.parametrize("dim", params([3, 5, 10], always=["3"]))
def test_benchmark_value_is_twice_the_dimension(dim, angle):
    arms = benchmark(dim, angle)
    directions = differences(arms)
    found = xy_opt(arms, directions)
    certified(found, arms, directions, 1e-3)
    np.testing.assert_allclose(found.value, 2 * dim, rtol=1e-3)
    assert float(found.bound) <= 2 * dim * (1 + 1e-9)
    assert float(found.value) >= 2 * dim * (1 - 1e-9)


@pytest.mark.parametrize(
    ("dim", "angle", "complexity"),
    [
        (5, 0.1, 110.86),
        (5, 0.01, 10100.84),
        pytest.param(10, 0.1, 112.17, marks=pytest.mark.slow),
        (3, 0.01, 10100.33),
    ],
)
def test_benchmark_complexity_has_its_known_value(dim, angle, complexity):
    # theta = 2 e_1; at angle 0.01 the directions differ in length by a factor 1e4
    arms = benchmark(dim, angle)
    directions = differences(arms)
    to_best = np.arange(len(directions)) < dim  # the pairs with arm 0 come first
    directions[to_best] /= 2 * directions[to_best, :1]
    found = xy_opt(arms, directions, to_best, tol=1e-6)
    certified(found, arms, directions[to_best], 1e-6)
    np.testing.assert_allclose(found.value, complexity, atol=0.006)


@pytest.mark.parametrize(
    ("dim", "value"), [(6, 7.192), pytest.param(20, 23.973, marks=pytest.mark.slow)]
)
def test_transductive_problem_has_its_known_value(dim, value):
    basis = np.eye(dim)
    low, high = basis[: dim // 2], basis[dim // 2 :]
    targets = np.vstack([low, np.cos(0.1) * low + np.sin(0.1) * high])
    found = xy_opt(basis, differences(targets), tol=1e-5)
    certified(found, basis, differences(targets), 1e-5)
    np.testing.assert_allclose(found.value, value, atol=6e-4)


def test_one_direction_has_the_design_of_elfving():
    rng = np.random.default_rng(0)
    for _ in range(5):
        arms, directions = rng.normal(size=(12, 4)), rng.normal(size=(10, 4))
        solved = optimize.linprog(
            np.ones(24), A_eq=np.hstack([arms.T, -arms.T]), b_eq=directions[0]
        )
        signed = solved.x[:12] - solved.x[12:]
        found = xy_opt(arms, directions, np.arange(10) == 0, tol=1e-6)
        certified(found, arms, directions[:1], 1e-6)
        np.testing.assert_allclose(found.value, solved.fun**2, rtol=1e-6)
        np.testing.assert_allclose(found.weights, np.abs(signed) / solved.fun, atol=1e-3)


def test_two_level_factorial_has_its_known_value():
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, 8).T
    pairs = np.stack([signs[:, i] * signs[:, j] for i, j in ((0, 1), (0, 2), (1, 2))], 1)
    arms = np.hstack([np.ones((8, 1)), signs, pairs])
    found = xy_opt(arms, differences(arms), tol=1e-4)
    certified(found, arms, differences(arms), 1e-4)
    longest = (differences(arms) ** 2).sum(1).max()
    np.testing.assert_allclose(found.value, longest, rtol=1e-4)


def test_directions_equal_to_the_arms_give_the_dimension():
    arms = np.random.default_rng(1).normal(size=(10, 4))
    twice = np.concatenate([arms, arms[:2]])
    found = xy_opt(twice, arms, tol=1e-5)
    certified(found, twice, arms, 1e-5)
    np.testing.assert_allclose(found.value, 4.0, rtol=1e-5)


def test_bound_and_value_enclose_the_conic_optimum():
    rng = np.random.default_rng(2)
    for _ in range(3):
        arms, directions = rng.normal(size=(12, 4)), rng.normal(size=(10, 4))
        optimum = conic_optimum(arms, directions)
        found = xy_opt(arms, directions, tol=1e-5)
        certified(found, arms, directions, 1e-5)
        assert float(found.bound) * (1 - 1e-7) <= optimum <= float(found.value) * (1 + 1e-7)


def test_all_differences_cost_at_most_four_times_those_to_one_target():
    rng = np.random.default_rng(3)
    targets, arms = rng.normal(size=(5, 4)), rng.normal(size=(12, 4))
    every = differences(targets)
    to_first = np.arange(10) < 4  # the pairs with target 0 come first
    star, full = xy_opt(arms, every, to_first), xy_opt(arms, every)
    assert float(star.bound) <= float(full.value)
    assert float(full.bound) <= 4 * float(star.value)


def test_only_active_directions_count():
    rng = np.random.default_rng(4)
    arms, directions = rng.normal(size=(12, 4)), rng.normal(size=(10, 4))
    directions[3] *= 1e3
    active = np.arange(10) % 2 == 0
    found = xy_opt(arms, directions, active)
    certified(found, arms, directions[active], 1e-3)
    alone = xy_opt(arms, np.concatenate([directions[active]] * 2))
    np.testing.assert_allclose(found.value, alone.value, rtol=1e-3)


def test_without_an_active_direction_weights_are_uniform():
    arms = np.random.default_rng(5).normal(size=(12, 4))
    found = xy_opt(arms, np.ones((10, 4)), np.zeros(10, bool))
    np.testing.assert_allclose(found.weights, 1 / 12)
    assert float(found.value) == float(found.bound) == 0.0
    assert bool(found.converged)


def test_arms_in_a_subspace_measure_its_directions_alone():
    rng = np.random.default_rng(6)
    frame = np.linalg.qr(rng.normal(size=(4, 2)))[0]
    low, aims = rng.normal(size=(12, 2)), rng.normal(size=(10, 2))
    found = xy_opt(low @ frame.T, aims @ frame.T)
    certified(found, low, aims, 1e-3)
    inside = np.arange(10) != 7
    aims = aims @ frame.T
    aims[7] = rng.normal(size=4)  # leaves the span: no design can measure it
    lost = xy_opt(low @ frame.T, aims)
    assert np.isinf(lost.value)
    assert not bool(lost.converged)
    np.testing.assert_allclose(xy_opt(low @ frame.T, aims, inside).value, found.value, rtol=0.5)


@pytest.mark.parametrize(("dtype", "decades"), [(jnp.float32, 1.0), (jnp.float64, 4.0)])
def test_bad_scaling_changes_nothing(dtype, decades):
    rng = np.random.default_rng(7)
    arms, directions = rng.normal(size=(12, 4)), rng.normal(size=(10, 4))
    scale = np.logspace(0, -decades, 4)
    found = xy_opt(jnp.array(arms * scale, dtype), directions * scale, tol=1e-2)
    plain = xy_opt(arms, directions, tol=1e-6)
    assert found.value.dtype == dtype
    assert bool(found.converged)
    # Checked by norms in double precision instead of the value that the kernel returns.
    measured = norms(arms, found.weights, directions).max()
    assert float(plain.bound) * (1 - 1e-9) <= measured <= 1.011 * float(plain.value)


def test_cap_is_reported():
    rng = np.random.default_rng(8)
    found = xy_opt(rng.normal(size=(12, 4)), rng.normal(size=(10, 4)), max_iterations=2)
    assert int(found.iterations) == 2
    assert not bool(found.converged)
    assert float(found.bound) <= float(found.value)


def test_vmap_equals_a_python_loop():
    rng = np.random.default_rng(9)
    arms, directions = rng.normal(size=(12, 4)), rng.normal(size=(10, 4))
    masks = rng.random((6, 10)) < 0.5
    masks[0] = False
    together = jax.jit(jax.vmap(interior_point.xy_optimal, in_axes=(None, None, 0)))(
        arms, directions, masks
    )
    for row, mask in enumerate(masks):
        alone = xy_opt(arms, directions, mask)
        assert bool(alone.converged)
        assert bool(together.converged[row])
        np.testing.assert_allclose(together.value[row], alone.value, rtol=1e-9)
        np.testing.assert_allclose(together.weights[row], alone.weights, atol=1e-7)


def test_many_pairs_equal_their_list():
    # So many that the kernel sums their curvature over the targets.
    rng = np.random.default_rng(10)
    arms, targets = rng.normal(size=(30, 3)), rng.normal(size=(12, 3))
    directions = differences(targets)
    optimum = conic_optimum(arms, directions)
    found = xy_pairs(arms, targets, tol=1e-5)
    certified(found, arms, directions, 1e-5)
    assert float(found.bound) * (1 - 1e-7) <= optimum <= float(found.value) * (1 + 1e-7)
    listed = xy_opt(arms, directions, tol=1e-5)
    np.testing.assert_allclose(found.value, listed.value, rtol=1e-5)


@pytest.mark.parametrize("tol", params([1e-2, 1e-3, 1e-4], always=["0.0001"]))
def test_few_of_many_targets_converge(tol):
    # The best design may then lack rank, and the path runs along singular matrices.
    rng = np.random.default_rng(11)
    arms = rng.normal(size=(60, 6))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    for number in (2, 2, 3, 3, 4, 6, 60):
        alive = np.zeros(60, bool)
        alive[rng.permutation(60)[:number]] = True
        found = xy_pairs(arms, arms, alive, tol=tol)
        certified(found, arms, differences(arms[alive]), tol)
        assert int(found.iterations) < 25


def test_close_targets_are_measured_accurately():
    # Sums over targets would lose such a small difference to rounding.
    rng = np.random.default_rng(12)
    arms, targets = rng.normal(size=(30, 3)), rng.normal(size=(12, 3))
    targets[1] = targets[0] + 1e-6 * rng.normal(size=3)
    alive = np.arange(12) < 2
    found = xy_pairs(arms, targets, alive)
    measured = norms(arms, found.weights, differences(targets[alive])).max()
    assert bool(found.converged)
    np.testing.assert_allclose(found.value, measured, rtol=1e-6)


@pytest.mark.parametrize("tol", [0.01, 1e-4])
def test_negligible_weights_are_dropped(tol):
    arms = np.random.default_rng(12).normal(size=(30, 3))
    pairs = differences(arms)
    found = xy_opt(arms, pairs, tol=tol)
    weights = np.asarray(found.weights)
    assert 3 <= (weights > 0).sum() <= 9
    assert weights[weights > 0].min() > 0.009 * tol
    assert bool(found.converged)


def test_inactive_directions_change_no_step():
    rng = np.random.default_rng(13)
    arms, vectors = rng.normal(size=(10, 3)), rng.normal(size=(8, 3))
    active = np.arange(8) % 2 == 0
    some, alone = xy_opt(arms, vectors, active), xy_opt(arms, vectors[active])
    assert int(some.iterations) == int(alone.iterations)
    np.testing.assert_allclose(some.weights, alone.weights, atol=1e-9)
    np.testing.assert_allclose([some.value, some.bound], [alone.value, alone.bound], rtol=1e-9)
