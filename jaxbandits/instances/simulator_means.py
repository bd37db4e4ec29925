"""Means of rewards, estimated from a simulator."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ..system.values_read import values_read
from ..types import Key, Pytree

BLOCK: int = 256  # draws that are made in parallel


def sampled_means(simulator: Pytree, key: Key, num_arms: int, draws: int) -> Float[Array, " K"]:
    """The mean reward of each arm in `draws` simulations."""
    return _sampled_means(simulator, key, num_arms, draws, values_read(simulator))


@partial(jax.jit, static_argnums=(2, 3, 4))
def _sampled_means(simulator, key, num_arms, draws, read):
    blocks = -(-num_arms * draws // BLOCK)

    def block(first):
        numbers = first + jnp.arange(BLOCK)
        keys = jax.vmap(partial(jax.random.fold_in, key))(numbers)
        return jax.vmap(simulator.reward)(keys, numbers % num_arms)

    rewards = lax.map(block, BLOCK * jnp.arange(blocks))
    return rewards.ravel()[: num_arms * draws].reshape(draws, num_arms).mean(0)
