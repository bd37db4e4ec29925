"""A loop that several tests use."""

import jax.numpy as jnp
from jax import lax


def collatz(n):
    """Steps until n is 1: a loop whose length differs between lanes."""

    def step(state):
        n, steps = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return lax.while_loop(lambda state: state[0] > 1, step, (n + 1, 0))
