"""Loops, branches and calls across lanes."""

import jax
import jax.numpy as jnp
from jax import lax

from ...kernels.linalg.spd import SWEEP_COLUMNS
from ...kernels.primitives import jaxprs_in, name_of
from ...kernels.selection import PICK_ARGMAX, PICK_BEST
from .interpreter import Lanes, evaluate, is_literal, rule, spread
from .narrowing import BLOCK, STEPPED, in_blocks, step_some

CALLS = ("jit", PICK_BEST, PICK_ARGMAX, SWEEP_COLUMNS)


@rule(*CALLS)
def call(eqn, operands, lanes):
    """A nested function is evaluated in place."""
    closed = eqn.params["jaxpr"]
    return evaluate(closed.jaxpr, closed.consts, operands, lanes)


@rule("custom_jvp_call", "custom_vjp_call", "closed_call")
def custom_call(eqn, operands, lanes):
    """Derivatives do not matter here."""
    closed = eqn.params.get("call_jaxpr") or eqn.params["fun_jaxpr"]
    return evaluate(closed.jaxpr, closed.consts, operands, lanes)


def differs(jaxpr, flags):
    """Which results differ by lane, given which inputs do; nothing is computed."""
    known = dict(zip(jaxpr.invars, flags, strict=True))

    def flag_of(atom):
        return not is_literal(atom) and known.get(atom, False)

    for eqn in jaxpr.eqns:
        found = _differ(eqn, [flag_of(atom) for atom in eqn.invars])
        known.update(zip(eqn.outvars, found, strict=True))
    return [flag_of(atom) for atom in jaxpr.outvars]


def _differ(eqn, flags):
    if not any(flags):
        return [False] * len(eqn.outvars)
    p, name = eqn.params, name_of(eqn)
    if name == "while":
        return while_flags(p, flags)
    if name == "scan":
        return scan_flags(p, flags)
    if name in CALLS or eqn.primitive in CALLS:
        return differs(p["jaxpr"].jaxpr, flags)
    return [True] * len(eqn.outvars)


def _fixed_point(step, flags):
    while (after := [a or b for a, b in zip(flags, step(flags), strict=True)]) != flags:
        flags = after
    return flags


def while_flags(p, flags):
    """Which carried values of a `while` differ by lane."""
    split = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    cond, body, carry = flags[: split[0]], flags[split[0] : split[1]], flags[split[1] :]

    def step(carry):
        (stops,) = differs(p["cond_jaxpr"].jaxpr, [*cond, *carry])
        return [True] * len(carry) if stops else differs(p["body_jaxpr"].jaxpr, [*body, *carry])

    return _fixed_point(step, carry)


def scan_flags(p, flags):
    """Which results of a `scan` differ by lane."""
    consts, carry, xs = parts(p, flags)

    def step(carry):
        return differs(p["jaxpr"].jaxpr, [*consts, *carry, *xs])[: len(carry)]

    carry = _fixed_point(step, carry)
    return [*carry, *differs(p["jaxpr"].jaxpr, [*consts, *carry, *xs])[len(carry) :]]


def parts(p, items):
    """Constants, carry and rows of a `scan`."""
    first, second = p["num_consts"], p["num_consts"] + p["num_carry"]
    return items[:first], items[first:second], items[second:]


def _pack(values, flags, lanes):
    """Plain arrays for a loop's carry: with the lane axis where the flag says so."""
    pairs = zip(values, flags, strict=True)
    return [spread(x, lanes) if flag else jnp.asarray(x) for x, flag in pairs]


def _unpack(arrays, flags):
    return [Lanes(x) if flag else x for x, flag in zip(arrays, flags, strict=True)]


@rule("while")
def while_loop(eqn, operands, lanes):
    """Loop until every lane is done; a lane that is keeps its values.

    Where a step is long, holding loops itself, some of the lanes that still go on take it at a
    time: few lanes need many steps.
    """
    p = eqn.params
    split = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    cond_consts, body_consts = operands[: split[0]], operands[split[0] : split[1]]
    flags = while_flags(p, [isinstance(x, Lanes) for x in operands])
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
        mask = spread(going_on, lanes) if flag else going_on
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

    carry = lax.while_loop(any_going, step, _pack(operands[split[1] :], flags, lanes))
    return _unpack(carry, flags)


@rule("scan")
def scan(eqn, operands, lanes):
    """The lanes walk through the same steps; the steps stay the first axis."""
    p = eqn.params
    flags = scan_flags(p, [isinstance(x, Lanes) for x in operands])
    consts, carry, xs = parts(p, operands)
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
def cond(eqn, operands, lanes):
    """A branch that differs by lane is a choice between results; one nobody takes is skipped."""
    which, *args = operands
    branches = eqn.params["branches"]
    flags = [isinstance(x, Lanes) for x in args]
    plain = _pack(args, flags, lanes)

    def follow(closed):
        def run(*values):
            results = evaluate(closed.jaxpr, closed.consts, _unpack(values, flags), lanes)
            return [spread(x, lanes) for x in results]

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


def has_loop(jaxpr):
    """Whether there is a loop whose length can differ by lane."""
    return any(name_of(eqn) == "while" or any(map(has_loop, jaxprs_in(eqn))) for eqn in jaxpr.eqns)
