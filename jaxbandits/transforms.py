"""How public kernels work under JAX's transformations `grad` and `shard_map`.

Optima are found by loops. JAX cannot differentiate them, or it differentiates the iterations
instead of the optimum. A kernel's solver is therefore given the derivative of its optimum
(`ruled`), or an error in plain words (`without_derivative`).
"""

import functools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from .precision import is_traced
from .system.kept_calls import kept
from .types import Pytree

P = ParamSpec("P")
R = TypeVar("R")
Found = TypeVar("Found", bound=Any)  # a named tuple of arrays

CONSTANT: str = "pass jax.lax.stop_gradient of its arguments where it is to count as a constant"


def without_derivative(name: str, solver: Callable[P, R], reason: str) -> Callable[P, R]:
    """`solver(*arrays)` that cannot be differentiated; compiled, see `kept`.

    Raises:
      TypeError: the result does, where an argument is differentiated.
    """

    def refuse(primals, tangents):
        raise TypeError(f"{name} has no derivative: {reason}; {CONSTANT}")

    return _with_rule(solver, refuse)


def ruled(solver: Callable[P, R], rule: Callable[[Any, Any, R], R]) -> Callable[P, R]:
    """`solver(*arrays)` with the derivative that `rule` gives; compiled, see `kept`.

    Args:
      solver: returns a pytree.
      rule: `(primals, tangents, found) -> tangents` of what the solver found; `tangents_like`
        builds these.
    """

    def differentiate(primals, tangents):
        found = differentiable(*primals)  # not `solver`, so that the rule can be differentiated too
        return found, rule(primals, tangents, found)

    differentiable = _with_rule(solver, differentiate)
    return differentiable


def _with_rule(solver, rule):
    at_once, solver = kept(solver, quickly=True), jax.jit(solver)
    differentiable = jax.custom_jvp(functools.wraps(solver)(partial(_in_one_piece, solver)))
    differentiable.defjvp(rule)
    return lambda *args: differentiable(*args) if is_traced(args) else at_once(*args)


def tangents_like(found: Found, known: Mapping[str, Any], tangents: Pytree, sentence: str) -> Found:
    """Tangents of a named tuple: those `known` by name; the others raise an error where used.

    Integers and Booleans have none.

    Args:
      found: the named tuple.
      known: tangents by the name of a field.
      tangents: those of the arguments, see `refused_tangent`.
      sentence: the error for the other fields.
    """

    def tangent(name, leaf):
        if not jnp.issubdtype(leaf.dtype, jnp.inexact):
            return np.zeros(leaf.shape, jax.dtypes.float0)
        if name in known:
            return jnp.asarray(known[name], leaf.dtype)
        return refused_tangent(leaf, tangents, sentence)

    return type(found)(*map(tangent, found._fields, found))


def refused_tangent(leaf: jax.Array, tangents: Pytree, sentence: str) -> jax.Array:
    """A tangent that raises `TypeError(sentence)` where it is used, and only there.

    It depends on the tangents of the arguments, so that JAX does not take it for a constant.
    """
    floats = [one for one in jax.tree.leaves(tangents) if one.dtype != jax.dtypes.float0]
    mark = jnp.asarray(sum(one.sum() for one in floats), leaf.dtype)
    return _refused.bind(jnp.broadcast_to(mark, leaf.shape), sentence=f"{sentence}; {CONSTANT}")


# A linear function that stands for a missing derivative: to evaluate or transpose it is an error.
_refused = Primitive("no_derivative")


def _refuse(*_, sentence, **__):
    raise TypeError(sentence)


_refused.def_impl(_refuse)
_refused.def_abstract_eval(lambda aval, **_: aval)
ad.deflinear2(_refused, _refuse)  # not called for a cotangent that is known to be 0
batching.defvectorized(_refused)
mlir.register_lowering(_refused, _refuse)


# In the body of a `shard_map`, JAX tracks which values differ between devices, and refuses loops
# that begin with a constant and end with such a value. A solver is therefore bound as one
# primitive, whose loops JAX does not check.
_piece = Primitive("in_one_piece")
_piece.multiple_results = True
_piece.def_impl(lambda *args, program: jaxpr_as_fun(program)(*args))
_piece.def_abstract_eval(lambda *_, program: program.out_avals)


def _lowered(context, *args, program):
    context = context.replace(avals_in=program.in_avals, avals_out=program.out_avals)
    return mlir.lower_fun(jaxpr_as_fun(program), multiple_results=True)(context, *args)


def _batched(args, axes, *, program):
    many = jax.make_jaxpr(jax.vmap(jaxpr_as_fun(program), tuple(axes)))(*map(_shaped, args))
    found = _piece.bind(*args, program=many)
    return found, [0] * len(found)


mlir.register_lowering(_piece, _lowered)
batching.primitive_batchers[_piece] = _batched


def _shaped(leaf):
    return jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf))


def _in_one_piece(solver, *args):
    """`solver(*args)`, as one primitive in the body of a `shard_map`."""
    axes = jax.sharding.get_abstract_mesh().axis_types
    if jax.sharding.AxisType.Manual not in (axes or ()):
        return solver(*args)
    leaves, tree = jax.tree.flatten(args)
    program, shapes = jax.make_jaxpr(
        lambda *leaves: solver(*jax.tree.unflatten(tree, leaves)), return_shape=True
    )(*map(_shaped, leaves))
    found = _piece.bind(*map(jnp.asarray, leaves), program=program)
    # Always true, and marked as different between devices where an argument is: so are the results.
    mark = sum(jnp.size(leaf) and (jnp.ravel(leaf)[0] == 0).astype(int) for leaf in leaves) >= 0
    return jax.tree.unflatten(jax.tree.structure(shapes), [jnp.where(mark, x, x) for x in found])
