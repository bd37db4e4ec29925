"""From designs to whole numbers of draws, for import: float64, compiled, checked."""

import jax
import jax.numpy as jnp
import numpy as np

from .kernels import rounding as kernels
from .options import count, is_concrete, require
from .precision import double

__all__ = ["efficient", "largest_remainder"]


def _check(weights, total):
    require(np.ndim(weights) == 1, f"weights must be a vector [K], got shape {np.shape(weights)}")
    if is_concrete(weights):
        table = np.asarray(weights, float)
        fine = np.isfinite(table).all() and (table >= 0).all() and abs(table.sum() - 1) < 1e-6
        require(fine, f"weights must be non-negative with sum 1, got sum {table.sum()}")
    if is_concrete(total):
        require(count(0).accepts(total), f"total must be {count(0).allowed}, got {total!r}")
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


_efficient = jax.jit(kernels.efficient)
_largest_remainder = jax.jit(kernels.largest_remainder)
