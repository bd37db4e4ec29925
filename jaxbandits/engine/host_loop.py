"""Lanes, the host's half: the compiled program, who starts next, what has ended."""

import functools
import itertools
import threading
import time
import warnings
from collections.abc import Generator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jax.stages import Compiled
from jaxtyping import Int

from ..compile_options import quick
from ..compilers.cpp import Unsupported
from ..compilers.cuda import NoCompiler
from ..compilers.jaxprs import loops
from ..system import keeping
from ..system.interrupts import goes_on, raise_if_lost
from ..system.machine import features
from ..system.threads import merged
from ..types import Key
from .checks import Devices, check_lanes, check_program, is_gpu, platform_of, threads_that_fit
from .choices import Choice, automatic, avoid, fewest_lanes, shape_of
from .device_loop import (
    FUSED,
    Batch,
    Factories,
    LoopInputs,
    Numbers,
    Record,
    Shape,
    Structure,
    empty_batch,
    held,
    run_queue,
)
from .engine_reasons import ASKED, CONTEXTUAL
from .episode import Limits
from .tables import records_of
from .traits import (
    Shapes,
    abstract_inputs,
    as_compiled,
    has_loops,
    inputs_for,
    largest_table,
    shapes_of,
    sizes,
    strong,
    traced,
)

CALL_SECONDS: float = 0.3  # long enough to hide the host's part, short for Ctrl-C and a bar
FASTEST: int = 8  # times as many chunks after a very short call: the first call plays one chunk
HOST_MEMORY: tuple[str, ...] = ("cpu",)  # platforms whose tables the host reads where they are
FEWER_ROWS: int = 8  # each power of it is a program that copies such a part of the rows,
LEAST_ROWS: int = 4096  # and not fewer than these
LARGE_BYTES: int = 2**20  # of numbers, which are then put on the device once
# Loops of a program for lanes in turn without those of an algorithm. With loops of its own, such as
# those of a fit, most of its kernels are small: compiled in a third of the time they are a fifth
# faster (`rep_glm_fpl`). A step of training alone takes twice as long so (`deep_fpl`).
LOOPS_IN_TURN: int = 4
ONE_GRAPH: str = "FUSION,CUBLAS,WHILE,CONDITIONAL"  # what a GPU may do without the host
# Threads cost a millisecond. The first one plays alone until its lanes have ended once, which tells
# how long what waits will take, or so many seconds; the others begin where that is so much.
ALONE_SECONDS: float = 0.02
SHARED_SECONDS: float = 0.02
DEVICES: PartitionSpec = PartitionSpec("devices")


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
    batch = _like_batch(structure, shape, shapes, num_rounds, devices)
    leading = () if devices is None else (len(devices),)
    queue = np.zeros((*leading, shape.queue), int)
    inputs = abstract_inputs(shapes, num_rounds)._replace(queue=queue)
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
    more = flags, getattr(structure, "digests", ())
    return keeping.program(name, lower, (inputs, batch), more)


@keeping.remembered
def _bytes_of(program: Compiled) -> int:
    """The memory that a program asks for beside its arguments; to ask for it takes milliseconds."""
    return getattr(program.memory_analysis(), "temp_size_in_bytes", 0)


def first_batch(
    structure: Structure, shape: Shape, shapes: Shapes, num_rounds: int, devices: Devices = None
) -> Batch:
    """An empty batch on the devices where it will be computed, or for the call to put there."""
    if platform_of(devices) not in HOST_MEMORY:
        return _made_there(structure, shape, shapes, num_rounds, devices)()
    batch = _empty(structure, shape, shapes, num_rounds, devices, np)
    # A call takes arrays of NumPy in half of the time that it takes to put them there before.
    return batch if devices is None else jax.device_put(batch, _shardings(batch, devices))


@keeping.remembered
def _made_there(*key):
    """A compiled function that makes an empty batch on the devices, see `_empty` for the key.

    With 131,072 lanes it has some 200 MB, more than should be sent from the host.
    """
    empty = functools.partial(_empty, *key, jnp)
    shardings = _shardings(jax.eval_shape(empty), key[-1])
    return keeping.compiled(jax.jit(empty, out_shardings=shardings).lower())


