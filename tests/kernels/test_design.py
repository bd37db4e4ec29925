import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from jaxbandits.kernels import design, xy_design

d_optimal, xy_optimal = jax.jit(design.d_optimal), jax.jit(xy_design.xy_optimal)


def d_opt(arms, active=None, *, tol=0.01, max_iterations=20_000):
    arms = jnp.asarray(arms)
    active = jnp.ones(arms.shape[0], bool) if active is None else jnp.array(active, bool)
    return d_optimal(arms, active, tol=tol, max_iterations=max_iterations)


def xy_opt(arms, directions, active=None, *, tol=1e-3, max_iterations=200):
    """Every option is passed, so that one shape compiles once."""
    arms, directions = jnp.asarray(arms), jnp.asarray(directions, jnp.asarray(arms).dtype)
    active = jnp.ones(directions.shape[0], bool) if active is None else jnp.array(active, bool)
    return xy_optimal(arms, directions, active, tol=tol, max_iterations=max_iterations)


def information(arms, weights):
    return np.einsum("k,ki,kj->ij", np.asarray(weights, float), arms, arms)


def norms(arms, weights, vectors):
    """`||v||^2` in the pseudo-inverse of A(w): numpy's own."""
    inverse = np.linalg.pinv(information(arms, weights), rcond=1e-11)
    return np.einsum("ni,ij,nj->n", vectors, inverse, vectors)


def is_design(weights):
    weights = np.asarray(weights, float)
    return (weights >= 0).all() and abs(weights.sum() - 1) < 1e-6


def benchmark(dim, angle):
    extra = np.zeros(dim)
    extra[:2] = np.cos(angle), np.sin(angle)
    return np.vstack([np.eye(dim), extra])


def differences(targets):
    first, second = np.triu_indices(len(targets), 1)
    return targets[first] - targets[second]


