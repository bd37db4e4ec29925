"""Reductions over other axes than the lanes, as sums, maxima, ... of whole rows of lanes.

The compiler's own loop would run through the entries of one lane after the other, with all that
led to an entry computed in it, one number at a time. Adding up slices works on a full register.
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

from ..jaxprs import bind
from .interpreter import Lanes, Width, by_vmap, rule, with_lanes

ROWS: int = 100  # up to this many are joined one after the other, twice as fast as in a tree
FAN: int = 16  # parts of a longer axis joined in a tree; a chain of parts compiles for minutes
FEW: int = 8  # up to this many rows the compiler's own loop is as good


def fold(
    join: Callable[[list[Array], list[Array]], list[Array]],
    tables: Sequence[Array],
    axes: Sequence[int],
    lanes: Width,
) -> Sequence[Array]:
    """Join all entries of `axes` of the `tables` (one shape): `join(left, right) -> tables`.

    `join` is associative and commutative and works on whole tables, entry by entry.
    """
    for axis in sorted(axes, reverse=True):
        tables = _fold_axis(join, tables, axis, lanes)
    return tables


def _fold_axis(join, rows, axis, lanes):
    size = rows[0].shape[axis]

    def part(first, last):
        return [lax.slice_in_dim(x, first, last, axis=axis) for x in rows]

    while size > ROWS:
        each, over = divmod(size, FAN)
        joined = _tree(join, [part(p * each, (p + 1) * each) for p in range(FAN)])
        if over:
            both = zip(joined, part(FAN * each, size), strict=True)
            joined = [lax.concatenate(pair, axis) for pair in both]
        rows, size = [sealed(x, lanes) for x in joined], each + over
    joined = reduce(join, [part(p, p + 1) for p in range(size)])
    return [lax.squeeze(sealed(x, lanes), (axis,)) for x in joined]


def _tree(join, groups):
    while len(groups) > 1:
        pairs = [join(*groups[i : i + 2]) for i in range(0, len(groups) - 1, 2)]
        groups = pairs + groups[len(pairs) * 2 :]
    return groups[0]


def _few(table, axes):
    return math.prod(table.shape[axis] for axis in axes) <= FEW


def sealed(x: Array, lanes: Width) -> Array:
    """The same numbers, which the compiler computes once instead of again in every use.

    It repeats what it thinks cheap, however long the chain, but never a division; and it cannot
    know that this one is by 1.
    """
    if jnp.issubdtype(x.dtype, jnp.floating):
        return x / lanes.unit.astype(x.dtype)
    if x.dtype == bool:  # a quotient of two constants would be known before
        return jnp.where(x, lanes.unit, 0.0) / lanes.unit != 0
    return (x.astype(lanes.unit.dtype) / lanes.unit).astype(x.dtype)


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
def plain(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """Sums, maxima and their like."""
    operation, value = REDUCTIONS[eqn.primitive.name], operands[0].value
    if _few(value, eqn.params["axes"]):
        return list(map(Lanes, bind(eqn, [value])))

    def join(left, right):
        return [operation(left[0], right[0])]

    return [Lanes(fold(join, [value], eqn.params["axes"], lanes)[0])]


@rule("argmax", "argmin")
def extreme(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """The first position of the largest or smallest value, NaN before all."""
    value, axes = operands[0].value, eqn.params["axes"]
    if _few(value, axes):
        return list(map(Lanes, bind(eqn, [value])))
    index = lax.broadcasted_iota(eqn.params["index_dtype"], value.shape, axes[0])
    beyond = lax.gt if eqn.primitive.name == "argmax" else lax.lt

    def join(left, right):
        (a, i), (b, j) = left, right
        ahead = beyond(a, b) | (a != a)
        first = ahead | ((a == b) & (i < j))
        return [lax.select(first, a, b), lax.select(first, i, j)]

    return [Lanes(fold(join, [value, index], axes, lanes)[1])]


@rule("reduce")
def general(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """A reduction by any function of scalars."""
    half = len(operands) // 2
    if any(isinstance(x, Lanes) for x in operands[half:]):
        return by_vmap(eqn, operands, lanes)
    function = jaxpr_as_fun(eqn.params["jaxpr"])

    def join(left, right):
        over = function
        for _ in range(left[0].ndim):  # not flattened: the compiler takes very long over that
            over = jax.vmap(over)
        return over(*left, *right)

    tables = [with_lanes(x, lanes) for x in operands[:half]]
    if _few(tables[0], eqn.params["dimensions"]):
        return list(map(Lanes, bind(eqn, [*tables, *operands[half:]])))
    joined = fold(join, tables, eqn.params["dimensions"], lanes)
    begin = [jnp.broadcast_to(x, y.shape) for x, y in zip(operands[half:], joined, strict=True)]
    return list(map(Lanes, join(begin, joined)))
