import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import compiled
from jax import lax

from jaxbandits.kernels.estimate import least_squares

V0 = 0.7
row_of, sqdist = compiled(least_squares.row, "arm_space"), compiled(least_squares.sqdist)
ridge, gram = compiled(least_squares.ridge, "arm_space"), compiled(least_squares.gram)
batch = compiled(least_squares.batch)


def instance(num_arms, dim, draws=1000, seed=0):
    rng = np.random.default_rng(seed)
    arms = rng.normal(size=(num_arms, dim))
    pulled = rng.integers(0, num_arms, draws)
    return arms, pulled, arms[pulled] @ rng.normal(size=dim) + rng.normal(size=draws)


def observed(arms, pulled, rewards, v0, *, arm_space):
    @compiled
    def play(arms, pulled, rewards):
        def step(state, draw):
            return least_squares.observe(state, arms, *draw, arm_space=arm_space), None

        begin = least_squares.ridge(arms, v0, arm_space=arm_space)
        return lax.scan(step, begin, (pulled, rewards))[0]

    return play(arms, pulled, rewards)


def refactorised(arms, pulled, rewards, v0):
    """V and theta from all draws at once, by NumPy."""
    matrix = v0 * np.eye(arms.shape[1]) + arms[pulled].T @ arms[pulled]
    return matrix, np.linalg.solve(matrix, arms[pulled].T @ rewards)


SHAPES = [(6, 5), (40, 8), (3, 7)]
FORMS = [(*shape, form, jnp.float64, 1e-11) for shape in SHAPES for form in (True, False)]
# Single precision is for the form that the package picks: feature space cannot resolve three
# arms in seven dimensions, where unseen directions dominate V^-1.
FORMS += [(*s, least_squares.prefers_arm_space(np.ones(s)), jnp.float32, 2e-4) for s in SHAPES]


@pytest.mark.parametrize(("num_arms", "dim", "arm_space", "dtype", "close"), FORMS)
def test_thousand_draws_equal_refactorisation(num_arms, dim, arm_space, dtype, close):
    arms, pulled, rewards = instance(num_arms, dim)
    table = np.asarray(arms, dtype)
    state = observed(table, pulled, np.asarray(rewards, dtype), V0, arm_space=arm_space)
    matrix, theta = refactorised(arms, pulled, rewards, V0)
    inverse = np.linalg.inv(matrix)
    between = arms @ inverse @ arms.T
    assert state.means.dtype == dtype
    core = between if arm_space else inverse
    np.testing.assert_allclose(state.core, core, rtol=close, atol=close * np.abs(core).max())
    np.testing.assert_allclose(state.means, arms @ theta, rtol=close, atol=close)
    np.testing.assert_allclose(state.variances, np.diag(between), rtol=10 * close)
    logdet = np.linalg.slogdet(matrix)[1] - dim * np.log(V0)
    np.testing.assert_allclose(state.logdet, logdet, rtol=close)

    arm = np.int64(2)
    row = row_of(state, table, arm, arm_space=arm_space)
    np.testing.assert_allclose(row, between[2], rtol=close, atol=close * np.abs(between).max())
    differences = arms[2] - arms
    expected = np.einsum("ki,ij,kj->k", differences, inverse, differences)
    found = sqdist(state, row, arm)
    np.testing.assert_allclose(found, expected, rtol=20 * close, atol=10 * close * expected.max())


def test_the_estimate_solves_the_normal_equations():
    arms, pulled, rewards = instance(6, 6)  # as many arms as features: theta from the means
    state = observed(arms, pulled, rewards, V0, arm_space=True)
    theta = np.linalg.solve(arms, state.means)
    gradient = arms[pulled].T @ (arms[pulled] @ theta - rewards) + V0 * theta
    assert np.abs(gradient).max() < 1e-8 * np.abs(arms[pulled].T @ rewards).max()


@pytest.mark.optimised
@pytest.mark.parametrize("arm_space", [True, False])
def test_the_distance_of_nearly_equal_arms_is_accurate_after_many_draws(arm_space):
    # e_1 and its neighbour at angle 0.01: their distance is a difference of numbers 1e4 larger.
    angle, dim = 0.01, 5
    arms = np.vstack([np.eye(dim), [np.cos(angle), np.sin(angle), 0, 0, 0]])
    pulled = np.random.default_rng(3).choice(6, 20_000, p=[0.005, 0.99, 0.001, 0.001, 0.001, 0.002])
    rewards = arms[pulled, 0] + np.random.default_rng(4).normal(size=pulled.size)
    state = observed(arms, pulled, rewards, 1.0, arm_space=arm_space)
    matrix, _ = refactorised(arms, pulled, rewards, 1.0)
    gap = arms[0] - arms[5]
    row = row_of(state, arms, np.int64(0), arm_space=arm_space)
    found = sqdist(state, row, np.int64(0))
    np.testing.assert_allclose(found[5], gap @ np.linalg.solve(matrix, gap), rtol=1e-6)
    assert found[0] == 0.0
    assert (np.asarray(found) >= 0).all()


