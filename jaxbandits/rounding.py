"""From designs to whole numbers of draws, for import: compiled and checked."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from .feature_tables import check_arms, check_condition, is_concrete, require
from .kernels.allocate import efficient_rounding as kernels
from .kernels.allocate import regret_rounding
from .kernels.linalg import scaling
from .parameters import check, choice, count
from .precision import kernel
from .signatures import publish
from .transforms import without_derivative
from .types import Rows, Scalar, Table

__all__ = ["efficient", "largest_remainder", "regret"]

publish(globals())

Counts: TypeAlias = Int[Table, " K"]

FORMS: tuple[str, ...] = ("greedy", "swap")
WHOLE: str = "counts are whole numbers"
# A share counts as whole where 4 roundings make it so (`efficient_rounding.nearly`). From 2^50 on
# these are a draw, and counts miss the total; half of that leaves room for rounded weights.
MOST: int = 2**49


def _check(weights: Rows, total: Scalar) -> tuple[Rows, Int[Array, ""]]:
    require(np.ndim(weights) == 1, f"weights must be a vector [K], got shape {np.shape(weights)}")
    if is_concrete(weights):
        weights = _normalised(weights)
    check("total", count(0)._replace(most=None), total)
    most = min(MOST, int(jnp.iinfo(jnp.result_type(int)).max))
    fits = not is_concrete(total) or int(total) <= most
    require(fits, f"total must be at most {most} in this precision, got {total}")
    return weights, jnp.asarray(total, int)


def _normalised(weights):
    """Weights with sum 1, checked: those of single precision would lose a draw in 10^8."""
    table = np.asarray(weights, float)
    size = table.sum()
    fine = np.isfinite(table).all() and (table >= 0).all() and abs(size - 1) < 1e-6
    require(fine, f"weights must be non-negative with sum 1, got sum {size}")
    return (table / size).astype(weights.dtype)


@kernel("weights")
def efficient(weights: Rows, total: Scalar) -> Counts:
    """Efficient rounding (Pukelsheim, 2006): int counts `[K]` with sum `total`.

    Args:
      weights: `[K]`, non-negative with sum 1.
      total: draws, 2^49 at most; if they are at least as many as the supported arms, each of these
        is drawn.
    Raises:
      ValueError: weights that are no design (their sum may be off by 1e-6), a total below 0 or
        above 2^49. Traced ones are not checked: if they are no design, or too many draws, the
        counts do not sum to `total`.
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
def largest_remainder(weights: Rows, total: Scalar) -> Counts:
    """Largest-remainder rounding: int counts `[K]` with sum `total`, within 1 of `total w`.

    Args:
      weights: `[K]`, non-negative with sum 1.
      total: draws, 2^49 at most.
    Raises:
      ValueError: as `efficient`.
    Composes:
      As `efficient`.

    >>> largest_remainder([0.5, 0.3, 0.2], 11)
    array([6, 3, 2])
    """
    return _largest_remainder(*_check(weights, total))


@kernel("arms", "weights")
def regret(
    arms: Rows, weights: Rows, total: Scalar, *, form: Literal["greedy", "swap"] = "greedy"
) -> Counts:
    """Rounding by regret minimisation: int counts `[K]` with sum `total` N, on the support.

    `A(n) >= (1 - e) N A(w)`: in every direction the variance is that of the design times
    `1 / (1 - e)` at most. With r the rank of the supported arms, e depends on N and r alone, while
    the loss of efficient rounding grows with the size of the support. The guarantee holds from
    N = 9 r on, however many arms are supported.

    Args:
      arms: `[K, d]`.
      weights: `[K]`, non-negative with sum 1.
      total: draws, 2^49 at most.
      form: "greedy": draws are chosen one by one, with `e = 3 sqrt(r / N)`; for large N the whole
        parts of the shares are given first and only the last draws are chosen. "swap": exchanges
        begin with efficient rounding and end as soon as `e = 3 sqrt(5 r / N)` is reached.
    Raises:
      ValueError: bad shapes, weights or a total that `efficient` refuses, or a design that is too
        ill-conditioned to certify the loss. Traced designs are not checked.
    Composes:
      jit, vmap: yes, also in `scan` and `shard_map`, in the precision of arms and weights; the
        counts are JAX's default integers.
      grad: no derivative, counts are whole numbers.
      float32: the sum is exact; the guarantee holds up to rounding.
    Deviations:
      The greedy form chooses only the last part of the draws, with the same guarantee, which is
      checked; values of arms that agree to six digits tie, and the first arm is taken.
    Reference:
      Z. Allen-Zhu, Y. Li, A. Singh, Y. Wang, "Near-optimal design of experiments via regret
      minimization", ICML 2017. https://proceedings.mlr.press/v70/allen-zhu17e.html

    >>> regret([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.5, 0.3, 0.2], 11)
    array([5, 3, 3])
    """
    check_arms(arms)
    weights, total = _check(weights, total)
    num_arms, shape = np.shape(arms)[0], np.shape(weights)
    require(shape == (num_arms,), f"weights must have shape ({num_arms},), got {shape}")
    check("form", choice(*FORMS), form)
    check_condition(arms)
    (arms,) = scaling.equilibrated(jnp.asarray(arms))
    found = {"greedy": _regret, "swap": _swap}[form](arms, weights, total)
    if is_concrete(found.certified):
        require(bool(found.certified), "weights must leave A(w) well conditioned on the support")
    return found.counts


_efficient: Callable[..., Any] = without_derivative("rounding.efficient", kernels.efficient, WHOLE)
_largest_remainder: Callable[..., Any] = without_derivative(
    "rounding.largest_remainder", kernels.largest_remainder, WHOLE
)


def _by_swaps(arms, weights, total):
    return regret_rounding.swap(arms, weights, kernels.efficient(weights, total))


_regret: Callable[..., Any] = without_derivative("rounding.regret", regret_rounding.regret, WHOLE)
_swap: Callable[..., Any] = without_derivative("rounding.regret", _by_swaps, WHOLE)
