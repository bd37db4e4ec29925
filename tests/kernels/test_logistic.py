import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from jaxbandits.kernels.confidence import logistic, radius
from jaxbandits.kernels.design.xy.by_name import named

LEVEL = np.sqrt(2 * np.log(1e4))
LOSS = 1.1


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@jax.jit
def design_of(arms, floors, targets, alive, accuracy):
    options = {"level": jnp.array(LEVEL), "accuracy": accuracy, "loss": LOSS}
    return logistic.sized_design(
        named("interior_point").along, arms, floors, targets, alive, **options
    )


@functools.partial(jax.jit, static_argnames="scale")
def learn(arms, counts, sums, floors, scale=1.0):
    return logistic.learn(arms, counts, sums, floors, level=jnp.array(scale * LEVEL))


width_of, logistic_reach = jax.jit(radius.logistic), jax.jit(radius.logistic_reach)


def problem(seed, squeeze=1.0):
    """Arms, floors and targets; a small `squeeze` makes them nearly two-dimensional."""
    rng = np.random.default_rng(seed)
    arms, targets = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    arms[:, 2] *= squeeze
    targets[:, 2] *= squeeze
    return arms, rng.uniform(0.01, 0.25, 5), targets


def shares_left(draws, weights, arms, floors, targets, alive, accuracy):
    """Reach and width after these draws, in units of their limits: at most 1 if enough."""
    matrix = np.einsum("k,ki,kj->ij", draws / LOSS * weights * floors, arms, arms)
    norm = lambda y: np.sqrt(y @ np.linalg.solve(matrix, y))  # noqa: E731
    reach = max(norm(x) for x in arms)
    width = float(width_of(LEVEL, 3, reach))
    farthest = max([norm(a - b) for a in targets[alive] for b in targets[alive]], default=0.0)
    close = float(logistic_reach(LEVEL, 3))
    return reach / close, width * farthest / accuracy


@pytest.mark.parametrize("squeeze", [1.0, 1e-4])
@pytest.mark.parametrize("accuracy", [np.inf, 1.0, 0.05])
def test_the_number_of_draws_is_enough_and_not_too_large(accuracy, squeeze):
    for seed in range(3):
        arms, floors, targets = problem(seed, squeeze)
        alive = np.array([True, False, True, True])
        facts = arms, floors, targets, alive, accuracy
        found = design_of(*map(jnp.asarray, facts))
        assert found.converged
        draws, weights = float(found.draws), np.asarray(found.weights)
        assert max(shares_left(draws, weights, *facts)) <= 1 + 1e-6
        assert max(shares_left(0.999 * draws, weights, *facts)) > 1


def test_targets_not_alive_do_not_matter():
    arms, floors, targets = problem(7)
    alone = np.array([False, False, True, False])
    nearly = design_of(*map(jnp.asarray, (arms, floors, targets, alone, 1e-3)))
    burn_in = design_of(*map(jnp.asarray, (arms, floors, targets, ~alone, np.inf)))
    np.testing.assert_allclose(nearly.draws, burn_in.draws, rtol=2e-3)


def test_an_impossible_design_gets_the_largest_number_of_draws():
    arms, _, targets = problem(8)
    found = design_of(*map(jnp.asarray, (arms, np.zeros(5), targets, np.ones(4, bool), 1.0)))
    assert float(found.draws) == logistic.MOST


def drawn(seed, runs=200):
    """Arms, true means, floors, and reward sums of a design that is just large enough."""
    arms, _, targets = problem(seed)
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=3)
    truth = special.expit(arms @ theta)
    floors = truth * (1 - truth) * rng.uniform(0.5, 1.0, 5)
    facts = arms, floors, targets, np.ones(4, bool), np.inf
    found = design_of(*map(jnp.asarray, facts))
    counts = np.ceil(float(found.draws) * np.asarray(found.weights)).astype(int)
    return arms, truth, floors, counts, rng.binomial(counts, truth, size=(runs, 5))


def test_the_estimate_maximises_the_likelihood_and_floors_stay_below_the_truth():
    """With a quarter of the radius some floors rise above the true variances."""
    false = 0
    for seed in range(3):
        arms, truth, floors, counts, sums = drawn(seed)
        for row in sums[:5]:
            found = learn(*map(jnp.asarray, (arms, counts, row.astype(float), floors)))
            assert found.fitted
            slope = (counts * special.expit(arms @ np.asarray(found.theta)) - row) @ arms
            np.testing.assert_allclose(slope, 0.0, atol=1e-4)
            matrix = np.einsum("k,ki,kj->ij", counts * floors, arms, arms)
            np.testing.assert_allclose(found.inverse, np.linalg.inv(matrix), rtol=1e-9)
        every = jax.vmap(learn, (None, None, 0, None))(
            *map(jnp.asarray, (arms, counts, sums.astype(float), floors))
        )
        assert (every.floors >= floors).all()
        assert (every.floors > floors).any(1).mean() > 0.5
        assert (every.floors <= truth * (1 - truth)).all()
        quarter = jax.vmap(functools.partial(learn, scale=0.25), (None, None, 0, None))(
            *map(jnp.asarray, (arms, counts, sums.astype(float), floors))
        )
        false += (quarter.floors > truth * (1 - truth)).any(1).sum()
    assert false > 30


@pytest.mark.parametrize("scale", [1, 1000])
def test_separable_data_give_no_estimate(scale):
    arms, _, _ = problem(9)
    counts, floors = scale * np.ones(5, int), np.full(5, 0.1)
    sums = counts * (arms @ np.array([1.0, 2.0, -1.0]) > 0)
    found = learn(*map(jnp.asarray, (arms, counts, sums.astype(float), floors)))
    assert not found.fitted
    assert np.isinf(found.width)
    np.testing.assert_array_equal(found.floors, floors)
    np.testing.assert_array_equal(found.theta, 0.0)


def test_too_few_draws_give_an_estimate_without_a_width():
    arms, _, _ = problem(9)
    counts, floors = np.full(5, 4), np.full(5, 0.1)
    found = learn(*map(jnp.asarray, (arms, counts, np.array([2.0, 1, 3, 2, 2]), floors)))
    assert found.fitted
    assert np.isinf(found.width)
    np.testing.assert_array_equal(found.floors, floors)
