"""Functions that are primitives of JAX.

The lane compilers (`lanewise`, `cpp`) implement some functions in a way of their own. They
recognise these in a jaxpr by their primitive, an object that nobody else can make, and not by a
name, which a function of a user may have as well.
"""

import functools
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

import jax
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir
from jax.interpreters import partial_eval as pe

from ..retracing import shared

P = ParamSpec("P")
R = TypeVar("R")


def primitive(name: str) -> Primitive:
    """A primitive whose parameter `jaxpr` is what it computes: traced once, where it is called.

    It behaves under `jit`, `vmap`, `jvp` and `grad` as the function does. Under `vmap` it is the
    same primitive on arrays with one more axis; under derivatives it is the function's operations.
    """
    made = Primitive(name)
    made.multiple_results = True
    made.def_impl(_compute)
    made.def_abstract_eval(lambda *avals, jaxpr: jaxpr.out_avals)
    mlir.register_lowering(made, mlir.lower_fun(_compute, multiple_results=True))
    batching.primitive_batchers[made] = partial(_mapped, made)
    ad.primitive_jvps[made] = _derivative
    pe.dce_rules[made] = _pruned
    return made


def called_as(made: Primitive) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function of arrays that closes over none: its calls are those of a primitive.

    Where no argument is traced, the function is called as by `jax.jit`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        whole = jax.jit(function)

        @functools.wraps(function)
        def call(*args):
            if not is_traced(args):
                return whole(*args)
            with shared():
                traced = whole.trace(*args)
            results = made.bind(*jax.tree.leaves(args), jaxpr=traced.jaxpr)
            return jax.tree.unflatten(jax.tree.structure(traced.out_info), results)

        return call  # ty: ignore[invalid-explicit-return]  arguments are positional

    return decorate


def calling(made: Primitive, function: Callable[P, R]) -> Callable[P, R]:
    """The same for a function that may close over arrays that are traced."""
    whole, traced = jax.jit(function), jax.make_jaxpr(function, return_shape=True)

    @functools.wraps(function)
    def call(*args):
        closed, shapes = traced(*args)
        operands = [*closed.consts, *jax.tree.leaves(args)]
        if not is_traced(operands):
            return whole(*args)
        results = made.bind(*operands, jaxpr=_without_constants(closed))
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return call  # ty: ignore[invalid-explicit-return]  arguments are positional


def is_traced(tree: Any) -> bool:
    """Whether an array anywhere in it is traced."""
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))


@functools.lru_cache(maxsize=1024)
def _compiled(jaxpr):
    """Cached, so that all calls of a function share its compiled program."""
    return jax.jit(jaxpr_as_fun(jaxpr))


def _compute(*args, jaxpr):
    return _compiled(jaxpr)(*args)


def _without_constants(closed):
    """The jaxpr with its constants as first arguments."""
    if not closed.consts:
        return closed
    jaxpr = closed.jaxpr
    invars = [*jaxpr.constvars, *jaxpr.invars]
    debug_info = jaxpr.debug_info.with_unknown_names()
    return ClosedJaxpr(jaxpr.replace(constvars=[], invars=invars, debug_info=debug_info), [])


def _mapped(made, args, axes, *, jaxpr):
    """The batching rule: all results have the new axis first."""
    results = _over(made, jaxpr, tuple(axes))(*args)
    return results, [0] * len(results)


@functools.lru_cache(maxsize=1024)
def _over(made, jaxpr, axes):
    """Cached, so that it is traced once for all calls of the same function."""
    return called_as(made)(jax.vmap(_compiled(jaxpr), axes))


def _derivative(primals, tangents, *, jaxpr):
    tangents = [ad.instantiate_zeros(x) for x in tangents]
    return jax.jvp(_compiled(jaxpr), tuple(primals), tuple(tangents))


def _pruned(used, *rest):
    """The rule of dead code: the equation with only those results that are used."""
    eqn = rest[-1]  # jax 0.12 gives what inputs are live before it
    if not any(used):
        return [False] * len(eqn.invars), None
    jaxpr, needed = pe.dce_jaxpr(eqn.params["jaxpr"].jaxpr, list(used))
    invars = [x for x, needs in zip(eqn.invars, needed, strict=True) if needs]
    outvars = [x for x, uses in zip(eqn.outvars, used, strict=True) if uses]
    params = {"jaxpr": ClosedJaxpr(jaxpr, eqn.params["jaxpr"].consts)}
    return needed, eqn.replace(invars=invars, outvars=outvars, params=params)
