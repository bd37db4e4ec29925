"""Logarithms of lanes against NumPy's in extended precision, and SciPy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from jaxbandits.compilers import logarithms
from jaxbandits.compilers.lanewise import lanewise

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def last_places(found, exact):
    """The largest error in units of the last place."""
    exact = exact.astype(np.float64)
    return np.max(np.abs(found - exact) / np.spacing(np.abs(exact)))


def test_log_is_accurate_to_the_last_place():
    near_one = 1.0 + RNG.normal(size=20_000) * np.geomspace(1e-12, 0.1, 20_000)
    x = np.concatenate([np.exp(RNG.uniform(-700, 700, 100_000)), near_one])
    assert last_places(np.asarray(jax.jit(logarithms.log)(x)), np.log(np.longdouble(x))) <= 1.5


def test_log1p_is_accurate_to_the_last_places():
    tiny = RNG.normal(size=20_000) * np.geomspace(1e-300, 0.1, 20_000)
    x = np.concatenate([np.exp(RNG.uniform(-700, 700, 50_000)), -RNG.random(50_000), tiny])
    assert last_places(np.asarray(jax.jit(logarithms.log1p)(x)), np.log1p(np.longdouble(x))) <= 2.5


def test_the_inverse_of_the_error_function_equals_that_of_jax():
    x = np.concatenate([RNG.uniform(-1, 1, 50_000), 1 - np.geomspace(1e-12, 1, 1000)])
    found = np.asarray(jax.jit(logarithms.erf_inv)(x))
    np.testing.assert_allclose(found, jax.jit(jax.lax.erf_inv)(x), rtol=1e-14)
    np.testing.assert_allclose(special.erf(found), x, rtol=1e-14)


@pytest.mark.parametrize("name", ["log", "log1p", "erf_inv"])
def test_special_values_equal_those_of_jax(name):
    x = jnp.array([0.0, 1.0, -1.0, -2.0, 2.0, jnp.inf, -jnp.inf, jnp.nan])
    found = jax.jit(getattr(logarithms, name))(x)
    expected = getattr(jax.lax, name)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_zero_keeps_its_sign():
    """`jax.random.binomial` divides by `log1p(-0.0)` for a probability of 0."""
    found = jax.jit(logarithms.log1p)(jnp.array([0.0, -0.0]))
    np.testing.assert_array_equal(np.signbit(found), [False, True])


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_lanes_use_these_logarithms_in_double_precision_alone(dtype):
    x = jnp.array(RNG.random((3, 8)) + 0.1, dtype)
    one = jax.jit(lambda unit, x: lanewise(lambda x: jnp.log(x).sum(), 8, unit)(x))
    text = one.lower(1.0, x).as_text()
    assert ("stablehlo.log" in text) == (dtype == jnp.float32)
    np.testing.assert_allclose(one(1.0, x), np.log(np.asarray(x)).sum(0), rtol=1e-5)
