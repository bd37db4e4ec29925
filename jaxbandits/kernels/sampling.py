"""Random numbers of draws, and random subsets."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

STEP = 2.0**-36  # of weights: a coin of one half turns over where it is off in the last bit


def exact(dtype) -> int:
    """The largest of the whole numbers that a type of floating point tells apart."""
    return 2 ** (jnp.finfo(dtype).nmant + 1)


def multinomial(key, total: Int[Array, ""] | int, weights: Float[Array, " K"]) -> Int[Array, " K"]:
    """How often each of K outcomes comes up in `total` independent draws from `weights`.

    The counts sum to `total` exactly up to 2^53 in double precision and 2^24 in single; more are
    cut to that. The weights must sum to 1 up to rounding, and count to eleven decimals; one of 0
    is never drawn.
    """
    # Rejection goes on for ever where numbers are out of range.
    trials = jnp.clip(jnp.asarray(total), 0, exact(weights.dtype)).astype(weights.dtype)
    weights = jnp.round(jnp.where(weights > 0, weights, 0.0) / STEP) * STEP
    return jax.random.multinomial(key, trials, weights, dtype=weights.dtype).astype(int)


def distinct(key, total: int, num: int) -> Int[Array, " num"]:
    """`num` different numbers below `total`, every sequence of them as likely as any other.

    The first `num` steps of a shuffle (Fisher and Yates), which remembers what it moved: O(num^2)
    however many there are.
    """
    lots = jax.random.randint(key, (num,), jnp.arange(num), total)

    def step(i, carry):
        """Place `lots[i]` goes to the i-th, and what stood at place i goes there."""
        where, what, chosen = carry

        def stands(place):
            moved = (where == place) & (jnp.arange(num) < i)
            last = jnp.where(moved, jnp.arange(num), -1).max()
            return jnp.where(last >= 0, what[last], place)

        taken, left = stands(lots[i]), stands(i)
        return where.at[i].set(lots[i]), what.at[i].set(left), chosen.at[i].set(taken)

    blank = jnp.zeros(num, lots.dtype)
    return lax.fori_loop(0, num, step, (blank, blank, blank))[2]
