"""Work for some of the lanes: taken out a few at a time, and put back."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr
from jaxtyping import Array, Bool, Int

from .interpreter import Lanes, Operand, Width, evaluate, with_lanes

BLOCK: int = 16  # lanes that go through a branch or a shared call side by side
STEPPED: int = 32  # lanes that take a step of a long loop side by side


def evaluate_for(
    closed: ClosedJaxpr, operands: Sequence[Operand], who: Int[Array, " B"], lanes: Width
) -> list[Array]:
    """Results `[..., B]` of a jaxpr for the lanes `who [B]` alone."""
    width = Width(who.size, lanes.unit)
    mine = [Lanes(x.value[..., who]) if isinstance(x, Lanes) else x for x in operands]
    return [with_lanes(x, width) for x in evaluate(closed.jaxpr, closed.consts, mine, width)]


def ahead(mask: Bool[Array, " L"]) -> Int[Array, " L"]:
    """The lanes `int [L]`, those of the mask first, else in their order."""
    taken, left = jnp.cumsum(mask), jnp.cumsum(~mask)
    position = jnp.where(mask, taken, taken[-1] + left) - 1
    return jnp.zeros(mask.size, int).at[position].set(jnp.arange(mask.size))


def put_back(
    tables: Sequence[Array],
    found: Sequence[Array],
    who: Int[Array, " B"],
    mask: Bool[Array, " L"],
) -> list[Array]:
    """The tables with what was found for the lanes `who`, where they are of the mask."""
    return [
        table.at[..., who].set(jnp.where(mask[who], new, table[..., who]), unique_indices=True)
        for table, new in zip(tables, found, strict=True)
    ]


def in_blocks(
    closed: ClosedJaxpr,
    args: Sequence[Operand],
    here: Bool[Array, " L"],
    tables: Sequence[Array],
    lanes: Width,
) -> Sequence[Array]:
    """A long branch is followed by the lanes `here` that take it alone.

    So its loops end when those few are done, and a branch that few lanes take costs little.
    """
    block, order = math.gcd(BLOCK, lanes.number), ahead(here)

    def step(carry):
        done, tables = carry
        who = lax.dynamic_slice_in_dim(order, done, block)
        found = evaluate_for(closed, args, who, lanes)
        return done + block, put_back(tables, found, who, here)

    begin = (jnp.zeros((), int), tables)
    return lax.while_loop(lambda carry: carry[0] < here.sum(), step, begin)[1]


def step_some(
    closed: ClosedJaxpr,
    operands: Sequence[Operand],
    going: Bool[Array, " L"],
    carry: Sequence[Array],
    lanes: Width,
) -> list[Array]:
    """A step of a long loop for some of the lanes that are still `going`."""
    who = ahead(going)[: math.gcd(STEPPED, lanes.number)]
    return put_back(carry, evaluate_for(closed, operands, who, lanes), who, going)