class TestDOptimal:
    def test_basis_arms(self):
        found = d_opt(np.eye(5))
        np.testing.assert_allclose(found.weights, 0.2)
        np.testing.assert_allclose(found.value, 5.0)
        assert (int(found.iterations), bool(found.converged)) == (0, True)

    def test_quadratic_regression(self):
        u = np.linspace(-1, 1, 21)
        found = d_opt(np.stack([u**0, u, u**2], axis=1), tol=1e-5)
        assert bool(found.converged)
        np.testing.assert_allclose(found.weights[jnp.array([0, 10, 20])], 1 / 3, atol=1e-3)
        np.testing.assert_allclose(found.value, 3.0, rtol=1e-5)

    def test_regular_polygon(self):
        angle = 2 * np.pi * np.arange(7) / 7
        found = d_opt(np.stack([np.cos(angle), np.sin(angle)], axis=1))
        np.testing.assert_allclose(found.weights, 1 / 7)
        np.testing.assert_allclose(found.value, 2.0)

    def test_one_dimension_takes_the_longest_arm(self):
        found = d_opt(np.array([[0.5], [-2.0], [1.0]]), tol=1e-8)
        np.testing.assert_allclose(found.weights, [0, 1, 0], atol=1e-6)

    def test_where_frank_wolfe_on_the_maximum_stalls(self):
        found = d_opt(np.array([[2.0, 1], [0, -1], [-1, -2]]), tol=1e-6)
        np.testing.assert_allclose(found.weights, [0.5, 0, 0.5], atol=1e-5)
        np.testing.assert_allclose(found.value, 2.0, rtol=1e-6)

    def test_benchmark_gives_up_the_disturbing_arm(self):
        arms = benchmark(5, 0.1)
        assert norms(arms, np.full(6, 1 / 6), arms).max() == pytest.approx(6.0)
        found = d_opt(arms, tol=1e-4)
        assert bool(found.converged)
        assert float(found.weights[5]) < 0.02
        np.testing.assert_allclose(found.weights[1:5], 0.2, atol=1e-3)

    @pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
    def test_certificate(self, dtype):
        arms = np.random.default_rng(0).normal(size=(30, 5))
        found = d_opt(jnp.array(arms, dtype))
        widths = norms(arms, found.weights, arms)
        assert is_design(found.weights)
        assert found.value.dtype == dtype
        assert bool(found.converged)
        assert float(found.bound) == 5
        np.testing.assert_allclose(widths.max(), found.value, rtol=1e-4)
        assert 5 - 1e-9 <= widths.max() <= 5 * 1.0101
        np.testing.assert_allclose(np.asarray(found.weights, float) @ widths, 5.0, rtol=1e-6)

    def test_equals_a_conic_solver(self):
        arms = np.random.default_rng(0).normal(size=(30, 5))
        weights = cvxpy.Variable(30, nonneg=True)
        logdet = cvxpy.log_det(arms.T @ cvxpy.diag(weights) @ arms)
        cvxpy.Problem(cvxpy.Maximize(logdet), [cvxpy.sum(weights) == 1]).solve(cvxpy.CLARABEL)
        found = d_opt(arms, tol=1e-6)
        ours = np.linalg.slogdet(information(arms, found.weights))[1]
        assert ours == pytest.approx(logdet.value, abs=1e-5)
        np.testing.assert_allclose(found.weights, weights.value, atol=2e-3)

    def test_determinant_never_falls(self):
        arms = np.random.default_rng(1).normal(size=(30, 5)) * np.linspace(1, 9, 30)[:, None]
        path = [d_opt(arms, tol=0.0, max_iterations=steps) for steps in range(25)]
        logdets = [np.linalg.slogdet(information(arms, found.weights))[1] for found in path]
        assert (np.diff(logdets) > -1e-12).all()
        assert logdets[-1] > logdets[0] + 0.1
        assert not bool(path[5].converged)
        assert int(path[5].iterations) == 5

    def test_only_active_arms_get_weight(self):
        arms = np.random.default_rng(2).normal(size=(30, 5))
        active = np.arange(30) % 3 == 0
        found, alone = d_opt(arms, active, tol=1e-3), d_opt(arms[active], tol=1e-3)
        assert (np.asarray(found.weights)[~active] == 0).all()
        np.testing.assert_allclose(np.asarray(found.weights)[active], alone.weights, rtol=1e-6)
        np.testing.assert_allclose(found.value, alone.value, rtol=1e-9)

    def test_arms_in_a_subspace(self):
        rng = np.random.default_rng(3)
        low, frame = rng.normal(size=(30, 3)), np.linalg.qr(rng.normal(size=(5, 3)))[0]
        found, plain = d_opt(low @ frame.T, tol=1e-3), d_opt(low, tol=1e-3)
        assert float(found.bound) == 3
        assert float(found.value) <= 3.003
        # Other coordinates, other exchanges; but the optimum is one.
        logdets = [np.linalg.slogdet(information(low, x.weights))[1] for x in (found, plain)]
        np.testing.assert_allclose(*logdets, atol=3e-3)

    @pytest.mark.parametrize(("dtype", "spread"), [(jnp.float32, 1.5), (jnp.float64, 5.0)])
    def test_bad_scaling_changes_nothing(self, dtype, spread):
        # The problem is affinely invariant, so units of the features must not matter.
        arms = np.random.default_rng(4).normal(size=(30, 5))
        scaled = arms * np.logspace(0, -spread, 5)
        found, plain = d_opt(jnp.array(scaled, dtype)), d_opt(arms)
        assert bool(found.converged)
        assert float(found.bound) == 5
        np.testing.assert_allclose(found.weights, plain.weights, atol=1e-4)

    def test_lanes_equal_a_loop(self):
        arms = jnp.array(np.random.default_rng(5).normal(size=(30, 5)))
        masks = jnp.array(np.random.default_rng(6).random((8, 30)) < 0.5)
        together = jax.jit(jax.vmap(design.d_optimal, in_axes=(None, 0)))(arms, masks)
        assert len(set(np.asarray(together.iterations))) > 1
        for row, mask in enumerate(masks):
            alone = d_opt(arms, mask)
            assert int(alone.iterations) == int(together.iterations[row])
            np.testing.assert_allclose(together.weights[row], alone.weights, atol=1e-10)


def certified(found, arms, directions, tol):
    """The value is that of the design returned, and the bound is close below it."""
    measured = norms(arms, found.weights, directions).max()
    assert is_design(found.weights)
    np.testing.assert_allclose(found.value, measured, rtol=1e-6)
    assert bool(found.converged)
    assert float(found.bound) <= float(found.value) <= (1 + tol) * float(found.bound)


