"""Lanes, the host's half: which program, how many lanes, who starts next, what has ended."""

import functools
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jax.stages import Compiled
from jaxtyping import Int

from ..compile_options import quick
from ..compilers.cpp import Unsupported, compiler, features
from ..compilers.cuda import NoCompiler, found_library
from ..compilers.jaxprs import loops
from ..system.interrupts import raise_if_lost
from ..types import Key
from . import keeping
from .checks import Devices, check_lanes, is_gpu, lanes_at_ease, platform_of
from .device_loop import (
    FUSED,
    Batch,
    Lane,
    LoopInputs,
    Numbers,
    Record,
    Shape,
    Structure,
    bytes_of,
    empty_batch,
    example_lane,
    held,
    run_queue,
)
from .episode import NO_LIMITS, Limits, MoveTraits, root_key
from .protocol import check_structure
from .schedules import engine_for
from .tables import records_of

CALL_SECONDS: float = 0.3  # long enough to hide the host's part, short for Ctrl-C and a bar
# What the lanes of a CPU may hold between two rounds: within a round they need several times as
# much, and that should fit the second-level cache. Phases gain more from designs in common.
CACHE_BYTES: dict[str, int] = {"cpu": 9 * 2**14}
PHASED_BYTES: dict[str, int] = {"cpu": 2**20}
DEVICE_BYTES: int = 2**32  # the same for the memory of an accelerator
FEWEST_LANES: int = 32  # unless there are as few replications: narrower operations cost as much
USUAL_LANES: int = 64  # are worth more bytes than those above, up to the bytes of phases
MOST_LANES: dict[str, int] = {
    "cpu": 256
}  # more gain nothing and leave more of them idle at the end
# More lanes than these only where each gets so many replications.
SHORT_LANES: int = 128
REPLICATIONS_PER_LANE: int = 32
RECORD_BYTES: int = 2**26  # of all records of a call
HOST_MEMORY: tuple[str, ...] = ("cpu",)  # platforms whose tables the host reads where they are
FEWER_ROWS: int = 8  # each power of it is a program that copies such a part of the rows,
LEAST_ROWS: int = 4096  # and not fewer than these
LARGE_BYTES: int = 2**20  # of numbers, which are then put on the device once
# Lanes come in full vector registers, so that every lane runs the same instructions; the native
# engine computes two registers at a time, a GPU a block of threads. Lanes in turn are single.
VECTOR: dict[str, int] = {
    "xla": 8,
    "in turn": 1,
    **{name: x.side_by_side for name, x in FUSED.items()},
}
# One lane in so many waits before ended ones are written out and refilled; and one lane in so many
# gets an instance of its own at once.
LANES_PER_REFILL: int = 64
LANES_PER_DRAW: int = 8
FEW_REPLICATIONS: int = 1000  # up to which compiling takes longer than playing what lanes share
# Loops of a program for lanes in turn without those of an algorithm. With loops of its own, such as
# those of a fit, most of its kernels are small: compiled in a third of the time they are a fifth
# faster (`rep_glm_fpl`). A step of training alone takes twice as long so (`deep_fpl`).
LOOPS_IN_TURN: int = 4
# Of a lane; larger ones are played one by one. Side by side, lanes wait for each other's stages and
# loops: GSE on 10^5 arms (1.7 MB) took ten times as long for one replication, and 1.4 times for 16.
ALONE_BYTES: int = 2**20
THREAD_BYTES: int = 5000  # of a lane; with more, the engine `cuda` was not tried
ONE_GRAPH: str = "FUSION,CUBLAS,WHILE,CONDITIONAL"  # what a GPU may do without the host
DEVICES: PartitionSpec = PartitionSpec("devices")

# The `(shape, dtype)` of each number: all that a program knows of them.
Shapes: TypeAlias = tuple[tuple[tuple[int, ...], Any], ...]


