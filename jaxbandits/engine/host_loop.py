"""Lanes, the host's half: which programs, how many lanes, who plays next, what has ended."""

import functools
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from ..compilers.cpp import SIDE_BY_SIDE, features
from .device_loop import LoopInputs, Shape, any_lane, empty, go
from .episode import NO_LIMITS, Limits, kind, root_key
from .protocol import check_world
from .schedules import engine_for

CALL_SECONDS = 0.3  # long enough to hide the host's part, short enough for Ctrl-C and a bar
# What the lanes of a CPU may hold between two rounds: within a round they need several times as
# much, and that should fit the second-level cache. Phases gain more from common designs.
CACHE_BYTES = {"cpu": 9 * 2**14}
PHASED_BYTES = {"cpu": 2**20}
FEWEST_LANES = 32  # unless there are as few replications: narrower operations cost as much
USUAL_LANES = 64  # what is worth going beyond the bytes above, up to those of phases
MOST_LANES = {"cpu": 256}  # more gain nothing and leave more of them idle at the end
SHORT_LANES, TURNS = 128, 32  # more than these only where a lane gets so many replications
DEVICE_BYTES = 2**32  # the same for the memory of an accelerator
RECORD_BYTES, LARGE_BYTES = 2**26, 2**20
# Lanes come in full vector registers, so that every lane runs the same instructions; the native
# engine plays two registers at a time.
VECTOR = {"xla": 8, "native": SIDE_BY_SIDE}
TURN = 64  # a lane in so many waits before ended ones are written out and refilled
LOT = 8  # a lane in so many gets an instance of its own at once
DEVICES = PartitionSpec("devices")


@functools.lru_cache(maxsize=128)
def program(world, shape, shapes, num_rounds, devices=None):
    """A call of `device_loop.go`, compiled.

    Cached by the structure of the world and the `(shape, dtype)` of its numbers, so that other
    numbers compile nothing.
    """
    batch = nobody(world, shape, shapes, num_rounds, devices)
    first = () if devices is None else (len(devices),)
    inputs = _like(shapes, num_rounds)._replace(queue=np.zeros((*first, shape.queue), int))
    step = functools.partial(go, world, shape)
    platform = jax.default_backend() if devices is None else devices[0].platform
    flags = _flags(platform, shape.engine)
    step = step if devices is None else _on_each(step, devices)
    return jax.jit(step, donate_argnums=1, compiler_options=flags).lower(inputs, batch).compile()


def nobody(world, shape, shapes, num_rounds, devices=None):
    """An empty batch where it will be played."""
    lane, record, _ = _look(world, shapes, num_rounds)
    if devices is None:
        return jax.device_put(empty(lane, record, shape))
    batch, mesh = empty(lane, record, shape, (len(devices),)), _mesh(devices)
    # An array without entries comes back from a step as one that all devices hold.
    places = [NamedSharding(mesh, spec) for spec in (PartitionSpec(), DEVICES)]
    return jax.device_put(batch, jax.tree.map(lambda x: places[x.size > 0], batch))


def _mesh(devices):
    return Mesh(np.array(devices), ("devices",), axis_types=(AxisType.Auto,))


def _on_each(step, devices):
    """A step on each device by itself; the first axis of queue and batch is the device."""
    whole = PartitionSpec()
    inputs = LoopInputs(*[DEVICES if name == "queue" else whole for name in LoopInputs._fields])

    def local(inputs, batch):
        batch = jax.tree.map(lambda x: x[0], batch)
        result = step(inputs._replace(queue=inputs.queue[0]), batch)
        return jax.tree.map(lambda x: x[None], result)

    return jax.shard_map(
        local,
        mesh=_mesh(devices),
        in_specs=(inputs, DEVICES),
        out_specs=DEVICES,
        check_vma=False,
    )


def _flags(platform, engine):
    """Compiler options: CPUs with wide registers use them.

    Around native rounds little is left to do, and compiling it takes longer than doing it. What a
    lane by itself multiplies is too small to share between threads.
    """
    if engine == "native":
        return {
            "xla_cpu_use_fusion_emitters": False,
            "xla_backend_optimization_level": 1,
            "xla_llvm_disable_expensive_passes": True,
            "xla_cpu_parallel_codegen_split_count": 1,
        }
    alone = {"xla_cpu_multi_thread_eigen": False} if engine == "in turn" else {}
    wide = {"xla_cpu_prefer_vector_width": 512} if "avx512f" in features() else {}
    return wide | alone if platform == "cpu" else {}


