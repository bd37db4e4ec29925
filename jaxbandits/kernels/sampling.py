"""Random numbers of draws, and random subsets."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, Key

from ..types import Whole

STEP = 2.0**-36  # weights are rounded to it: an error in the last bit of 1/2 could flip a coin


def exact(dtype: DTypeLike) -> int:
    """The largest n such that a floating-point type represents every whole number up to n."""
    return 2 ** (jnp.finfo(dtype).nmant + 1)


def multinomial(key: Key[Array, ""], total: Whole, weights: Float[Array, " K"]) -> Int[Array, " K"]:
    """How often each of K outcomes comes up in `total` independent draws from `weights`.

    The counts sum to `total` exactly up to 2^53 in double precision and 2^24 in single; a larger
    total is cut to that. The weights must sum to 1 up to rounding and are rounded to eleven
    decimals; an outcome of weight 0 is never drawn.
    """
    # Rejection sampling never ends where numbers are out of range.
    trials = jnp.clip(jnp.asarray(total), 0, exact(weights.dtype)).astype(weights.dtype)
    weights = jnp.round(jnp.where(weights > 0, weights, 0.0) / STEP) * STEP
    return jax.random.multinomial(key, trials, weights, dtype=weights.dtype).astype(int)


def index(key: Key[Array, ""], number: int) -> Int[Array, ""]:
    """One of the numbers from 0 to `number - 1`, each as likely as any other up to 2^-32."""
    return (jax.random.bits(key, (), jnp.uint32) % jnp.uint32(number)).astype(int)


def distinct(key: Key[Array, ""], total: int, num: int) -> Int[Array, " num"]:
    """`num` different numbers below `total`, every sequence of them as likely as any other.

    These are the first `num` steps of a Fisher-Yates shuffle. Only entries that have moved are
    stored, so that the cost is O(num^2) whatever `total` is.
    """
    lots = jax.random.randint(key, (num,), jnp.arange(num), total)

    def step(i, carry):
        """Swap the entries at positions i and `lots[i]`."""
        where, what, chosen = carry

        def entry_at(position):
            moved = (where == position) & (jnp.arange(num) < i)
            last = jnp.where(moved, jnp.arange(num), -1).max()
            return jnp.where(last >= 0, what[last], position)

        taken, left = entry_at(lots[i]), entry_at(i)
        return where.at[i].set(lots[i]), what.at[i].set(left), chosen.at[i].set(taken)

    blank = jnp.zeros(num, lots.dtype)
    return lax.fori_loop(0, num, step, (blank, blank, blank))[2]
