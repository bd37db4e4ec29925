import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from jaxbandits.kernels.games import best_response


@jax.jit
def response(arms, weights, theta):
    """Leader, rival and `x_k^T (theta - lambda)`."""
    means = arms @ theta
    leader = jnp.argmax(means)
    gaps = means[leader] - means
    measured = best_response.design(arms, weights)
    rival = best_response.closest(arms, measured, leader, gaps)
    return leader, rival, best_response.change(arms, measured, leader, rival, gaps[rival])


def random_problem(seed, num_arms=6, dim=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(num_arms, dim)), rng.dirichlet(np.ones(num_arms)), rng.normal(size=dim)


def distance(arms, weights, change):
    """`||theta - lambda||^2` in V_w, from the change of the arms' values."""
    return weights @ np.asarray(change) ** 2


@pytest.mark.parametrize("seed", range(3))
def test_no_alternative_is_closer(seed):
    arms, weights, theta = random_problem(seed)
    leader, rival, change = response(arms, weights, theta)
    closest = theta - np.linalg.lstsq(arms, np.asarray(change), rcond=None)[0]
    means = arms @ closest
    np.testing.assert_allclose(means[rival], means[leader], atol=1e-6)
    matrix = arms.T @ (weights[:, None] * arms)

    def least(j):
        y = arms[leader] - arms[j]
        result = optimize.minimize(
            lambda x: (x - theta) @ matrix @ (x - theta),
            np.zeros(3),
            constraints={"type": "ineq", "fun": lambda x: -y @ x},
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        return result.fun

    found = [least(j) if j != leader else np.inf for j in range(6)]
    assert int(rival) == int(np.argmin(found))
    np.testing.assert_allclose(distance(arms, weights, change), min(found), rtol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_the_response_to_a_set_is_the_closest_of_all_pairs(seed):
    """A pair is an arm of the set and one outside; a set of one arm is answered as a leader."""
    arms, weights, theta = random_problem(seed)
    means = arms @ theta
    top = np.isin(np.arange(6), np.argsort(-means)[:2])
    respond = jax.jit(best_response.response_to_set)
    change = respond(arms, weights, top, means)
    inverse = np.linalg.inv(arms.T @ (weights[:, None] * arms))
    pairs = [(i, j) for i in np.flatnonzero(top) for j in np.flatnonzero(~top)]
    costs = [
        (means[i] - means[j]) ** 2 / ((y := arms[i] - arms[j]) @ inverse @ y) for i, j in pairs
    ]
    i, j = pairs[int(np.argmin(costs))]
    np.testing.assert_allclose(distance(arms, weights, change), min(costs), rtol=1e-5)
    np.testing.assert_allclose(change[i] - change[j], means[i] - means[j], rtol=1e-6)
    one = respond(arms, weights, np.arange(6) == means.argmax(), means)
    np.testing.assert_allclose(one, response(arms, weights, theta)[2], rtol=1e-5, atol=1e-7)


def test_a_design_on_one_arm_has_an_alternative_at_distance_zero():
    """The alternative lies in a direction that the design does not measure."""
    arms, _, theta = random_problem(7)
    leader, rival, change = response(arms, np.eye(6)[2], theta)
    assert np.isfinite(change).all()
    assert distance(arms, np.eye(6)[2], change) < 1e-6
    gap = (arms[leader] - arms[rival]) @ theta
    np.testing.assert_allclose(change[leader] - change[rival], gap, rtol=1e-6)


def test_the_response_to_equal_arms_is_zero_and_not_nan():
    arms = np.array([[1.0, 0.0], [1.0, 0.0]])
    _, _, change = response(arms, np.array([0.5, 0.5]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(change, 0.0, atol=1e-12)
