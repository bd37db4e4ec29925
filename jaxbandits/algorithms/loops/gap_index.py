"""The gap-index loop: find the m best arms by comparing those believed best with the rest.

Reda, Kaufmann and Delahaye-Duriez (2021), Algorithm 1. A round compares the arms by the rewards so
far (`comparisons`): J, the m arms believed best; b, the member of J that is most in doubt; c, its
strongest challenger outside J; and the doubt, an upper confidence bound on what is lost by the
answer J. It stops if the doubt is at most epsilon, else it draws the arm that a selection rule
chooses for the pair b, c (`pair_selection`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from ...core import Algorithm, Move
from ...kernels import selection
from ...types import Arms, Key, Pytree, Scalar
from .comparisons import Compare, Evidence, Retest, View
from .pair_selection import Selection

# (draws, logdet) -> sigma C, half of the confidence interval in a direction of length 1.
Width: TypeAlias = Callable[[Array, Array], Array]


class State(NamedTuple):
    """What the loop remembers between rounds."""

    stats: Pytree  # what `evidence` keeps of the rewards
    order: Int[Array, " K"]  # priorities that break ties
    draws: Int[Array, ""]
    memory: Pytree  # what `select` remembers
    last: View | None  # for `retest`: the view for which the last arm, or pair, was drawn


class RoundInfo(NamedTuple):
    """What `tell` needs besides the reward."""

    view: View
    first: Bool[Array, ""]  # one of the first K draws, which take each arm once


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
    """The algorithm made of these parts; those of the paper's Table 1 are in `comparisons`.

    Args:
      arms: `[K, d]` features.
      evidence: how rewards are remembered.
      compare: `(stats, order, width) -> Comparison`, whose `view` has J, b, c and the doubt.
      select: which arm to draw for the pair b, c.
      width: `(draws, logdet) -> sigma C`; where no arm is drawn before the first test, `draws` is
        one more than were made.
      epsilon: accuracy: the largest doubt at which the algorithm stops.
      answer: of a `View`; the mask of J by default.
      all_first: whether each arm is drawn once before any test.
      retest: `(comparison, last view) -> View`, which the stopping test then takes. Published
        programs test the pair that they drew for last, and not the pair that is in doubt now.
    """
    num_arms = arms.shape[0]
    first_draws = num_arms if all_first else 0

    def init(key: Key) -> State:
        order, any_arm = selection.tie_order(key, num_arms), jnp.zeros((), int)
        nothing_seen = View(jnp.zeros(num_arms, bool), any_arm, any_arm, jnp.full((), jnp.inf))
        return State(
            stats=evidence.begin(),
            order=order,
            draws=jnp.zeros((), int),
            memory=select.begin(),
            last=None if retest is None else nothing_seen,
        )

    def ask(key: Key, state: State) -> Move:
        stats, order, draws = state.stats, state.order, state.draws
        first = draws < first_draws
        sigma_c = width(jnp.maximum(draws + (not all_first), 1), stats.logdet)
        comparison = compare(stats, order, sigma_c)
        tested, may_stop = comparison.view, ~first
        if retest is not None:
            assert state.last is not None  # `init` made one
            may_stop = draws > first_draws
            tested = _where(may_stop, retest(comparison, state.last), tested)
        if select.within_pair is not None:
            may_stop = may_stop & ~select.within_pair(state.memory)
        selected = select.choose(state.memory, comparison, stats, order)
        return Move(
            arm=jnp.where(first, jnp.minimum(draws, num_arms - 1), selected),
            count=None,
            done=may_stop & (tested.doubt <= epsilon),
            answer=answer(tested),
            info=RoundInfo(comparison.view, first),
        )

    def tell(state: State, move: Move, total: Array) -> State:
        view, first = move.info
        last = None if retest is None else view
        if last is not None and select.within_pair is not None:
            # The second of a pair is drawn for the same view as the first.
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
