"""Rewards with normal noise of unequal variance, and with Student's t."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.random import fold_in

BLOCK = 32  # draws of a sum that are made at once
MOST = 2**26  # draws of a sum


class Heteroscedastic:
    """Normal noise whose variance is the arm's own."""

    noise = staticmethod(jax.random.normal)
    counted_noise = staticmethod(jax.random.normal)

    @staticmethod
    def reward(instance, noise, arm):
        """One draw."""
        return instance.means[arm] + jnp.sqrt(instance.stress.variances[arm]) * noise

    @staticmethod
    def total(instance, noise, arm, count):
        """The sum of the draws of each entry."""
        spread = jnp.sqrt(count * instance.stress.variances[arm])
        return count * instance.means[arm] + spread * noise


class Student:
    """Student's t from two uniform numbers; a sum is made draw by draw, so it is exact."""

    @staticmethod
    def noise(key, shape):
        """Two uniform numbers for each draw, the same whatever the degrees of freedom."""
        return jax.random.uniform(key, (*shape, 2))

    @staticmethod
    def counted_noise(key, shape):
        """The key out of which those of all blocks of draws are folded."""
        return key

    @staticmethod
    def reward(instance, noise, arm):
        """One draw of one arm, or of each of several."""
        drawn = standardised(noise, instance.stress.df)
        return instance.means[arm] + jnp.sqrt(instance.stress.variances[arm]) * drawn

    @staticmethod
    def total(instance, noise, arm, count):
        """The sum of the draws of each entry; NaN where all entries have more than `MOST`."""
        drawn = _sums(noise, count, instance.stress.df, instance.means.dtype)
        spread = jnp.sqrt(instance.stress.variances[arm])
        return count * instance.means[arm] + jnp.where(count > 0, spread * drawn, 0.0)


def standardised(uniform, df):
    """Student's t of variance 1, of `uniform [..., 2]`; as it is with `df <= 2`.

    With u and v uniform, `sqrt(df (u^(-2/df) - 1)) cos(2 pi v)` has that law (R. W. Bailey,
    "Polar generation of random variates with the t-distribution", Mathematics of Computation
    1994); Box and Muller's normal numbers are its limit.
    """
    length = jnp.sqrt(df * jnp.expm1(-2.0 / df * jnp.log1p(-uniform[..., 0])))
    scale = jnp.where(df > 2.0, jnp.sqrt(jnp.maximum(df - 2.0, 0.0) / df), 1.0)
    return scale * length * jnp.cos(2.0 * jnp.pi * uniform[..., 1])


def _sums(key, count, df, dtype):
    """The sum of `count [S]` standardised draws each."""
    ends = jnp.cumsum(count)  # of an array without axes it has one
    number = ends[-1]

    def block(carry):
        first, sums = carry
        draws = standardised(jax.random.uniform(fold_in(key, first), (BLOCK, 2), dtype), df)
        which = first + jnp.arange(BLOCK)
        entry = (ends <= which[:, None]).sum(1)  # past the last draw it is none of them
        here = entry[:, None] == jnp.arange(ends.size)
        return first + BLOCK, sums + jnp.where(here, draws[:, None], 0.0).sum(0)

    begin = jnp.zeros((), ends.dtype), jnp.zeros(ends.shape, dtype)
    last = jnp.where(number <= MOST, number, 0)
    sums = lax.while_loop(lambda carry: carry[0] < last, block, begin)[1]
    return jnp.where(number <= MOST, sums, jnp.nan).reshape(count.shape)
