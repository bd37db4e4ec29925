"""From designs to whole numbers of draws, for import: float64, compiled, checked."""

import jax
import jax.numpy as jnp
import numpy as np

from .kernels import regret_rounding
from .kernels import rounding as kernels
from .options import check, check_arms, choice, count, is_concrete, require
from .precision import double

__all__ = ["efficient", "largest_remainder", "regret"]

FORMS = ("greedy", "swap")


def _check(weights, total):
    require(np.ndim(weights) == 1, f"weights must be a vector [K], got shape {np.shape(weights)}")
    if is_concrete(weights):
        table = np.asarray(weights, float)
        fine = np.isfinite(table).all() and (table >= 0).all() and abs(table.sum() - 1) < 1e-6
        require(fine, f"weights must be non-negative with sum 1, got sum {table.sum()}")
    check("total", count(0), total)
    return jnp.asarray(weights, float), jnp.asarray(total, int)


@double
def efficient(weights, total):
    """Efficient rounding (Pukelsheim, 2006): int counts `[K]` with sum `total`.

    Args:
      weights: `[K]`, non-negative with sum 1.
      total: draws; with at least as many as supported arms each of these is drawn.
    Raises:
      ValueError: weights that are no design, a negative total.

    >>> efficient([0.5, 0.3, 0.2], 11)
    array([6, 3, 2])
    """
    return _efficient(*_check(weights, total))


@double
def largest_remainder(weights, total):
    """Largest-remainder rounding: int counts `[K]` with sum `total`, within 1 of `total w`.

    Args:
      weights: `[K]`, non-negative with sum 1.
      total: draws.
    Raises:
      ValueError: weights that are no design, a negative total.

    >>> largest_remainder([0.5, 0.3, 0.2], 11)
    array([6, 3, 2])
    """
    return _largest_remainder(*_check(weights, total))


@double
def regret(arms, weights, total, *, form="greedy"):
    """Rounding by regret minimisation: int counts `[K]` with sum `total` N, on the support.

    With r the rank of the supported arms, `A(n) >= (1 - e) N A(w)`, so that no direction is
    measured worse than by the design but for a factor `1 / (1 - e)`. Unlike that of efficient
    rounding the loss does not grow with the size of the support, and there is one from N = 9 r
    on, however many arms are supported.

    Args:
      arms: `[K, d]`.
      weights: `[K]`, non-negative with sum 1.
      total: draws.
      form: "greedy", draws chosen one by one, `e = 3 sqrt(r / N)`; for large N whole shares come
        first and only the last are chosen. "swap", exchanges that begin with efficient rounding
        and end as soon as `e = 3 sqrt(5 r / N)` is reached.
    Raises:
      ValueError: bad shapes, weights that are no design, a negative total, or so ill-conditioned
        a design that the loss cannot be certified.
    Deviations:
      The greedy form is run on a last part of the draws alone, with the same promise, which is
      checked; values of arms that agree to six digits tie, to the first.
    Reference:
      Z. Allen-Zhu, Y. Li, A. Singh, Y. Wang, "Near-optimal design of experiments via regret
      minimization", ICML 2017. https://proceedings.mlr.press/v70/allen-zhu17e.html

    >>> regret([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.5, 0.3, 0.2], 11)
    array([5, 3, 3])
    """
    check_arms(arms)
    weights, total = _check(weights, total)
    num_arms = np.shape(arms)[0]
    require(
        weights.shape == (num_arms,),
        f"weights must have shape ({num_arms},), got {weights.shape}",
    )
    check("form", choice(*FORMS), form)
    found = {"greedy": _regret, "swap": _swap}[form](jnp.asarray(arms, float), weights, total)
    if is_concrete(found.certified):
        require(bool(found.certified), "weights must leave A(w) well conditioned on the support")
    return found.counts


_efficient = jax.jit(kernels.efficient)
_regret = jax.jit(regret_rounding.regret)


@jax.jit
def _swap(arms, weights, total):
    return regret_rounding.swap(arms, weights, kernels.efficient(weights, total))


_largest_remainder = jax.jit(kernels.largest_remainder)
