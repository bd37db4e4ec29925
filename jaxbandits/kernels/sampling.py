"""Random numbers of draws."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def multinomial(key, total: Int[Array, ""] | int, weights: Float[Array, " K"]) -> Int[Array, " K"]:
    """How often each of K outcomes comes up in `total` independent draws from `weights`.

    The counts sum to `total`, exactly up to 2^53 in double precision. The weights sum to 1, but
    for rounding; what has weight 0 is never drawn.
    """
    trials = jnp.asarray(total).astype(weights.dtype)
    return jax.random.multinomial(key, trials, weights, dtype=weights.dtype).astype(int)
