import jax
import numpy as np
import pytest
from compiled import compiled
from scipy import optimize

from jaxbandits.kernels.confidence import glr
from jaxbandits.kernels.estimate import least_squares

evidence, certain = compiled(glr.evidence, "arm_space"), compiled(glr.certain)
ridge = compiled(least_squares.ridge, "arm_space")


def problem(num_arms, dim, draws=60, seed=0, v0=0.3):
    """A ledger, its arms, and matrix and moment in NumPy."""
    rng = np.random.default_rng(seed)
    arms = rng.normal(size=(num_arms, dim))
    pulled, rewards = rng.integers(0, num_arms, draws), rng.normal(size=draws)
    form = {"arm_space": least_squares.prefers_arm_space(arms)}

    @compiled
    def observed(table, pulled, rewards):
        def step(stats, draw):
            return least_squares.observe(stats, table, *draw, **form), None

        begin = least_squares.ridge(table, v0, **form)
        return jax.lax.scan(step, begin, (pulled, rewards))[0]

    stats = observed(arms, pulled, rewards)
    matrix = v0 * np.eye(dim) + arms[pulled].T @ arms[pulled]
    return stats, arms, form, matrix, arms[pulled].T @ rewards


@pytest.mark.parametrize(("num_arms", "dim"), [(5, 4), (9, 3)])
def test_the_ratio_is_the_distance_of_the_closest_alternative(num_arms, dim):
    """Half the ratio is the least drop of the log-likelihood that makes another arm as good."""
    stats, arms, form, matrix, moment = problem(num_arms, dim)
    found = evidence(stats, arms, **form)
    theta = np.linalg.solve(matrix, moment)
    means = arms @ theta
    assert int(found.leader) == means.argmax()
    np.testing.assert_allclose(found.gaps, means.max() - means, atol=1e-12)

    def drop(j):
        direction = arms[found.leader] - arms[j]
        result = optimize.minimize(
            lambda x: (x - theta) @ matrix @ (x - theta),
            np.zeros(dim),
            jac=lambda x: 2 * matrix @ (x - theta),
            constraints={"type": "ineq", "fun": lambda x: -direction @ x},
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        return result.fun

    drops = [drop(j) if j != found.leader else np.inf for j in range(num_arms)]
    assert int(found.rival) == int(np.argmin(drops))
    np.testing.assert_allclose(found.ratio, min(drops), rtol=1e-6)


def test_certain_is_a_comparison_with_every_arm():
    stats, arms, form, matrix, _ = problem(6, 3, seed=4)
    found = evidence(stats, arms, **form)
    inverse = np.linalg.inv(matrix)
    others = [j for j in range(6) if j != found.leader]
    lengths = [np.sqrt((y := arms[found.leader] - arms[j]) @ inverse @ y) for j in others]
    clear = np.min(np.asarray(found.gaps)[others] / lengths)  # in units of the distance
    for share, expected in ((0.999, True), (1.001, False)):
        width = share * clear
        every = np.all(np.asarray(found.gaps)[others] >= width * np.array(lengths))
        assert bool(certain(found, width)) == every == expected


def test_a_tie_is_never_certain_and_a_single_arm_always():
    even = ridge(np.eye(3), 1.0, arm_space=True)
    assert not bool(certain(evidence(even, np.eye(3), arm_space=True), 1e-6))
    alone = np.ones((1, 1))
    found = evidence(ridge(alone, 1.0, arm_space=True), alone, arm_space=True)
    assert bool(certain(found, 1e6))
