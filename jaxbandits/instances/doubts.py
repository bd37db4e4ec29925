"""Warnings where rewards are hardly what an instance says of them."""

import numpy as np
from jaxtyping import Bool, Float

from ..system.caller import warn_caller

ABOVE: float = 1.01  # times `noise_var`: a variance that is larger breaks a promise, not a rounding


def warn_of_variances(
    role: str,
    variances: Float[np.ndarray, " K"],
    noise_var: float,
    at_least: Float[np.ndarray, " K"] | None = None,
) -> None:
    """Warn once where an arm's rewards have a larger variance than learners are told.

    Args:
      role: what the message begins with.
      variances: of the rewards of each arm.
      noise_var: what learners are told.
      at_least: what the variances are known to exceed, where they are estimates.
    """
    least = variances if at_least is None else at_least
    above = least > ABOVE * noise_var
    if above.any():
        arm = int(np.where(above, variances, 0.0).argmax())
        warn_caller(
            f"{role}: the rewards of {named(above, arm)} have a variance of {variances[arm]:.3g}, "
            f"{variances[arm] / noise_var:.3g} times the noise_var of {noise_var:.3g} that "
            "algorithms are told: what they promise does not hold"
        )


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
