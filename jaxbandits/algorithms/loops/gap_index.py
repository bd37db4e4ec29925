"""The gap-index loop: find the m best arms by comparing those believed best with the rest.

Reda, Kaufmann and Delahaye-Duriez (2021), Algorithm 1. Each round compares the arms by what was
observed (`comparisons`), stops if what is left to doubt is at most epsilon, else draws the arm
that a selection rule chooses for the pair that is hardest to tell apart (`pair_selection`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ...core import Algorithm, Move
from ...kernels import selection
from ...types import Arms, Key, Pytree, Scalar
from .comparisons import Compare, Evidence, Retest, View
from .pair_selection import Selection

# (draws, logdet) -> sigma C, the width of a direction of length 1.
Width: TypeAlias = Callable[[Array, Array], Array]


class State(NamedTuple):
    """What an algorithm of this kind remembers."""

    stats: Pytree  # of the evidence
    order: Array  # int [K] priorities that break ties
    draws: Array  # int []
    memory: Pytree  # of the selection
    last: View | None  # to retest: what was seen before the pair was drawn


class RoundInfo(NamedTuple):
    """What `tell` needs besides the reward."""

    view: View
    first: Array  # bool []: the arm is drawn because each is once


def gap_index(
    arms: Arms,
    evidence: Evidence,
    compare: Compare,
    select: Selection,
    width: Width,
    *,
    epsilon: Scalar = 0.0,
    answer: Callable[[View], Any] = lambda view: view.top,
    all_first: bool = True,
    retest: Retest | None = None,
) -> Algorithm:
    """An algorithm of Table 1.

    Args:
      arms: `[K, d]` features.
      evidence: how rewards are remembered.
      compare: `(stats, order, width) -> Comparison`, the pair b, c and what is left to doubt.
      select: the arm to draw for that pair.
      width: `(draws, logdet) -> sigma C`; where no arm is drawn before the first test, `draws` is
        one more than were made.
      epsilon: accuracy: the largest doubt at which the algorithm stops.
      answer: of a `View`; the mask of J by default.
      all_first: whether each arm is drawn once before any test.
      retest: `(comparison, last view) -> View`, to test what was drawn for last, as published
        programs do, and not what would be drawn next.
    """
    num_arms = arms.shape[0]
    first_draws = num_arms if all_first else 0

    def init(key: Key) -> State:
        order, nobody = selection.tie_order(key, num_arms), jnp.zeros((), int)
        unseen = View(jnp.zeros(num_arms, bool), nobody, nobody, jnp.full((), jnp.inf))
        return State(
            stats=evidence.begin(),
            order=order,
            draws=jnp.zeros((), int),
            memory=select.begin(),
            last=None if retest is None else unseen,
        )

    def ask(key: Key, state: State) -> Move:
        stats, order, draws = state.stats, state.order, state.draws
        first = draws < first_draws
        wide = width(jnp.maximum(draws + (not all_first), 1), stats.logdet)
        found = compare(stats, order, wide)
        tested, may_stop = found.view, ~first
        if retest is not None:
            may_stop = draws > first_draws
            tested = _where(may_stop, retest(found, state.last), tested)
        if select.within_pair is not None:
            may_stop = may_stop & ~select.within_pair(state.memory)
        chosen = select.choose(state.memory, found, stats, order)
        return Move(
            arm=jnp.where(first, jnp.minimum(draws, num_arms - 1), chosen),
            count=None,
            done=may_stop & (tested.doubt <= epsilon),
            answer=answer(tested),
            info=RoundInfo(found.view, first),
        )

    def tell(state: State, move: Move, total: Array) -> State:
        view, first = move.info
        last = None if retest is None else view
        if last is not None and select.within_pair is not None:
            last = _where(select.within_pair(state.memory), state.last, last)
        return State(
            stats=evidence.observe(state.stats, move.arm, total),
            order=state.order,
            draws=state.draws + 1,
            memory=select.drawn(state.memory, move.arm, view, first),
            last=last,
        )

    return Algorithm(init, ask, tell)


def _where(condition: Array, new: Pytree, old: Pytree) -> Pytree:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), new, old)
