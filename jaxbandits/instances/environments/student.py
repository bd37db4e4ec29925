"""Rewards with normal noise of unequal variance, and with Student's t."""

from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.random import fold_in
from jaxtyping import Array, Float, Int

from ...types import Key
from ..instance import Instance

BLOCK: int = 32  # draws of a sum that are made at once
MOST: int = 2**26  # draws of a sum


class Heteroscedastic:
    """Normal noise with a variance for each arm."""

    noise: ClassVar[Callable[..., Array]] = staticmethod(jax.random.normal)
    counted_noise: ClassVar[Callable[..., Array]] = staticmethod(jax.random.normal)

    @staticmethod
    def reward(
        instance: Instance, noise: Float[Array, "*S"], arm: Int[Array, "*S"]
    ) -> Float[Array, "*S"]:
        """One draw."""
        return instance.means[arm] + jnp.sqrt(instance.stress.variances[arm]) * noise

    @staticmethod
    def total(
        instance: Instance,
        noise: Float[Array, "*S"],
        arm: Int[Array, "*S"],
        count: Int[Array, "*S"],
    ) -> Float[Array, "*S"]:
        """The sum of the draws of each entry."""
        scale = jnp.sqrt(count * instance.stress.variances[arm])
        return count * instance.means[arm] + scale * noise


class Student:
    """Student's t from two uniform numbers; a sum is made draw by draw, so it is exact."""

    @staticmethod
    def noise(key: Key, shape: tuple[int, ...]) -> Float[Array, "*S 2"]:
        """Two uniform numbers for each draw, the same whatever the degrees of freedom."""
        return jax.random.uniform(key, (*shape, 2))

    @staticmethod
    def counted_noise(key: Key, shape: tuple[int, ...]) -> Key:
        """The key from which those of all blocks of draws are derived."""
        return key

    @staticmethod
    def reward(
        instance: Instance, noise: Float[Array, "*S 2"], arm: Int[Array, "*S"]
    ) -> Float[Array, "*S"]:
        """One draw of one arm, or of each of several."""
        drawn = standardised(noise, instance.stress.df)
        return instance.means[arm] + jnp.sqrt(instance.stress.variances[arm]) * drawn

    @staticmethod
    def total(
        instance: Instance, noise: Key, arm: Int[Array, "*S"], count: Int[Array, "*S"]
    ) -> Float[Array, "*S"]:
        """The sum of the draws of each entry; NaN where the batch has more than `MOST` draws."""
        drawn = _sums(noise, count, instance.stress.df, instance.means.dtype)
        scale = jnp.sqrt(instance.stress.variances[arm])
        return count * instance.means[arm] + jnp.where(count > 0, scale * drawn, 0.0)


def standardised(uniform: Float[Array, "*S 2"], df: Float[Array, ""]) -> Float[Array, "*S"]:
    """Student's t of variance 1 from two uniform numbers; with `df <= 2` not rescaled.

    With u and v uniform, `sqrt(df (u^(-2/df) - 1)) cos(2 pi v)` has that law (R. W. Bailey,
    "Polar generation of random variates with the t-distribution", Mathematics of Computation
    1994); its limit for large df is the normal draw of Box and Muller.
    """
    length = jnp.sqrt(df * jnp.expm1(-2.0 / df * jnp.log1p(-uniform[..., 0])))
    scale = jnp.where(df > 2.0, jnp.sqrt(jnp.maximum(df - 2.0, 0.0) / df), 1.0)
    return scale * length * jnp.cos(2.0 * jnp.pi * uniform[..., 1])


def _sums(key, count, df, dtype):
    """The sum of `count [S]` standardised draws each."""
    ends = jnp.cumsum(count)  # one axis, also for a scalar count
    number = ends[-1]

    def block(carry):
        first, sums = carry
        draws = standardised(jax.random.uniform(fold_in(key, first), (BLOCK, 2), dtype), df)
        which = first + jnp.arange(BLOCK)
        entry = (ends <= which[:, None]).sum(1)  # past the last draw it is beyond the last index
        drawn = entry[:, None] == jnp.arange(ends.size)
        return first + BLOCK, sums + jnp.where(drawn, draws[:, None], 0.0).sum(0)

    begin = jnp.zeros((), ends.dtype), jnp.zeros(ends.shape, dtype)
    last = jnp.where(number <= MOST, number, 0)
    sums = lax.while_loop(lambda carry: carry[0] < last, block, begin)[1]
    return jnp.where(number <= MOST, sums, jnp.nan).reshape(count.shape)
