"""Random numbers of draws."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

MOST = 2**53  # draws
STEP = 2.0**-36  # of weights: a coin of one half turns over where it is off in the last bit


def multinomial(key, total: Int[Array, ""] | int, weights: Float[Array, " K"]) -> Int[Array, " K"]:
    """How often each of K outcomes comes up in `total` independent draws from `weights`.

    The counts sum to `total` exactly, below 2^53 in double precision. The weights must sum to 1
    up to rounding, and count to eleven decimals; one of 0 is never drawn.
    """
    # Rejection goes on for ever where numbers are out of range.
    trials = jnp.clip(jnp.asarray(total), 0, MOST).astype(weights.dtype)
    weights = jnp.round(jnp.where(weights > 0, weights, 0.0) / STEP) * STEP
    return jax.random.multinomial(key, trials, weights, dtype=weights.dtype).astype(int)
