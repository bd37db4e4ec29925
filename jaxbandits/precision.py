"""Float64 where it counts, without touching the caller's JAX configuration.

Stopping times reach 1e7 and gaps 1e-4, so simulations and public kernels compute in float64.
`import jaxbandits` sets no flag: the doors of the package (`simulate`, instances, public
kernels) enter `jax.enable_x64` for the length of the call and hand back NumPy arrays, because
a float64 JAX array silently falls to float32 as soon as it is used outside that context.

The default follows from `python -m benchmarks.numerics`, which compares least squares kept by
rank-one updates with a solve in 50 digits, on Soare's arms in 5 dimensions. After 10^7 draws in
float64, variances are right to 2e-10 and squared distances of arms to 2e-7 with a ridge of 1 (to
1e-6 and 3e-3 with a ridge of 1e-4, whose inverse begins at 10^4): nothing is refactorised. In
float32 variances are off by a fifth and more after 10^7 draws, and distances of near arms are lost
after 10^4 in arm space (`kernels.ledger`): LinGapE on Soare's arms at an angle of 0.05, 74,000
pulls in float64, has not stopped after 2 10^6. Who wants float32 keeps feature space and makes the
inverse anew from the counts every 1,000 draws: variances are then right to 4e-5, means to 3e-4
standard deviations after 10^6 draws.
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
