"""Functions that both compilers use to read jaxprs, JAX's record of a function's operations.

An operation is recognised by its primitive, never by a name, which a function of a user may have
as well.
"""

import functools
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive
from jax.lax import GatherScatterMode

from ..kernels.linalg.spd import SWEEP_COLUMNS, SWEEP_LARGEST
from ..kernels.selection import PICK_ARGMAX, PICK_BEST
from ..kernels.shared_call import ONCE_FOR_EQUAL
from .keys import is_key

CALLS: tuple[str | Primitive, ...] = ("jit", PICK_BEST, PICK_ARGMAX, SWEEP_COLUMNS, SWEEP_LARGEST)
# Calls of functions with their own derivative, see `called_jaxpr`.
CUSTOM_CALLS: tuple[str, ...] = ("custom_jvp_call", "custom_vjp_call", "closed_call")

Item = TypeVar("Item")
Rule = TypeVar("Rule")
Params: TypeAlias = Mapping[str, Any]  # the parameters of an equation

_known: set[Primitive] = set()  # primitives of JAX that were found so far


def jax_primitives() -> frozenset[Primitive]:
    """The primitives that are attributes of JAX's modules, of which some are private."""
    modules = [m for name, m in list(sys.modules.items()) if name.split(".")[0] == "jax"]
    found = {x for m in modules for x in list(vars(m).values()) if isinstance(x, Primitive)}
    return frozenset(found)


@functools.cache
def _name(primitive):
    if primitive not in _known:
        _known.update(jax_primitives())  # more modules may have been imported since
    return primitive.name if primitive in _known else None


def name_of(eqn: JaxprEqn) -> str | None:
    """The name of an equation's primitive if it is one of JAX's, else None."""
    return _name(eqn.primitive)


def rule_for(eqn: JaxprEqn, rules: Mapping[Any, Rule]) -> Rule | None:
    """The rule of an equation; the keys of `rules` are primitives, or names of JAX's primitives."""
    return rules.get(eqn.primitive) or rules.get(name_of(eqn))


def jaxprs_in(eqn: JaxprEqn) -> Iterator[Jaxpr]:
    """The jaxprs among the parameters of an equation."""
    for value in eqn.params.values():
        for x in value if isinstance(value, list | tuple) else [value]:
            if isinstance(x, ClosedJaxpr | Jaxpr):
                yield x.jaxpr if isinstance(x, ClosedJaxpr) else x


def has_loop(jaxpr: Jaxpr) -> bool:
    """Whether a jaxpr contains a loop whose number of steps can differ by lane."""
    return loops(jaxpr) > 0


def loops(jaxpr: Jaxpr) -> int:
    """The number of loops of a jaxpr with a condition, those within loops and calls included."""
    inner = sum(loops(x) for eqn in jaxpr.eqns for x in jaxprs_in(eqn))
    return inner + sum(name_of(eqn) == "while" for eqn in jaxpr.eqns)


def operations(jaxpr: Jaxpr) -> int:
    """The number of equations of a jaxpr, those of loops and calls included."""
    return sum(1 + sum(map(operations, jaxprs_in(eqn))) for eqn in jaxpr.eqns)


def in_common(jaxpr: Jaxpr, most: int) -> bool:
    """Whether lanes are likely to have something costly in common, see `kernels.shared_call`.

    That is what takes more than `most` operations and depends on flags and integers alone, such as
    the arms alive: computed floats differ from lane to lane.
    """

    def alike(atom):
        whole = not is_key(dtype_of(atom)) and np.dtype(dtype_of(atom)).kind in "biu"
        return whole or is_literal(atom) or atom in jaxpr.constvars

    def costs(eqn):
        return sum(map(operations, jaxprs_in(eqn)))

    shared = [eqn for eqn in jaxpr.eqns if eqn.primitive is ONCE_FOR_EQUAL]
    return any(costs(eqn) > most and all(map(alike, eqn.invars)) for eqn in shared)


def shares(jaxpr: Jaxpr) -> bool:
    """Whether lanes may have some of a jaxpr in common, see `kernels.shared_call`."""
    inner = [x for eqn in jaxpr.eqns for x in jaxprs_in(eqn)]
    return any(eqn.primitive is ONCE_FOR_EQUAL for eqn in jaxpr.eqns) or any(map(shares, inner))


def largest_in_blocks(jaxpr: Jaxpr) -> int:
    """Bytes of the largest table of what XLA computes for some lanes after others, 0 without such.

    That is what lanes may have in common, and the branches with loops.
    """

    def in_blocks(eqn):
        return eqn.primitive is ONCE_FOR_EQUAL or (
            name_of(eqn) == "cond" and any(map(has_loop, jaxprs_in(eqn)))
        )

    pairs = [(in_blocks(eqn), inner) for eqn in jaxpr.eqns for inner in jaxprs_in(eqn)]
    found = [(largest_table if blocks else largest_in_blocks)(inner) for blocks, inner in pairs]
    return max(found, default=0)


