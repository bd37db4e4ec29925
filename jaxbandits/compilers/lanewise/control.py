"""Loops, branches and calls across lanes."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import JaxprEqn

from ..jaxprs import (
    CALLS,
    called,
    has_loop,
    scan_parts,
    varying_of_scan,
    varying_of_while,
    while_parts,
)
from .interpreter import Lanes, Width, evaluate, rule, with_lanes
from .narrowing import BLOCK, STEPPED, in_blocks, step_some


@rule(*CALLS)
def call(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """A nested function is evaluated in place."""
    closed = eqn.params["jaxpr"]
    return evaluate(closed.jaxpr, closed.consts, operands, lanes)


@rule("custom_jvp_call", "custom_vjp_call", "closed_call")
def custom_call(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """Derivatives do not matter here."""
    closed = called(eqn.params)
    return evaluate(closed.jaxpr, closed.consts, operands, lanes)


def _pack(values, flags, lanes):
    """Plain arrays for a loop's carry: with the lane axis where the flag says so."""
    pairs = zip(values, flags, strict=True)
    return [with_lanes(x, lanes) if flag else jnp.asarray(x) for x, flag in pairs]


def _unpack(arrays, flags):
    return [Lanes(x) if flag else x for x, flag in zip(arrays, flags, strict=True)]


@rule("while")
def while_loop(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """Loop until every lane is done; a lane that is keeps its values.

    Where a step is long, holding loops itself, some of the lanes that still go on take it at a
    time: few lanes need many steps.
    """
    p = eqn.params
    cond_consts, body_consts, initial = while_parts(p, operands)
    flags = varying_of_while(p, [isinstance(x, Lanes) for x in operands])
    cond, body = p["cond_jaxpr"], p["body_jaxpr"]

    def going(carry):
        values = [*cond_consts, *_unpack(carry, flags)]
        return evaluate(cond.jaxpr, cond.consts, values, lanes)[0]

    # A loop that was mapped over has a predicate for each of what it was mapped over.
    mapped = cond.jaxpr.outvars[0].aval.shape

    def any_going(carry):
        going_on = going(carry)
        if isinstance(going_on, Lanes):
            return going_on.value.any()
        return going_on.any() if mapped else going_on

    def chosen(going_on, new, old, flag):
        mask = with_lanes(going_on, lanes) if flag else going_on
        inner = [1] * (new.ndim - mask.ndim)
        return jnp.where(mask.reshape(*mapped, *inner, *mask.shape[len(mapped) :]), new, old)

    long = lanes.number > STEPPED and has_loop(body.jaxpr) and not mapped

    def step(carry):
        values = [*body_consts, *_unpack(carry, flags)]
        if long and isinstance(going_on := going(carry), Lanes):
            return step_some(body, values, going_on.value, carry, lanes)
        results = evaluate(body.jaxpr, body.consts, values, lanes)
        after, going_on = _pack(results, flags, lanes), going(carry)
        if not isinstance(going_on, Lanes) and not mapped:
            return after
        return [chosen(going_on, *both) for both in zip(after, carry, flags, strict=True)]

    carry = lax.while_loop(any_going, step, _pack(initial, flags, lanes))
    return _unpack(carry, flags)


@rule("scan")
def scan(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """The lanes walk through the same steps; the steps stay the first axis."""
    p = eqn.params
    flags = varying_of_scan(p, [isinstance(x, Lanes) for x in operands])
    consts, carry, xs = scan_parts(p, operands)
    carry_flags, y_flags = flags[: len(carry)], flags[len(carry) :]
    x_flags = [isinstance(x, Lanes) for x in xs]
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
def cond(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """A branch that differs by lane is a choice between results; one nobody takes is skipped."""
    which, *args = operands
    branches = eqn.params["branches"]
    flags = [isinstance(x, Lanes) for x in args]
    plain = _pack(args, flags, lanes)

    def follow(closed):
        def run(*values):
            results = evaluate(closed.jaxpr, closed.consts, _unpack(values, flags), lanes)
            return [with_lanes(x, lanes) for x in results]

        return run

    if not isinstance(which, Lanes):
        return list(map(Lanes, lax.switch(which, list(map(follow, branches)), *plain)))
    index = jnp.clip(which.value.astype(int), 0, len(branches) - 1)
    shapes = jax.eval_shape(follow(branches[0]), *plain)

    def nobody(*_):
        return [jnp.zeros(x.shape, x.dtype) for x in shapes]

    chosen = nobody()
    for k, branch in enumerate(branches):
        here = index == k
        if has_loop(branch.jaxpr) and lanes.number > BLOCK:
            chosen = in_blocks(branch, args, here, chosen, lanes)
            continue
        found = lax.cond(here.any(), follow(branch), nobody, *plain)
        chosen = [jnp.where(here, new, old) for new, old in zip(found, chosen, strict=True)]
    return list(map(Lanes, chosen))
