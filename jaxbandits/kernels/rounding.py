"""From a design to whole numbers of draws."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int


def efficient(weights: Float[Array, " K"], total: Int[Array, ""]) -> Int[Array, " K"]:
    """Efficient rounding (Pukelsheim, 2006, chapter 12): counts with sum exactly `total`.

    On the support, of size p, `n_i = ceil((N - p/2) w_i)`; then one draw at a time is added
    where `n_i / w_i` is smallest or taken where `(n_i - 1) / w_i` is largest, at most p times
    in all. With `N >= p` every supported arm is drawn and `n_i >= (1 - p/N) N w_i`; a smaller
    total leaves supported arms out. Ties go to the lowest index.
    """
    support = weights > 0
    size = support.sum()
    start = jnp.ceil((total - size / 2) * weights).astype(int)
    counts = jnp.where(support, jnp.maximum(start, 0), 0)
    safe = jnp.where(support, weights, 1.0)

    def add(counts):
        ratio = jnp.where(support, counts / safe, jnp.inf)
        return counts.at[jnp.argmin(ratio)].add(1)

    def take(counts):
        ratio = jnp.where(support & (counts > 0), (counts - 1) / safe, -jnp.inf)
        return counts.at[jnp.argmax(ratio)].add(-1)

    # The sum is within K of the total after the first line, so both loops end by themselves.
    counts = lax.while_loop(lambda n: n.sum() > total, take, counts)
    return lax.while_loop(lambda n: n.sum() < total, add, counts)


def largest_remainder(weights: Float[Array, " K"], total: Int[Array, ""]) -> Int[Array, " K"]:
    """`floor(N w_i)`, then one more for the largest fractional parts; ties to the lowest index."""
    share = total * weights
    counts = jnp.floor(share).astype(int)
    order = jnp.argsort(counts - share, stable=True)
    place = jnp.zeros_like(order).at[order].set(jnp.arange(order.size))
    return counts + (place < total - counts.sum())
