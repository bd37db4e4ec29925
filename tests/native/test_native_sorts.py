"""Sorting by the native engine against `jax.vmap`."""

import jax.numpy as jnp
import numpy as np
from against import LANES, same
from jax import lax

RNG = np.random.default_rng(6)
TIES = RNG.integers(-4, 4, (70, LANES)).astype(float)
ORDER = np.stack([RNG.permutation(70) for _ in range(LANES)], 1)
CUBE = RNG.normal(size=(3, 6, 4, LANES))


def test_sorts_along_each_axis_equal_vmap():
    def sorts(cube, x):
        return [jnp.sort(cube, axis=axis) for axis in range(3)], jnp.sort(x), jnp.sort(x > 0)

    same(sorts, CUBE, TIES)


def test_sorts_keep_the_order_of_equal_entries():
    def sorts(x, order):
        shared = jnp.arange(70) % 7
        return (
            jnp.argsort(x),
            jnp.argsort(x, descending=True),
            jnp.lexsort((order, x)),
            jnp.lexsort((shared, x))[::-1],
            lax.sort((x.astype(jnp.float32), shared, order), num_keys=2),
            lax.sort((shared, order), num_keys=1),
        )

    same(sorts, TIES, ORDER)


def test_nan_is_sorted_last():
    odd = TIES.copy()
    odd[3:9:2], odd[20], odd[30], odd[40], odd[41] = np.nan, -np.nan, -np.inf, np.inf, -0.0
    same(lambda x: (jnp.argsort(x), jnp.sort(x), jnp.argsort(-x)), odd)


def test_sorts_of_one_entry_or_none_equal_vmap():
    same(lambda x: (jnp.sort(x[:1]), jnp.argsort(x[:1]), jnp.sort(x[:0]).sum()), TIES)
