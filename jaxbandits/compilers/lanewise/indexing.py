"""Reading and writing entries of tables, at indices that lanes share or choose on their own."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.extend.core import JaxprEqn
from jaxtyping import Array, Int

from ..jaxprs import bind, shape_of
from .interpreter import Lanes, Operand, Width, by_vmap, rule, with_lanes
from .reductions import sealed

CHAIN: int = 32  # up to this many entries a chain of choices beats a gather
CLIP: tuple[lax.GatherScatterMode, ...] = (
    lax.GatherScatterMode.CLIP,
    lax.GatherScatterMode.PROMISE_IN_BOUNDS,
)
WRITES: dict[str, Callable] = {
    "scatter": lambda old, new: new,
    "scatter-add": lax.add,
    "scatter-mul": lax.mul,
    "scatter-min": lax.min,
    "scatter-max": lax.max,
}


@rule("dynamic_slice")
def dynamic_slice(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """A part that starts elsewhere in each lane is a look-up if it is one entry long."""
    table, *starts = operands
    sizes = eqn.params["slice_sizes"]
    moved = [i for i, x in enumerate(starts) if isinstance(x, Lanes)]
    if not moved:
        zero = jnp.zeros((), jnp.asarray(starts[0]).dtype)
        found = lax.dynamic_slice(table.value, (*starts, zero), (*sizes, lanes.number))
        # Inside a larger loop a moving start keeps the compiler from vectorising.
        return [Lanes(sealed(found, lanes))]
    whole = shape_of(eqn.invars[0])
    others = [i for i in range(len(sizes)) if i not in moved]
    simple = len(moved) == 1 and sizes[moved[0]] == 1
    if not simple or any(sizes[i] != whole[i] for i in others):
        return by_vmap(eqn, operands, lanes)
    (axis,) = moved
    return [Lanes(jnp.expand_dims(look_up(table, axis, starts[axis].value, lanes), axis))]


def look_up(table: Operand, axis: int, index: Int[Array, " L"], lanes: Width) -> Array:
    """Entry `index [L]` of an axis of a table, for each lane."""
    if not isinstance(table, Lanes):
        found = jnp.take(jnp.asarray(table), index, axis=axis, mode="clip")
        return sealed(jnp.moveaxis(found, axis, -1), lanes)
    value = jnp.moveaxis(table.value, axis, 0)
    if value.shape[0] <= CHAIN:
        found = value[-1]
        for k in range(value.shape[0] - 2, -1, -1):  # an index below 0 finds the first
            found = jnp.where(index <= k, value[k], found)
        return sealed(found, lanes)
    where = jnp.clip(index, 0, value.shape[0] - 1).reshape(*[1] * (value.ndim - 1), lanes.number)
    # A gather brings the lanes first; sealed, they are put last once and not in every use.
    return sealed(jnp.take_along_axis(value, where, 0, mode="promise_in_bounds")[0], lanes)


@rule("gather")
def gather(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """At shared indices the lanes are one more axis of what is read; else see `look_up`."""
    table, index = operands
    numbers, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    if not isinstance(index, Lanes):
        last = len(shape_of(eqn.outvars[0]))
        changed = {
            "dimension_numbers": numbers._replace(offset_dims=(*numbers.offset_dims, last)),
            "slice_sizes": (*sizes, lanes.number),
        }
        return list(map(Lanes, bind(eqn, [table.value, index], **changed)))
    axes = numbers.collapsed_slice_dims
    shape = shape_of(eqn.invars[0])
    whole = all(sizes[i] == (1 if i in axes else n) for i, n in enumerate(shape))
    one = _one_place(eqn.invars[1], axes, numbers.start_index_map, numbers.operand_batching_dims)
    if not (one and whole and eqn.params["mode"] in CLIP):
        return by_vmap(eqn, operands, lanes)
    return [Lanes(look_up(table, axes[0], index.value[0], lanes))]


@rule(*WRITES)
def scatter(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """At shared indices the lanes are one more axis; at one place of each lane, a comparison."""
    table, index, new = operands
    numbers = eqn.params["dimension_numbers"]
    table, new = with_lanes(table, lanes), with_lanes(new, lanes)
    if not isinstance(index, Lanes):
        window = (*numbers.update_window_dims, new.ndim - 1)
        changed = {"dimension_numbers": numbers._replace(update_window_dims=window)}
        return list(map(Lanes, bind(eqn, [table, index, new], **changed)))
    axes = numbers.inserted_window_dims
    places = numbers.scatter_dims_to_operand_dims
    shape, window = shape_of(eqn.invars[0]), shape_of(eqn.invars[2])
    one = _one_place(eqn.invars[1], axes, places, numbers.operand_batching_dims)
    if not (one and window == tuple(n for i, n in enumerate(shape) if i not in axes)):
        return by_vmap(eqn, operands, lanes)
    (axis,), place = axes, index.value[0]
    if eqn.params["mode"] in CLIP:
        place = jnp.clip(place, 0, shape[axis] - 1)
    if eqn.primitive.name == "scatter" and shape[axis] > CHAIN and new.ndim > 1:
        return [Lanes(_put_rows(table, axis, place, new))]
    here = lax.broadcasted_iota(place.dtype, table.shape, axis) == place
    written = WRITES[eqn.primitive.name](table, jnp.expand_dims(new, axis))
    return [Lanes(jnp.where(here, written, table))]


def _put_rows(table, axis, place, rows):
    """A row of each lane is put where that lane says; a place out of range keeps the table.

    In a large table that is less work than a comparison for each entry.
    """
    inside = jnp.where(place < 0, table.shape[axis], place)  # not counted from the end
    where = [lax.broadcasted_iota(place.dtype, rows.shape, k) for k in range(rows.ndim)]
    where.insert(axis, jnp.broadcast_to(inside, rows.shape))
    return table.at[tuple(where)].set(rows, mode="drop", unique_indices=True)


def _one_place(index, axes, places, batching):
    """Whether an index names one entry of one axis."""
    return index.aval.shape == (1,) and len(axes) == 1 and tuple(places) == axes and not batching
