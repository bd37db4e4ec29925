"""Scaling the columns of a table to one size, by powers of two, which cause no rounding.

In theory the unit of a feature (a price in cents instead of euros) does not matter to least
squares, designs or eliminations. In floating point it does: sums of `x x^T` hold squares, so that
a column of size 1e-8 is lost to rounding beside one of size 1. What does not depend on units in
theory is therefore computed in columns whose largest entry is in [1, 2).
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from ...types import Table

SPARE = 4.0  # times the part of a squared length that rounding may hide
NOISE = 16.0  # rounding errors, see `noise`


def power_of_two(sizes: Float[Array, "..."]) -> Float[Array, "..."]:
    """The largest power of two that is not above each size; 1 for 0 and subnormal numbers."""
    double = sizes.dtype == jnp.float64
    integer, exponents = (jnp.int64, 0x7FF << 52) if double else (jnp.int32, 0xFF << 23)
    bits = lax.bitcast_convert_type(sizes, integer) & jnp.asarray(exponents, integer)
    power = lax.bitcast_convert_type(bits, sizes.dtype)  # 0 where the size is subnormal
    return jnp.where(power > 0, power, 1.0)


def column_scales(table: Float[Array, "K d"]) -> Float[Array, " d"]:
    """A power of two for each column; divided by it, its largest entry is in [1, 2)."""
    return power_of_two(jnp.abs(table).max(0))


def noise(largest: Float[Array, ""]) -> Float[Array, ""]:
    """Up to this size an entry may be a rounded 0, where the largest entry is `largest`."""
    return NOISE * jnp.finfo(largest.dtype).eps * largest


def equilibrated(
    arms: Float[Array, "K d"], *tables: Float[Array, "_ d"]
) -> list[Float[Array, "_ d"]]:
    """The arms, and tables of features that go with them, in columns of one size."""
    scales = lax.stop_gradient(column_scales(arms))
    return [table / scales for table in (arms, *tables)]


def among(arms: Float[Array, "K d"], active: Bool[Array, " K"]) -> Float[Array, "K d"]:
    """Arms in columns that are of one size among the active ones; others may be larger.

    A column that is rounding beside the largest of the active arms stays rounding.
    """
    largest = jnp.abs(jnp.where(active[:, None], arms, 0.0)).max(0)
    there = largest > noise(largest.max())
    return arms / jnp.where(there, power_of_two(largest), power_of_two(largest.max()))


def largest_of_columns(table: np.ndarray) -> np.ndarray:
    """The largest absolute value of each column, NaN where it holds one; on the host."""
    return np.maximum(table.max(0), -table.min(0))  # a table of absolute values takes memory


def host_scales(table: np.ndarray) -> np.ndarray:
    """`column_scales` on the host."""
    largest = largest_of_columns(table)
    return np.ldexp(1.0, np.frexp(np.where(largest > 0, largest, 1.0))[1] - 1)


class Condition(NamedTuple):
    """How well the span of some arms can be computed, once their columns are of one size."""

    rank: int  # of the arms, in double precision
    ratio: float  # of the largest singular value to the least that is not rounding
    limit: float  # the largest ratio at which sums of `x x^T` still determine the span


def condition(arms: Float[Table, "K d"]) -> Condition:
    """Rank and condition number, computed on the host: of arms that are not traced."""
    arms = np.asarray(arms, float)
    sizes = np.linalg.svd(arms / host_scales(arms), compute_uv=False)
    eps = np.finfo(float).eps
    rank = int((sizes > max(arms.shape) * eps * sizes[0]).sum())
    ratio = float(sizes[0] / sizes[rank - 1]) if rank else 1.0
    return Condition(rank, ratio, float(1.0 / np.sqrt(SPARE * arms.size * eps)))
