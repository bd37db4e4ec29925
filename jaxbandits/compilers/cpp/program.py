"""Whole programs: their arguments, their results, and how JAX calls them."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr
from jax.interpreters.partial_eval import dce_jaxpr

from .. import keys
from ..jaxprs import jaxprs_in, shape_of, shapes_of_one_lane
from .build import register
from .control import repeat
from .values import flat, in_lanes, spec_of
from .writer import GROUPS, LANES, Writer


def natively(function: Callable, number: int, unit: Any = None) -> Callable:
    """`function` of one lane's arrays, for arrays with `number` lanes in an extra last axis.

    It gives what `lanewise` gives, but is compiled by the machine's C++ compiler, for a CPU. What
    the function closes over is shared by all lanes.

    Args:
      function: of pytrees of arrays; each of its operations must have a rule here.
      number: of lanes, a multiple of `SIDE_BY_SIDE`, 16.
      unit: not used; `lanewise` needs it.
    Raises:
      ValueError: the number of lanes is not a multiple of `SIDE_BY_SIDE`.
      Unsupported: names an operation or a type for which no C++ can be written.
    """
    return _mapped(function, number, None)


def repeated(function: Callable, number: int, goes_on: Callable[[Any], Any], most: int) -> Callable:
    """`function: carry -> (carry, tallies)`, repeated on its own carry; tallies are summed.

    The lanes of a register call it up to `most` times, or until one of them ends: a lane for which
    `goes_on(carry)` was true and no longer is. Registers may therefore make different numbers of
    calls, and a lane that has ended waits only for the lanes of its own register.
    """
    return _mapped(function, number, (goes_on, most))


def _mapped(function, number, repetition):
    """`function` for many lanes; `repetition` is None or the last arguments of `repeated`."""
    if number % SIDE_BY_SIDE:
        raise ValueError(f"number must be a multiple of {SIDE_BY_SIDE}, got {number}")

    def mapped(*args):
        shapes = shapes_of_one_lane(args)
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*shapes)
        if repetition is None:
            source, shared = write(closed)
        else:
            goes_on, most = repetition
            source, shared = write(closed, jax.make_jaxpr(goes_on)(*shapes), most)
        wanted = jax.tree.leaves(shape)
        # The first operand tells how many lanes there are.
        results = jax.ffi.ffi_call(register(source), [_result(x, number) for x in wanted])(
            jnp.zeros(number, jnp.int32), *map(_as_words, jax.tree.leaves(args)), *shared
        )
        pairs = zip(results, wanted, strict=True)
        return jax.tree.unflatten(jax.tree.structure(shape), [_as_key(x, y) for x, y in pairs])

    return mapped


SIDE_BY_SIDE: int = GROUPS * LANES  # most lanes that go through a program at a time
SMALL: int = 128  # entries; two groups of lanes of a larger array do not fit into the nearest cache


def largest(jaxpr: Jaxpr) -> int:
    """The number of entries of the largest array that a jaxpr computes."""
    own = [math.prod(shape_of(x)) for eqn in jaxpr.eqns for x in eqn.outvars]
    inner = [largest(x) for eqn in jaxpr.eqns for x in jaxprs_in(eqn)]
    return max([1, *own, *inner])


def write(
    closed: ClosedJaxpr, goes_on: ClosedJaxpr | None = None, most: int = 1
) -> tuple[str, list[Any]]:
    """The C++ source, and the values of the surrounding JAX program that it gets as arguments.

    With `goes_on` and `most`, the step `closed` is repeated, see `repeated`.
    """
    everything = [True] * len(closed.jaxpr.outvars)
    jaxpr, _ = dce_jaxpr(closed.jaxpr, everything, instantiate=True)
    closed = closed.replace(jaxpr=jaxpr)
    writer = Writer(groups=GROUPS if largest(jaxpr) <= SMALL else 1)
    arguments = [writer.new(spec_of(var.aval), True) for var in jaxpr.invars]
    for position, array in enumerate(arguments, 1):

        def load(index, array=array, position=position):
            type, at = array.spec.type, flat(index, array.shape)
            writer.store(array, index, f"load_{type}(in[{position}], {at} * lanes + at@)")

        writer.loops(array.shape, load)
    if goes_on is None:
        results = writer.call(closed, arguments)
    else:
        results = repeat(writer, closed, arguments, goes_on, most)
    for position, value in enumerate(results):

        def store(index, position=position, value=value):
            at, text = flat(index, value.shape), in_lanes(value.read(index), value, True)
            writer.line(f"store_{value.spec.type}(out[{position}], {at} * lanes + at@, {text});")

        writer.loops(value.shape, store)
    return _text(writer, 1 + len(jaxpr.invars)), [_shared(x) for x in writer.shared]


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
        f"return handle_call(frame, run_block, {writer.groups});",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _shared(x):
    """A value that all lanes share as the program reads it: keys as their words."""
    is_key = hasattr(x, "dtype") and keys.is_key(x.dtype)
    return jax.random.key_data(x) if is_key else jnp.asarray(x)


def _as_words(x):
    """An argument as the program reads it: keys as their words, in the axis before the lanes."""
    return jnp.swapaxes(jax.random.key_data(x), -1, -2) if keys.is_key(x.dtype) else x


def _result(x, number):
    """Shape and dtype of a result as the program writes it."""
    if keys.is_key(x.dtype):
        return jax.ShapeDtypeStruct((*x.shape, 2, number), jnp.uint32)
    return jax.ShapeDtypeStruct((*x.shape, number), x.dtype)


def _as_key(x, like):
    """A result of the program as one of the function: words as keys where `like` is a key."""
    return keys.from_words(jnp.swapaxes(x, -1, -2)) if keys.is_key(like.dtype) else x
