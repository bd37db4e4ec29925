"""What tracing tells of a cell, before anything compiles: what a lane carries, how moves look."""

import functools
from collections.abc import Hashable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from ..compilers.jaxprs import largest_in_blocks, loops
from ..system import keeping
from ..system.jax_options import pinned
from ..system.traces import traces_of
from ..types import Key
from .device_loop import (
    Factories,
    Lane,
    LoopInputs,
    Numbers,
    Record,
    bytes_of,
    example_lane,
)
from .episode import NO_LIMITS, Limits, Traits, like_root_key
from .protocol import check_structure
from .traced_episodes import TracedEpisodes

# The `(shape, dtype)` of each number: all that a program knows of them.
Shapes: TypeAlias = tuple[tuple[tuple[int, ...], Any], ...]

CHECKED_KEPT: int = 256  # structures of users' functions

_checked: dict[Hashable, TracedEpisodes] = {}  # those that have passed all checks


class Sizes(NamedTuple):
    """What the number of lanes depends on."""

    lane: int  # bytes of all that a lane carries
    record: int  # numbers in a record
    own: bool  # whether a replication has a problem of its own
    traits: Traits
    tables: int = 0  # bytes of what all lanes read: arms, targets, parameters


def traced(
    structure: Factories | TracedEpisodes, shapes: Shapes, num_rounds: int
) -> tuple[Lane, Record, Traits]:
    """Abstract lane and record of a structure whose numbers have these shapes; its `Traits`.

    This package's own functions are traced once for a process at most, those of users in each call
    of `simulate`: they may read something else than before.
    """
    known: Any = structure
    if not isinstance(structure, TracedEpisodes):
        known = as_checked(structure, shapes, num_rounds)
    if isinstance(known, TracedEpisodes):
        return known.lane, known.ended, known.traits
    traces = traces_of(structure)
    if traces is None:
        return _traced(structure, shapes, num_rounds)
    make = functools.partial(_lane_and_record, structure, abstract_inputs(shapes, num_rounds))
    with keeping.collector_paused:
        return traces.remembered(("lane", structure, shapes, num_rounds), make)


def as_compiled(
    structure: Factories, shapes: Shapes, num_rounds: int
) -> Factories | TracedEpisodes:
    """That by which the programs of a structure are known, and of which they are made.

    Where functions are not this package's own these are traces of them, of one call.
    """
    traces = traces_of(structure)
    if traces is None:
        return structure
    if (known := as_checked(structure, shapes, num_rounds)) is not None:
        return known
    found, inputs = traced(structure, shapes, num_rounds), abstract_inputs(shapes, num_rounds)
    make = functools.partial(TracedEpisodes, structure, inputs, *found)
    with keeping.collector_paused:
        return traces.remembered(("episodes", structure, shapes, num_rounds), make)


def as_checked(structure: Factories, shapes: Shapes, num_rounds: int) -> TracedEpisodes | None:
    """The traces of a structure where they are those of an earlier call that has passed all checks.

    All else that tracing tells, and what checks say, follows from the operations: where these are
    the same, nothing but them is traced. Those of a stack follow from those of a cell. None where
    they are not the same, or where none are known.
    """
    traces = traces_of(structure)
    if traces is None:
        return None
    earlier = _checked.get(_in_any_call(structure, shapes, num_rounds))
    if earlier is None:
        return None
    make = functools.partial(_as_earlier, earlier, structure, shapes, num_rounds)
    with keeping.collector_paused:
        return traces.remembered(("as checked", structure, shapes, num_rounds), make)


def _as_earlier(earlier, structure, shapes, num_rounds):
    """The traces of a structure, if they are the earlier ones."""
    cell, its_shapes = structure.of_one(shapes)
    if cell is not structure and as_checked(cell, its_shapes, num_rounds) is None:
        return None
    inputs = abstract_inputs(shapes, num_rounds)
    try:
        now = TracedEpisodes(structure, inputs, earlier.lane, earlier.ended, earlier.traits)
    except Exception:  # of a function that has become another one; checks say what is wrong
        return None
    return now if cell is not structure or now == earlier else None


def keep_checked(structure: Factories, shapes: Shapes, num_rounds: int) -> None:
    """Note that a structure has passed all checks, for `as_checked` of later calls."""
    traces = traces_of(structure)
    if traces is None or as_checked(structure, shapes, num_rounds) is not None:
        return
    found: Any = as_compiled(structure, shapes, num_rounds)
    traces.remembered(("as checked", structure, shapes, num_rounds), lambda: found)
    if len(_checked) >= CHECKED_KEPT:
        _checked.clear()
    _checked[_in_any_call(structure, shapes, num_rounds)] = found


