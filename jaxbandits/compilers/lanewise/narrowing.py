"""Computations for some of the lanes: their values are taken out, and the results put back."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jaxtyping import Array, Bool, Int

from .interpreter import LaneContext, Operand, PerLane, evaluate, with_lanes

BLOCK: int = 16  # lanes that compute a branch or a shared call at a time
STEP_BLOCK: int = 32  # lanes that take a step of a long loop at a time


def evaluate_for(
    closed: ClosedJaxpr, operands: Sequence[Operand], members: Int[Array, " B"], lanes: LaneContext
) -> list[Array]:
    """Results `[..., B]` of a jaxpr for the lanes `members [B]` alone."""
    some = lanes._replace(number=members.size)
    values = [PerLane(x.value[..., members]) if isinstance(x, PerLane) else x for x in operands]
    return [with_lanes(x, some) for x in evaluate(closed.jaxpr, closed.consts, values, some)]


def evaluate_alone(
    closed: ClosedJaxpr, operands: Sequence[Operand], member: Int[Array, " 1"], lanes: LaneContext
) -> list[Array]:
    """What a jaxpr computes for one lane, `[..., 1]`, by its own operations."""
    values = [x.value[..., member[0]] if isinstance(x, PerLane) else x for x in operands]
    return [x[..., None] for x in jaxpr_as_fun(closed)(*values)]


def masked_first(mask: Bool[Array, " L"]) -> Int[Array, " L"]:
    """The numbers of all lanes, first those in the mask; both parts are in ascending order."""
    inside, outside = jnp.cumsum(mask), jnp.cumsum(~mask)
    position = jnp.where(mask, inside, inside[-1] + outside) - 1
    return jnp.zeros(mask.size, int).at[position].set(jnp.arange(mask.size))


def put_back(
    tables: Sequence[Array],
    found: Sequence[Array],
    members: Int[Array, " B"],
    mask: Bool[Array, " L"],
) -> list[Array]:
    """Write what was found for the lanes `members` into the tables, for those in the mask."""

    def written(table, new):
        kept = jnp.where(mask[members], new, table[..., members])
        return table.at[..., members].set(kept, unique_indices=True)

    return [written(*both) for both in zip(tables, found, strict=True)]


def branch_in_blocks(
    closed: ClosedJaxpr,
    args: Sequence[Operand],
    takes: Bool[Array, " L"],
    tables: Sequence[Array],
    lanes: LaneContext,
) -> Sequence[Array]:
    """The tables after a long branch, which is computed for the lanes that take it alone.

    The lanes are taken in blocks: loops in the branch end when the lanes of a block are done, and
    a branch that few lanes take costs little.
    """
    block, order = math.gcd(BLOCK, lanes.number), masked_first(takes)

    def step(carry):
        done, tables = carry
        members = lax.dynamic_slice_in_dim(order, done, block)
        found = evaluate_for(closed, args, members, lanes)
        return done + block, put_back(tables, found, members, takes)

    initial = (jnp.zeros((), int), tables)
    return lax.while_loop(lambda carry: carry[0] < takes.sum(), step, initial)[1]


def step_for_some(
    closed: ClosedJaxpr,
    operands: Sequence[Operand],
    active: Bool[Array, " L"],
    carry: Sequence[Array],
    lanes: LaneContext,
) -> list[Array]:
    """The carry after a step of a long loop for some of the lanes that are still `active`."""
    members = masked_first(active)[: math.gcd(STEP_BLOCK, lanes.number)]
    return put_back(carry, evaluate_for(closed, operands, members, lanes), members, active)
