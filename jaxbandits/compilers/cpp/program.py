"""Whole programs: their arguments, their results, and how JAX calls them."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr

from .. import keys
from ..jaxprs import jaxprs_in, operations, shape_of, shapes_of_one_lane, shares
from .build import register
from .control import repeat
from .unused import without_unused
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
    on_chip: int  # the same
    often: bool  # whether it is called so often that its speed matters

    @property
    def text(self) -> str:
        """The part that is the same on all machines: `run_block(in, out, lanes, at)`."""
        lines = [
            '#include "lanes.h"',
            *self.functions,
            "BLOCK void run_block(void **in, void **out, i64 lanes, i64 at) {",
            *([f"ON_CHIP({self.on_chip})"] if self.on_chip else []),
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


def call_library(
    source: Source,
    results: list[Any],
    arguments: list[Any],
    replaced: dict[int, int],
    lanes: int | None = None,
) -> Sequence[Any]:
    """Call the program as a library of this machine; `lanes` is None for as many as fit."""
    text = "" if lanes is None else f"#define LANES {lanes}\n"
    text += source.text + _ENTRY.format(groups=source.groups)
    name = register(text, source.often)
    return jax.ffi.ffi_call(name, results, input_output_aliases=replaced)(*arguments)


_ENTRY = """\
extern "C" XLA_FFI_Error *run(XLA_FFI_CallFrame *frame) {{
return handle_call(frame, run_block, {groups});
}}
"""
VECTORS: Target = Target(CPU, call_library, GROUPS * LANES)
# What a thread of a GPU has: one lane, and a stack that all threads together pay for.
# An H100 has 227 KiB for a block of threads: enough for two warps with 3.5 KB each.
THREAD: Machine = Machine(
    lanes=1,
    groups=1,
    largest_on_stack=2**12,
    stack=2**14,
    off_stack=2**24,
    scratch=True,
    on_chip=3500,
)
# The programs of GPUs on a CPU, for tests.
ONE_LANE: Target = Target(THREAD, partial(call_library, lanes=1), 1)


def natively(
    function: Callable, number: int, unit: Any = None, target: Target = VECTORS
) -> Callable:
    """`function` of one lane's arrays, for arrays with `number` lanes in an extra last axis.

    It gives what `lanewise` gives, but is compiled by the machine's C++ compiler. What the
    function closes over is shared by all lanes.

    Args:
      function: of pytrees of arrays; each of its operations must have a rule here.
      number: of lanes, a multiple of `target.side_by_side`: 16 on a CPU.
      unit: not used; `lanewise` needs it.
      target: for which machine.
    Raises:
      ValueError: the number of lanes is not such a multiple.
      Unsupported: names an operation or a type for which no C++ can be written.
    """
    _check(number, target)

    def mapped(*args):
        closed, shape = _traced(function, args, target)
        return _computed(write(closed, target.machine), shape, args, number, target)

    return mapped


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
    calls, and a lane that has ended waits only for the lanes of its own register; one in which no
    lane goes on makes none. On a CPU a call that has taken long leaves the rest to the next one; it
    makes one call of `function` at least.
    """
    _check(number, target)

    def mapped(carry):
        closed, shape = _traced(function, (carry,), target)
        test = jax.make_jaxpr(goes_on)(shapes_of_one_lane(carry))
        source = write(closed, target.machine, test, most)
        replaced = {1 + k: k for k in range(len(jax.tree.leaves(carry)))}
        return _computed(source, shape, carry, number, target, replaced)

    return mapped


def renewed(function: Callable, number: int, target: Target = VECTORS) -> Callable:
    """`(flags, old, *args) -> function(*args)` in lanes whose flag is on, and `old` in the others.

    Registers without such a lane are left as they are. The program is meant for what happens
    rarely, so it is compiled in less time than others.
    """
    _check(number, target)

    def mapped(flags, old, *args):
        closed, shape = _traced(function, args, target)
        source = write(closed, target.machine, renews=True)
        replaced = {2 + k: k for k in range(len(jax.tree.leaves(old)))}
        return _computed(source, shape, (flags, old, args), number, target, replaced)

    return mapped


def _check(number, target):
    if number % target.side_by_side:
        raise ValueError(f"number must be a multiple of {target.side_by_side}, got {number}")


