"""Whole programs: their arguments, their results, and how JAX calls them."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr
from jax.interpreters.partial_eval import dce_jaxpr

from .. import keys
from ..jaxprs import jaxprs_in, operations, shape_of, shapes_of_one_lane, shares
from .build import register
from .control import repeat
from .values import SharedByLanes, flat, in_lanes, spec_of
from .writer import CPU, GROUPS, LANES, WORD, Machine, Writer


class Source(NamedTuple):
    """A program as text, and what it is called with besides its arguments."""

    inputs: int  # how many arguments come before `shared`
    outputs: int
    functions: list[str]  # definitions outside `run_block`
    block: list[str]  # lines of `run_block`
    groups: int  # of lanes that go through it at a time
    shared: list[Any]  # values of the surrounding JAX program
    scratch: int  # bytes of each lane, see `Machine`
    often: bool  # whether it is called so often that its speed matters

    @property
    def text(self) -> str:
        """The part that is the same on all machines: `run_block(in, out, lanes, at)`."""
        lines = [
            '#include "lanes.h"',
            *self.functions,
            "BLOCK void run_block(void **in, void **out, i64 lanes, i64 at) {",
            *self.block,
            "}",
        ]
        return "\n".join(lines) + "\n"


class Target(NamedTuple):
    """A kind of machine, and how JAX calls a program there."""

    machine: Machine
    # (source, shapes of the results, arguments, pairs of an argument and the result that may
    # replace it in memory) -> results
    call: Callable[[Source, list[Any], list[Any], dict[int, int]], Sequence[Any]]
    side_by_side: int  # a multiple of this many lanes is needed
    # Whether a lane may compute anew what others have in common, see `kernels.shared_call`. That is
    # quick where few lanes go through a program at a time.
    alone: bool = True


def _call_library(source, results, arguments, replaced, lanes=None):
    """Call the program as a library of this machine; `lanes` is None for as many as fit."""
    text = "" if lanes is None else f"#define LANES {lanes}\n"
    text += source.text + _ENTRY.format(groups=source.groups)
    return jax.ffi.ffi_call(register(text, source.often), results)(*arguments)


_ENTRY = """\
extern "C" XLA_FFI_Error *run(XLA_FFI_CallFrame *frame) {{
return handle_call(frame, run_block, {groups});
}}
"""
VECTORS: Target = Target(CPU, _call_library, GROUPS * LANES)
# What a thread of a GPU has: one lane, and a stack that all threads together pay for.
THREAD: Machine = Machine(
    lanes=1, groups=1, largest_on_stack=2**12, stack=2**14, off_stack=2**24, scratch=True
)
# The programs of GPUs on a CPU, for tests.
ONE_LANE: Target = Target(THREAD, partial(_call_library, lanes=1), 1)


def natively(
    function: Callable,
    number: int,
    unit: Any = None,
    target: Target = VECTORS,
    *,
    often: bool = True,
) -> Callable:
    """`function` of one lane's arrays, for arrays with `number` lanes in an extra last axis.

    It gives what `lanewise` gives, but is compiled by the machine's C++ compiler. What the
    function closes over is shared by all lanes.

    Args:
      function: of pytrees of arrays; each of its operations must have a rule here.
      number: of lanes, a multiple of `target.side_by_side`: 16 on a CPU.
      unit: not used; `lanewise` needs it.
      target: for which machine.
      often: whether it is called so often that its speed matters more than the time to compile it.
    Raises:
      ValueError: the number of lanes is not such a multiple.
      Unsupported: names an operation or a type for which no C++ can be written.
    """
    return _mapped(function, number, None, target, often)


def repeated(
    function: Callable,
    number: int,
    goes_on: Callable[[Any], Any],
    most: int,
    target: Target = VECTORS,
) -> Callable:
    """`function: carry -> (carry, tallies)`, repeated on its own carry; tallies are summed.

    The lanes of a register call it up to `most` times, or until one of them ends: a lane for which
    `goes_on(carry)` was true and no longer is. Registers may therefore make different numbers of
    calls, and a lane that has ended waits only for the lanes of its own register.
    """
    return _mapped(function, number, (goes_on, most), target, True)


def _mapped(function, number, repetition, target, often):
    """`function` for many lanes; `repetition` is None or two arguments of `repeated`."""
    if number % target.side_by_side:
        raise ValueError(f"number must be a multiple of {target.side_by_side}, got {number}")

    def mapped(*args):
        shapes = shapes_of_one_lane(args)
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*shapes)
        if not target.alone and shares(closed.jaxpr):
            raise SharedByLanes
        arguments, wanted = jax.tree.leaves(args), jax.tree.leaves(shape)
        if repetition is None:
            source, replaced = write(closed, target.machine, often=often), {}
        else:
            goes_on, most = repetition
            source = write(closed, target.machine, jax.make_jaxpr(goes_on)(*shapes), most)
            replaced = {1 + k: k for k in range(len(arguments))}  # the carry
        results = [_result(x, number) for x in wanted]
        if source.scratch:
            words = -(-source.scratch // WORD)
            results.append(jax.ShapeDtypeStruct((words, number), jnp.uint64))
        # The first argument tells how many lanes there are.
        arguments = [jnp.zeros(number, jnp.int32), *map(_as_words, arguments), *source.shared]
        found = target.call(source, results, arguments, replaced)[: len(wanted)]
        pairs = zip(found, wanted, strict=True)
        return jax.tree.unflatten(jax.tree.structure(shape), [_as_key(x, y) for x, y in pairs])

    return mapped


SMALL: int = 128  # entries; two groups of lanes of a larger array do not fit into the nearest cache
# Operations; with more, two groups of lanes make a program no faster (LinGame of 540 becomes 15%
# slower without the second, lazy track-and-stop of 2,250 as much faster), and compiling it takes
# 1.3 to 2 times as long.
FEW: int = 600


def largest(jaxpr: Jaxpr) -> int:
    """The number of entries of the largest array that a jaxpr computes."""
    own = [math.prod(shape_of(x)) for eqn in jaxpr.eqns for x in eqn.outvars]
    inner = [largest(x) for eqn in jaxpr.eqns for x in jaxprs_in(eqn)]
    return max([1, *own, *inner])


def write(
    closed: ClosedJaxpr,
    machine: Machine = CPU,
    goes_on: ClosedJaxpr | None = None,
    most: int = 1,
    *,
    often: bool = True,
) -> Source:
    """The program that computes a jaxpr for some lanes.

    With `goes_on` and `most`, the step `closed` is repeated, see `repeated`.
    """
    everything = [True] * len(closed.jaxpr.outvars)
    jaxpr, _ = dce_jaxpr(closed.jaxpr, everything, instantiate=True)
    closed = closed.replace(jaxpr=jaxpr)
    in_groups = often and largest(jaxpr) <= SMALL and operations(jaxpr) <= FEW
    writer = Writer(machine.groups if in_groups else 1, machine)
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
    inputs, outputs = 1 + len(jaxpr.invars), len(results)
    head = [
        f"const int inputs = {inputs};",
        *(f"const i64 at_{k} = at + {k} * LANES;" for k in range(writer.groups)),
    ]
    if writer.scratch:
        head.append(f"char *const scratch = (char *)out[{outputs}];")
    block = [*head, *writer.head, *writer.lines]
    shared = [_shared(x) for x in writer.shared]
    functions = list(writer.functions.values())
    return Source(inputs, outputs, functions, block, writer.groups, shared, writer.scratch, often)


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