def _like_batch(*key):
    """The shapes of a batch, and where its arrays are, see `_empty` for the key."""
    like = jax.eval_shape(functools.partial(_empty, *key, jnp))
    shardings = _shardings(like, key[-1])
    if shardings is None:
        return like

    def placed(x, sharding):
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)

    return jax.tree.map(placed, like, shardings)


def _empty(structure, shape, shapes, num_rounds, devices, numpy):
    """An empty batch, see `device_loop.empty_batch`."""
    lane, record = _rows_of(structure, shape, shapes, num_rounds)
    leading = () if devices is None else (len(devices),)
    return empty_batch(lane, record, shape, leading, numpy)


def _shardings(batch, devices):
    """Where the arrays of a batch are, by the device in their first axis; None for one device."""
    if devices is None:
        return None
    # An array without entries comes back from a call as one that all devices hold.
    mesh = _mesh(devices)
    shardings = [NamedSharding(mesh, spec) for spec in (PartitionSpec(), DEVICES)]
    return jax.tree.map(lambda x: shardings[x.size > 0], batch)


@functools.lru_cache(maxsize=512)
def _rows_of(structure, shape, shapes, num_rounds):
    """A lane as a batch holds it, and a record, as shapes."""
    lane, record, _ = traced(structure, shapes, num_rounds)
    return jax.eval_shape(functools.partial(held, shape), lane), record


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


