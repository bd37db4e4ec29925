"""Rewards from a simulator of the instance's own."""

import jax
import jax.numpy as jnp
from jax import lax


class Simulated:
    """A key of its own for each draw; sums are made one draw after the other, so they are exact."""

    @staticmethod
    def noise(key, shape):
        """A key for each move."""
        return jax.random.split(key, shape)

    @staticmethod
    def counted_noise(key, shape):
        """The key out of which those of all draws of the batch are folded."""
        return key

    @staticmethod
    def reward(instance, noise, arm):
        """One draw of one arm, or of each of several."""
        draw = instance.simulator.reward
        return (draw if arm.ndim == 0 else jax.vmap(draw))(noise, arm)

    @staticmethod
    def total(instance, noise, arm, count):
        """The sum of the draws of each entry; draw i of all has the key `fold_in(noise, i)`."""
        ends = jnp.cumsum(count)

        def one(carry):
            number, total = carry
            entry = (ends <= number).sum()
            reward = instance.simulator.reward(jax.random.fold_in(noise, number), arm[entry])
            here = jnp.arange(total.size) == entry
            return number + 1, total + jnp.where(here, reward, 0.0)

        begin = jnp.zeros((), ends.dtype), jnp.zeros(count.shape, instance.means.dtype)
        return lax.while_loop(lambda carry: carry[0] < ends[-1], one, begin)[1]
