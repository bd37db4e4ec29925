import jax
import jax.numpy as jnp
import numpy as np
import pytest
from designs import is_design, norms

import jaxbandits as jb
from jaxbandits.kernels.design import oracle
from jaxbandits.kernels.design.xy import by_name

SOLVE = by_name.named("interior_point", 1e-2)
estimated = jax.jit(lambda arms, means: oracle.estimated(arms, arms, means, SOLVE))
exact = jax.jit(lambda arms, means: oracle.oracle(arms, arms, means, SOLVE))
TIES = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])  # the last equals the first


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("solved", [estimated, exact])
def test_both_designs_reach_the_characteristic_time(solved):
    """On Soare's instance with the true means; the other certificate has another tolerance."""
    instance = jb.instances.soare(3, angle=0.3)
    found = solved(instance.arms, instance.means)
    wanted = jb.theory.characteristic_time(instance)
    assert is_design(found.weights)
    assert bool(found.converged)
    assert wanted.lower <= float(found.value) * (1 + 1e-9)
    assert float(found.bound) <= wanted.value * (1 + 1e-9)
    assert float(found.value) <= 1.01 * wanted.value


@pytest.mark.slow
def test_without_ties_both_designs_are_equal():
    rng = np.random.default_rng(0)
    arms, theta = rng.normal(size=(6, 3)), rng.normal(size=3)
    one, other = (
        solved(jnp.asarray(arms), jnp.asarray(arms @ theta)) for solved in (estimated, exact)
    )
    np.testing.assert_array_equal(one.weights, other.weights)
    best = (arms @ theta).argmax()
    gaps = (arms[best] - np.delete(arms, best, 0)) @ theta
    lengths = norms(arms, np.asarray(one.weights), arms[best] - np.delete(arms, best, 0))
    np.testing.assert_allclose(one.value, (lengths / gaps**2).max(), rtol=1e-6)


@pytest.mark.parametrize(
    "means",
    [[1.0, 1.0, 0.0, 0.3], pytest.param([0.0] * 4, marks=pytest.mark.slow)],
    ids=["a tie", "all equal"],
)
def test_estimates_with_ties_still_give_a_design(means):
    found = estimated(jnp.array(TIES), jnp.array(means))
    assert is_design(found.weights)
    assert bool(found.converged)
    assert np.isinf(exact(jnp.array(TIES), jnp.array(means)).value)