def test_before_any_draw_v_is_the_ridge():
    arms = instance(4, 3)[0]
    for arm_space in (True, False):
        state = ridge(arms, V0, arm_space=arm_space)
        row = row_of(state, arms, np.int64(1), arm_space=arm_space)
        np.testing.assert_allclose(row, arms @ arms[1] / V0)
        np.testing.assert_allclose(state.variances, (np.asarray(arms) ** 2).sum(1) / V0)
        assert state.logdet == 0.0
        assert not state.means.any()


def test_arm_space_is_preferred_up_to_twice_the_dimension():
    assert least_squares.prefers_arm_space(np.ones((10, 5)))
    assert not least_squares.prefers_arm_space(np.ones((11, 5)))


@pytest.mark.parametrize(("dtype", "close"), [(jnp.float32, 2e-4), (jnp.float64, 1e-11)])
@pytest.mark.parametrize("v0", [0.0, 0.7])
def test_batch_equals_least_squares(v0, dtype, close):
    arms, pulled, rewards = instance(9, 4)
    counts = np.bincount(pulled, minlength=9)
    sums = np.bincount(pulled, rewards, minlength=9)
    table = np.asarray(arms, dtype)
    inverse, theta, logdet = batch(table, counts, np.asarray(sums, dtype), v0)
    rows = np.concatenate([arms[pulled], np.sqrt(v0) * np.eye(4)])
    expected, *_ = np.linalg.lstsq(rows, np.concatenate([rewards, np.zeros(4)]))
    np.testing.assert_allclose(theta, expected, rtol=close, atol=close)
    np.testing.assert_allclose(np.asarray(inverse, float) @ (rows.T @ rows), np.eye(4), atol=close)
    np.testing.assert_allclose(logdet, np.linalg.slogdet(rows.T @ rows)[1], rtol=close)
    matrix = gram(table, counts)
    np.testing.assert_allclose(matrix, arms[pulled].T @ arms[pulled], rtol=close, atol=close * 100)


def test_batch_is_accurate_on_a_badly_scaled_design():
    arms, pulled, rewards = instance(9, 4)
    arms = arms * np.logspace(0, -4, 4)
    counts = np.bincount(pulled, minlength=9)
    sums = np.bincount(pulled, rewards, minlength=9)
    _, theta, _ = batch(arms, counts, sums)
    expected, *_ = np.linalg.lstsq(arms[pulled], rewards)
    np.testing.assert_allclose(theta, expected, rtol=1e-7)


def test_batch_that_does_not_span_is_not_finite():
    arms = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    inverse, theta, _ = batch(arms, np.array([3, 2, 0]), np.array([1.0, 1.0, 0.0]))
    assert not np.isfinite(inverse).all()
    assert not np.isfinite(theta).all()


@pytest.mark.parametrize("arm_space", [True, False])
def test_foreseen_draws_need_no_ridge(arm_space):
    """The planned draws may come in any order; the result is plain least squares."""
    arms, pulled, rewards = instance(6, 4, draws=30)
    counts = np.array([1, 0, 2, 1, 0, 1])
    basis = np.array([2, 5, 0, 2, 3])
    pulled = np.concatenate([basis, pulled])
    rewards = np.concatenate([[0.5, -1.0, 2.0, 0.3, 1.1], rewards])

    @jax.jit
    def play():
        def step(state, draw):
            arm, reward, known = draw
            known = {"known": known, "arm_space": arm_space}
            return least_squares.observe(state, jnp.array(arms), arm, reward, **known), None

        begin = least_squares.foreseen(jnp.array(arms), jnp.array(counts), arm_space=arm_space)
        draws = (jnp.array(pulled), jnp.array(rewards), jnp.arange(35) < 5)
        return lax.scan(step, begin, draws)[0]

    state = play()
    matrix, theta = refactorised(arms, pulled, rewards, 0.0)
    between = arms @ np.linalg.inv(matrix) @ arms.T
    core = between if arm_space else np.linalg.inv(matrix)
    np.testing.assert_allclose(state.core, core, atol=1e-10)
    np.testing.assert_allclose(state.means, arms @ theta, atol=1e-10)
    np.testing.assert_allclose(state.variances, np.diag(between), atol=1e-10)
    np.testing.assert_allclose(state.logdet, np.linalg.slogdet(matrix)[1], rtol=1e-10)
