"""Machines differ in how many lanes a register has: a program gives each lane the same numbers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import LANES, equal
from jax import lax

from jaxbandits.compilers import cpp
from jaxbandits.compilers.cpp import program

RNG = np.random.default_rng(5)


def of_lanes(number):
    """The target of a machine whose registers have this many lanes."""
    call = functools.partial(program.call_library, lanes=number)
    return cpp.VECTORS._replace(call=call)


def mixed(key, x, n):
    """What the header has in several versions, by the number of lanes."""

    def further(carry):
        i, x = carry
        return i + 1, jnp.sqrt(1.0 + jnp.abs(x))

    special = jnp.array([jnp.nan, jnp.inf, 0.0, -0.0, 2.0, -jnp.inf]) + 0.0 * x[0]
    halved = lax.while_loop(lambda carry: carry[0] < n % 7, further, (0, x))
    return (
        (jnp.sqrt(jnp.abs(x)), n.astype(float), (x > 0).any(), halved),
        (jax.random.bits(key, (5,)), jax.random.bits(key, (4,), jnp.uint64)),
        (jax.random.normal(key, (5,)), jax.random.normal(key, (4,), jnp.float32)),
        lax.erf_inv(x / (1.0 + jnp.abs(x))),
        [extremes(y) for y in (special, special.astype(jnp.float32))],
        jnp.sqrt(special),
    )


def extremes(values):
    """Maxima and minima of all pairs, of which either may be NaN."""
    one, two = values[:, None], values[None, :]
    return jnp.maximum(one, two), jnp.minimum(one, two)


@pytest.fixture(scope="module")
def arguments():
    with jax.enable_x64(True):
        x = RNG.normal(size=(5, LANES)) * 10.0 ** RNG.integers(-3, 3, (5, LANES))
        n = RNG.integers(-(2**62), 2**62, LANES)
        return jax.random.split(jax.random.key(3), LANES), jnp.asarray(x), jnp.asarray(n)


@pytest.mark.parametrize("number", [2, 4, 8])
def test_registers_of_some_lanes_give_the_numbers_of_vmap(arguments, number):
    found = jax.jit(cpp.natively(mixed, LANES, target=of_lanes(number)))(*arguments)
    equal(found, jax.jit(jax.vmap(mixed, -1, -1))(*arguments), rtol=1e-12)
