"""How public kernels go together with JAX's transformations: `grad` and `shard_map`.

Optima are found by loops, through which JAX either has no derivative or that of the iterations
instead of the optimum. A kernel's solver is therefore given the rule of its optimum (`ruled`), or
a refusal in plain words (`without_derivative`).
"""

import functools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from .precision import is_traced

CONSTANT = "pass jax.lax.stop_gradient of its arguments where it is to count as a constant"


def without_derivative(name, solver, reason):
    """`solver(*arrays)`, for which a derivative is refused.

    Raises:
      TypeError: of the result, where an argument is differentiated.
    """

    def refuse(primals, tangents):
        raise TypeError(f"{name} has no derivative: {reason}; {CONSTANT}")

    return _with_rule(solver, refuse)


def ruled(solver, rule):
    """`solver(*arrays)` with the derivative that `rule` knows.

    Args:
      solver: returns a pytree.
      rule: `(primals, tangents, found) -> tangents` of what the solver found; a mean to make
        these is `tangents_like`.
    """

    def differentiate(primals, tangents):
        found = differentiable(*primals)  # by name, so that the rule can be differentiated again
        return found, rule(primals, tangents, found)

    differentiable = _with_rule(solver, differentiate)
    return differentiable


def _with_rule(solver, rule):
    differentiable = jax.custom_jvp(functools.wraps(solver)(partial(_in_one_piece, solver)))
    differentiable.defjvp(rule)
    return lambda *args: differentiable(*args) if is_traced(args) else solver(*args)


def tangents_like(found, known, tangents, sentence):
    """Tangents of a named tuple: those `known` by name, the others refused.

    Whole numbers and truth values have none.
    """

    def tangent(name, leaf):
        if not jnp.issubdtype(leaf.dtype, jnp.inexact):
            return np.zeros(leaf.shape, jax.dtypes.float0)
        if name in known:
            return jnp.asarray(known[name], leaf.dtype)
        return refused_tangent(leaf, tangents, sentence)

    return type(found)(*map(tangent, found._fields, found))


def refused_tangent(leaf, tangents, sentence):
    """A tangent that is an error as soon as somebody asks for it, and none where nobody does."""
    floats = [one for one in jax.tree.leaves(tangents) if one.dtype != jax.dtypes.float0]
    mark = jnp.asarray(sum(one.sum() for one in floats), leaf.dtype)
    return _refused.bind(jnp.broadcast_to(mark, leaf.shape), sentence=f"{sentence}; {CONSTANT}")


# A linear function that nobody may evaluate or transpose: the derivative of what has none.
_refused = Primitive("no_derivative")


def _refuse(*_, sentence, **__):
    raise TypeError(sentence)


_refused.def_impl(_refuse)
_refused.def_abstract_eval(lambda aval, **_: aval)
ad.deflinear2(_refused, _refuse)  # not called for a cotangent that is known to be 0
batching.defvectorized(_refused)
mlir.register_lowering(_refused, _refuse)


# The body of a `shard_map` knows which values differ between devices, and refuses loops that begin
# with a constant and end with such a value. In one piece, a solver's loops are not looked into.
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
    """`solver(*args)`, in one piece in the body of a `shard_map`."""
    axes = jax.sharding.get_abstract_mesh().axis_types
    if jax.sharding.AxisType.Manual not in (axes or ()):
        return solver(*args)
    leaves, tree = jax.tree.flatten(args)
    program, shapes = jax.make_jaxpr(
        lambda *leaves: solver(*jax.tree.unflatten(tree, leaves)), return_shape=True
    )(*map(_shaped, leaves))
    found = _piece.bind(*map(jnp.asarray, leaves), program=program)
    # Always true, and differs between devices where an argument does: so will the results.
    mark = sum(jnp.size(leaf) and (jnp.ravel(leaf)[0] == 0).astype(int) for leaf in leaves) >= 0
    return jax.tree.unflatten(jax.tree.structure(shapes), [jnp.where(mark, x, x) for x in found])
