import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import LANES, same
from jax import lax

SEED = 11
NUMBERS = np.random.default_rng(SEED).integers(0, 2**31, LANES)


def keys(lanes=LANES):
    return jax.random.split(jax.random.key(SEED), lanes)


def words(given, key, n):
    return (
        (
            jax.random.bits(key),
            jax.random.bits(key, (33,)),
            jax.random.bits(key, (3, 5), jnp.uint64),
            jax.random.bits(key, (257,)),
        ),
        (jax.random.fold_in(key, 3), jax.random.fold_in(key, n), jax.random.fold_in(given, n)),
        (jax.random.split(key), jax.random.split(key, 5), jax.random.split(given, 2)[1]),
        jax.random.bits(jax.random.fold_in(given, n), (2,), jnp.uint64),
        jax.random.bits(jax.random.split(key, 3)[1], (4,)),
        jax.random.key_data(key),
        jax.random.randint(key, (5,), 0, 1000),
        key,
    )


def test_random_bits_and_keys_equal_vmap():
    same(functools.partial(words, jax.random.key(3)), keys(), NUMBERS)


def draws(key, n):
    key = jax.random.fold_in(key, n)
    one, two = jax.random.split(key)
    return (
        (jax.random.uniform(one, (40,)), jax.random.uniform(two, minval=-1.0, maxval=3.0)),
        (
            jax.random.normal(two, (40,)),
            jax.random.normal(key),
            jax.random.normal(one, (3,)),
            jax.random.normal(one, (7,), jnp.float32),
            jax.random.bernoulli(key, 0.3, (9,)),
        ),
        (jax.random.uniform(key, (5,), jnp.float32), jax.random.exponential(one, (20,))),
        (jax.random.gumbel(two, (9,)), jax.random.categorical(one, jnp.arange(4.0))),
        jax.random.laplace(two, (5,)),
    )


@pytest.mark.parametrize("lanes", [16, pytest.param(48, marks=pytest.mark.slow)])
def test_draws_equal_vmap(lanes):
    same(draws, keys(lanes), np.arange(lanes), rtol=1e-12, atol=1e-14)


def carried(key, n):
    def step(key, _):
        key, use = jax.random.split(key)
        return key, jax.random.normal(use, (3,))

    def walk(i, carry):
        return jax.random.fold_in(carry, i)

    chosen = lax.cond(n % 2 == 0, lambda: key, lambda: jax.random.fold_in(key, 1))
    several = lax.map(lambda k: jax.random.uniform(k), jax.random.split(key, 4))
    own = lax.fori_loop(0, n % 5, walk, key)
    return lax.scan(step, key, None, length=4), lax.fori_loop(0, 3, walk, key), chosen, several, own


def test_keys_carried_through_loops_equal_vmap():
    same(carried, keys(), NUMBERS, rtol=1e-12)


def test_keys_made_within_a_lane_equal_vmap():
    same(lambda n: jax.random.bits(jax.random.fold_in(jax.random.key(5), n), (3,)), NUMBERS)


def test_draws_from_a_key_that_all_lanes_share_equal_vmap():
    """Within a loop whose carry is the same for all lanes."""

    def shared(n):
        def step(i, total):
            one, two = jax.random.split(jax.random.fold_in(jax.random.key(5), i))
            drawn = jax.random.normal(one, (3,)) + jax.random.bits(two, (3,)).astype(float)
            return total + drawn

        words = jax.random.key_data(jax.random.fold_in(jax.random.key(6), n))
        return lax.fori_loop(0, 4, step, jnp.zeros(3)), words

    same(shared, NUMBERS, rtol=1e-12)


def chosen_keys(x):
    """Keys that flags choose: known ones, those of each lane, and one for all keys."""
    keys = jax.random.split(jax.random.key(1, impl="threefry2x32"), 3)
    other = jax.random.split(jax.random.key(2, impl="threefry2x32"), 3)
    flags = jnp.array([True, False, True])
    return [
        jax.random.key_data(jnp.where(which, keys, other)) for which in (flags, x > 0, x[0] > 0)
    ] + [jax.random.key_data(jax.lax.select_n(jnp.where(x > 0, 1, 0), keys, other))]


def test_flags_choose_each_key():
    found = same(chosen_keys, np.random.default_rng(3).normal(size=(3, 16)))
    assert (found[1] != found[1][:, :, :1]).any()
