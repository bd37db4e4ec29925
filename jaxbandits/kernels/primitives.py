"""Functions that are primitives of JAX, and a way to tell JAX's own primitives.

The compilers of lanes (`lanewise`, `cpp`) write some functions in a way of their own. They find
them in a jaxpr by their primitive, an object that nobody else can make, and not by a name, which
any function of a user may have.
"""

import functools
import sys
from functools import partial

import jax
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Jaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir
from jax.interpreters import partial_eval as pe

_seen = set()  # primitives of JAX


def primitive(name):
    """A primitive whose parameter `jaxpr` is what it computes: traced once, where it is called.

    It goes through `jit`, `vmap`, `jvp` and `grad` as the function does. Mapped over, it is the
    same primitive on arrays with an axis more; under derivatives it is the function's operations.
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


def called_as(made):
    """Decorate a function of arrays that closes over none: its calls are those of a primitive.

    Where nothing is traced it is compiled and computed as by `jax.jit`.
    """

    def decorate(function):
        whole = jax.jit(function)

        @functools.wraps(function)
        def call(*args):
            if not _is_traced(args):
                return whole(*args)
            traced = whole.trace(*args)
            results = made.bind(*jax.tree.leaves(args), jaxpr=traced.jaxpr)
            return jax.tree.unflatten(jax.tree.structure(traced.out_info), results)

        return call

    return decorate


def calling(made, function):
    """The same for a function that may close over arrays that are traced."""
    whole, traced = jax.jit(function), jax.make_jaxpr(function, return_shape=True)

    @functools.wraps(function)
    def call(*args):
        closed, shapes = traced(*args)
        operands = [*closed.consts, *jax.tree.leaves(args)]
        if not _is_traced(operands):
            return whole(*args)
        results = made.bind(*operands, jaxpr=_without_constants(closed))
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return call


def _is_traced(tree):
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))


@functools.lru_cache(maxsize=1024)
def _compiled(jaxpr):
    """Cached, so that all calls of a function share what is compiled of it."""
    return jax.jit(jaxpr_as_fun(jaxpr))


def _compute(*args, jaxpr):
    return _compiled(jaxpr)(*args)


def _without_constants(closed):
    """What a function closes over as its first arguments."""
    if not closed.consts:
        return closed
    jaxpr = closed.jaxpr
    invars = [*jaxpr.constvars, *jaxpr.invars]
    debug_info = jaxpr.debug_info.with_unknown_names()
    return ClosedJaxpr(jaxpr.replace(constvars=[], invars=invars, debug_info=debug_info), [])


def _mapped(made, args, axes, *, jaxpr):
    """All results have the axis first."""
    results = called_as(made)(_over(jaxpr, tuple(axes)))(*args)
    return results, [0] * len(results)


@functools.lru_cache(maxsize=1024)
def _over(jaxpr, axes):
    return jax.vmap(_compiled(jaxpr), axes)


def _derivative(primals, tangents, *, jaxpr):
    tangents = [ad.instantiate_zeros(x) for x in tangents]
    return jax.jvp(_compiled(jaxpr), tuple(primals), tuple(tangents))


def _pruned(used, eqn):
    """The equation with the results that are used alone."""
    if not any(used):
        return [False] * len(eqn.invars), None
    jaxpr, needed = pe.dce_jaxpr(eqn.params["jaxpr"].jaxpr, list(used))
    invars = [x for x, needs in zip(eqn.invars, needed, strict=True) if needs]
    outvars = [x for x, uses in zip(eqn.outvars, used, strict=True) if uses]
    params = {"jaxpr": ClosedJaxpr(jaxpr, eqn.params["jaxpr"].consts)}
    return needed, eqn.replace(invars=invars, outvars=outvars, params=params)


def jaxs_own():
    """The primitives of JAX, which its modules hold; some are in no public one."""
    modules = [m for name, m in list(sys.modules.items()) if name.split(".")[0] == "jax"]
    found = {x for m in modules for x in list(vars(m).values()) if isinstance(x, Primitive)}
    return frozenset(found)


@functools.cache
def _name(made):
    if made not in _seen:
        _seen.update(jaxs_own())  # modules may have come since
    return made.name if made in _seen else None


def name_of(eqn):
    """The name of the operation of an equation if it is one of JAX's, else None."""
    return _name(eqn.primitive)


def rule_for(eqn, rules):
    """The rule of an equation: `rules` are by primitive, those of JAX by their names."""
    return rules.get(eqn.primitive) or rules.get(name_of(eqn))


def jaxprs_in(eqn):
    """The jaxprs among the parameters of an equation."""
    for value in eqn.params.values():
        for x in value if isinstance(value, list | tuple) else [value]:
            if isinstance(x, ClosedJaxpr | Jaxpr):
                yield x.jaxpr if isinstance(x, ClosedJaxpr) else x