@keeping.remembered
def program(
    structure: Structure,
    shape: Shape,
    shapes: Shapes,
    num_rounds: int,
    devices: Devices = None,
) -> Compiled:
    """A call of `device_loop.run_queue`, compiled.

    Cached by the structure and the `(shape, dtype)` of its numbers, so that other numbers compile
    nothing.
    """
    batch = first_batch(structure, shape, shapes, num_rounds, devices)
    leading = () if devices is None else (len(devices),)
    queue = np.zeros((*leading, shape.queue), int)
    inputs = _abstract_inputs(shapes, num_rounds)._replace(queue=queue)
    flags = _flags(platform_of(devices), shape)

    def lower():
        loop = functools.partial(run_queue, structure, shape)
        loop = loop if devices is None else _on_each(loop, devices)
        jitted = functools.partial(jax.jit, loop, donate_argnums=1, keep_unused=True)
        traced = jitted(compiler_options=flags).trace(inputs, batch)
        if shape.engine == "in turn" and loops(traced.jaxpr.jaxpr) > LOOPS_IN_TURN:
            return jitted(compiler_options=flags | quick()).lower(inputs, batch)
        return traced.lower()

    if devices is not None:
        return keeping.compiled(lower())
    name = keeping.name_of("program", structure, shape, shapes, num_rounds, flags)
    return keeping.program(name, lower, (inputs, batch), flags)


def first_batch(
    structure: Structure, shape: Shape, shapes: Shapes, num_rounds: int, devices: Devices = None
) -> Batch:
    """An empty batch on the devices where it will be computed."""
    lane, record, _ = _traced(structure, shapes, num_rounds)
    lane = jax.eval_shape(functools.partial(held, shape), lane)
    if devices is None:
        return jax.device_put(empty_batch(lane, record, shape))
    batch, mesh = empty_batch(lane, record, shape, (len(devices),)), _mesh(devices)
    # An array without entries comes back from a call as one that all devices hold.
    shardings = [NamedSharding(mesh, spec) for spec in (PartitionSpec(), DEVICES)]
    return jax.device_put(batch, jax.tree.map(lambda x: shardings[x.size > 0], batch))


def _mesh(devices):
    return Mesh(np.array(devices), ("devices",), axis_types=(AxisType.Auto,))


def _on_each(loop, devices):
    """The loop on each device by itself; the first axis of queue and batch is the device."""
    whole = PartitionSpec()
    specs: list[Any] = [DEVICES if name == "queue" else whole for name in LoopInputs._fields]
    inputs = LoopInputs(*specs)

    def local(inputs, batch):
        batch = jax.tree.map(lambda x: x[0], batch)
        result = loop(inputs._replace(queue=inputs.queue[0]), batch)
        return jax.tree.map(lambda x: x[None], result)

    return jax.shard_map(
        local,
        mesh=_mesh(devices),
        in_specs=(inputs, DEVICES),
        out_specs=DEVICES,
        check_vma=False,
    )


def _flags(platform, shape):
    """Compiler options: CPUs with wide registers use them.

    Around native rounds little is left to compute, and compiling it takes longer than computing
    it. The products of a single lane are too small to be shared between threads. On a GPU the host
    would start each iteration of the loops inside a phase; as one graph they run without it.
    """
    engine = shape.engine
    if is_gpu(platform):
        phased = engine == "xla" and not shape.moves.one_arm
        return {"xla_gpu_enable_command_buffer": ONE_GRAPH} if phased else {}
    if engine in FUSED and platform == "cpu":
        return quick()
    single = {"xla_cpu_multi_thread_eigen": False} if engine == "in turn" else {}
    wide = {"xla_cpu_prefer_vector_width": 512} if "avx512f" in features() else {}
    return wide | single if platform == "cpu" else {}


def inputs_for(
    numbers: Numbers, root: Key, rounds: Int[np.ndarray, " T"], limits: Limits = NO_LIMITS
) -> LoopInputs:
    """`LoopInputs` with an empty queue."""
    limits, queue = Limits(*map(np.int64, limits)), np.zeros(0, int)
    one, unit, more = np.int64(1), np.float64(1.0), np.bool_(False)
    return LoopInputs(numbers, root, queue, rounds, limits, one, unit, more)


def _abstract_inputs(shapes, num_rounds):
    """`LoopInputs` for numbers of these `(shape, dtype)`, to trace with."""
    numbers = tuple(jax.ShapeDtypeStruct(*shape) for shape in shapes)
    return inputs_for(numbers, root_key(0), np.zeros(num_rounds, np.int64))


