"""Any algorithm, stopped at a budget: the constructor of it, and the algorithm itself."""

import dataclasses
import functools
import inspect
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.random import fold_in
from jaxtyping import Array, Bool, Int

from ...conditions import budget_covers, total_draws
from ...core import Algorithm, Move, needs_context
from ...feature_tables import is_concrete, require
from ...kernels import selection
from ...kernels.allocate import efficient_rounding
from ...parameters import Count, Values, choice, converted, options_of
from ...types import Key, Pytree, Rows, Scalar
from .wrapper import Wrapper

ORDER: int = 0xB5D9E7  # folded into a key to break ties, which no inner algorithm folds in
Answer: TypeAlias = Annotated[str, choice("inner", "most_pulled")]


class BudgetOptions(NamedTuple):
    """The options of `at_budget`."""

    budget: Count | None = None
    per_arm: Count | None = None
    answer: Answer = "inner"


@dataclasses.dataclass(frozen=True)
class Budgeted(Wrapper):
    """The constructor `inner` at a budget.

    An inner option `budget` is given the budget, and so is `horizon` unless a caller gives another.
    """

    outer: ClassVar[str] = "at_budget"
    own: ClassVar[type[tuple[Any, ...]]] = BudgetOptions

    def complete(self, arms: Rows, /, **keywords: Any) -> Values:
        """Check all options; what the host adds to those of the inner constructor."""
        own = self._own_options(arms, keywords)
        targets = keywords.get("targets")
        if own.answer == "most_pulled" and targets is not None:
            same = np.shape(targets) == np.shape(arms)
            if same and is_concrete(arms) and is_concrete(targets):
                same = np.array_equal(targets, arms)
            require(same, "answer must be 'inner' where the targets are not the arms")
        return self.complete_inner(arms, self._inner_options(arms, keywords, own))

    def _own_options(self, arms: Rows, keywords: Values) -> BudgetOptions:
        given, _ = self.split_options(keywords)
        own = BudgetOptions(**converted(options_of(BudgetOptions), given))
        budget_covers({"arms": arms, **own._asdict()}, 1)
        if self.contextual:
            _check_contextual(own)
        return own

    def _inner_options(self, arms: Rows, keywords: Values, own: BudgetOptions) -> dict[str, Any]:
        names, total = self.inner_parameters, total_draws(arms, own.budget, own.per_arm)
        _, options = self.split_options(keywords)
        if "budget" in names:
            options["budget"] = total
        if "horizon" in names and options.get("horizon") is None:
            options["horizon"] = total
        return options

    def __call__(self, arms: Rows, /, *args: Any, **keywords: Any) -> Algorithm:
        """The `Algorithm`."""
        own = self._own_options(arms, keywords)
        options = self._inner_options(arms, keywords, own)
        bound = inspect.signature(self.inner).bind(arms, *args, **options).arguments
        targets = bound.get("targets")
        algorithm = self.inner(arms, *args, **options)
        if needs_context(algorithm.ask):
            _check_contextual(own)
        return budgeted(
            algorithm,
            total_draws(arms, own.budget, own.per_arm),
            num_arms=np.shape(arms)[0],
            num_answers=np.shape(arms if targets is None else targets)[0],
            by_counts=own.answer == "most_pulled",
        )


def _check_contextual(own: BudgetOptions) -> None:
    message = "answer must be 'inner', and budget given, not per_arm: rounds show arms of their own"
    require(own.answer != "most_pulled" and own.per_arm is None, message)


class State(NamedTuple):
    """What is remembered besides the inner algorithm's state."""

    inner: Pytree
    drawn: Int[Array, ""]
    counts: Int[Array, " K"] | None  # draws of each arm, where the answer is the arm drawn most
    order: Int[Array, " K"] | None  # priorities that break ties between those


def budgeted(
    algorithm: Algorithm, budget: Scalar, *, num_arms: int, num_answers: int, by_counts: bool
) -> Algorithm:
    """The algorithm with another stopping rule: it is done when its draws reach the budget.

    Args:
      algorithm: the inner algorithm.
      budget: total draws.
      num_arms, num_answers: K, and how many answers there are where an answer is an index.
      by_counts: whether the answer is the arm drawn most, not that of the algorithm.
    """

    def init(key: Key) -> State:
        counts = jnp.zeros(num_arms, int) if by_counts else None
        order = selection.tie_order(fold_in(key, ORDER), num_arms) if by_counts else None
        return State(algorithm.init(key), jnp.zeros((), int), counts, order)

    @functools.wraps(algorithm.ask)  # for its signature: whether it takes a context
    def ask(key, state, *context):
        move = algorithm.ask(key, state.inner, *context)
        answer = _most_pulled(move.answer, state) if by_counts else move.answer
        rest = budget - state.drawn
        if move.count is None:
            # Without the inner stopping rule, which changes nothing here, the compiler of JAX 0.10
            # crashes on LinGame: it simplifies reductions whose results are not used.
            spent = (move.arm.size > rest) | (move.done & (rest <= 0))
            return move._replace(done=spent, answer=answer)
        if answer.ndim == 0:  # before the first phase any answer is as good
            by_lot = jax.random.randint(fold_in(key, ORDER), (), 0, num_answers, answer.dtype)
            answer = jnp.where(state.drawn > 0, answer, by_lot)
        counts, fits = cut(move.count, rest, _slot_order(move.arm, state))
        return move._replace(count=counts, done=move.done | ~fits, answer=answer)

    def tell(state: State, move: Move, total: Array) -> State:
        inner, draws = algorithm.tell(state.inner, move, total), move.arm.size
        if move.count is not None:
            draws = move.count.sum()
            # A run that has ended is still stepped with the others of its batch. Its state is
            # held, as otherwise its phases would become longer and longer.
            hold = lambda old, new: jnp.where(move.done, old, new)  # noqa: E731
            inner = jax.tree.map(hold, state.inner, inner)
        counts = state.counts
        if counts is not None:
            each = 1 if move.count is None else move.count.astype(int)
            counts = counts.at[move.arm].add(each)
        return State(inner, state.drawn + draws, counts, state.order)

    return Algorithm(init, ask, tell)


def cut(
    counts: Int[Array, " S"], rest: Int[Array, ""], order: Int[Array, " S"] | None = None
) -> tuple[Int[Array, " S"], Bool[Array, ""]]:
    """The draws of a phase cut to the rest of the budget, and whether the phase is possible.

    A phase that exceeds the rest is cut in proportion. Each of its arms keeps one draw at least, so
    that the drawn arms span the same space; where the rest does not suffice for that, the phase is
    not possible and all counts are 0. Of equal shares the one of larger `order` is rounded up
    first, or the one of lower index where there is no `order`.
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


def _slot_order(arms: Int[Array, " S"], state: State) -> Int[Array, " S"] | None:
    """A priority for each slot of a phase, where the counts of a cut phase decide the answer."""
    if state.order is None:
        return None
    return state.order[arms] * arms.size + jnp.arange(arms.size)  # an arm may have two slots


def _most_pulled(answer: Int[Array, ""], state: State) -> Int[Array, ""]:
    """The arm drawn most; of equal ones the inner algorithm's answer, else one at random."""
    require(answer.ndim == 0, "answer must be 'inner' for an algorithm that answers with a set")
    assert state.counts is not None  # `init` made them
    assert state.order is not None
    preferred = (jnp.arange(state.counts.size) == answer).astype(float)
    return selection.most_drawn(state.counts, preferred, state.order)
