import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from jaxbandits.kernels.games import matrix_game

solve = jax.jit(matrix_game.solve)


def value_of(payoffs):
    """By another solver: maximise v with `payoffs^T w >= v`."""
    rows, columns = payoffs.shape
    found = optimize.linprog(
        [*np.zeros(rows), -1.0],
        A_ub=np.c_[-payoffs.T, np.ones(columns)],
        b_ub=np.zeros(columns),
        A_eq=[[*np.ones(rows), 0.0]],
        b_eq=[1.0],
        bounds=[*[(0, None)] * rows, (None, None)],
    )
    return -found.fun


def certified(found, payoffs, active):
    """The weights are a mixture that gains `value`; no mixture gains more than `bound`."""
    weights = np.asarray(found.weights)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(), 1.0)
    np.testing.assert_allclose(found.value, (weights @ payoffs)[active].min(), rtol=1e-12)
    assert bool(found.converged)
    assert float(found.bound) >= float(found.value) - 1e-12 * np.abs(payoffs).max()


@pytest.mark.parametrize("shape", [(4, 3), (7, 7), (20, 5), (3, 12), (1, 4), (5, 1)], ids=str)
def test_the_value_of_random_games(shape):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        payoffs = rng.normal(size=shape) * 10.0 ** rng.integers(-6, 6)
        active = rng.random(shape[1]) < 0.7
        active[rng.integers(shape[1])] = True
        found = solve(jnp.array(payoffs), jnp.array(active))
        certified(found, payoffs, active)
        size = np.abs(payoffs).max()
        np.testing.assert_allclose(found.value, value_of(payoffs[:, active]), atol=1e-8 * size)


@pytest.mark.parametrize(
    ("payoffs", "value", "weights"),
    [
        ([[1.0, -1.0], [-1.0, 1.0]], 0.0, [0.5, 0.5]),
        ([[0, -1, 1], [1, 0, -1], [-1, 1, 0]], 0.0, [1 / 3] * 3),
        ([[3.0, 2.0], [1.0, 0.0]], 2.0, [1.0, 0.0]),  # one row is better in every column
        ([[2.0, 2.0], [2.0, 2.0]], 2.0, None),
    ],
    ids=["pennies", "rock, paper, scissors", "a pure answer", "nothing to choose"],
)
def test_known_games_have_their_value(payoffs, value, weights):
    payoffs = np.array(payoffs, float)
    active = np.ones(payoffs.shape[1], bool)
    found = solve(jnp.array(payoffs), jnp.array(active))
    certified(found, payoffs, active)
    np.testing.assert_allclose(found.value, value, atol=1e-12)
    if weights is not None:
        np.testing.assert_allclose(found.weights, weights, atol=1e-12)


def test_columns_that_nearly_agree_are_solved():
    """Columns differ only in the tenth digit, and many pivots tie."""
    rng = np.random.default_rng(0)
    payoffs = rng.normal(size=(8, 1)) + 1e-10 * rng.integers(0, 2, (8, 6))
    active = np.ones(6, bool)
    found = solve(jnp.array(payoffs), jnp.array(active))
    certified(found, payoffs, active)
    np.testing.assert_allclose(found.value, value_of(payoffs), atol=1e-11)


def test_one_column_takes_one_pivot():
    payoffs = np.random.default_rng(3).normal(size=(9, 4))
    found = solve(jnp.array(payoffs), jnp.arange(4) == 2)
    np.testing.assert_array_equal(found.weights, np.arange(9) == payoffs[:, 2].argmax())
    assert int(found.iterations) == 1


def test_a_game_at_the_cap_of_pivots_has_not_converged():
    payoffs = np.random.default_rng(4).normal(size=(8, 8))
    found = matrix_game.solve(jnp.array(payoffs), jnp.ones(8, bool), max_pivots=1)
    assert not bool(found.converged)
    assert float(found.value) <= value_of(payoffs) <= float(found.bound)
