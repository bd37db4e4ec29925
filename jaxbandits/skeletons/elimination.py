"""Successive elimination on a budget: in each stage some draws, then the best go on.

What one algorithm does otherwise than another is how many go on, how the draws of a stage are
shared among them, and how a stage's rewards become scores.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..core import Algorithm, Move
from ..kernels import halving, pick


class Rules(NamedTuple):
    """What makes an algorithm of the loop; `memory` is whatever it keeps of stages past."""

    allocate: Callable  # (key, memory, alive [K], stage) -> (counts [K], note)
    learn: Callable  # (memory, alive [K], counts [K], sums [K], note) -> (scores [K], memory)
    survivors: Callable  # (memory, stage) -> int []: arms that go on after this stage
    over: Callable  # (memory, stage) -> bool []: no stage is left
    begin: Callable = tuple  # () -> memory
    report: Callable = lambda memory: ()  # memory -> a dict of scalars for the results


class State(NamedTuple):
    """What is remembered between stages."""

    alive: jax.Array  # bool [K]
    stage: jax.Array  # int [] from 0
    answer: jax.Array  # int [] the best of the latest stage, a random arm before the first
    order: jax.Array  # int [K] priorities that break ties
    memory: Any


def elimination(num_arms, rules):
    """The algorithm of these rules."""

    def init(key):
        order = pick.tie_order(key, num_arms)
        everyone, zero = jnp.ones(num_arms, bool), jnp.zeros((), int)
        return State(everyone, zero, jnp.argmax(order), order, rules.begin())

    def ask(key, state):
        memory, stage = state.memory, state.stage
        counts, note = rules.allocate(key, memory, state.alive, stage)
        return Move(
            arm=jnp.arange(num_arms),
            count=counts.astype(int),
            done=rules.over(memory, stage),
            answer=state.answer,
            info=(rules.report(memory), note),
        )

    def tell(state, move, total):
        note = move.info[1]
        scores, memory = rules.learn(state.memory, state.alive, move.count, total, note)
        ranked = jnp.where(state.alive, scores, -jnp.inf)
        number = rules.survivors(state.memory, state.stage)
        alive = pick.top(ranked, state.order, number)
        best = pick.argmax(ranked, state.order)
        return State(alive, state.stage + 1, best, state.order, memory)

    return Algorithm(init, ask, tell)


def by_schedule(plan: halving.Schedule):
    """The rules `survivors` and `over` of a schedule known beforehand."""
    sizes = jnp.asarray(plan.sizes)
    return {
        "survivors": lambda memory, stage: sizes[stage + 1],
        "over": lambda memory, stage: stage >= plan.stages,
    }
