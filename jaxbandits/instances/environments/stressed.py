"""The environment of an instance under stress: drifting means, heavy tails, late rewards."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...core import Algorithm, Env, Move
from ...parameters import require
from ...types import Pytree
from ..instance import Instance
from ..stress import clipped
from .finite import finite

# Rewards that are not drawn from the means, so a drift is added to them.
ADDED: tuple[str, ...] = ("recorded", "simulated")


def stressed(instance: Instance, **options: Any) -> Env:
    """The environment of an `Instance` that may be under stress; options as of `finite`."""
    fixed = finite(instance, **options)
    if instance.stress is None or instance.stress.drift is None:
        return fixed

    def reward(noise, move, pulls):
        now = drifted(instance, move, pulls)
        total = finite(now).reward(noise, move)
        if instance.rewards not in ADDED:
            return total
        count = 1 if move.count is None else move.count
        return total + count * (now.means - instance.means)[move.arm]

    def regret(move, pulls=None):
        """The regret after `pulls`; without them, that of the average means."""
        now = instance if pulls is None else drifted(instance, move, pulls)
        return finite(now).regret(move)

    return fixed._replace(reward=reward, regret=regret, now=lambda pulls: (pulls,))


def drifted(instance: Instance, move: Move, pulls: Int[Array, ""]) -> Instance:
    """The instance as it is at the middle pull of a move that is made after `pulls`."""
    drift = instance.stress.drift
    size = move.arm.size if move.count is None else move.count.sum()
    time = pulls + 0.5 * (size - 1)
    cycles = time / drift.period + drift.phases
    means = instance.means + drift.size * jnp.sin(2.0 * jnp.pi * cycles)
    return dataclasses.replace(instance, means=clipped(instance.rewards, means))


def late(instance: Instance, algorithm: Algorithm) -> Algorithm:
    """The algorithm with rewards that are late by the `delay` of the instance."""
    delay = 0 if instance.stress is None else instance.stress.delay
    return delayed(algorithm, delay) if delay else algorithm


class State(NamedTuple):
    """The algorithm's state and the moves whose rewards it has not seen yet, D of them."""

    inner: Pytree
    moves: Pytree  # a `Move` with an axis [D] in front
    totals: Float[Array, "D *S"]
    rounds: Int[Array, ""]


def delayed(algorithm: Algorithm, rounds: int) -> Algorithm:
    """The algorithm that learns from a move `rounds` rounds after it was made.

    It does not know the moves whose rewards are missing: before the first reward arrives, it
    repeats its first move.
    """

    def init(key):
        inner = algorithm.init(key)
        move = jax.eval_shape(algorithm.ask, key, inner)
        phases = "delay must be 0 for an algorithm that plays phases, got"
        require(move.count is None, f"{phases} {rounds}")
        blank = lambda x: jnp.zeros((rounds, *x.shape), x.dtype)  # noqa: E731
        totals = jnp.zeros((rounds, *move.arm.shape), float)
        return State(inner, jax.tree.map(blank, move), totals, jnp.zeros((), int))

    @functools.wraps(algorithm.ask)
    def ask(key, state):
        return algorithm.ask(key, state.inner)

    @functools.wraps(algorithm.tell)  # whose module says whether the algorithm is a user's own
    def tell(state, move, total):
        slot = state.rounds % rounds
        first, reward = jax.tree.map(lambda x: x[slot], (state.moves, state.totals))
        learnt = algorithm.tell(state.inner, first, reward)
        due = state.rounds >= rounds
        return State(
            inner=jax.tree.map(lambda new, old: jnp.where(due, new, old), learnt, state.inner),
            moves=jax.tree.map(lambda table, x: table.at[slot].set(x), state.moves, move),
            totals=state.totals.at[slot].set(total),
            rounds=state.rounds + 1,
        )

    return Algorithm(init, ask, tell)
