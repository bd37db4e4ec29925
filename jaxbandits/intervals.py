"""Intervals of 95%: of means by Student's t, of proportions exactly. All are computed here."""

from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

Numbers: TypeAlias = Any  # a number, or an array of them

CONFIDENCE = 0.95
ONE = "1 replication: no interval"  # said where an interval would stand


def half_width(error: Numbers, number: Numbers, confidence: float = CONFIDENCE) -> Numbers:
    """Half the width of the interval of a mean: its standard error times Student's quantile.

    Args:
      error: the standard error of the mean.
      number: how many values the mean is of.
      confidence: that the interval holds the mean, in (0, 1).
    Returns:
      NaN for fewer than two values: one value says nothing of its variation.

    >>> round(half_width(1.0, 3), 4), half_width(1.0, 1)
    (4.3027, nan)
    """
    from scipy import special  # only here, as importing it takes as long as the package

    freedom = np.where(np.asarray(number) > 1, np.asarray(number) - 1.0, np.nan)
    return _plain(special.stdtrit(freedom, (1 + confidence) / 2) * error)


def binomial_interval(
    errors: Numbers, total: Numbers, confidence: float = CONFIDENCE
) -> tuple[Numbers, Numbers]:
    """Exact (Clopper-Pearson) interval of a proportion; (0, 1) without observations.

    Args:
      errors, total: counts.
      confidence: that the interval holds the proportion, in (0, 1).

    >>> low, high = binomial_interval(0, 20)
    >>> low, round(high, 4)
    (0.0, 0.1684)
    """
    from scipy import special

    errors, right = np.asarray(errors), np.asarray(total) - np.asarray(errors)
    tail = (1 - confidence) / 2
    # Where an end is 0 or 1 the quantile is not asked for.
    low = special.betaincinv(np.maximum(errors, 1), right + 1, tail)
    high = special.betaincinv(errors + 1, np.maximum(right, 1), 1 - tail)
    return _plain(np.where(errors > 0, low, 0.0)), _plain(np.where(right > 0, high, 1.0))


def standard_error(values: Float[np.ndarray, "R ..."]) -> Numbers:
    """The standard error of the mean over the first dimension; NaN for fewer than two values."""
    if len(values) < 2:
        return _plain(np.full(values.shape[1:], np.nan))
    return _plain(np.std(values, axis=0, ddof=1) / np.sqrt(len(values)))


def _plain(values):
    """A number as Python's, a table as it is."""
    return values if np.ndim(values) else float(values)
