"""Draws that follow weights: the arm that is furthest behind is next."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .. import selection


def by_sum(
    counts: Int[Array, " K"], wanted: Float[Array, " K"], order: Int[Array, " K"]
) -> Int[Array, ""]:
    """C-tracking (Garivier and Kaufmann, 2016): `argmax of wanted - counts`.

    `wanted` is the sum of the weights of all rounds, this one included: one draw ahead of the
    counts, so that an arm which was never wanted is never drawn.
    """
    return selection.argmax(wanted - counts, order)


def by_ratio(
    counts: Int[Array, " K"], wanted: Float[Array, " K"], order: Int[Array, " K"]
) -> Int[Array, ""]:
    """`argmax of wanted / counts`; every arm must have been drawn."""
    return selection.argmax(wanted / counts, order)


def drawn(num_arms: int, arm: Int[Array, ""]) -> Int[Array, " K"]:
    """Counts of a single draw."""
    return (jnp.arange(num_arms) == arm).astype(int)
