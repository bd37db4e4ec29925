"""The world of an instance under stress: drifting means, heavy tails, late rewards."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...core import Algorithm
from ...parameters import require
from ..stress import clipped
from .finite import finite

ADDED = ("recorded", "simulated")  # rewards that the means do not draw, so a drift is added


def stressed(instance, **options):
    """The world of an `Instance` that may be under stress; options are those of `finite`."""
    still = finite(instance, **options)
    if instance.stress is None or instance.stress.drift is None:
        return still

    def reward(noise, move, pulls):
        now = drifted(instance, move, pulls)
        total = finite(now).reward(noise, move)
        if instance.rewards not in ADDED:
            return total
        count = 1 if move.count is None else move.count
        return total + count * (now.means - instance.means)[move.arm]

    def regret(move, pulls=None):
        """At a time; without one, of the means on average."""
        now = instance if pulls is None else drifted(instance, move, pulls)
        return finite(now).regret(move)

    return still._replace(reward=reward, regret=regret, now=lambda pulls: (pulls,))


def drifted(instance, move, pulls):
    """The instance as it is at the middle pull of a move that is made after `pulls`."""
    drift = instance.stress.drift
    size = move.arm.size if move.count is None else move.count.sum()
    time = pulls + 0.5 * (size - 1)
    turns = time / drift.period + drift.phases
    means = instance.means + drift.size * jnp.sin(2.0 * jnp.pi * turns)
    return dataclasses.replace(instance, means=clipped(instance.rewards, means))


def late(instance, algorithm):
    """The algorithm as the instance lets it learn: rewards come `delay` rounds late."""
    delay = 0 if instance.stress is None else instance.stress.delay
    return delayed(algorithm, delay) if delay else algorithm


class State(NamedTuple):
    """What is remembered besides the algorithm's state."""

    inner: Any
    moves: Any  # [D] those whose rewards are to come
    totals: jax.Array  # [D, S]
    rounds: jax.Array  # int []


def delayed(algorithm, rounds) -> Algorithm:
    """The algorithm that is told of a move `rounds` rounds after it was made.

    It knows nothing of the moves under way: before the first reward is there, it repeats its
    first move.
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
        here = state.rounds % rounds
        first, reward = jax.tree.map(lambda x: x[here], (state.moves, state.totals))
        learnt = algorithm.tell(state.inner, first, reward)
        due = state.rounds >= rounds
        return State(
            inner=jax.tree.map(lambda new, old: jnp.where(due, new, old), learnt, state.inner),
            moves=jax.tree.map(lambda table, x: table.at[here].set(x), state.moves, move),
            totals=state.totals.at[here].set(total),
            rounds=state.rounds + 1,
        )

    return Algorithm(init, ask, tell)
