"""JAX's random keys as both compilers see them: a threefry key is two words of 32 bits."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array


def is_key(dtype: Any) -> bool:
    """Whether entries of this dtype are random keys."""
    return jnp.issubdtype(dtype, jax.dtypes.prng_key)


def is_threefry(dtype: Any) -> bool:
    """Whether entries of this dtype are keys of threefry, JAX's default generator."""
    return str(dtype) == "key<fry>"


def in_known_order() -> bool:
    """Whether JAX draws random bits in the order that both compilers reproduce."""
    config: Any = jax.config  # JAX adds its options as attributes when it is imported
    return config.jax_threefry_partitionable


def from_words(words: Any) -> Array:
    """Threefry keys, given their two words in the last axis."""
    return jax.random.wrap_key_data(words, impl="threefry2x32")