def largest_table(jaxpr: Jaxpr) -> int:
    """Bytes of the largest result of an equation."""
    sizes = [math.prod(shape_of(x)) * dtype_of(x).itemsize for e in jaxpr.eqns for x in e.outvars]
    return max(sizes + [largest_table(x) for e in jaxpr.eqns for x in jaxprs_in(e)], default=0)


def is_literal(atom: object) -> bool:
    """Whether an operand of an equation is a constant that the jaxpr contains."""
    return isinstance(atom, Literal)


def literal_value(atom: Any) -> np.ndarray:
    """The constant of an operand for which `is_literal` holds."""
    return np.asarray(atom.val, dtype_of(atom))


def shape_of(atom: Any) -> tuple[int, ...]:
    """The shape of an operand or a result of an equation."""
    return atom.aval.shape


def dtype_of(atom: Any) -> Any:
    """The dtype of an operand or a result of an equation."""
    return atom.aval.dtype


def called_jaxpr(params: Params) -> ClosedJaxpr:
    """The function that one of the `CUSTOM_CALLS` calls; JAX has two names for this parameter."""
    return params.get("call_jaxpr") or params["fun_jaxpr"]


def bind(eqn: JaxprEqn, operands: Sequence[Any], **changed: Any) -> list[Any]:
    """The results of an equation's primitive for `operands`, with some parameters `changed`."""
    bound = eqn.primitive.get_bind_params({**eqn.params, **changed})
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # before jax 0.10
    results = eqn.primitive.bind(*functions, *operands, **params)
    return list(results) if eqn.primitive.multiple_results else [results]


def scan_parts(
    params: Params, items: Sequence[Item]
) -> tuple[Sequence[Item], Sequence[Item], Sequence[Item]]:
    """Split `items`, one for each operand of a `scan`, into those of constants, carry and rows."""
    if "ft_in" in params:  # from jax 0.12
        consts, carry, _ = map(len, params["ft_in"].unpack())
    else:
        consts, carry = params["num_consts"], params["num_carry"]
    return items[:consts], items[consts : consts + carry], items[consts + carry :]


def while_parts(
    params: Params, items: Sequence[Item]
) -> tuple[Sequence[Item], Sequence[Item], Sequence[Item]]:
    """Split `items`, one for each operand of a `while`.

    The parts are constants of the condition, constants of the body, and the carry.
    """
    first = params["cond_nconsts"]
    second = first + params["body_nconsts"]
    return items[:first], items[first:second], items[second:]


def varying(jaxpr: Jaxpr, flags: Sequence[bool]) -> list[bool]:
    """For each result whether it varies by lane, where `flags` says so for each input."""
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


def fixed_point(
    step: Callable[[Sequence[bool]], Sequence[bool]], flags: Sequence[bool]
) -> list[bool]:
    """These flags, and those that a step sets from them, and so on until a step sets no more."""
    flags = list(flags)
    while (after := [a or b for a, b in zip(flags, step(flags), strict=True)]) != flags:
        flags = after
    return flags


def varying_of_while(params: Params, flags: Sequence[bool]) -> list[bool]:
    """For each value in the carry of a `while` whether it varies by lane."""
    cond, body, carry = while_parts(params, flags)

    def step(carry):
        (condition_varies,) = varying(params["cond_jaxpr"].jaxpr, [*cond, *carry])
        if condition_varies:
            return [True] * len(carry)
        return varying(params["body_jaxpr"].jaxpr, [*body, *carry])

    return fixed_point(step, carry)


def varying_of_scan(params: Params, flags: Sequence[bool]) -> list[bool]:
    """For each result of a `scan` whether it varies by lane."""
    consts, carry, xs = scan_parts(params, flags)
    jaxpr = params["jaxpr"].jaxpr

    def step(carry):
        return varying(jaxpr, [*consts, *carry, *xs])[: len(carry)]

    carry = fixed_point(step, carry)
    return [*carry, *varying(jaxpr, [*consts, *carry, *xs])[len(carry) :]]


def shapes_of_one_lane(args: Any) -> Any:
    """Shapes and dtypes of the arrays of a pytree without their last axis, that of the lanes."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[:-1], x.dtype), args)


def clips_indices(mode: GatherScatterMode | None) -> bool:
    """Whether this mode of a gather or a scatter moves indices out of bounds to the nearest entry.

    Where they are promised to be in bounds, both compilers do the same.
    """
    return mode in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS)


def reduce_by_pairs(join: Callable[[Item, Item], Item], items: Sequence[Item]) -> Item:
    """Join one or more items to one as a balanced tree, always neighbours first."""
    items = list(items)
    while len(items) > 1:
        pairs = [join(*items[i : i + 2]) for i in range(0, len(items) - 1, 2)]
        items = pairs + items[len(pairs) * 2 :]
    return items[0]
