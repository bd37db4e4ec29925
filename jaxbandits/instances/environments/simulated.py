"""Rewards from the simulator of an instance."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from ...types import Key
from ..instance import Instance


class Simulated:
    """Each draw has its own key; a sum adds one draw after another, so it is exact."""

    @staticmethod
    def noise(key: Key, shape: tuple[int, ...]) -> Key:
        """A key for each move."""
        return jax.random.split(key, shape)

    @staticmethod
    def counted_noise(key: Key, shape: tuple[int, ...]) -> Key:
        """The key from which those of all draws of the batch are derived."""
        return key

    @staticmethod
    def reward(instance: Instance, noise: Key, arm: Int[Array, "*S"]) -> Float[Array, "*S"]:
        """One draw of one arm, or of each of several."""
        draw = instance.simulator.reward
        return (draw if arm.ndim == 0 else jax.vmap(draw))(noise, arm)

    @staticmethod
    def total(
        instance: Instance, noise: Key, arm: Int[Array, "*S"], count: Int[Array, "*S"]
    ) -> Float[Array, "*S"]:
        """The sum of the draws of each entry; draw i of all has the key `fold_in(noise, i)`."""
        ends = jnp.cumsum(count)

        def draw(carry):
            number, total = carry
            entry = (ends <= number).sum()
            reward = instance.simulator.reward(jax.random.fold_in(noise, number), arm[entry])
            drawn = jnp.arange(total.size) == entry
            return number + 1, total + jnp.where(drawn, reward, 0.0)

        begin = jnp.zeros((), ends.dtype), jnp.zeros(count.shape, instance.means.dtype)
        return lax.while_loop(lambda carry: carry[0] < ends[-1], draw, begin)[1]
