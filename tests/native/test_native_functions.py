"""Mathematical functions: errors in the last bits over wide ranges, and special arguments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import LANES, by_native, same
from jax import lax
from scipy import special

pytestmark = pytest.mark.optimised
RNG = np.random.default_rng(1)
ODD = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, -2.5, 700.0, -700.0, 710.0, -750.0, 40.0]
TINY, LARGE = 1e-300, 1e300


def spread_out(low, high, count=100):
    """Numbers of all magnitudes between two positive ones."""
    return np.exp(RNG.uniform(np.log(low), np.log(high), (count, LANES)))


def both_signs(x):
    return x * RNG.choice([-1.0, 1.0], x.shape)


def precisely(function):
    """A NumPy function in extended precision, whose fraction has 64 bits."""
    return lambda *x: function(*(np.asarray(y, np.longdouble) for y in x))


def logistic(x):
    return 1 / (1 + np.exp(-x))


NEAR_ONE = 1 + both_signs(spread_out(1e-15, 0.5))
CASES = {  # function, exact, arguments, units in the last place
    "exp": (jnp.exp, np.exp, RNG.uniform(-700, 709, (200, LANES)), 2),
    "exp near 0": (jnp.exp, np.exp, both_signs(spread_out(1e-20, 1)), 2),
    "expm1": (jnp.expm1, np.expm1, both_signs(spread_out(1e-20, 700)), 2),
    "exp2": (jnp.exp2, np.exp2, RNG.uniform(-1000, 1000, (50, LANES)), 2),
    "log": (jnp.log, np.log, spread_out(TINY, LARGE), 2),
    "log near 1": (jnp.log, np.log, NEAR_ONE, 2),
    "log1p": (jnp.log1p, np.log1p, np.concatenate([NEAR_ONE - 1, spread_out(0.1, LARGE)]), 2),
    "log1p near -1": (jnp.log1p, np.log1p, spread_out(1e-15, 0.9) - 1, 2),
    "sqrt": (jnp.sqrt, np.sqrt, spread_out(TINY, LARGE), 1.5),
    "rsqrt": (lax.rsqrt, lambda x: 1 / np.sqrt(x), spread_out(TINY, LARGE), 2),
    "logistic": (jax.nn.sigmoid, logistic, RNG.uniform(-600, 50, (100, LANES)), 3.5),
    "tanh": (jnp.tanh, np.tanh, both_signs(spread_out(1e-20, 30)), 2),
    "sin": (jnp.sin, np.sin, both_signs(spread_out(1e-9, 1e4)), 2),
    "cos": (jnp.cos, np.cos, both_signs(spread_out(1e-9, 1e4)), 2),
    "cbrt": (jnp.cbrt, np.cbrt, both_signs(spread_out(TINY, LARGE)), 4),
}


def close(found, exact, units):
    exact = np.asarray(exact, np.longdouble)
    error = np.abs(np.asarray(found) - exact) / np.spacing(np.abs(exact).astype(float))
    assert error.max() <= units, f"{error.max()} units in the last place"


# One program computes all functions, each on its own table of arguments.
@pytest.fixture(scope="module")
def found(target):
    with jax.enable_x64(True):
        tables = [x for _, _, x, _ in CASES.values()]
        functions = [f for f, _, _, _ in CASES.values()]

        def apply(*tables):
            return [f(x) for f, x in zip(functions, tables, strict=True)]

        return dict(zip(CASES, map(np.asarray, by_native(apply, *tables)), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_errors_are_a_few_units_in_the_last_place(found, name):
    _, exact, x, units = CASES[name]
    with np.errstate(over="ignore"):
        close(found[name], precisely(exact)(x), units)


def test_powers_to_the_last_bits():
    x, y = spread_out(1e-8, 1e8), RNG.uniform(-30, 30, (100, LANES))
    power, angle = by_native(lambda x, y: (x**y, jnp.arctan2(y, x)), x, y)
    close(power, precisely(np.power)(x, y), 2)
    close(angle, precisely(np.arctan2)(y, x), 2)


def test_the_error_function_and_its_inverse_are_accurate():
    x = np.concatenate([RNG.uniform(-1, 1, (60, LANES)), 1 - spread_out(1e-15, 0.1)])
    y = both_signs(spread_out(1e-5, 5))
    found = by_native(
        lambda x, y: (lax.erf_inv(x), lax.erf(y), lax.erfc(y), lax.lgamma(jnp.abs(y))), x, y
    )
    exact = special.erfinv(x), special.erf(y), special.erfc(y), special.gammaln(np.abs(y))
    # Near the ends the effect of rounding x^2 grows as 1 / (1 - x).
    lost = 3e-15 + 2e-16 / (1 - np.abs(x))
    assert (np.abs(found[0] / exact[0] - 1) <= lost).all()
    for one, two, rtol in zip(found[1:], exact[1:], (1e-15, 1e-14, 1e-13), strict=True):
        np.testing.assert_allclose(one, two, rtol, atol=1e-15)


def everywhere(x):
    half = jnp.tanh(0.5 * x)
    return (
        (jnp.exp(x), jnp.expm1(x), jnp.exp2(x), jnp.log(x), jnp.log1p(x), jnp.sqrt(x)),
        (lax.rsqrt(x), jax.nn.sigmoid(x), jnp.tanh(x), jnp.sin(half), jnp.cos(half), jnp.tan(half)),
        (jnp.arcsin(half), jnp.arccos(half), jnp.arctan(x), jnp.arctanh(half), jnp.arcsinh(half)),
        (jnp.sinh(half), jnp.cosh(half), lax.acosh(1 + half * half), lax.erf(x), lax.erfc(x)),
        (lax.erf_inv(half), jax.nn.softplus(x), jnp.logaddexp(x, 0.0)),
        (x**half, jnp.abs(x) ** 0.5, x**3, x**-2, half**0.0, jnp.power(2.0, x)),
        jax.scipy.special.ndtri(0.5 + 0.4 * half),
    )


def test_special_arguments_equal_vmap():
    x = np.resize(ODD, LANES)
    same(lambda x: (everywhere(x), everywhere(jnp.arange(7.0) - 3.0)), x, rtol=1e-12)


def test_special_arguments_equal_numpy():
    x = np.resize(ODD, LANES)
    names = "exp expm1 log log1p sqrt tanh"
    found = by_native(lambda x: [getattr(jnp, name)(x) for name in names.split()], x)
    with np.errstate(all="ignore"):
        for name, one in zip(names.split(), found, strict=True):
            np.testing.assert_allclose(one, getattr(np, name)(x), 1e-15, 1e-300, err_msg=name)


def test_the_inverse_error_function_is_accurate_at_its_ends():
    x = np.resize([1.0, -1.0, 0.0, np.nan, 1.5, -2.0, 1 - 2.0**-53, np.inf], LANES)
    found = np.asarray(by_native(lax.erf_inv, x))
    expected = special.erfinv(x)
    np.testing.assert_allclose(found, expected, 3e-15)


def test_log1p_of_zero_keeps_its_sign():
    x = np.resize([0.0, -0.0], LANES)
    found = by_native(lambda x: jnp.log1p(-x), x)
    np.testing.assert_array_equal(np.signbit(found), ~np.signbit(x))


def test_single_precision_equals_vmap():
    names = "exp expm1 exp2 log log1p sqrt tanh sin cos arctan sinh cosh floor"

    def apply(x):
        y = jnp.abs(x)
        powers = y**x, jnp.arctan2(x, y), lax.rsqrt(y), jax.nn.sigmoid(x), x**3, lax.erf(x)
        return [getattr(jnp, name)(y) for name in names.split()], powers

    x = RNG.normal(size=(20, LANES)).astype(np.float32) * 3
    same(apply, x, rtol=3e-6, atol=1e-7)
