"""Columns of unlike size brought to one size, by powers of two, which round nothing.

A feature in another unit (a price in cents instead of euros) changes no difference that least
squares, a design or an elimination is about. In floating point it does: sums of `x x^T` hold
squares, so that beside a column of size 1 one of size 1e-8 is rounding. What does not depend on
the units in theory is therefore computed in columns whose largest entry is in [1, 2).
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

SPARE = 4.0  # times what rounding may hide of a squared length
NOISE = 16.0  # roundings, see `noise`


def power_of_two(sizes: Float[Array, "..."]) -> Float[Array, "..."]:
    """The largest power of two that is not above each size; 1 for 0 and what is nearly 0."""
    double = sizes.dtype == jnp.float64
    integer, exponents = (jnp.int64, 0x7FF << 52) if double else (jnp.int32, 0xFF << 23)
    bits = lax.bitcast_convert_type(sizes, integer) & jnp.asarray(exponents, integer)
    power = lax.bitcast_convert_type(bits, sizes.dtype)  # 0 where the size is subnormal
    return jnp.where(power > 0, power, 1.0)


def column_scales(table: Float[Array, "K d"]) -> Float[Array, " d"]:
    """A power of two for each column; divided by it, its largest entry is in [1, 2)."""
    return power_of_two(jnp.abs(table).max(0))


def noise(largest: Float[Array, ""]) -> Float[Array, ""]:
    """What an entry beside one of this size may be but the rounding of a 0."""
    return NOISE * jnp.finfo(largest.dtype).eps * largest


def equilibrated(arms: Float[Array, "K d"], *tables: Float[Array, "_ d"]) -> list:
    """The arms, and tables of features that go with them, in columns of one size, see above."""
    scales = lax.stop_gradient(column_scales(arms))
    return [table / scales for table in (arms, *tables)]


def among(arms: Float[Array, "K d"], active: Bool[Array, " K"]) -> Float[Array, "K d"]:
    """Arms in columns that are of one size among the active ones; others may be larger.

    A column that is rounding beside the largest of the active arms stays rounding.
    """
    largest = jnp.abs(jnp.where(active[:, None], arms, 0.0)).max(0)
    there = largest > noise(largest.max())
    return arms / jnp.where(there, power_of_two(largest), power_of_two(largest.max()))


def host_scales(table: np.ndarray) -> np.ndarray:
    """`column_scales` on the host."""
    largest = np.abs(table).max(0)
    return np.ldexp(1.0, np.frexp(np.where(largest > 0, largest, 1.0))[1] - 1)


class Condition(NamedTuple):
    """What can be computed of the span of some arms, once their columns are of one size."""

    rank: int  # of the arms, in double precision
    ratio: float  # of the largest singular value to the least that is not rounding
    limit: float  # the largest ratio that sums of `x x^T` leave anything of


def condition(arms: Array | np.ndarray) -> Condition:
    """Rank and condition number on the host, of arms that can be looked at."""
    arms = np.asarray(arms, float)
    sizes = np.linalg.svd(arms / host_scales(arms), compute_uv=False)
    eps = np.finfo(float).eps
    rank = int((sizes > max(arms.shape) * eps * sizes[0]).sum())
    ratio = float(sizes[0] / sizes[rank - 1]) if rank else 1.0
    return Condition(rank, ratio, float(1.0 / np.sqrt(SPARE * arms.size * eps)))