class TestXYOptimal:
    @pytest.mark.parametrize("angle", [0.1, 0.01])
    @pytest.mark.parametrize("dim", [3, 5, pytest.param(10, marks=pytest.mark.slow)])
    def test_benchmark_value_is_twice_the_dimension(self, dim, angle):
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
    def test_benchmark_complexity(self, dim, angle, complexity):
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
    def test_transductive_value(self, dim, value):
        basis = np.eye(dim)
        low, high = basis[: dim // 2], basis[dim // 2 :]
        targets = np.vstack([low, np.cos(0.1) * low + np.sin(0.1) * high])
        found = xy_opt(basis, differences(targets), tol=1e-5)
        certified(found, basis, differences(targets), 1e-5)
        np.testing.assert_allclose(found.value, value, atol=6e-4)

    def test_one_direction_is_elfving(self):
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

    def test_two_level_factorial(self):
        signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, 8).T
        pairs = np.stack([signs[:, i] * signs[:, j] for i, j in ((0, 1), (0, 2), (1, 2))], 1)
        arms = np.hstack([np.ones((8, 1)), signs, pairs])
        found = xy_opt(arms, differences(arms), tol=1e-4)
        certified(found, arms, differences(arms), 1e-4)
        longest = (differences(arms) ** 2).sum(1).max()
        np.testing.assert_allclose(found.value, longest, rtol=1e-4)

    def test_directions_equal_to_the_arms_give_the_dimension(self):
        arms = np.random.default_rng(1).normal(size=(10, 4))
        twice = np.concatenate([arms, arms[:2]])
        found = xy_opt(twice, arms, tol=1e-5)
        certified(found, twice, arms, 1e-5)
        np.testing.assert_allclose(found.value, 4.0, rtol=1e-5)

    def test_brackets_a_conic_solver(self):
        rng = np.random.default_rng(2)
        for _ in range(3):
            arms, directions = rng.normal(size=(12, 4)), rng.normal(size=(10, 4))
            weights, level = cvxpy.Variable(12, nonneg=True), cvxpy.Variable()
            matrix = arms.T @ cvxpy.diag(weights) @ arms
            bounds = [cvxpy.matrix_frac(y, matrix) <= level for y in directions]
            problem = cvxpy.Problem(cvxpy.Minimize(level), [cvxpy.sum(weights) == 1, *bounds])
            optimum = problem.solve(cvxpy.CLARABEL)
            found = xy_opt(arms, directions, tol=1e-5)
            certified(found, arms, directions, 1e-5)
            assert float(found.bound) * (1 - 1e-7) <= optimum <= float(found.value) * (1 + 1e-7)

    def test_differences_to_the_best_and_between_all(self):
        rng = np.random.default_rng(3)
        targets, arms = rng.normal(size=(5, 4)), rng.normal(size=(12, 4))
        every = differences(targets)
        to_first = np.arange(10) < 4  # the pairs with target 0 come first
        star, full = xy_opt(arms, every, to_first), xy_opt(arms, every)
        assert float(star.bound) <= float(full.value)
        assert float(full.bound) <= 4 * float(star.value)

    def test_only_active_directions_count(self):
        rng = np.random.default_rng(4)
        arms, directions = rng.normal(size=(12, 4)), rng.normal(size=(10, 4))
        directions[3] *= 1e3
        active = np.arange(10) % 2 == 0
        found = xy_opt(arms, directions, active)
        certified(found, arms, directions[active], 1e-3)
        alone = xy_opt(arms, np.concatenate([directions[active]] * 2))
        np.testing.assert_allclose(found.value, alone.value, rtol=1e-3)

    def test_no_active_direction(self):
        arms = np.random.default_rng(5).normal(size=(12, 4))
        found = xy_opt(arms, np.ones((10, 4)), np.zeros(10, bool))
        np.testing.assert_allclose(found.weights, 1 / 12)
        assert float(found.value) == float(found.bound) == 0.0
        assert bool(found.converged)

    def test_arms_in_a_subspace(self):
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

    @pytest.mark.parametrize(("dtype", "spread"), [(jnp.float32, 1.0), (jnp.float64, 4.0)])
    def test_bad_scaling_changes_nothing(self, dtype, spread):
        rng = np.random.default_rng(7)
        arms, directions = rng.normal(size=(12, 4)), rng.normal(size=(10, 4))
        scale = np.logspace(0, -spread, 4)
        found = xy_opt(jnp.array(arms * scale, dtype), directions * scale, tol=1e-2)
        plain = xy_opt(arms, directions, tol=1e-6)
        assert found.value.dtype == dtype
        assert bool(found.converged)
        # Judged by the true norms in double precision, whatever the kernel says of itself.
        measured = norms(arms, found.weights, directions).max()
        assert float(plain.bound) * (1 - 1e-9) <= measured <= 1.011 * float(plain.value)

    def test_cap_is_reported(self):
        rng = np.random.default_rng(8)
        found = xy_opt(rng.normal(size=(12, 4)), rng.normal(size=(10, 4)), max_iterations=2)
        assert int(found.iterations) == 2
        assert not bool(found.converged)
        assert float(found.bound) <= float(found.value)

    def test_lanes_equal_a_loop(self):
        rng = np.random.default_rng(9)
        arms, directions = jnp.array(rng.normal(size=(12, 4))), jnp.array(rng.normal(size=(10, 4)))
        masks = jnp.array(rng.random((6, 10)) < 0.5).at[0].set(False)
        together = jax.jit(jax.vmap(xy_design.xy_optimal, in_axes=(None, None, 0)))(
            arms, directions, masks
        )
        for row, mask in enumerate(masks):
            alone = xy_opt(arms, directions, mask)
            assert bool(alone.converged)
            assert bool(together.converged[row])
            np.testing.assert_allclose(together.value[row], alone.value, rtol=1e-9)
            np.testing.assert_allclose(together.weights[row], alone.weights, atol=1e-7)


def test_pair_directions():
    targets = np.random.default_rng(0).normal(size=(5, 3))
    found, first, second = jax.jit(xy_design.pair_directions)(jnp.array(targets))
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == pairs
    np.testing.assert_array_equal(found, [targets[a] - targets[b] for a, b in pairs])
