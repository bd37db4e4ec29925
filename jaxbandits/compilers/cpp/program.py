"""A whole program: its arguments, its results, and its call."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr
from jax.interpreters.partial_eval import dce_jaxpr

from ..jaxprs import jaxprs_in, shape_of
from .build import register
from .control import again
from .values import flat, in_lanes, kind_of
from .writer import GROUPS, LANES, Writer


def natively(function: Callable, number: int, unit: Any = None) -> Callable:
    """`function` of one lane's arrays, for arrays with `number` lanes in an extra last axis.

    As `lanewise` is, but compiled by the machine's C++ compiler, for a CPU. What the function
    closes over is shared by all lanes.

    Args:
      function: of arrays; made of operations that have a rule here.
      number: of lanes, a multiple of `SIDE_BY_SIDE`, 16.
      unit: not used; `lanewise` needs it.
    Raises:
      ValueError: a number of lanes that does not fit.
      Unsupported: names an operation or a type for which no C++ can be written.
    """
    return _mapped(function, number, None)


def repeated(function: Callable, number: int, goes_on: Callable[[Any], Any], most: int) -> Callable:
    """`function: carry -> (carry, tallies)`, again and again on its own carry; tallies are summed.

    The lanes of a register stay at it `most` times, or until one of them that was to go on, as
    `goes_on(carry)` says, is not any more. So registers may part ways, and a lane that has ended
    waits for no others than those.
    """
    return _mapped(function, number, (goes_on, most))


def _mapped(function, number, again):
    if number % SIDE_BY_SIDE:
        raise ValueError(f"number must be a multiple of {SIDE_BY_SIDE}, got {number}")

    def mapped(*args):
        leaves, tree = jax.tree.flatten(args)
        one = [jax.ShapeDtypeStruct(x.shape[:-1], x.dtype) for x in leaves]
        given = jax.tree.unflatten(tree, one)
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*given)
        if again is None:
            source, shared = write(closed)
        else:
            goes_on, most = again
            source, shared = write(closed, jax.make_jaxpr(goes_on)(*given), most)
        wanted = jax.tree.leaves(shape)
        # The first operand tells how many lanes there are.
        results = jax.ffi.ffi_call(register(source), [_result(x, number) for x in wanted])(
            jnp.zeros(number, jnp.int32), *map(_plain, leaves), *shared
        )
        pairs = zip(results, wanted, strict=True)
        return jax.tree.unflatten(jax.tree.structure(shape), [_dressed(x, y) for x, y in pairs])

    return mapped


SIDE_BY_SIDE: int = GROUPS * LANES  # lanes of one pass of a program
SMALL: int = 128  # entries; larger arrays of two groups of lanes do not fit the nearest cache


def largest(jaxpr: Jaxpr) -> int:
    """Number of entries of the largest array that a jaxpr computes."""
    own = [math.prod(shape_of(x)) for eqn in jaxpr.eqns for x in eqn.outvars]
    inner = [largest(x) for eqn in jaxpr.eqns for x in jaxprs_in(eqn)]
    return max([1, *own, *inner])


def write(
    closed: ClosedJaxpr, goes_on: ClosedJaxpr | None = None, most: int = 1
) -> tuple[str, list[Any]]:
    """`(C++ source, values it shares with the program around)`; see `repeated`."""
    everything = [True] * len(closed.jaxpr.outvars)
    jaxpr, _ = dce_jaxpr(closed.jaxpr, everything, instantiate=True)
    closed = closed.replace(jaxpr=jaxpr)
    writer = Writer(groups=GROUPS if largest(jaxpr) <= SMALL else 1)
    arguments = [writer.new(kind_of(var.aval), True) for var in jaxpr.invars]
    for position, array in enumerate(arguments, 1):

        def load(index, array=array, position=position):
            type, at = array.kind.type, flat(index, array.shape)
            writer.store(array, index, f"load_{type}(in[{position}], {at} * lanes + at@)")

        writer.loops(array.shape, load)
    if goes_on is None:
        results = writer.call(closed, arguments)
    else:
        results = again(writer, closed, arguments, goes_on, most)
    for position, value in enumerate(results):

        def store(index, position=position, value=value):
            at, text = flat(index, value.shape), in_lanes(value.read(index), value, True)
            writer.line(f"store_{value.kind.type}(out[{position}], {at} * lanes + at@, {text});")

        writer.loops(value.shape, store)
    return _text(writer, 1 + len(jaxpr.invars)), [_words(x) for x in writer.shared]


def _text(writer, inputs):
    lines = [
        '#include "lanes.h"',
        *writer.functions.values(),
        "static void run_block(void **in, void **out, i64 lanes, i64 at) {",
        f"const int inputs = {inputs};",
        *(f"const i64 at_{k} = at + {k} * LANES;" for k in range(writer.groups)),
        *writer.head,
        *writer.lines,
        "}",
        'extern "C" XLA_FFI_Error *run(XLA_FFI_CallFrame *frame) {',
        f"return answer(frame, run_block, {writer.groups});",
        "}",
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
