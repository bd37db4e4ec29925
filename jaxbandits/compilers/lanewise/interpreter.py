"""Evaluates the jaxpr of a function of one lane on arrays that hold all lanes."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn, Primitive
from jaxtyping import Array

from ..jaxprs import (
    bind,
    dtype_of,
    is_literal,
    literal_value,
    name_of,
    rule_for,
    shapes_of_one_lane,
)

F = TypeVar("F", bound=Callable)

# See `rule_for`; a primitive without a rule goes through `jax.vmap`.
RULES: dict[str | Primitive, Callable[..., list[Any]]] = {}
# Operations whose rounding depends on the order in which the compiler adds.
ORDER_DEPENDENT: set[str] = {"dot_general", "reduce_sum"}


class PerLane(NamedTuple):
    """A value that differs by lane, in its last axis. All other values are shared by the lanes."""

    value: Array  # [..., L]


class LaneContext(NamedTuple):
    """What rules need to know of the lanes."""

    number: int
    unit: Array  # float []: 1.0, a value that the compiler does not know; see `materialised`
    gathers: bool = False  # whether short tables too are looked up in by a gather, as GPUs like it


Operand: TypeAlias = PerLane | Any  # `PerLane` where it differs by lane, else shared


def lanewise(function: Callable, number: int, unit: Any, *, gathers: bool = False) -> Callable:
    """`function` of one lane's arrays, for arrays with `number` lanes in an extra last axis.

    What the function closes over is shared by all lanes. Every result has the lane axis.

    Args:
      function: of pytrees of arrays.
      number: of lanes.
      unit: the number 1.0, as an argument of the compiled program; see `reductions.materialised`.
      gathers: see `LaneContext`; the results are the same.
    """
    lanes = LaneContext(number, unit, gathers)

    def mapped(*args):
        shapes = shapes_of_one_lane(args)
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*shapes)
        values = list(map(PerLane, jax.tree.leaves(args)))
        results = evaluate(closed.jaxpr, closed.consts, values, lanes)
        return jax.tree.unflatten(
            jax.tree.structure(shape), [with_lanes(x, lanes) for x in results]
        )

    return mapped


def evaluate(
    jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Operand], lanes: LaneContext
) -> list[Operand]:
    """The results of a jaxpr, each `PerLane` or shared."""
    values = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom):
        return literal_value(atom) if is_literal(atom) else values[atom]

    for eqn in jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        if any(isinstance(x, PerLane) for x in operands):
            results = (rule_for(eqn, RULES) or by_vmap)(eqn, operands, lanes)
        elif name_of(eqn) in ORDER_DEPENDENT and jnp.issubdtype(
            dtype_of(eqn.outvars[0]), jnp.floating
        ):
            results = as_in_one_lane(eqn, operands, lanes)
        else:
            results = bind(eqn, operands)
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def as_in_one_lane(eqn: JaxprEqn, operands: Sequence[Operand], lanes: LaneContext) -> list[Operand]:
    """A sum or product of shared values, rounded as if the values were those of one lane.

    So an instance whose tables all lanes share gives the same numbers as one whose tables differ
    by lane.
    """
    one = [PerLane(jnp.asarray(x)[..., None]) for x in operands]
    results = RULES[eqn.primitive.name](eqn, one, lanes._replace(number=1))
    return [x.value[..., 0] for x in results]


def rule(*primitives: str | Primitive) -> Callable[[F], F]:
    """Decorate the rule `(equation, operands, lanes) -> results` of these primitives.

    Primitives of JAX are given by name.
    """

    def register(function):
        RULES.update(dict.fromkeys(primitives, function))
        return function

    return register


def by_vmap(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """The results of any primitive, by JAX's batching rule for it."""
    axes = tuple(-1 if isinstance(x, PerLane) else None for x in operands)
    values = [x.value if isinstance(x, PerLane) else x for x in operands]
    results = jax.vmap(lambda *xs: bind(eqn, xs), axes, -1)(*values)
    return list(map(PerLane, results))


def with_lanes(x: Operand, lanes: LaneContext) -> Array:
    """The array of an operand with the lane axis; shared values are repeated along it."""
    if isinstance(x, PerLane):
        return x.value
    x = x if isinstance(x, jax.Array) else jnp.asarray(x)
    return jax.lax.broadcast_in_dim(x, (*x.shape, lanes.number), tuple(range(x.ndim)))


def where(mask: Array, new: Array, old: Array, *, leading: int = 0) -> Array:
    """`new` where a mask is true, else `old`; `jnp.where` takes longer to trace.

    Args:
      mask: bool; its axes are the `leading` first and otherwise the last ones of `new`.
    """
    axes = (*range(leading), *range(new.ndim - mask.ndim + leading, new.ndim))
    return jax.lax.select(jax.lax.broadcast_in_dim(mask, new.shape, axes), new, old)
