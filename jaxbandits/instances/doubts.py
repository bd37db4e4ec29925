"""Warnings where rewards are hardly what an instance says of them."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from ..system.caller import warn_caller
from ..types import Table
from .settled import SETTLED

ABOVE: float = 1.01  # times `noise_var`: a variance that is larger breaks a promise, not a rounding
FAR_ABOVE: float = 100.0  # times `noise_var`: no standard error is needed to say that it is more
MIN_DRAWS_FOR_ERRORS: int = 40  # with fewer, those of a variance say little


def warn_of_variances(
    role: str,
    variances: Float[np.ndarray, " K"],
    relative_errors: Float[np.ndarray, " K"],
    number: int,
    noise_var: float,
) -> None:
    """Warn once where an arm's rewards have a larger variance than learners are told.

    It is larger by `SETTLED` standard errors, or a hundred times as large.

    Args:
      role: what the message begins with.
      variances, relative_errors: of the rewards of each arm, and the standard errors of the
        variances in units of these.
      number: of rewards of each arm.
      noise_var: what learners are told.
    """
    sure = 1.0 - SETTLED * relative_errors if number > MIN_DRAWS_FOR_ERRORS else 0.0
    above = (sure * variances > ABOVE * noise_var) | (variances >= FAR_ABOVE * noise_var)
    if above.any():
        arm = int(np.where(above, variances, 0.0).argmax())
        warn_caller(
            f"{role}: the rewards of {named(above, arm)} have a variance of {variances[arm]:.3g}, "
            f"{variances[arm] / noise_var:.3g} times the noise_var of {noise_var:.3g} that "
            "algorithms are told: what they promise does not hold"
        )


def relative_error(squares: Float[Table, "N K"], numpy: Any = np) -> Any:
    """The standard error of variances `[K]` in units of these, from squared deviations; 0 for 0."""
    means = squares.mean(0)
    spread = numpy.sqrt(numpy.maximum((squares**2).mean(0) - means**2, 0.0) / len(squares))
    return spread / numpy.where(means > 0, means, 1.0)


def warn_of_constants(role: str, varies: Bool[np.ndarray, " K"], number: int, so: str) -> None:
    """Warn once where rewards of an arm do not vary, or there is one of each arm.

    Args:
      role: what the message begins with.
      varies: whether those of an arm differ.
      number: of rewards of each arm.
      so: what that means where there is more than one.
    """
    if number == 1:
        warn_caller(f"{role}: one reward of each arm shows nothing of its variance")
    elif not varies.all():
        arm = int((~varies).argmax())
        warn_caller(
            f"{role}: {number:,} rewards of {named(~varies, arm)} have variance 0, all are equal; "
            f"{so}"
        )


def named(arms: Bool[np.ndarray, " K"], arm: int) -> str:
    """One of some arms, and how many others there are.

    >>> named(np.array([True, False, True]), 2)
    'arm 2 (and 1 more)'
    """
    more = int(arms.sum()) - 1
    return f"arm {arm} (and {more} more)" if more else f"arm {arm}"
