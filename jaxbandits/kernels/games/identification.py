"""What a game of identification is about: the answer of the moment and what speaks against it."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from jaxtyping import Array, Float, Int

from ..confidence import glr
from ..estimate import least_squares
from . import best_response, subsets


class Standing(NamedTuple):
    """An answer, by the estimate."""

    answer: Any  # int [], or bool [K] for a set
    found: Any  # the evidence for it
    place: Array  # int []: of its learner
    owner: Array | None  # bool [K]: the answer, if it is a set
    respond: Callable  # weights [K] -> nature's response to them, [K]


def standing(
    stats: least_squares.Ledger,
    arms: Float[Array, "K d"],
    order: Int[Array, " K"],
    m: int | None,
    *,
    arm_space: bool,
) -> Standing:
    """The m best arms, or the best arm where m is None."""
    if m is None:
        found = glr.evidence(stats, arms, arm_space=arm_space)
        respond = partial(best_response.response, arms, leader=found.leader, gaps=found.gaps)
        return Standing(found.leader, found, found.leader, None, respond)
    found = glr.evidence_of_set(stats, arms, order, m, arm_space=arm_space)
    respond = partial(best_response.response_to_set, arms, top=found.top, means=stats.means)
    return Standing(found.top, found, subsets.place(found.top, m), found.top, respond)
