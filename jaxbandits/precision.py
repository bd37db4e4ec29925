"""Float64 where it counts, without touching the caller's JAX configuration.

Stopping times reach 1e7 and gaps 1e-4, so simulations and public kernels compute in float64.
`import jaxbandits` sets no flag: the doors of the package (`simulate`, instances, public
kernels) enter `jax.enable_x64` for the length of the call and hand back NumPy arrays, because
a float64 JAX array silently falls to float32 as soon as it is used outside that context.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np


def _widen(leaf):
    """Floats of less than 64 bits become float64; everything else passes."""
    is_array = isinstance(leaf, jax.Array | np.ndarray | np.generic)
    if is_array and jnp.issubdtype(leaf.dtype, jnp.floating) and leaf.dtype != jnp.float64:
        return leaf.astype(jnp.float64)
    return leaf


def _concrete(leaf):
    if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer):
        return leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else np.asarray(leaf)
    return leaf


def double(function):
    """Decorate `function` to compute in float64 and return NumPy arrays.

    Called inside somebody's trace it returns tracers, float64 as well.
    """

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        with jax.enable_x64(True):
            args, kwargs = jax.tree.map(_widen, (args, kwargs))
            return jax.tree.map(_concrete, function(*args, **kwargs))

    return wrapped