class Waiting:
    """The replications that have not started, which threads take.

    Args:
      ids: of the replications, in the order in which they start.
    Attributes:
      threads: how many share them.
      unfinished: how many have not ended.
    """

    def __init__(self, ids: Sequence[int] | Int[np.ndarray, " R"]) -> None:
        self._left = np.asarray(ids, np.int64)
        self._lock = threading.Lock()
        self.threads: int = 1
        self.unfinished: int = len(self._left)

    def __len__(self) -> int:
        """How many nobody has taken."""
        return len(self._left)

    def take(self, most: int, under_way: int) -> tuple[Int[np.ndarray, " N"], bool]:
        """The next replications, and whether there are more for the same thread.

        Args:
          most: how many a call can be given.
          under_way: how many the thread is playing; with these it gets an even share of all that
            have not ended, so that all threads end at about the same time.
        """
        with self._lock:
            share = -(-self.unfinished // self.threads) - under_way
            most = most if self.threads == 1 else min(most, max(share, 0))
            taken, self._left = self._left[:most], self._left[most:]
            return taken, bool(len(taken) and len(self._left))

    def settle(self, back: Int[np.ndarray, " N"], ended: int) -> None:
        """Put back what was taken and has not started, and note how many have ended."""
        with self._lock:
            self._left = np.concatenate([np.sort(back), self._left])
            self.unfinished -= ended

    def leave(self) -> None:
        """Note that a thread takes no more."""
        with self._lock:
            self.threads = max(1, self.threads - 1)


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
      cores: how many threads may play at once, each with its own lanes, by one program.
    Attributes:
      shape: sizes of the batch of a thread, and the engine.
      cores: how many have played at once.
      reason: why this engine plays, see `Runs.meta`.
      compile_seconds: next to none if the program was compiled before.
      offered, useful: rounds that all lanes have computed, and those of live runs among them.
    """

    def __init__(
        self,
        structure: Factories,
        numbers: Numbers,
        root: Key,
        *,
        replications: int,
        batch: int | None,
        limits: Limits,
        rounds: Sequence[int] | Int[np.ndarray, " T"],
        devices: Devices = None,
        cores: int = 1,
        engine: str = "xla",
        prefer: str | None = None,
        planned: int | None = None,
    ) -> None:
        self._count = 1 if devices is None else len(devices)
        self._platform = platform_of(devices)
        given, numbers, shapes = numbers, tuple(map(strong, numbers)), shapes_of(numbers)
        compiled = as_compiled(structure, shapes, len(rounds))
        if devices is None and sum(x.nbytes for x in numbers) > LARGE_BYTES:
            # Once, and not in every call; a table that is arms and targets has one copy there.
            there = jax.device_put({id(x): y for x, y in zip(given, numbers, strict=True)})
            numbers = tuple(there[id(x)] for x in given)
        self._inputs = inputs_for(numbers, root, np.asarray(rounds, np.int64), limits)
        known, choice = sizes(compiled, shapes, len(rounds)), Choice(engine, ASKED)
        table = functools.partial(largest_table, compiled, shapes, len(rounds))
        if engine == "auto":
            looping = functools.partial(has_loops, compiled, shapes, len(rounds))
            number = planned or replications
            choice = automatic(known, self._platform, number, looping, table).begun_with(prefer)
        self.shape: Shape = shape_of(
            known,
            replications=replications,
            batch=batch,
            devices=devices,
            cores=cores,
            engine=choice.engine,
            largest_table=table,
        )
        if known.traits.contextual:
            choice = Choice(self.shape.engine, CONTEXTUAL)
        if self._platform == "cpu":
            fewest = self._count * fewest_lanes(self.shape.engine)
            check_lanes(self._count * self.shape.lanes, known.lane, fewest)
        self._sharded = devices is not None
        self._bytes = self.shape.lanes * known.lane
        began = time.perf_counter()
        others = shapes, len(rounds), devices
        try:
            self._compiled_loop = program(compiled, self.shape, *others)
        except (Unsupported, ChildProcessError, NoCompiler) as error:
            unsupported = isinstance(error, Unsupported)
            if engine != "auto" and not (engine == "cuda" and unsupported):
                raise
            if engine == "cuda":
                warnings.warn(f"{error}; XLA plays this", RuntimeWarning, stacklevel=2)
            elif not unsupported:
                avoid(choice.engine, error)
                failed = f"as {choice.engine!r} failed"
                more = f"XLA plays this and what follows in this process, {failed}"
                warnings.warn(f"{error}; {more}", RuntimeWarning, stacklevel=2)
            choice = choice.instead(error)
            self.shape = self.shape._replace(engine=choice.engine)
            self._compiled_loop = program(compiled, self.shape, *others)
        self._threads = 1
        if self._platform == "cpu":
            needed = _bytes_of(self._compiled_loop)
            check_program(needed)
            tables = 8 * known.record * self.shape.records
            self._threads = min(cores, threads_that_fit(self._bytes + tables + needed))
        self.reason: str = choice.reason
        self._program_key = compiled, self.shape, *others
        if self._platform not in HOST_MEMORY:  # small programs, compiled before anything plays
            _made_there(*self._program_key)
            _first_rows(*self._program_key)
        self._record: Record = traced(compiled, shapes, len(rounds))[1]  # its shapes
        self.compile_seconds: float = time.perf_counter() - began
        self.cores: int = self._count if self._platform == "cpu" else 1
        self.offered: int = 0
        self.useful: int = 0
        self._counting = threading.Lock()

    def run(self, ids: Sequence[int] | Int[np.ndarray, " R"]) -> Generator[Record]:
        """Yield the `Record` of replications as they end, until all have.

        The caller closes the iterator: threads may play behind it.
        """
        threads, waiting = min(self._threads, -(-len(ids) // self.shape.lanes)), Waiting(ids)
        if threads > 1:
            return self._play_shared(waiting, threads)
        return self._play(waiting, first_batch(*self._program_key))

    def _play_shared(self, waiting, threads):
        """What `_play` yields, by several threads as soon as enough work for them is known of."""
        began, ended = time.perf_counter(), 0
        first = self._play(waiting, first_batch(*self._program_key))
        for record in first:
            yield record
            ended, seconds = ended + len(record.id), time.perf_counter() - began
            if ended >= self.shape.lanes or seconds > ALONE_SECONDS:
                break
        else:
            return
        if seconds * len(waiting) <= SHARED_SECONDS * ended:
            yield from first
            return
        self.cores, waiting.threads = max(self.cores, threads), threads
        # Batches are made in the caller's thread: others do not know which device it has set.
        others = (self._play(waiting, first_batch(*self._program_key)) for _ in range(1, threads))
        yield from merged(itertools.chain([first], others))

    def _play(self, waiting, batch):
        """Yield the `Record` of replications that end in the lanes of a batch, until none waits."""
        under_way = np.zeros(self._count, int)
        chunks = 1  # nobody knows yet how long they take
        arriving = None  # what the last call has written, while the next one plays
        while True:
            queued, more = waiting.take(self._count * self.shape.queue, int(under_way.sum()))
            if not (len(queued) or under_way.any()):
                break
            queue = self._queue(queued, self._count)
            raise_if_lost()
            began = time.perf_counter()
            batch = self._compiled_loop(self._call_inputs(queue, chunks, more), batch)
            if arriving:
                yield self._records_of(*arriving)
            written, taken = self._counts(batch)
            arriving = self._fetched(batch.records, int(written.max())), written
            chunks = _next_chunks(chunks, time.perf_counter() - began)
            back = np.concatenate([r[n:] for r, n in zip(queue, taken, strict=True)])
            waiting.settle(back[back >= 0], int(written.sum()))
            under_way += taken - written
            if self._platform in HOST_MEMORY:  # where the next call writes
                yield self._records_of(*arriving)
                arriving = None
        waiting.leave()
        if arriving:
            yield self._records_of(*arriving)

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

    def _counts(self, batch):
        """How many records each device has written in a call, and how much of its queue it took."""
        counts = batch.written, batch.taken, batch.useful, batch.offered
        wait = functools.partial(jax.block_until_ready, counts)
        try:
            wait()  # a signal ends it; NumPy would wait too, to the end
        except KeyboardInterrupt:
            goes_on(wait)
            raise
        written, taken, useful, offered = map(np.atleast_1d, counts)
        with self._counting:
            self.useful += int(useful.sum())
            self.offered += int(offered.sum())
        return written, taken

    def _records_of(self, tables, written):
        """What the devices have written, as one `Record`, from tables that were fetched."""
        found = {name: np.asarray(x) for name, x in tables.items()}

        def rows(device):
            index = device if self._sharded else ...
            number = written[device]
            return records_of({name: x[index][:number] for name, x in found.items()}, self._record)

        records = [rows(device) for device in range(self._count)]
        return jax.tree.map(lambda *xs: np.concatenate(xs), *records)

    def _fetched(self, tables, written):
        """Tables of records with at least as many rows as are written, on their way to the host.

        From a device with memory of its own not all rows are copied: a call writes a few per cent
        of them, and to copy the tables of 131,072 lanes took as long as the call itself.
        """
        if self._platform in HOST_MEMORY:
            return tables
        copied = _first_rows(*self._program_key)
        tables = copied[min(rows for rows in copied if rows >= written)](tables)
        for table in tables.values():
            table.copy_to_host_async()
        return tables


@keeping.remembered
def _first_rows(*key):
    """Compiled functions that copy so many of the first rows of all tables, by the number."""
    tables, axis = _like_batch(*key).records, int(key[-1] is not None)

    def copy(rows, tables):
        return {name: jax.lax.slice_in_dim(x, 0, rows, axis=axis) for name, x in tables.items()}

    def compiled(rows):
        return keeping.compiled(jax.jit(functools.partial(copy, rows)).lower(tables))

    return {rows: compiled(rows) for rows in _numbers_of_rows(key[1].records)}


def _numbers_of_rows(rows):
    """How many rows of so many are copied: all, or the least of these that is enough."""
    numbers = [rows]
    while numbers[-1] // FEWER_ROWS >= LEAST_ROWS:
        numbers.append(numbers[-1] // FEWER_ROWS)
    return numbers


def _next_chunks(chunks, seconds):
    """Chunks of the next call, which takes between half of `CALL_SECONDS` and twice that.

    Twice as many after a short call, many more after a very short one, half as many after a long
    one.
    """
    if seconds < CALL_SECONDS / (2 * FASTEST):
        return min(chunks * FASTEST, 2**40)
    if seconds < CALL_SECONDS / 2:
        return min(chunks * 2, 2**40)
    return max(chunks // 2, 1) if seconds > CALL_SECONDS * 2 else chunks
