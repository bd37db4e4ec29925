"""Rules for reductions: sums, maxima and the like of slices that hold all lanes.

XLA's loop for a reduction takes the entries of one lane after the other, one number at a time, and
computes in it all that an entry depends on. Adding slices of all lanes fills a vector register.
"""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import JaxprEqn, jaxpr_as_fun
from jaxtyping import Array

from ..jaxprs import bind, reduce_by_pairs
from .interpreter import LaneContext, PerLane, by_vmap, rule, with_lanes

# Up to this many slices are joined one after the other, which is twice as fast as in a tree.
LONGEST_CHAIN: int = 100
# Parts of a longer axis that are joined in a tree; a chain of parts takes minutes to compile.
PARTS: int = 16
SHORT: int = 8  # up to this many slices, the compiler's own loop is as fast


def fold(
    join: Callable[[list[Array], list[Array]], list[Array]],
    tables: Sequence[Array],
    axes: Sequence[int],
    lanes: LaneContext,
) -> Sequence[Array]:
    """Reduce the `tables`, which have one shape, over `axes` by `join(left, right) -> tables`.

    `join` is associative and commutative and acts on tables of any shape, entry by entry.
    """
    for axis in sorted(axes, reverse=True):
        tables = _fold_axis(join, tables, axis, lanes)
    return tables


def _fold_axis(join, rows, axis, lanes):
    size = rows[0].shape[axis]

    def part(first, last):
        return [lax.slice_in_dim(x, first, last, axis=axis) for x in rows]

    while size > LONGEST_CHAIN:
        each, rest = divmod(size, PARTS)
        joined = reduce_by_pairs(join, [part(p * each, (p + 1) * each) for p in range(PARTS)])
        if rest:
            both = zip(joined, part(PARTS * each, size), strict=True)
            joined = [lax.concatenate(pair, axis) for pair in both]
        rows, size = [materialised(x, lanes.unit) for x in joined], each + rest
    joined = reduce(join, [part(p, p + 1) for p in range(size)])
    return [lax.squeeze(materialised(x, lanes.unit), (axis,)) for x in joined]


def _is_short(table, axes):
    return math.prod(table.shape[axis] for axis in axes) <= SHORT


def materialised(x: Array, unit: Any) -> Array:
    """The same numbers, which the compiler computes once instead of again in each use.

    XLA repeats operations that it considers cheap, however many there are, but never a division.
    It cannot remove this division, because it does not know that the divisor is 1.

    Args:
      unit: 1.0, see `lanewise`.
    """
    if jnp.issubdtype(x.dtype, jnp.floating):
        # Operations of `lax`, which take a third of the time to trace.
        return lax.div(
            x, lax.broadcast_in_dim(lax.convert_element_type(unit, x.dtype), x.shape, ())
        )
    if x.dtype == bool:  # a quotient of two constants would be computed at compile time
        return jnp.where(x, unit, 0.0) / unit != 0
    return (x.astype(unit.dtype) / unit).astype(x.dtype)


REDUCTIONS: dict[str, Callable] = {
    "reduce_sum": lax.add,
    "reduce_prod": lax.mul,
    "reduce_max": lax.max,
    "reduce_min": lax.min,
    "reduce_and": lax.bitwise_and,
    "reduce_or": lax.bitwise_or,
    "reduce_xor": lax.bitwise_xor,
}


@rule(*REDUCTIONS)
def reduction(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """Sums, products, maxima, minima and logical operations."""
    operation, value = REDUCTIONS[eqn.primitive.name], operands[0].value
    if _is_short(value, eqn.params["axes"]):
        return list(map(PerLane, bind(eqn, [value])))

    def join(left, right):
        return [operation(left[0], right[0])]

    return [PerLane(fold(join, [value], eqn.params["axes"], lanes)[0])]


@rule("argmax", "argmin")
def arg_extreme(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """The first position of the largest or smallest value; NaN counts as more extreme than all."""
    value, axes = operands[0].value, eqn.params["axes"]
    if _is_short(value, axes):
        return list(map(PerLane, bind(eqn, [value])))
    index = lax.broadcasted_iota(eqn.params["index_dtype"], value.shape, axes[0])
    exceeds = lax.gt if eqn.primitive.name == "argmax" else lax.lt

    def join(left, right):
        (a, i), (b, j) = left, right
        better = exceeds(a, b) | (a != a)
        first = better | ((a == b) & (i < j))
        return [lax.select(first, a, b), lax.select(first, i, j)]

    return [PerLane(fold(join, [value, index], axes, lanes)[1])]


@rule("reduce")
def reduce_by(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """A reduction by a function of scalars that the user wrote."""
    half = len(operands) // 2
    if any(isinstance(x, PerLane) for x in operands[half:]):
        return by_vmap(eqn, operands, lanes)
    function = jaxpr_as_fun(eqn.params["jaxpr"])

    def join(left, right):
        mapped = function
        for _ in range(left[0].ndim):  # flattened tables would take very long to compile
            mapped = jax.vmap(mapped)
        return mapped(*left, *right)

    tables = [with_lanes(x, lanes) for x in operands[:half]]
    if _is_short(tables[0], eqn.params["dimensions"]):
        return list(map(PerLane, bind(eqn, [*tables, *operands[half:]])))
    joined = fold(join, tables, eqn.params["dimensions"], lanes)
    initial = [jnp.broadcast_to(x, y.shape) for x, y in zip(operands[half:], joined, strict=True)]
    return list(map(PerLane, join(initial, joined)))
