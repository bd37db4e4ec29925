"""Evaluate the jaxpr of a function of one lane on arrays that hold all lanes."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Jaxpr, JaxprEqn, Primitive
from jaxtyping import Array

from ..jaxprs import bind, dtype_of, is_literal, name_of, rule_for

F = TypeVar("F", bound=Callable)

# See `rule_for`; a primitive without a rule goes through `jax.vmap`.
RULES: dict[str | Primitive, Callable[..., list[Any]]] = {}
ORDERED: set[str] = {
    "dot_general",
    "reduce_sum",
}  # what the compiler adds up in an order of its own


class Lanes(NamedTuple):
    """A value that differs by lane: the lane is the last axis. Anything else is shared."""

    value: Array  # [..., L]


class Width(NamedTuple):
    """How many lanes there are, and a 1.0 of which the compiler does not know that it is."""

    number: int
    unit: Array  # float []


Operand: TypeAlias = Lanes | Any  # `Lanes` where it differs by lane, else shared


def lanewise(function: Callable, number: int, unit: Any) -> Callable:
    """`function` of one lane's arrays, for arrays with `number` lanes in an extra last axis.

    What the function closes over is shared by all lanes. Every result has the lane axis.

    Args:
      unit: the number 1.0, as an argument of the compiled program; see `reductions.sealed`.
    """
    lanes = Width(number, unit)

    def mapped(*args):
        leaves, tree = jax.tree.flatten(args)
        one = [jax.ShapeDtypeStruct(x.shape[:-1], x.dtype) for x in leaves]
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*jax.tree.unflatten(tree, one))
        results = evaluate(closed.jaxpr, closed.consts, list(map(Lanes, leaves)), lanes)
        return jax.tree.unflatten(
            jax.tree.structure(shape), [with_lanes(x, lanes) for x in results]
        )

    return mapped


def evaluate(
    jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Operand], lanes: Width
) -> list[Operand]:
    """Results of a jaxpr, each `Lanes` or shared."""
    values = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom):
        return np.asarray(atom.val, dtype_of(atom)) if is_literal(atom) else values[atom]

    for eqn in jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        if any(isinstance(x, Lanes) for x in operands):
            results = (rule_for(eqn, RULES) or by_vmap)(eqn, operands, lanes)
        elif name_of(eqn) in ORDERED and jnp.issubdtype(dtype_of(eqn.outvars[0]), jnp.floating):
            results = as_by_a_lane(eqn, operands, lanes)
        else:
            results = bind(eqn, operands)
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def as_by_a_lane(eqn: JaxprEqn, operands: Sequence[Operand], lanes: Width) -> list[Operand]:
    """A sum or product of what all lanes share, rounded as that of a lane's own would be.

    So an instance whose tables all lanes share gives the same numbers as in a stack of several.
    """
    one = [Lanes(jnp.asarray(x)[..., None]) for x in operands]
    results = RULES[eqn.primitive.name](eqn, one, Width(1, lanes.unit))
    return [x.value[..., 0] for x in results]


def rule(*primitives: str | Primitive) -> Callable[[F], F]:
    """Decorate a rule `(equation, operands, lanes) -> results` of primitives; JAX's by name."""

    def register(function):
        RULES.update(dict.fromkeys(primitives, function))
        return function

    return register


def by_vmap(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """Any primitive, by its own batching rule."""
    axes = tuple(-1 if isinstance(x, Lanes) else None for x in operands)
    values = [x.value if isinstance(x, Lanes) else x for x in operands]
    results = jax.vmap(lambda *xs: bind(eqn, xs), axes, -1)(*values)
    return list(map(Lanes, results))


def with_lanes(x: Operand, lanes: Width) -> Array:
    """The array of an operand with the lane axis, repeated where it is shared."""
    if isinstance(x, Lanes):
        return x.value
    x = x if isinstance(x, jax.Array) else jnp.asarray(x)
    return jax.lax.broadcast_in_dim(x, (*x.shape, lanes.number), tuple(range(x.ndim)))
