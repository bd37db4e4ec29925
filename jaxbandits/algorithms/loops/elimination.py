"""Successive elimination on a budget: in each stage some draws, then the best arms go on.

Algorithms differ in how many arms go on, in how the draws of a stage are shared among the arms, and
in how the rewards of a stage become scores.
"""

from collections.abc import Callable
from typing import NamedTuple, TypedDict

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.allocate import halving
from ...types import Key, Pytree


class State(NamedTuple):
    """What is remembered between stages."""

    alive: Bool[Array, " K"]
    stage: Int[Array, ""]  # from 0
    answer: Int[Array, ""]  # the best of the latest stage, a random arm before the first
    order: Int[Array, " K"]  # priorities that break ties
    memory: Pytree  # what an algorithm keeps of earlier stages


class EliminationRules(NamedTuple):
    """In what one algorithm of the loop differs from another."""

    # (key, state) -> (counts [K], note), the draws of a stage, and what `learn` needs to know
    allocate: Callable[[Key, State], tuple[Array, Pytree]]
    # (state, counts [K], sums [K], note) -> (scores [K], memory)
    learn: Callable[[State, Array, Array, Pytree], tuple[Array, Pytree]]
    survivors: Callable[[State], Array]  # int []: how many arms go on after this stage
    over: Callable[[State], Array]  # bool []: no stage is left
    begin: Callable[[], Pytree] = tuple  # () -> memory
    report: Callable[[Pytree], Pytree] = lambda memory: ()  # a dict of scalars for the results


class ScheduleRules(TypedDict):
    """The rules that follow from a schedule."""

    survivors: Callable[[State], Array]
    over: Callable[[State], Array]


def elimination(num_arms: int, rules: EliminationRules) -> Algorithm:
    """The algorithm of these rules."""

    def init(key: Key) -> State:
        order = selection.tie_order(key, num_arms)
        alive, zero = jnp.ones(num_arms, bool), jnp.zeros((), int)
        return State(alive, zero, jnp.argmax(order), order, rules.begin())

    def ask(key: Key, state: State) -> Move:
        counts, note = rules.allocate(key, state)
        return Move(
            arm=jnp.arange(num_arms),
            count=counts.astype(int),
            done=rules.over(state),
            answer=state.answer,
            info=(rules.report(state.memory), note),
        )

    def tell(state: State, move: Move, total: Array) -> State:
        assert move.count is not None  # `ask` gives counts
        scores, memory = rules.learn(state, move.count, total, move.info[1])
        # Arms of equal means, as of rewards 0 and 1, must not be ranked by rounding.
        ranked = selection.comparable(scores, state.alive)
        alive = selection.top(ranked, state.order, rules.survivors(state))
        best = selection.argmax(ranked, state.order)
        return State(alive, state.stage + 1, best, state.order, memory)

    return Algorithm(init, ask, tell)


def by_schedule(schedule: halving.Schedule) -> ScheduleRules:
    """The rules `survivors` and `over` of a schedule known beforehand."""
    sizes = jnp.asarray(schedule.sizes)
    return {
        "survivors": lambda state: sizes[state.stage + 1],
        "over": lambda state: state.stage >= schedule.stages,
    }
