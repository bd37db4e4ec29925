"""Successive elimination on a budget: in each stage some draws, then the best go on.

What one algorithm does otherwise than another is how many go on, how the draws of a stage are
shared among them, and how a stage's rewards become scores.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.allocate import halving


class State(NamedTuple):
    """What is remembered between stages."""

    alive: jax.Array  # bool [K]
    stage: jax.Array  # int [] from 0
    answer: jax.Array  # int [] the best of the latest stage, a random arm before the first
    order: jax.Array  # int [K] priorities that break ties
    memory: Any  # what an algorithm keeps of stages past


class Rules(NamedTuple):
    """What makes an algorithm of the loop."""

    allocate: Callable  # (key, state) -> (counts [K], note)
    learn: Callable  # (state, counts [K], sums [K], note) -> (scores [K], memory)
    survivors: Callable  # (state) -> int []: arms that go on after this stage
    over: Callable  # (state) -> bool []: no stage is left
    begin: Callable = tuple  # () -> memory
    report: Callable = lambda memory: ()  # memory -> a dict of scalars for the results


def elimination(num_arms, rules):
    """The algorithm of these rules."""

    def init(key):
        order = selection.tie_order(key, num_arms)
        everyone, zero = jnp.ones(num_arms, bool), jnp.zeros((), int)
        return State(everyone, zero, jnp.argmax(order), order, rules.begin())

    def ask(key, state):
        counts, note = rules.allocate(key, state)
        return Move(
            arm=jnp.arange(num_arms),
            count=counts.astype(int),
            done=rules.over(state),
            answer=state.answer,
            info=(rules.report(state.memory), note),
        )

    def tell(state, move, total):
        scores, memory = rules.learn(state, move.count, total, move.info[1])
        # Arms of equal means, as of rewards 0 and 1, must not be ranked by rounding.
        ranked = selection.comparable(scores, state.alive)
        alive = selection.top(ranked, state.order, rules.survivors(state))
        best = selection.argmax(ranked, state.order)
        return State(alive, state.stage + 1, best, state.order, memory)

    return Algorithm(init, ask, tell)


def by_schedule(plan: halving.Schedule):
    """The rules `survivors` and `over` of a schedule known beforehand."""
    sizes = jnp.asarray(plan.sizes)
    return {
        "survivors": lambda state: sizes[state.stage + 1],
        "over": lambda state: state.stage >= plan.stages,
    }