def inputs_for(numbers, root, rounds, limits=NO_LIMITS):
    """`LoopInputs` without a queue."""
    limits = Limits(*map(np.int64, limits))
    one, unit, more = np.int64(1), np.float64(1.0), np.bool_(False)
    return LoopInputs(numbers, root, None, rounds, limits, one, unit, more)


def _like(shapes, num_rounds):
    """`LoopInputs` for numbers of these `(shape, dtype)`, to trace with."""
    numbers = tuple(jax.ShapeDtypeStruct(*shape) for shape in shapes)
    return inputs_for(numbers, root_key(0), np.zeros(num_rounds, np.int64))


class Manner(NamedTuple):
    """How replications are played."""

    phased: bool  # a phase or a batch at a time, not one arm
    contextual: bool = False  # whether each round shows something new
    stops: bool = True  # whether the algorithm may ever be done
    answers_one: bool = True  # whether its answer is an index, not a set


class Sizes(NamedTuple):
    """Of a lane, and how it plays."""

    lane: int  # bytes of all it carries
    record: int  # numbers in its record
    own: bool  # whether it has its own world
    manner: Manner


@functools.lru_cache(maxsize=512)
def _look(world, shapes, num_rounds):
    """A lane and a record of a world whose numbers have these `(shape, dtype)`; its `Manner`."""
    found = []

    def look(inputs):
        trial = world(inputs.numbers)
        lane, record = any_lane(trial, inputs)
        env, algorithm, _ = trial.build(lane.problem)
        shown = bool(jax.tree.leaves(jax.eval_shape(env.context, lane.run.key)))
        one_arm, stops = kind(lane.run, env, algorithm)
        found.append(Manner(not one_arm, shown, stops, lane.run.answer.ndim == 0))
        return lane, record

    like = _like(shapes, num_rounds)
    check_world(world, like)
    return *jax.eval_shape(look, like), found[0]


def manner_of(world, numbers, num_rounds=0):
    """The `Manner` of a world; nothing is compiled."""
    with jax.enable_x64(True):
        return _look(world, shapes_of(numbers), num_rounds)[2]


@functools.lru_cache(maxsize=512)
def sizes(world, shapes, num_rounds):
    """`Sizes` of a world whose numbers have these `(shape, dtype)`."""
    lane, _, manner = _look(world, shapes, num_rounds)
    carried = sum(x.size * np.dtype(_plain(x.dtype)).itemsize for x in jax.tree.leaves(lane))
    answer = sum(x.size for x in jax.tree.leaves(lane.run.answer))
    record = lane.run.arm_pulls.size + answer + num_rounds + 8
    return Sizes(carried, record, bool(jax.tree.leaves(lane.problem)), manner)


