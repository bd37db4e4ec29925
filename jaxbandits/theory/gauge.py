"""Bounds of the value of a design by the geometry of arms and targets."""

import math

import numpy as np

from ..feature_tables import check_arms
from ..kernels.allocate import pair_shares
from ..precision import on_host
from ..types import Rows
from .bounds import Bound

__all__ = ["design_value_bounds"]


@on_host
def design_value_bounds(arms: Rows, targets: Rows | None = None) -> Bound:
    """Bounds of `rho = min over designs w of max over y of ||y||^2` in A(w)^-1, by lengths.

    y are the differences of two targets. With the gauge `gamma = max {c: c y in conv(X, -X) for all
    y}`, `max ||y||^2 / max ||x||^2 <= rho <= d / gamma^2`, and `rho = 1 / gamma^2` where there is a
    single y up to its sign (Lemma 1, equation (4); Elfving's theorem).

    Args:
      arms: `[K, d]` what may be drawn; d in the bound is the rank of the arms.
      targets: `[M, d]` what is compared, the arms by default; a linear program for each pair of
        them, some milliseconds each.
    Returns:
      `Bound(value, lower)` of rho, which `design.xy_optimal` computes. The value is infinite where
      a difference leaves the span of the arms, and 0 where all targets are equal.
    Raises:
      ValueError: bad shapes or NaN.
      RuntimeError: a linear program that was not solved to its certificate.
      TypeError: traced arguments; it is computed on the host.
    Deviations:
      The paper prints the lower bound with `max ||x||` for `max ||x||^2`. Its proof bounds the
      largest eigenvalue of `sum w_x x x^T`, which is at most `max ||x||^2`; as printed the bound is
      false, for instance for the arms `4 e_i` in three dimensions.
    Reference:
      T. Fiez, L. Jain, K. Jamieson, L. Ratliff, "Sequential experimental design for transductive
      linear bandits", NeurIPS 2019, Lemma 1. https://arxiv.org/abs/1906.08399

    >>> import numpy as np
    >>> found = design_value_bounds(np.eye(3))
    >>> round(found.value, 6), round(found.lower, 6)
    (12.0, 2.0)
    """
    check_arms(arms, targets)
    arms = np.asarray(arms, float)
    targets = arms if targets is None else np.asarray(targets, float)
    first, second = np.triu_indices(len(targets), 1)
    differences = targets[first] - targets[second]
    differences = differences[differences.any(axis=1)]
    if not len(differences):
        return Bound(0.0, 0.0)
    longest = max(math.hypot(*difference) for difference in differences)
    lower = (longest / max(math.hypot(*arm) for arm in arms)) ** 2
    largest = max(pair_shares.norms(arms, differences))
    one = differences[0]
    single = all(np.array_equal(y, one) or np.array_equal(y, -one) for y in differences)
    factor = 1 if single else int(np.linalg.matrix_rank(arms))
    return Bound(factor * largest**2, lower)