class Traits(NamedTuple):
    """What tracing tells of a cell."""

    moves: MoveTraits
    contextual: bool = False  # whether `ask` is given a context each round
    answers_one: bool = True  # whether its answer is an index, not a set


class Sizes(NamedTuple):
    """What the number of lanes depends on."""

    lane: int  # bytes of all that a lane carries
    record: int  # numbers in a record
    own: bool  # whether a replication has a problem of its own
    traits: Traits


@functools.lru_cache(maxsize=512)
def _traced(structure: Structure, shapes: Shapes, num_rounds: int) -> tuple[Lane, Record, Traits]:
    """Abstract lane and record of a structure whose numbers have these shapes; its `Traits`."""

    def traced():
        found = []

        def lane_and_record(inputs):
            factory = structure(inputs.numbers)
            lane, record, moves = example_lane(factory, inputs)
            env, _, _ = factory.build(lane.problem)
            contextual = bool(jax.tree.leaves(jax.eval_shape(env.context, lane.run.key)))
            found.append(Traits(moves, contextual, lane.run.answer.ndim == 0))
            return lane, record

        inputs = _abstract_inputs(shapes, num_rounds)
        check_structure(structure, inputs)
        return *jax.eval_shape(lane_and_record, inputs), found[0]

    return keeping.shapes(keeping.name_of("shapes", structure, shapes, num_rounds), traced)


def traits_of(structure: Structure, numbers: Numbers, num_rounds: int = 0) -> Traits:
    """The `Traits` of a cell; nothing is compiled."""
    with jax.enable_x64(True):
        return _traced(structure, shapes_of(numbers), num_rounds)[2]


@functools.lru_cache(maxsize=512)
def sizes(structure: Structure, shapes: Shapes, num_rounds: int) -> Sizes:
    """The `Sizes` of a structure whose numbers have these `(shape, dtype)`."""
    lane, _, traits = _traced(structure, shapes, num_rounds)
    answer = sum(x.size for x in jax.tree.leaves(lane.run.answer))
    record = lane.run.arm_pulls.size + answer + num_rounds + 8
    return Sizes(bytes_of(lane), record, bool(jax.tree.leaves(lane.problem)), traits)


_failed: set[str] = set()  # engines that have failed in this process, and are not tried again


def automatic(sizes: Sizes, platform: str, replications: int) -> str:
    """The engine of `auto`: the quicker one, compiling and playing together.

    The native engine compiles in a third to two thirds of the time of XLA, and plays 1.1 to 4 times
    as fast. But a costly design that lanes have in common, such as that of RAGE for the arms alive,
    XLA computes once: it played RAGE two to five times as fast, which pays after some thousand
    replications. On an H100 the engine `cuda` was up to nine times as fast as XLA for one arm a
    round, and as fast for a lane of 5 KB. Very large lanes XLA plays one by one, see `schedules`.
    """
    moves = sizes.traits.moves
    if platform == "cpu":
        share = moves.in_common and not sizes.own
        if sizes.lane > ALONE_BYTES and not share:
            return "in turn"  # one of `SCHEDULES`
        found = compiler() is not None and "native" not in _failed
        return "native" if found and not (share and replications > FEW_REPLICATIONS) else "xla"
    on_gpu = is_gpu(platform) and sizes.lane <= THREAD_BYTES and moves.one_arm
    return "cuda" if on_gpu and found_library() and "cuda" not in _failed else "xla"


