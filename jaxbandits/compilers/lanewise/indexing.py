"""Rules that read and write entries of tables, at indices that are shared or differ by lane."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.extend.core import JaxprEqn
from jaxtyping import Array, Int

from ..jaxprs import bind, clips_indices, shape_of
from .interpreter import LaneContext, Operand, PerLane, by_vmap, rule, with_lanes
from .reductions import materialised

CHAIN: int = 32  # up to this many entries, a chain of `where` is faster than a gather
# By primitive: what is written, from the old and the new entry.
WRITES: dict[str, Callable] = {
    "scatter": lambda old, new: new,
    "scatter-add": lax.add,
    "scatter-mul": lax.mul,
    "scatter-min": lax.min,
    "scatter-max": lax.max,
}


@rule("dynamic_slice")
def dynamic_slice(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """A slice of one entry whose start differs by lane is a look-up, see `look_up`."""
    table, *starts = operands
    sizes = eqn.params["slice_sizes"]
    differing = [i for i, x in enumerate(starts) if isinstance(x, PerLane)]
    if not differing:
        zero = jnp.zeros((), jnp.asarray(starts[0]).dtype)
        found = lax.dynamic_slice(table.value, (*starts, zero), (*sizes, lanes.number))
        # Inside a larger loop, a start that is not constant keeps XLA from vectorising.
        return [PerLane(materialised(found, lanes.unit))]
    whole = shape_of(eqn.invars[0])
    others = [i for i in range(len(sizes)) if i not in differing]
    simple = len(differing) == 1 and sizes[differing[0]] == 1
    if not simple or any(sizes[i] != whole[i] for i in others):
        return by_vmap(eqn, operands, lanes)
    (axis,) = differing
    return [PerLane(jnp.expand_dims(look_up(table, axis, starts[axis].value, lanes), axis))]


def look_up(table: Operand, axis: int, index: Int[Array, " L"], lanes: LaneContext) -> Array:
    """For each lane the entry `index [L]` along an axis of a table, clipped to the bounds."""
    if not isinstance(table, PerLane):
        found = jnp.take(jnp.asarray(table), index, axis=axis, mode="clip")
        return materialised(jnp.moveaxis(found, axis, -1), lanes.unit)
    value = jnp.moveaxis(table.value, axis, 0)
    if lanes.gathers and value.shape[0] > 1:
        return materialised(_gathered(value, index), lanes.unit)
    if value.shape[0] <= CHAIN:
        found = value[-1]
        for k in range(value.shape[0] - 2, -1, -1):  # an index below 0 gives the first entry
            found = jnp.where(index <= k, value[k], found)
        return materialised(found, lanes.unit)
    index = jnp.clip(index, 0, value.shape[0] - 1).reshape(*[1] * (value.ndim - 1), lanes.number)
    # A gather gives the lanes in the first axis; so they are moved once, and not in each use.
    return materialised(
        jnp.take_along_axis(value, index, 0, mode="promise_in_bounds")[0], lanes.unit
    )


def _gathered(value, index):
    """`value[index[l], ..., l]` for each lane l, read from the table as one row of numbers.

    A GPU then reads what is looked up, where a chain of `where` reads the whole table; and XLA need
    not put two indices together for each number, as `take_along_axis` does.
    """
    inner = value.shape[1:]
    number = math.prod(inner)
    row = jnp.clip(index, 0, value.shape[0] - 1).astype(jnp.int64)
    position = row * number + lax.iota(jnp.int64, number).reshape(inner)
    return value.reshape(-1).at[position].get(mode="promise_in_bounds")


@rule("gather")
def gather(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """At shared indices the lanes are one more axis of what is read; otherwise see `look_up`."""
    table, index = operands
    numbers, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    if not isinstance(index, PerLane):
        last = len(shape_of(eqn.outvars[0]))
        changed = {
            "dimension_numbers": numbers._replace(offset_dims=(*numbers.offset_dims, last)),
            "slice_sizes": (*sizes, lanes.number),
        }
        return list(map(PerLane, bind(eqn, [table.value, index], **changed)))
    axes = numbers.collapsed_slice_dims
    shape = shape_of(eqn.invars[0])
    whole = all(sizes[i] == (1 if i in axes else n) for i, n in enumerate(shape))
    one = _names_one_entry(
        eqn.invars[1], axes, numbers.start_index_map, numbers.operand_batching_dims
    )
    if not (one and whole and clips_indices(eqn.params["mode"])):
        return by_vmap(eqn, operands, lanes)
    return [PerLane(look_up(table, axes[0], index.value[0], lanes))]


@rule(*WRITES)
def scatter(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """At shared indices the lanes are one more axis.

    Where each lane writes one entry of its own, all entries of the axis are selected from by a
    comparison with that index, or rows are written, see `_put_rows`.
    """
    table, index, new = operands
    numbers = eqn.params["dimension_numbers"]
    table, new = with_lanes(table, lanes), with_lanes(new, lanes)
    if not isinstance(index, PerLane):
        window = (*numbers.update_window_dims, new.ndim - 1)
        changed = {"dimension_numbers": numbers._replace(update_window_dims=window)}
        return list(map(PerLane, bind(eqn, [table, index, new], **changed)))
    axes = numbers.inserted_window_dims
    mapped = numbers.scatter_dims_to_operand_dims
    shape, window = shape_of(eqn.invars[0]), shape_of(eqn.invars[2])
    one = _names_one_entry(eqn.invars[1], axes, mapped, numbers.operand_batching_dims)
    if not (one and window == tuple(n for i, n in enumerate(shape) if i not in axes)):
        return by_vmap(eqn, operands, lanes)
    (axis,), position = axes, index.value[0]
    if clips_indices(eqn.params["mode"]):
        position = jnp.clip(position, 0, shape[axis] - 1)
    if eqn.primitive.name == "scatter" and shape[axis] > CHAIN and new.ndim > 1:
        return [PerLane(_put_rows(table, axis, position, new))]
    here = lax.broadcasted_iota(position.dtype, table.shape, axis) == position
    written = WRITES[eqn.primitive.name](table, jnp.expand_dims(new, axis))
    return [PerLane(jnp.where(here, written, table))]


def _put_rows(table, axis, position, rows):
    """Write each lane's row at its position along an axis; out of bounds nothing is written.

    In a large table this is less work than a comparison for each entry.
    """
    # `at` would count a negative position from the end.
    position = jnp.where(position < 0, table.shape[axis], position)
    index = [lax.broadcasted_iota(position.dtype, rows.shape, k) for k in range(rows.ndim)]
    index.insert(axis, jnp.broadcast_to(position, rows.shape))
    return table.at[tuple(index)].set(rows, mode="drop", unique_indices=True)


def _names_one_entry(index, axes, mapped, batching):
    """Whether the indices of a gather or a scatter name one entry of one axis."""
    return index.aval.shape == (1,) and len(axes) == 1 and tuple(mapped) == axes and not batching