def _traced(function, args, target):
    """The jaxpr of one lane, and the shapes of its results."""
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*shapes_of_one_lane(args))
    if not target.alone and shares(closed.jaxpr):
        raise SharedByLanes
    return closed, shape


def _computed(source, shape, args, number, target, replaced=None):
    """What a program computes from arrays of all lanes; `shape` is that of its results."""
    wanted = jax.tree.leaves(shape)
    results = [_result(x, number) for x in wanted]
    if source.scratch:
        words = -(-source.scratch // WORD)
        results.append(jax.ShapeDtypeStruct((words, number), jnp.uint64))
    arguments = [*map(_as_words, jax.tree.leaves(args)), *source.shared]
    # The first argument tells how many lanes there are.
    first = jnp.zeros(number, jnp.int32)
    found = target.call(source, results, [first, *arguments], replaced or {})[: len(wanted)]
    pairs = zip(found, wanted, strict=True)
    return jax.tree.unflatten(jax.tree.structure(shape), [_as_key(x, y) for x, y in pairs])


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
    renews: bool = False,
) -> Source:
    """The program that computes a jaxpr for some lanes.

    Args:
      closed: the jaxpr of one lane.
      machine: that runs it.
      goes_on, most: with these the step `closed` is repeated, see `repeated`.
      renews: whether flags and old results come before the arguments, see `renewed`.
    """
    jaxpr = without_unused(closed.jaxpr)
    closed = closed.replace(jaxpr=jaxpr)
    compact, entries = renews or operations(jaxpr) > FEW, largest(jaxpr)
    groups = 1 if compact or entries > SMALL else machine.groups
    writer = Writer(groups, machine, gives_away=renews, compact=compact)
    first, mask = 1, None  # position of the first argument
    if renews:
        first += 1 + len(jaxpr.outvars)
        mask = writer.scalar("vb64", "load_b64(in[1], at@)")
        writer.line(f"if (!{writer.any(mask)}) return;")
    # Next to larger arrays elsewhere it would be in vain, and fewer lanes fit a block with it.
    specs = [spec_of(var.aval) for var in jaxpr.invars]
    on_chip = _on_chip(specs, machine) if entries * WORD <= machine.on_chip else set()
    arguments = [
        _loaded(writer, var, first + k, k in on_chip) for k, var in enumerate(jaxpr.invars)
    ]
    with writer.under(mask):
        if goes_on is None:
            results = writer.call(closed, arguments)
        else:
            results = repeat(writer, closed, arguments, goes_on, most)
    for position, value in enumerate(results):
        _store(writer, value, position, mask)
    inputs, outputs = first + len(jaxpr.invars), len(results)
    head = [
        f"const int inputs = {inputs};",
        *(f"const i64 at_{k} = at + {k} * LANES;" for k in range(writer.groups)),
    ]
    if writer.scratch:
        head.append(f"char *const scratch = (char *)out[{outputs}];")
    block = [*head, *writer.head, *writer.lines]
    shared = [_shared(x) for x in writer.shared]
    functions, often = list(writer.functions.values()), not renews
    memory = writer.scratch, writer.on_chip
    return Source(inputs, outputs, functions, block, writer.groups, shared, *memory, often)


def _on_chip(specs, machine):
    """The positions of the arguments that go into the memory on the chip: large ones first."""
    found, left = set(), machine.on_chip // WORD
    for k in sorted(range(len(specs)), key=lambda k: -specs[k].size):
        if SMALL < specs[k].size <= left:
            found.add(k)
            left -= specs[k].size
    return found


def _loaded(writer, var, position, on_chip):
    """The argument at a position, in an array."""
    array = writer.new(spec_of(var.aval), True, on_chip=on_chip)

    def load(index):
        type, at = array.spec.type, flat(index, array.shape)
        writer.store(array, index, f"load_{type}(in[{position}], {at} * lanes + at@)")

    writer.loops(array.shape, load)
    return array


def _store(writer, value, position, mask):
    """Store a result; with a mask only in its lanes, the others keep what is there."""

    def store(index):
        type, at = value.spec.type, f"{flat(index, value.shape)} * lanes + at@"
        text = in_lanes(value.read(index), value, True)
        if mask is not None:
            text = f"select_{type}({mask}, {text}, load_{type}(out[{position}], {at}))"
        writer.line(f"store_{type}(out[{position}], {at}, {text});")

    writer.loops(value.shape, store)


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