def shape_of(
    sizes: Sizes, *, replications: int, batch: int | None, devices: Devices, engine: str = "xla"
) -> Shape:
    """Lanes of a device, and what follows from their number; `engine` is not "auto".

    By default as many lanes as the cache or the device holds, a power of 2, so that few shapes
    are compiled; never many more than there are replications.
    """
    number = 1 if devices is None else len(devices)
    platform = platform_of(devices)
    engine = engine_for(sizes.traits.contextual, platform, engine)
    if batch is None:
        lanes = _default_lanes(sizes, -(-replications // number), platform, engine)
    else:
        lanes = -(-min(batch, replications) // number)
    vector = _fewest_lanes(engine)
    lanes = -(-lanes // vector) * vector
    rows = max(1, RECORD_BYTES // (8 * sizes.record))
    refill_most = max(vector, lanes // LANES_PER_DRAW) if sizes.own else lanes
    refill_from = max(1, lanes // LANES_PER_REFILL)
    queue = min(8 * lanes, rows)
    moves = sizes.traits.moves
    return Shape(lanes, refill_from, refill_most, queue, moves, engine, is_gpu(platform))


def _fewest_lanes(engine):
    """Lanes of a device at least, and in steps of as many."""
    return VECTOR.get(engine, VECTOR["xla"])


def _default_lanes(sizes, share, platform, engine):
    """Lanes for a share of the replications, where the user does not say how many."""
    most = PHASED_BYTES.get(platform, DEVICE_BYTES) // sizes.lane
    one_arm = sizes.traits.moves.one_arm
    if one_arm:
        held = CACHE_BYTES.get(platform, DEVICE_BYTES) // sizes.lane
        most = max(held, min(most, USUAL_LANES))
    most = min(MOST_LANES.get(platform, 2**17), max(FEWEST_LANES, most))
    if platform == "cpu":
        most = min(most, lanes_at_ease(sizes.lane))
    if platform == "cpu" and one_arm:
        most = min(most, max(SHORT_LANES, _power(max(1, share // REPLICATIONS_PER_LANE))))
        if engine == "native":  # it holds two registers in the cache
            most = min(most, USUAL_LANES)
    return min(_power(most), 2 * _power(max(1, share - 1)))


def shapes_of(numbers: Numbers) -> Shapes:
    """The `(shape, dtype)` of each number; hashable."""
    return tuple((x.shape, x.dtype) for x in map(_strong, numbers))


def _strong(x):
    """An array that is not weakly typed: its type does not depend on what it meets."""
    is_key = isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return x if is_key else np.asarray(x)


def _power(number):
    """The largest power of 2 up to `number`."""
    return 1 << (int(number).bit_length() - 1)


class HostLoop:
    """Runs a list of replications on one or more devices.

    Args:
      structure, numbers: one cell or several, see `stack.stacked`.
      root: key of the seed.
      replications: how many to expect.
      batch, engine: as in `simulate`.
      prefer: the engine of "auto", None for the one that it chooses; what fails, XLA plays.
      planned: replications of the whole work of which this is a part, for the choice of "auto".
      limits: where a run is cut short.
      rounds: where the regret is recorded.
      devices: as `checks.devices_of` returns them.
    Attributes:
      shape: sizes of the batch, and the engine.
      compile_seconds: next to none if the program was compiled before.
      offered, useful: rounds that all lanes have computed, and those of live runs among them.
    """

    def __init__(
        self,
        structure: Structure,
        numbers: Numbers,
        root: Key,
        *,
        replications: int,
        batch: int | None,
        limits: Limits,
        rounds: Sequence[int] | Int[np.ndarray, " T"],
        devices: Devices = None,
        engine: str = "xla",
        prefer: str | None = None,
        planned: int | None = None,
    ) -> None:
        self._count = 1 if devices is None else len(devices)
        self._platform = platform_of(devices)
        numbers, shapes = tuple(map(_strong, numbers)), shapes_of(numbers)
        if devices is None and sum(x.nbytes for x in numbers) > LARGE_BYTES:
            numbers = jax.device_put(numbers)  # once, and not in every call
        self._inputs = inputs_for(numbers, root, np.asarray(rounds, np.int64), limits)
        known, chosen = sizes(structure, shapes, len(rounds)), engine
        if engine == "auto":
            chosen = prefer or automatic(known, self._platform, planned or replications)
        self.shape: Shape = shape_of(
            known, replications=replications, batch=batch, devices=devices, engine=chosen
        )
        if self._platform == "cpu":
            fewest = self._count * _fewest_lanes(self.shape.engine)
            check_lanes(self._count * self.shape.lanes, known.lane, fewest)
        self._sharded = devices is not None
        began = time.perf_counter()
        others = shapes, len(rounds), devices
        try:
            self._compiled_loop = program(structure, self.shape, *others)
        except (Unsupported, ChildProcessError, NoCompiler) as error:
            unsupported = isinstance(error, Unsupported)
            if engine != "auto" and not (engine == "cuda" and unsupported):
                raise
            if engine == "cuda":
                warnings.warn(f"{error}; XLA plays this", RuntimeWarning, stacklevel=2)
            elif not unsupported:
                _failed.add(chosen)
                more = f"XLA plays this and what follows in this process, as {chosen!r} failed"
                warnings.warn(f"{error}; {more}", RuntimeWarning, stacklevel=2)
            self.shape = self.shape._replace(engine="xla")
            self._compiled_loop = program(structure, self.shape, *others)
        self._program_key = structure, self.shape, *others
        self._record: Record = _traced(structure, shapes, len(rounds))[1]  # its shapes
        self.compile_seconds: float = time.perf_counter() - began
        self.offered: int = 0
        self.useful: int = 0

    def run(self, ids: Sequence[int] | Int[np.ndarray, " R"]) -> Iterator[Record]:
        """Yield the `Record` of replications as they end, until all have."""
        left, under_way, chunks = np.asarray(ids, np.int64), np.zeros(self._count, int), 16
        back = left[:0]  # what was queued before, and not taken
        batch = first_batch(*self._program_key)
        while len(back) + len(left) or under_way.any():
            more = self._count * self.shape.queue - len(back)
            queued, left = np.concatenate([back, left[:more]]), left[more:]
            queue = self._queue(queued, self._count)
            raise_if_lost()
            began = time.perf_counter()
            batch = self._compiled_loop(self._call_inputs(queue, chunks, bool(len(left))), batch)
            records, taken = self._harvest(batch)
            seconds = time.perf_counter() - began
            chunks = _next_chunks(chunks, seconds)
            back = np.sort(np.concatenate([r[n:] for r, n in zip(queue, taken, strict=True)]))
            back = back[back >= 0]
            under_way += taken - np.array([len(r.id) for r in records])
            yield jax.tree.map(lambda *xs: np.concatenate(xs), *records)

    def _call_inputs(self, queue, chunks, more):
        if not self._sharded:
            queue = queue[0]
        return self._inputs._replace(queue=queue, max_chunks=np.int64(chunks), more=np.bool_(more))

    def _queue(self, ids, devices):
        """Replications dealt out to the devices, one each in turn, `[D, Q]`; -1 for none."""
        queue = np.full((devices, self.shape.queue), -1)
        for device in range(devices):
            share = ids[device::devices]
            queue[device, : len(share)] = share
        return queue

    def _harvest(self, batch):
        """The records that each device has written in a call, and how much of its queue it took."""
        counts = [
            np.atleast_1d(x) for x in (batch.written, batch.taken, batch.useful, batch.offered)
        ]
        written, taken, useful, offered = counts
        self.useful += int(useful.sum())
        self.offered += int(offered.sum())
        found = self._fetched(batch.records, int(written.max()))

        def rows(device):
            index = device if self._sharded else ...
            number = written[device]
            tables = {name: x[index][:number] for name, x in found.items()}
            return records_of(tables, self._record)

        return [rows(device) for device in range(self._count)], taken

    def _fetched(self, tables, written):
        """Tables of records in the host's memory, with at least as many rows as are written.

        From a device with memory of its own not all rows are copied: a call writes a few per cent
        of them, and to copy the tables of 131,072 lanes took as long as the call itself.
        """
        rows = self.shape.records
        while rows // FEWER_ROWS >= max(written, LEAST_ROWS):
            rows //= FEWER_ROWS
        if rows < self.shape.records and self._platform not in HOST_MEMORY:
            tables = _first_rows(tables, rows, int(self._sharded))
        return {name: np.asarray(x) for name, x in tables.items()}


@functools.partial(jax.jit, static_argnums=(1, 2))
def _first_rows(tables, rows, axis):
    return {name: jax.lax.slice_in_dim(x, 0, rows, axis=axis) for name, x in tables.items()}


def _next_chunks(chunks, seconds):
    """Chunks of the next call: twice as many after a short call, half as many after a long one."""
    if seconds < CALL_SECONDS / 2:
        return min(chunks * 2, 2**40)
    return max(chunks // 2, 1) if seconds > CALL_SECONDS * 2 else chunks
