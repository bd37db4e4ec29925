"""From designs to whole numbers of draws, for import: compiled and checked."""

import jax
import jax.numpy as jnp
import numpy as np

from .feature_tables import check_arms, check_condition, is_concrete, require
from .kernels.allocate import efficient_rounding as kernels
from .kernels.allocate import regret_rounding
from .kernels.linalg import scaling
from .parameters import check, choice, count
from .precision import kernel
from .transforms import without_derivative

__all__ = ["efficient", "largest_remainder", "regret"]

FORMS = ("greedy", "swap")
WHOLE = "counts are whole numbers"


def _check(weights, total):
    require(np.ndim(weights) == 1, f"weights must be a vector [K], got shape {np.shape(weights)}")
    if is_concrete(weights):
        table = np.asarray(weights, float)
        fine = np.isfinite(table).all() and (table >= 0).all() and abs(table.sum() - 1) < 1e-6
        require(fine, f"weights must be non-negative with sum 1, got sum {table.sum()}")
    check("total", count(0), total)
    most = jnp.iinfo(jnp.result_type(int)).max
    fits = not is_concrete(total) or total <= most
    require(fits, f"total must be at most {most} in this precision, got {total}")
    return weights, jnp.asarray(total, int)


@kernel("weights")
def efficient(weights, total):
    """Efficient rounding (Pukelsheim, 2006): int counts `[K]` with sum `total`.

    Args:
      weights: `[K]`, non-negative with sum 1.
      total: draws; with at least as many as supported arms each of these is drawn.
    Raises:
      ValueError: weights that are no design, a negative total. Traced weights are not checked: the
        counts of others do not sum to `total`.
    Composes:
      jit, vmap: yes, also in `scan` and `shard_map`, in the precision of the weights; the counts
        are JAX's default integers.
      grad: no derivative, counts are whole numbers.
      float32: the sum is exact up to 2^31; each count is the share to 1e-6 of itself and one draw.

    >>> efficient([0.5, 0.3, 0.2], 11)
    array([6, 3, 2])
    """
    return _efficient(*_check(weights, total))


@kernel("weights")
def largest_remainder(weights, total):
    """Largest-remainder rounding: int counts `[K]` with sum `total`, within 1 of `total w`.

    Args:
      weights: `[K]`, non-negative with sum 1.
      total: draws.
    Raises:
      ValueError: weights that are no design, a negative total. Traced weights are not checked: the
        counts of others do not sum to `total`.
    Composes:
      As `efficient`.

    >>> largest_remainder([0.5, 0.3, 0.2], 11)
    array([6, 3, 2])
    """
    return _largest_remainder(*_check(weights, total))


@kernel("arms", "weights")
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
        a design that the loss cannot be certified. Traced designs are not checked.
    Composes:
      jit, vmap: yes, also in `scan` and `shard_map`, in the precision of arms and weights; the
        counts are JAX's default integers.
      grad: no derivative, counts are whole numbers.
      float32: the sum is exact; the loss is as promised up to rounding.
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
    check_condition(arms)
    (arms,) = scaling.equilibrated(jnp.asarray(arms))
    found = {"greedy": _regret, "swap": _swap}[form](arms, weights, total)
    if is_concrete(found.certified):
        require(bool(found.certified), "weights must leave A(w) well conditioned on the support")
    return found.counts


_efficient = without_derivative("rounding.efficient", jax.jit(kernels.efficient), WHOLE)
_largest_remainder = without_derivative(
    "rounding.largest_remainder", jax.jit(kernels.largest_remainder), WHOLE
)


@jax.jit
def _by_swaps(arms, weights, total):
    return regret_rounding.swap(arms, weights, kernels.efficient(weights, total))


_regret = without_derivative("rounding.regret", jax.jit(regret_rounding.regret), WHOLE)
_swap = without_derivative("rounding.regret", _by_swaps, WHOLE)
