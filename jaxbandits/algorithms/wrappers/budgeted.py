"""Any algorithm, stopped at a budget: the constructor of it, and the algorithm itself."""

import dataclasses
import functools
import inspect
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.random import fold_in

from ...conditions import budget_covers, total_draws
from ...core import Algorithm, needs_context
from ...feature_tables import is_concrete, require
from ...kernels import selection
from ...kernels.allocate import efficient_rounding
from ...parameters import choice, converted, count
from .wrapper import Wrapped

ORDER = 0xB5D9E7  # of the key that breaks ties, apart from all that the inner algorithm draws
OWN = {"budget": count(), "per_arm": count(), "answer": choice("inner", "most_pulled")}


@dataclasses.dataclass(frozen=True)
class Stopped(Wrapped):
    """The constructor `inner` at a budget.

    An inner option `budget` is given the budget, and so is `horizon` unless a caller gives another.
    """

    outer = "at_budget"
    own = OWN
    defaults = MappingProxyType({"budget": None, "per_arm": None, "answer": "inner"})

    def complete(self, arms, **keywords):
        """Check; what the host adds to the inner options."""
        own = self._own(arms, keywords)
        targets = keywords.get("targets")
        if own["answer"] == "most_pulled" and targets is not None:
            same = np.shape(targets) == np.shape(arms)
            if same and is_concrete(arms) and is_concrete(targets):
                same = np.array_equal(targets, arms)
            require(same, "answer must be 'inner' where the targets are not the arms")
        return self.complete_inner(arms, self._told(arms, keywords, own))

    def _own(self, arms, keywords):
        own = converted(OWN, {**self.defaults} | self.parted(keywords)[0])
        budget_covers({"arms": arms, **own}, 1)
        if self.contextual:
            _check_contextual(own["answer"] != "most_pulled" and own["per_arm"] is None)
        return own

    def _told(self, arms, keywords, own):
        """The keywords of the inner constructor."""
        names, total = self.parameters, total_draws(arms, own["budget"], own["per_arm"])
        _, told = self.parted(keywords)
        if "budget" in names:
            told["budget"] = total
        if "horizon" in names and told.get("horizon") is None:
            told["horizon"] = total
        return told

    def __call__(self, arms, *args, **keywords):
        """The `Algorithm`."""
        own = self._own(arms, keywords)
        told = self._told(arms, keywords, own)
        targets = inspect.signature(self.inner).bind(arms, *args, **told).arguments.get("targets")
        algorithm = self.inner(arms, *args, **told)
        if needs_context(algorithm.ask):
            _check_contextual(own["answer"] != "most_pulled" and own["per_arm"] is None)
        return stopped(
            algorithm,
            total_draws(arms, own["budget"], own["per_arm"]),
            num_arms=np.shape(arms)[0],
            num_answers=np.shape(arms if targets is None else targets)[0],
            by_counts=own["answer"] == "most_pulled",
        )


def _check_contextual(fine):
    message = "answer must be 'inner', and budget given, not per_arm: rounds show arms of their own"
    require(fine, message)


class State(NamedTuple):
    """What is remembered besides the inner algorithm's state."""

    inner: Any
    drawn: jax.Array  # int []
    counts: jax.Array | None  # int [K] draws of each arm, where the answer is the most of them
    order: jax.Array | None  # int [K] priorities that break ties between those


def stopped(algorithm, budget, *, num_arms, num_answers, by_counts):
    """The algorithm, told to stop when its draws have reached the budget."""

    def init(key):
        counts = jnp.zeros(num_arms, int) if by_counts else None
        order = selection.tie_order(fold_in(key, ORDER), num_arms) if by_counts else None
        return State(algorithm.init(key), jnp.zeros((), int), counts, order)

    @functools.wraps(algorithm.ask)  # for its signature: whether it is shown something
    def ask(key, state, *context):
        move = algorithm.ask(key, state.inner, *context)
        answer = _most_pulled(move.answer, state) if by_counts else move.answer
        rest = budget - state.drawn
        if move.count is None:
            # The stopping rule changes nothing here. But where it is left out, the compiler of
            # JAX 0.10 crashes on LinGame, while it simplifies reductions that nobody uses.
            spent = (move.arm.size > rest) | (move.done & (rest <= 0))
            return move._replace(done=spent, answer=answer)
        if answer.ndim == 0:  # before the first phase any answer is as good
            lot = jax.random.randint(fold_in(key, ORDER), (), 0, num_answers, answer.dtype)
            answer = jnp.where(state.drawn > 0, answer, lot)
        counts, fits = cut(move.count, rest, _lots(move.arm, state))
        return move._replace(count=counts, done=move.done | ~fits, answer=answer)

    def tell(state, move, total):
        inner, draws = algorithm.tell(state.inner, move, total), move.arm.size
        if move.count is not None:
            draws = move.count.sum()
            # Played on in vain, the phases of a run that has ended stay as long as they are.
            hold = lambda old, new: jnp.where(move.done, old, new)  # noqa: E731
            inner = jax.tree.map(hold, state.inner, inner)
        counts = state.counts
        if by_counts:
            each = 1 if move.count is None else move.count.astype(int)
            counts = counts.at[move.arm].add(each)
        return State(inner, state.drawn + draws, counts, state.order)

    return Algorithm(init, ask, tell)


def cut(counts, rest, order=None):
    """A phase in what is left of the budget: `(counts [S], whether it can be played)`.

    In proportion, each of its arms with a draw at least, so that what the phase spans stays
    spanned; with less than that it cannot be played. Of equal shares the largest `order` is first,
    or the lowest index.
    """
    counts = counts.astype(int)
    total, first = counts.sum(), (counts > 0).astype(int)
    more, least = counts - first, first.sum()
    weights = more / jnp.maximum(more.sum(), 1)
    shared = first + efficient_rounding.largest_remainder(
        weights, jnp.maximum(rest - least, 0), order
    )
    fits = (rest > 0) & (rest >= jnp.minimum(least, total))
    return jnp.where(fits, jnp.where(total > rest, shared, counts), 0), fits


def _lots(arms, state):
    """A priority for each place of a phase, where the draws that it is cut to tell the answer."""
    if state.order is None:
        return None
    return state.order[arms] * arms.size + jnp.arange(arms.size)  # an arm may have two places


def _most_pulled(answer, state):
    """The arm drawn most: of equal ones the inner algorithm's answer, else one by lot."""
    require(answer.ndim == 0, "answer must be 'inner' for an algorithm that answers with a set")
    preferred = (jnp.arange(state.counts.size) == answer).astype(float)
    return selection.most_drawn(state.counts, preferred, state.order)
