"""Rules for loops, branches and calls."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.extend.core import JaxprEqn

from ..jaxprs import (
    CALLS,
    CUSTOM_CALLS,
    called_jaxpr,
    dtype_of,
    has_loop,
    scan_parts,
    shape_of,
    varying_of_scan,
    varying_of_while,
    while_parts,
)
from .interpreter import LaneContext, PerLane, evaluate, rule, where, with_lanes
from .narrowing import BLOCK, STEP_BLOCK, branch_in_blocks, step_for_some


@rule(*CALLS)
def call(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """A nested function is evaluated in place."""
    closed = eqn.params["jaxpr"]
    return evaluate(closed.jaxpr, closed.consts, operands, lanes)


@rule(*CUSTOM_CALLS)
def custom_call(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """The function is evaluated in place, and its derivative ignored."""
    closed = called_jaxpr(eqn.params)
    return evaluate(closed.jaxpr, closed.consts, operands, lanes)


def _pack(values, flags, lanes):
    """Arrays for a loop's carry: with the lane axis where the flag says that a value varies."""
    pairs = zip(values, flags, strict=True)
    return [with_lanes(x, lanes) if flag else jnp.asarray(x) for x, flag in pairs]


def _unpack(arrays, flags):
    return [PerLane(x) if flag else x for x, flag in zip(arrays, flags, strict=True)]


@rule("while")
def while_loop(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """Loop until every lane is done; a lane that is done keeps its values.

    Where the body contains loops itself, a step is taken by some of the active lanes at a time,
    because few lanes need many steps.
    """
    p = eqn.params
    cond_consts, body_consts, initial = while_parts(p, operands)
    flags = varying_of_while(p, [isinstance(x, PerLane) for x in operands])
    cond, body = p["cond_jaxpr"], p["body_jaxpr"]

    def condition(carry):
        values = [*cond_consts, *_unpack(carry, flags)]
        return evaluate(cond.jaxpr, cond.consts, values, lanes)[0]

    # Under `vmap` in the function of one lane, the condition has a value for each mapped entry.
    mapped = cond.jaxpr.outvars[0].aval.shape

    def any_active(carry):
        active = condition(carry)
        if isinstance(active, PerLane):
            return active.value.any()
        return active.any() if mapped else active

    def where_active(active, new, old, flag):
        mask = with_lanes(active, lanes) if flag else active
        return where(mask, new, old, leading=len(mapped))

    long = lanes.number > STEP_BLOCK and has_loop(body.jaxpr) and not mapped

    def step(carry):
        values = [*body_consts, *_unpack(carry, flags)]
        if long and isinstance(active := condition(carry), PerLane):
            return step_for_some(body, values, active.value, carry, lanes)
        results = evaluate(body.jaxpr, body.consts, values, lanes)
        after, active = _pack(results, flags, lanes), condition(carry)
        if not isinstance(active, PerLane) and not mapped:
            return after
        return [where_active(active, *both) for both in zip(after, carry, flags, strict=True)]

    carry = lax.while_loop(any_active, step, _pack(initial, flags, lanes))
    return _unpack(carry, flags)


@rule("scan")
def scan(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """All lanes take the same steps; the steps stay the first axis."""
    p = eqn.params
    flags = varying_of_scan(p, [isinstance(x, PerLane) for x in operands])
    consts, carry, xs = scan_parts(p, operands)
    carry_flags, y_flags = flags[: len(carry)], flags[len(carry) :]
    x_flags = [isinstance(x, PerLane) for x in xs]
    closed = p["jaxpr"]

    def step(carry, x):
        values = [*consts, *_unpack(carry, carry_flags), *_unpack(x, x_flags)]
        results = evaluate(closed.jaxpr, closed.consts, values, lanes)
        after, ys = results[: len(carry)], results[len(carry) :]
        return _pack(after, carry_flags, lanes), _pack(ys, y_flags, lanes)

    carry, ys = lax.scan(
        step,
        _pack(carry, carry_flags, lanes),
        _pack(xs, x_flags, lanes),
        length=p["length"],
        reverse=p["reverse"],
        unroll=p["unroll"],
    )
    return [*_unpack(carry, carry_flags), *_unpack(ys, y_flags)]


@rule("cond")
def cond(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """Where the index differs by lane, each lane selects among the results of the branches.

    A branch that no lane takes is skipped.
    """
    which, *args = operands
    branches = eqn.params["branches"]
    flags = [isinstance(x, PerLane) for x in args]
    plain = _pack(args, flags, lanes)

    def follow(closed):
        def run(*values):
            results = evaluate(closed.jaxpr, closed.consts, _unpack(values, flags), lanes)
            return [with_lanes(x, lanes) for x in results]

        return run

    if not isinstance(which, PerLane):
        return list(map(PerLane, lax.switch(which, list(map(follow, branches)), *plain)))
    index = jnp.clip(which.value.astype(int), 0, len(branches) - 1)
    shapes = [(*shape_of(x), lanes.number) for x in eqn.outvars]

    def zeros(*_):
        pairs = zip(shapes, eqn.outvars, strict=True)
        return [lax.full(shape, 0, dtype_of(x)) for shape, x in pairs]

    selected = zeros()
    for k, branch in enumerate(branches):
        takes = index == k
        if has_loop(branch.jaxpr) and lanes.number > BLOCK:
            selected = branch_in_blocks(branch, args, takes, selected, lanes)
            continue
        found = lax.cond(takes.any(), follow(branch), zeros, *plain)
        selected = [where(takes, new, old) for new, old in zip(found, selected, strict=True)]
    return list(map(PerLane, selected))
