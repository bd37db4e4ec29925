"""A whole program: its arguments, its results, and its call."""

import math

import jax
import jax.numpy as jnp
from jax.extend.core import jaxprs_in_params
from jax.interpreters.partial_eval import dce_jaxpr

from .build import register
from .values import Value, kind_of, spread
from .writer import Writer


def natively(function, number, unit=None):
    """`function` of one lane's arrays, for arrays with `number` lanes in an extra last axis.

    As `lanewise` is, but compiled by the machine's C compiler, for a CPU. What the function
    closes over is shared by all lanes.

    Args:
      function: of arrays; made of operations that have a rule here.
      number: of lanes, a multiple of 8.
      unit: not used; `lanewise` needs it.
    Raises:
      Unsupported: names an operation or a type for which no C can be written.
    """

    def mapped(*args):
        leaves, tree = jax.tree.flatten(args)
        one = [jax.ShapeDtypeStruct(x.shape[:-1], x.dtype) for x in leaves]
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*jax.tree.unflatten(tree, one))
        wanted = jax.tree.leaves(shape)
        source, shared, used = write(closed)
        given = [_plain(x) for x, use in zip(leaves, used, strict=True) if use]
        # The first operand tells how many lanes there are.
        given.insert(0, jnp.zeros(number, jnp.int32))
        results = jax.ffi.ffi_call(
            register(source),
            [_result(x, number) for x in wanted],
            vmap_method=None,
        )(*given, *shared)
        pairs = zip(results, wanted, strict=True)
        return jax.tree.unflatten(jax.tree.structure(shape), [_dressed(x, y) for x, y in pairs])

    return mapped


SMALL = 128  # entries; larger arrays of two groups of lanes do not fit the nearest cache


def largest(jaxpr):
    """Number of entries of the largest array that a jaxpr computes."""
    own = [math.prod(x.aval.shape) for eqn in jaxpr.eqns for x in eqn.outvars]
    inner = [largest(x) for eqn in jaxpr.eqns for x in jaxprs_in_params(eqn.params)]
    return max([1, *own, *inner])


def write(closed):
    """`(C source, values it shares with the program around, which arguments it reads)`."""
    jaxpr, used = dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
    consts = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    writer = Writer(groups=2 if largest(jaxpr) <= SMALL else 1)
    arguments = []
    for place, var in enumerate(jaxpr.invars, 1):
        kind = kind_of(var.aval)
        array = writer.new(kind, True)

        def load(index, array=array, place=place, kind=kind):
            at = f"{array.read(index)[len(array.array) + 1 : -1]} * lanes + at@"
            writer.store(array, index, f"load_{kind.type}(in[{place}], {at})")

        writer.loops(kind.shape, load)
        arguments.append(array)
    results = writer.evaluate(jaxpr, [consts[v] for v in jaxpr.constvars], arguments)
    for place, value in enumerate(results):

        def store(index, place=place, value=value):
            at = f"{_place(index, value.shape)} * lanes + at@"
            text = spread(value.read(index), value, True)
            writer.line(f"store_{value.kind.type}(out[{place}], {at}, {text});")

        writer.loops(value.shape, store)
    shared = [_words(x) for x in writer.shared]
    return _text(writer, 1 + len(jaxpr.invars)), shared, used


def _place(index, shape):
    from .values import flat

    return flat(index, shape)


def _text(writer, inputs):
    lines = [
        '#include "lanes.h"',
        *writer.functions.values(),
        "static void play(void **in, void **out, i64 lanes, i64 at) {",
        f"const int inputs = {inputs};",
        *(f"const i64 at_{k} = at + {k} * LANES;" for k in range(writer.groups)),
        *writer.head,
        *writer.lines,
        "}",
        f'extern "C" XLA_FFI_Error *run(XLA_FFI_CallFrame *frame) {{ return answer(frame, play, {writer.groups}); }}',
    ]
    return "\n".join(lines) + "\n"


def _is_key(x):
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _words(x):
    return jax.random.key_data(x) if hasattr(x, "dtype") and _is_key(x) else jnp.asarray(x)


def _plain(x):
    """An argument as the program reads it: the words of a key before the lanes."""
    return jnp.swapaxes(jax.random.key_data(x), -1, -2) if _is_key(x) else x


def _result(x, number):
    if _is_key(x):
        return jax.ShapeDtypeStruct((*x.shape, 2, number), jnp.uint32)
    return jax.ShapeDtypeStruct((*x.shape, number), x.dtype)


def _dressed(x, like):
    """A result as the function gives it."""
    if not _is_key(like):
        return x
    return jax.random.wrap_key_data(jnp.swapaxes(x, -1, -2), impl="threefry2x32")


__all__ = ["Value", "natively", "write"]
