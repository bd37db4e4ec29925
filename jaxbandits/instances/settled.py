"""Whether estimated means settle which arms are the best."""

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from ..types import Scalar, Table

SETTLED: float = 5.0  # standard errors of the difference of two means whose order counts as known
#: those that a planned number of draws gives at the gap estimated so far, which may be too large
PLANNED: float = 6.0
DIGITS: int = 2  # of a planned number of draws
MOST_PLANNED: float = 1e7  # draws of each arm to plan for a gap that may be chance
CHANCE: float = 3.0  # standard errors: a smaller gap may be that of equal means
UNTIL_SETTLED: str = "until settled"  # as a number of draws


class Estimated(NamedTuple):
    """Means `[K]` of arms, their standard errors, and the draws of each arm behind them."""

    means: Float[Table, " K"]
    errors: Float[Table, " K"]
    draws: Int[Table, ""] | int


def separation(
    found: Estimated,
    m: Int[Table, ""] | int = 1,
    epsilon: Scalar = 0.0,
    numpy: Any = np,
) -> Float[Table, ""]:
    """How many standard errors of a difference the m best arms are away from being others.

    The m-th best mean is compared with each one below, the next one with each one above: the least
    ratio of a gap and the standard error of that gap. It is infinite where m is 0 or K, and where
    both standard errors are 0, unless the means are equal.

    Args:
      found: the means.
      m: how many best arms are sought.
      epsilon: an arm whose mean is this near to the m-th best one is right too; the gap is then
        the distance from that limit.
      numpy: what computes it, `jax.numpy` under a trace.

    >>> means, errors = np.array([0.5, 0.9, 0.4]), np.array([0.03, 0.04, 0.04])
    >>> float(separation(Estimated(means, errors, 2000)).round(6))
    8.0
    """
    means, errors, _ = found
    order = numpy.argsort(-means)
    ranked, spread, place = means[order], errors[order], numpy.arange(means.size)
    last = numpy.clip(m - 1, 0, means.size - 1)  # of the m best
    after = numpy.clip(m, 0, means.size - 1)
    best = place < m
    gaps = numpy.where(best, ranked - ranked[after] + epsilon, abs(ranked[last] - ranked - epsilon))
    widths = numpy.hypot(spread, numpy.where(best, spread[after], spread[last]))
    exact = numpy.where(gaps > 0, numpy.inf, 0.0)  # of rewards without variance: equal is a tie
    ratios = numpy.where(widths > 0, gaps / numpy.where(widths > 0, widths, 1.0), exact)
    return numpy.where((m > 0) & (m < means.size), ratios.min(), numpy.inf)


def needed_separation(draws: Int[Table, ""] | int, numpy: Any = np) -> Float[Table, ""]:
    """The separation that settles an order: `SETTLED`, and more after few draws.

    Standard errors are estimated too: this is the quantile of Student's law with the tail that
    `SETTLED` has of the normal one (D. L. Wallace, "Bounds on normal approximations to Student's
    and the chi-square distributions", Annals of Mathematical Statistics, 1959).

    >>> [round(float(needed_separation(draws)), 2) for draws in (10, 100, 2000, 10**6)]
    [12.65, 5.35, 5.02, 5.0]
    """
    freedom = numpy.maximum(draws - 1.0, 1.0)
    normal = SETTLED * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0)
    return numpy.sqrt(freedom * numpy.expm1(normal**2 / freedom))


def is_settled(
    found: Estimated,
    m: Int[Table, ""] | int = 1,
    epsilon: Scalar = 0.0,
    numpy: Any = np,
) -> Bool[Table, ""]:
    """Whether estimated means settle which arms are the m best ones; see `separation`."""
    return separation(found, m, epsilon, numpy) >= needed_separation(found.draws, numpy)


def check_settled(
    found: Estimated,
    m: int = 1,
    epsilon: float = 0.0,
    *,
    role: str,
    enough: bool = False,
    heavy: bool = False,
) -> None:
    """Raise unless estimated means settle which arms are the m best ones.

    Args:
      found, m, epsilon: as of `separation`.
      role: what the message begins with.
      enough: whether these draws are those of "until settled".
      heavy: whether one draw dominates the variance of an arm, so that it may be infinite.
    """
    if not is_settled(found, m, epsilon):
        raise ValueError(f"{role}: {_unsettled(found, m, epsilon, enough, heavy)}")


def _unsettled(found, m, epsilon, enough, heavy):
    """How far apart the means are, and in which ways their order would be settled."""
    first, second = np.argsort(-found.means, kind="stable")[m - 1 : m + 1]
    apart = float(separation(found, m, epsilon))
    best = "which arm is the best" if m == 1 else f"which {m} arms are the best"
    return (
        f"{found.draws:,} draws of each arm do not settle {best}: the means {_text(found, first)} "
        f"and {_text(found, second)} are to be {needed_separation(found.draws):.3g} standard "
        f"errors of a difference apart, got {apart:.2g}; "
        f"{_advice(planned_draws(found, m, epsilon), enough, heavy)}"
    )


def _text(found, arm):
    return f"{found.means[arm]:.4g} of arm {arm} (standard error {found.errors[arm]:.2g})"


def planned_draws(found: Estimated, m: int = 1, epsilon: float = 0.0) -> int | None:
    """The draws of each arm that are likely to settle the m best arms.

    Returns:
      The number; None where it is above `MOST_PLANNED` and the gap may be chance: then no number
      is known to do.
    """
    apart = float(separation(found, m, epsilon))
    number = float(found.draws) * (PLANNED / apart) ** 2 if apart > 0 else math.inf
    if not math.isfinite(number) or (number > MOST_PLANNED and apart < CHANCE):
        return None
    unit = 10.0 ** max(0, math.floor(math.log10(number)) + 1 - DIGITS)
    return math.ceil(number / unit) * int(unit)


def _advice(needed, enough, heavy):
    """What settles it; `needed` draws do, None: no number of them."""
    if heavy or needed is None:
        why = "rewards without a mean or a variance" if heavy else "means that are (nearly) equal"
        return f"no number of draws settles {why}: give the known means, means=[...]"
    ways = f"draws={needed}" if enough else f"draws={needed}, draws={UNTIL_SETTLED!r}"
    return (
        f"at this gap, unless it is chance and the means are equal, it takes about {needed:,} "
        f"draws of each arm: give {ways} or, where the means are known, means=[...]"
    )
