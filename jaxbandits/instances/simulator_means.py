"""Means of rewards that only a simulator knows."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

SIDE_BY_SIDE = 256  # draws


@partial(jax.jit, static_argnums=(2, 3))
def sampled_means(simulator, key, num_arms, draws):
    """The mean reward of each arm in so many draws, `[K]`."""
    blocks = -(-num_arms * draws // SIDE_BY_SIDE)

    def block(first):
        numbers = first + jnp.arange(SIDE_BY_SIDE)
        keys = jax.vmap(partial(jax.random.fold_in, key))(numbers)
        return jax.vmap(simulator.reward)(keys, numbers % num_arms)

    rewards = lax.map(block, SIDE_BY_SIDE * jnp.arange(blocks))
    return rewards.ravel()[: num_arms * draws].reshape(draws, num_arms).mean(0)