def _in_any_call(structure, shapes, num_rounds):
    """A key of a structure that is the same in each call, for a stack of any number of cells."""
    return structure.in_any_call, structure.of_one(shapes)[1], num_rounds


@functools.lru_cache(maxsize=512)
def _traced(structure, shapes, num_rounds):
    """Lane, record and traits of a structure of this package's own functions."""

    def made():
        return _lane_and_record(structure, abstract_inputs(shapes, num_rounds))

    return keeping.shapes(keeping.name_of("shapes", structure, shapes, num_rounds), made)


def _lane_and_record(structure, inputs):
    """Shapes of a lane and a record of a structure, after a check of its algorithm; `Traits`."""
    found = []

    def lane_and_record(inputs):
        factory = structure(inputs.numbers)
        lane, record, moves = example_lane(factory, inputs)
        env, _, _ = factory.build(lane.problem)
        contextual = bool(jax.tree.leaves(jax.eval_shape(env.context, lane.run.key)))
        found.append(Traits(moves, contextual, lane.run.answer.ndim == 0))
        return lane, record

    check_structure(structure, inputs)
    return *jax.eval_shape(lane_and_record, inputs), found[0]


def traits_of(structure: Factories, numbers: Numbers, num_rounds: int = 0) -> Traits:
    """The `Traits` of a cell; nothing is compiled."""
    with pinned():
        return traced(structure, shapes_of(numbers), num_rounds)[2]


def sizes(structure: Factories | TracedEpisodes, shapes: Shapes, num_rounds: int) -> Sizes:
    """The `Sizes` of a structure whose numbers have these `(shape, dtype)`."""
    find = _sizes if traces_of(structure) is None else _sizes.__wrapped__  # of one call
    return find(structure, shapes, num_rounds)


@functools.lru_cache(maxsize=512)
def _sizes(structure, shapes, num_rounds):
    lane, _, traits = traced(structure, shapes, num_rounds)
    answer = sum(x.size for x in jax.tree.leaves(lane.run.answer))
    record = lane.run.arm_pulls.size + answer + num_rounds + 8
    tables = bytes_of([jax.ShapeDtypeStruct(*shape) for shape in shapes])
    return Sizes(bytes_of(lane), record, bool(jax.tree.leaves(lane.problem)), traits, tables)


def has_loops(structure: Factories | TracedEpisodes, shapes: Shapes, num_rounds: int) -> bool:
    """Whether the rounds of a lane have loops of their own, such as those of a fit."""
    return loops(_traced_chunk(structure, shapes, num_rounds)) > 0


def largest_table(structure: Factories | TracedEpisodes, shapes: Shapes, num_rounds: int) -> int:
    """See `jaxprs.largest_in_blocks`, of a chunk."""
    find = _largest_table if traces_of(structure) is None else _largest_table.__wrapped__
    return find(structure, shapes, num_rounds)


@functools.lru_cache(maxsize=512)
def _largest_table(structure, shapes, num_rounds):
    def made():
        return largest_in_blocks(_traced_chunk(structure, shapes, num_rounds))

    return keeping.shapes(keeping.name_of("table", structure, shapes, num_rounds), made)


def _traced_chunk(structure, shapes, num_rounds):
    """The jaxpr of a chunk of one lane."""
    lane, _, traits = traced(structure, shapes, num_rounds)
    inputs = abstract_inputs(shapes, num_rounds)

    def chunk(inputs, lane):
        return structure(inputs.numbers).chunk(inputs, traits.moves, lane)

    return jax.make_jaxpr(chunk)(inputs, lane).jaxpr


def shapes_of(numbers: Numbers) -> Shapes:
    """The `(shape, dtype)` of each number; hashable."""
    return tuple((x.shape, x.dtype) for x in map(strong, numbers))


def strong(x: Any) -> Any:
    """An array that is not weakly typed: its type does not depend on what it meets."""
    is_key = isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return x if is_key else np.asarray(x)


def inputs_for(
    numbers: Numbers, root: Key, rounds: Int[np.ndarray, " T"], limits: Limits = NO_LIMITS
) -> LoopInputs:
    """`LoopInputs` with an empty queue."""
    limits, queue = Limits(*map(np.int64, limits)), np.zeros(0, int)
    one, unit, more = np.int64(1), np.float64(1.0), np.bool_(False)
    return LoopInputs(numbers, root, queue, rounds, limits, one, unit, more)


def abstract_inputs(shapes: Shapes, num_rounds: int) -> LoopInputs:
    """`LoopInputs` for numbers of these `(shape, dtype)`, to trace with."""
    numbers = tuple(jax.ShapeDtypeStruct(*shape) for shape in shapes)
    return inputs_for(numbers, like_root_key(), np.zeros(num_rounds, np.int64))
