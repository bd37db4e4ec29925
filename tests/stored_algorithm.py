"""An algorithm and an instance of a user, as they were when `tests/stored` was written."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

import jaxbandits as jb

STOP = 6


class State(NamedTuple):
    draws: jax.Array
    sums: jax.Array


def turns(arms, *, each=1):
    """Draw the arms in turn."""
    num_arms = arms.shape[0]

    def init(key):
        return State(jnp.zeros((), int), jnp.zeros(num_arms))

    def ask(key, state):
        arm = state.draws // each % num_arms
        return jb.Move(arm, None, state.draws >= STOP, jnp.argmax(state.sums))

    def tell(state, move, reward):
        return State(state.draws + 1, state.sums.at[move.arm].add(reward))

    return jb.Algorithm(init, ask, tell)


def drawn(key):
    """Two arms, the better of which is drawn."""
    return jb.instances.linear(jnp.eye(2), jax.random.uniform(key, (2,)))