def shape_of(sizes, *, replications, batch, devices, engine="xla"):
    """Lanes of a device, and what follows.

    By default as many lanes as the cache or the device holds, a power of 2, so that few shapes
    are compiled; never many more than there are replications.
    """
    number = 1 if devices is None else len(devices)
    platform = jax.default_backend() if devices is None else devices[0].platform
    engine = engine_for(sizes.manner.contextual, platform, engine)
    if batch is None:
        lanes = _usual(sizes, -(-replications // number), platform, engine)
    else:
        lanes = -(-min(batch, replications) // number)
    vector = VECTOR.get(engine, VECTOR["xla"])
    lanes = -(-lanes // vector) * vector
    rows = max(1, RECORD_BYTES // (8 * sizes.record))
    lot = max(vector, lanes // LOT) if sizes.own else lanes
    queue = min(8 * lanes, rows)
    return Shape(lanes, max(1, lanes // TURN), lot, queue, engine, sizes.manner.stops)


def _usual(sizes, share, platform, engine):
    """Lanes for a share of the replications, where nobody says how many."""
    most = PHASED_BYTES.get(platform, DEVICE_BYTES) // sizes.lane
    if not sizes.manner.phased:
        held = CACHE_BYTES.get(platform, DEVICE_BYTES) // sizes.lane
        most = max(held, min(most, USUAL_LANES))
    most = min(MOST_LANES.get(platform, 2**17), max(FEWEST_LANES, most))
    if platform == "cpu" and not sizes.manner.phased:
        most = min(most, max(SHORT_LANES, _power(max(1, share // TURNS))))
        if engine == "native":  # it holds two registers in the cache
            most = min(most, USUAL_LANES)
    return min(_power(most), 2 * _power(max(1, share - 1)))


def shapes_of(numbers):
    """The `(shape, dtype)` of each, all that a program knows of them; hashable."""
    return tuple((x.shape, x.dtype) for x in map(_strong, numbers))


def _strong(x):
    """An array whose type no other number can change."""
    is_key = isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return x if is_key else np.asarray(x)


def _plain(dtype):
    return np.uint64 if jnp.issubdtype(dtype, jax.dtypes.prng_key) else dtype


def _power(number):
    """The largest power of 2 up to `number`."""
    return 1 << (int(number).bit_length() - 1)


class HostLoop:
    """Plays a list of replications on one or more devices."""

    def __init__(
        self,
        world,
        numbers,
        root,
        *,
        replications,
        batch,
        limits,
        rounds,
        devices=None,
        engine="xla",
    ):
        self._count = 1 if devices is None else len(devices)
        numbers, shapes = tuple(map(_strong, numbers)), shapes_of(numbers)
        if devices is None and sum(x.nbytes for x in numbers) > LARGE_BYTES:
            numbers = jax.device_put(numbers)  # once, and not in every call
        self._inputs = inputs_for(numbers, root, np.asarray(rounds, np.int64), limits)
        self.shape = shape_of(
            sizes(world, shapes, len(rounds)),
            replications=replications,
            batch=batch,
            devices=devices,
            engine=engine,
        )
        self._apart = devices is not None
        began = time.perf_counter()
        self._which = world, self.shape, shapes, len(rounds), devices
        self._step = program(*self._which)
        self.compile_seconds = time.perf_counter() - began  # next to none if compiled before
        self.offered = self.useful = 0  # rounds of all lanes, and those played by live ones

    def run(self, waiting):
        """Yield the `Record` of replications as they end, until all of `waiting` have."""
        left, under_way, chunks = np.asarray(waiting, np.int64), np.zeros(self._count, int), 16
        back = left[:0]  # what was queued before, and not taken
        batch = nobody(*self._which)
        while len(back) + len(left) or under_way.any():
            more = self._count * self.shape.queue - len(back)
            took, left = np.concatenate([back, left[:more]]), left[more:]
            queue = self._queue(took, self._count)
            began = time.perf_counter()
            batch = self._step(self._call(queue, chunks, bool(len(left))), batch)
            records, taken = self._harvest(batch)
            seconds = time.perf_counter() - began
            chunks = _next_chunks(chunks, seconds)
            back = np.sort(np.concatenate([r[n:] for r, n in zip(queue, taken, strict=True)]))
            back = back[back >= 0]
            under_way += taken - np.array([len(r.id) for r in records])
            yield jax.tree.map(lambda *xs: np.concatenate(xs), *records)

    def _call(self, queue, chunks, more):
        if not self._apart:
            queue = queue[0]
        return self._inputs._replace(queue=queue, max_chunks=np.int64(chunks), more=np.bool_(more))

    def _queue(self, ids, devices):
        """Replications dealt out to the devices in turn, `[D, Q]`, -1 where there are none."""
        queue = np.full((devices, self.shape.queue), -1)
        for device in range(devices):
            mine = ids[device::devices]
            queue[device, : len(mine)] = mine
        return queue

    def _harvest(self, batch):
        """What each device has ended since the last call, and how much of its queue it took."""
        counts = [
            np.atleast_1d(x) for x in (batch.written, batch.taken, batch.useful, batch.offered)
        ]
        written, taken, useful, offered = counts
        self.useful += int(useful.sum())
        self.offered += int(offered.sum())

        def rows(device):
            mine = device if self._apart else ...
            return jax.tree.map(lambda x: np.asarray(x)[mine][: written[device]], batch.records)

        return [rows(device) for device in range(self._count)], taken


def _next_chunks(chunks, seconds):
    """Double while a call is short for the clock, halve while it is long."""
    if seconds < CALL_SECONDS / 2:
        return min(chunks * 2, 2**40)
    return max(chunks // 2, 1) if seconds > CALL_SECONDS * 2 else chunks
