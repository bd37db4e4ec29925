"""What both compilers need to know of jaxprs, in which JAX writes down a function's operations.

Operations are told apart by their primitives, never by the name of a function that a user wrote.
"""

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive

from ..kernels.linalg.spd import SWEEP_COLUMNS
from ..kernels.selection import PICK_ARGMAX, PICK_BEST

CALLS: tuple[str | Primitive, ...] = ("jit", PICK_BEST, PICK_ARGMAX, SWEEP_COLUMNS)

Item = TypeVar("Item")
Rule = TypeVar("Rule")
Params: TypeAlias = Mapping[str, Any]  # of an equation

_seen: set[Primitive] = set()  # primitives of JAX


def jaxs_own() -> frozenset[Primitive]:
    """The primitives of JAX, which its modules hold; some are in no public one."""
    modules = [m for name, m in list(sys.modules.items()) if name.split(".")[0] == "jax"]
    found = {x for m in modules for x in list(vars(m).values()) if isinstance(x, Primitive)}
    return frozenset(found)


@functools.cache
def _name(primitive):
    if primitive not in _seen:
        _seen.update(jaxs_own())  # modules may have come since
    return primitive.name if primitive in _seen else None


def name_of(eqn: JaxprEqn) -> str | None:
    """The name of the operation of an equation if it is one of JAX's, else None."""
    return _name(eqn.primitive)


def rule_for(eqn: JaxprEqn, rules: Mapping[Any, Rule]) -> Rule | None:
    """The rule of an equation: `rules` are by primitive, those of JAX by their names."""
    return rules.get(eqn.primitive) or rules.get(name_of(eqn))


def jaxprs_in(eqn: JaxprEqn) -> Iterator[Jaxpr]:
    """The jaxprs among the parameters of an equation."""
    for value in eqn.params.values():
        for x in value if isinstance(value, list | tuple) else [value]:
            if isinstance(x, ClosedJaxpr | Jaxpr):
                yield x.jaxpr if isinstance(x, ClosedJaxpr) else x


def has_loop(jaxpr: Jaxpr) -> bool:
    """Whether there is a loop whose length can differ by lane."""
    return any(name_of(eqn) == "while" or any(map(has_loop, jaxprs_in(eqn))) for eqn in jaxpr.eqns)


def is_literal(atom: object) -> bool:
    """Whether an operand of an equation is written into it."""
    return isinstance(atom, Literal)


def shape_of(atom: Any) -> tuple[int, ...]:
    """The shape of an operand or a result of an equation."""
    return atom.aval.shape


def dtype_of(atom: Any) -> Any:
    """Its type of numbers."""
    return atom.aval.dtype


def called(params: Params) -> ClosedJaxpr:
    """The function of a call with a derivative of its own, under either name of JAX's."""
    return params.get("call_jaxpr") or params["fun_jaxpr"]


def bind(eqn: JaxprEqn, operands: Sequence[Any], **changed: Any) -> list[Any]:
    """The results of an equation's own primitive, as a list."""
    bound = eqn.primitive.get_bind_params({**eqn.params, **changed})
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # before jax 0.10
    results = eqn.primitive.bind(*functions, *operands, **params)
    return list(results) if eqn.primitive.multiple_results else [results]


def scan_parts(
    params: Params, items: Sequence[Item]
) -> tuple[Sequence[Item], Sequence[Item], Sequence[Item]]:
    """Constants, carry and rows of a `scan`, of its operands or of what is said of them."""
    if "ft_in" in params:  # from jax 0.12
        consts, carry, _ = map(len, params["ft_in"].unpack())
    else:
        consts, carry = params["num_consts"], params["num_carry"]
    return items[:consts], items[consts : consts + carry], items[consts + carry :]


def while_parts(
    params: Params, items: Sequence[Item]
) -> tuple[Sequence[Item], Sequence[Item], Sequence[Item]]:
    """Constants of the condition, those of the body, and the carry of a `while`."""
    first = params["cond_nconsts"]
    second = first + params["body_nconsts"]
    return items[:first], items[first:second], items[second:]


def varying(jaxpr: Jaxpr, flags: Sequence[bool]) -> list[bool]:
    """Which results vary by lane, given which inputs do; nothing is computed."""
    known = dict(zip(jaxpr.invars, flags, strict=True))

    def flag_of(atom):
        return not is_literal(atom) and known.get(atom, False)

    for eqn in jaxpr.eqns:
        found = _varying_of(eqn, [flag_of(atom) for atom in eqn.invars])
        known.update(zip(eqn.outvars, found, strict=True))
    return [flag_of(atom) for atom in jaxpr.outvars]


def _varying_of(eqn, flags):
    if not any(flags):
        return [False] * len(eqn.outvars)
    name = name_of(eqn)
    if name == "while":
        return varying_of_while(eqn.params, flags)
    if name == "scan":
        return varying_of_scan(eqn.params, flags)
    if name in CALLS or eqn.primitive in CALLS:
        return varying(eqn.params["jaxpr"].jaxpr, flags)
    return [True] * len(eqn.outvars)


def _fixed_point(
    step: Callable[[Sequence[bool]], Sequence[bool]], flags: Sequence[bool]
) -> list[bool]:
    flags = list(flags)
    while (after := [a or b for a, b in zip(flags, step(flags), strict=True)]) != flags:
        flags = after
    return flags


def varying_of_while(params: Params, flags: Sequence[bool]) -> list[bool]:
    """Which carried values of a `while` vary by lane."""
    cond, body, carry = while_parts(params, flags)

    def step(carry):
        (stops,) = varying(params["cond_jaxpr"].jaxpr, [*cond, *carry])
        if stops:
            return [True] * len(carry)
        return varying(params["body_jaxpr"].jaxpr, [*body, *carry])

    return _fixed_point(step, carry)


def varying_of_scan(params: Params, flags: Sequence[bool]) -> list[bool]:
    """Which results of a `scan` vary by lane."""
    consts, carry, xs = scan_parts(params, flags)
    jaxpr = params["jaxpr"].jaxpr

    def step(carry):
        return varying(jaxpr, [*consts, *carry, *xs])[: len(carry)]

    carry = _fixed_point(step, carry)
    return [*carry, *varying(jaxpr, [*consts, *carry, *xs])[len(carry) :]]
