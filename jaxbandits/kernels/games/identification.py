"""Games of identification: the answer by the estimate so far, and nature's response to a design."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int

from ..confidence import glr
from ..estimate import least_squares
from . import best_response, subsets


class CurrentAnswer(NamedTuple):
    """The answer by the estimate, and what a game about it needs."""

    answer: Int[Array, ""] | Bool[Array, " K"]  # a set is a mask
    evidence: glr.Evidence | glr.SetEvidence
    slot: Int[Array, ""]  # of its learner
    owner: Bool[Array, " K"] | None  # the answer, if it is a set
    # From weights to nature's response to them.
    respond: Callable[[Float[Array, " K"]], Float[Array, " K"]]


def current_answer(
    stats: least_squares.Ledger,
    arms: Float[Array, "K d"],
    order: Int[Array, " K"],
    m: int | None,
    *,
    arm_space: bool,
) -> CurrentAnswer:
    """The m best arms, or the best arm where m is None."""
    if m is None:
        found = glr.evidence(stats, arms, arm_space=arm_space)
        respond = partial(best_response.response, arms, leader=found.leader, gaps=found.gaps)
        return CurrentAnswer(found.leader, found, found.leader, None, respond)
    found = glr.evidence_of_set(stats, arms, order, m, arm_space=arm_space)
    respond = partial(best_response.response_to_set, arms, top=found.top, means=stats.means)
    return CurrentAnswer(found.top, found, subsets.slot(found.top, m), found.top, respond)
