"""Compare functions of one lane compiled by `natively` with `jax.vmap`."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.compilers import cpp

LANES = 16
TARGET = cpp.VECTORS  # a fixture changes it


def leaves(tree):
    """The results as NumPy arrays; a key becomes its data."""

    def plain(x):
        return jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x

    return [np.asarray(plain(x)) for x in jax.tree.leaves(tree)]


def equal(found, expected, rtol=1e-13, atol=0.0):
    """Fail unless floats are equal up to the last bits and all else exactly."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    pairs = zip(leaves(found), leaves(expected), strict=True)
    for index, (one, two) in enumerate(pairs):
        assert (one.shape, one.dtype) == (two.shape, two.dtype), f"result {index}"
        if one.dtype.kind == "f":
            loose = max(rtol, 8 * np.finfo(one.dtype).eps if one.dtype == np.float32 else 0.0)
            np.testing.assert_allclose(one, two, loose, atol, err_msg=f"result {index}")
        else:
            np.testing.assert_array_equal(one, two, err_msg=f"result {index}")


def by_native(function, *args):
    """The results of the generated C++ program."""
    return jax.jit(cpp.natively(function, args[0].shape[-1], target=TARGET))(*args)


def same(function, *args, rtol=1e-13, atol=0.0):
    """Fail unless the generated program gives the same numbers as `jax.vmap`."""
    args = [x if isinstance(x, jax.Array) else jnp.asarray(x) for x in args]
    found = by_native(function, *args)
    equal(found, jax.jit(jax.vmap(function, -1, -1))(*args), rtol, atol)
    return found
