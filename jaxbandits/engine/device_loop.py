"""Lanes, the compiled half: many replications side by side, each lane refilled when it ends.

Stopping times differ by a factor of 100 inside a batch. A compiled loop steps all lanes by a
chunk (32 rounds, or one phase); when enough of them have ended, their records are written out
and the next replications of a queue start in their lanes. A replication's results come from
its own key and round counter, so neither the number of lanes nor the neighbours change them.
Arrays hold the lane in their last axis, see `lanewise`; tables of records have a row for each.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.random import fold_in
from jaxtyping import Array, Bool, Float, Int

from ..compilers.cpp import ONE_LANE, VECTORS, Target, Unsupported, renewed, repeated
from ..compilers.cuda import GPU
from ..compilers.lanewise import lanewise, materialised, where
from ..core import Algorithm, Env, Move, Run
from ..types import Key, Pytree, Scalar, Table
from .episode import (
    Limits,
    MoveTraits,
    answer_exists,
    asked,
    chunk,
    initial_state,
    is_idle,
    run_from,
    start,
)
from .schedules import Chunk, in_turn, packed, together, with_state
from .tables import Tables, columns_of, empty_tables

# Contextual problems have others, see `schedules`.
ENGINES: tuple[str, ...] = ("auto", "xla", "native", "cuda")
# Those that play many rounds of a lane in one program; the last is that of a GPU on a CPU.
FUSED: dict[str, Target] = {"native": VECTORS, "cuda": GPU, "one lane": ONE_LANE}
# Those that also start runs by such a program: many small operations, which XLA compiles slowly.
STARTS_TOO: tuple[str, ...] = ("native",)
# Of a lane, up to which they do. Lanes of 100 kB started in a quarter of the time of XLA; the eight
# lanes of a register with 720 kB each do not fit the second-level cache.
STARTED_BYTES: int = 2**18
PAIRED_LANES: int = 256  # up to which each lane is compared with each: quick to compile, as fast
# Chunks that an engine computes before it looks whether lanes wait; fewer of large lanes, whose
# rounds take long: until then neither Ctrl-C nor the progress bar is served.
BURST: int = 8
BURST_BYTES: int = 2**23  # of the lanes of that many chunks
# The same on a GPU, where looking costs a dozen launches: many chunks of small lanes, and few of
# large ones. Their chunks take longer than looking, and lanes that have ended wait for a launch:
# 240 rounds of Top-m took 1.6 times as long by launches of 1,024 rounds as of 64.
LAUNCH_BURSTS: tuple[int, int] = (2, 16)  # fewest, most
LAUNCH_BYTES: int = 2**12  # of the lanes of that many chunks
SCHEDULES: dict[str, Callable[[Chunk, int], Chunk]] = {
    "in turn": in_turn,
    "together": lambda lane_chunk, _: together(lane_chunk),
}
REPLICATIONS_PER_CELL: int = 2**40  # at most: `id = cell * REPLICATIONS_PER_CELL + replication`

Numbers: TypeAlias = Sequence[Any]  # arrays and floats of a structure, see `partition`
Cell: TypeAlias = Scalar  # the index of one of the cells that share a program, see `stack`
Replication: TypeAlias = Scalar  # its number r


class ProblemChecks(NamedTuple):
    """Whether a replication can be run on its problem."""

    possible: Bool[Table, ""]  # its numbers are finite, and its rewards can have them
    spans: Bool[Table, ""]  # its arms span what they must, as far as double precision tells

    @property
    def passed(self) -> Bool[Table, ""]:
        """Whether both hold."""
        return self.possible & self.spans


class Lane(NamedTuple):
    """A run, with what belongs to it alone. In a `Batch` each array has a last axis [L]."""

    run: Run
    problem: Pytree
    checks: ProblemChecks
    id: Int[Table, ""]  # of its replication, see `REPLICATIONS_PER_CELL`; -1 for none
    curve: Float[Table, " T"]  # regret at the recorded rounds


class Record(NamedTuple):
    """What is kept of a replication. The host's records have a first axis [R]."""

    id: Int[Table, ""]
    checks: ProblemChecks
    pulls: Int[Table, ""]
    answer: Table  # int [], or bool [M] for sets
    correct: Bool[Table, ""]
    stopped: Bool[Table, ""]
    arm_pulls: Int[Table, " K"]
    regret: Float[Table, " T"]
    info: Mapping[str, Table]  # [] each
    # bool [] each: what explains how a run has ended; of regret runs `broken` alone
    facts: Mapping[str, Table]
    answer_exists: Bool[Table, ""]  # or none was given
    regret_errors: Float[Table, " K"] | None  # of `Env`; None without a horizon or such


class Batch(NamedTuple):
    """Everything a device holds between two calls."""

    lanes: Lane  # [L]
    records: Tables  # [Q, number] of records, of which the first `written` are new
    written: Int[Table, ""]
    taken: Int[Table, ""]  # replications started from the queue
    chunks: Int[Table, ""]  # computed by all lanes
    offered: Int[Table, ""]  # rounds computed by all lanes
    useful: Int[Table, ""]  # those of them that belonged to live runs


class LoopInputs(NamedTuple):
    """What the host decides anew for each call; numbers only."""

    numbers: Numbers  # of the structure
    root: Key  # of the seed
    queue: Int[Table, " Q"]  # ids to start, -1 from the end of the queue on
    rounds: Int[Table, " T"]  # where the regret is recorded
    limits: Limits
    max_chunks: Scalar
    unit: Scalar  # 1.0, see `lanewise`
    more: Bool[Table, ""] | np.bool_  # the queue will be filled again, so return when it is empty


class Episodes(Protocol):
    """What a lane does: a problem is drawn, a run starts, plays chunks, and leaves a record.

    All of it is for one lane, and for numbers that are known.
    """

    def problem(self, inputs: LoopInputs, id: Scalar) -> Pytree:
        """What belongs to the replication of an id alone, besides its random stream."""
        ...

    def start(self, inputs: LoopInputs, id: Scalar, problem: Pytree, like: Run) -> Lane:
        """See `start_lane`."""
        ...

    def chunk(
        self, inputs: LoopInputs, moves: MoveTraits, lane: Lane
    ) -> tuple[Lane, Int[Array, ""], Int[Array, ""]]:
        """See `lane_chunk`."""
        ...

    def record(self, inputs: LoopInputs, lane: Lane, *, stops: bool) -> Record:
        """See `record_of`."""
        ...


class EpisodeFactory(NamedTuple):
    """How a replication gets its environment and its algorithm."""

    # (key, cell, replication) -> problem: a pytree, empty where all replications share one
    draw: Callable[[Key | None, Cell, Replication], Pytree]
    build: Callable[[Pytree], tuple[Env, Algorithm, ProblemChecks]]  # of a problem
    locate: Callable[[Any], tuple[Cell, Replication]] = lambda id: (0, id)  # of an id

    def problem(self, inputs: LoopInputs, id: Scalar) -> Pytree:
        """What belongs to the replication of an id alone, besides its random stream."""
        cell, replication = self.locate(jnp.maximum(id, 0))
        return self.draw(_key(self, inputs, id), cell, replication)

    def start(self, inputs: LoopInputs, id: Scalar, problem: Pytree, like: Run) -> Lane:
        """See `start_lane`."""
        return start_lane(self, inputs, id, problem, like)

    def chunk(
        self, inputs: LoopInputs, moves: MoveTraits, lane: Lane
    ) -> tuple[Lane, Int[Array, ""], Int[Array, ""]]:
        """See `lane_chunk`."""
        return lane_chunk(self, inputs, moves, lane)

    def record(self, inputs: LoopInputs, lane: Lane, *, stops: bool) -> Record:
        """See `record_of`."""
        return record_of(self, inputs, lane, stops=stops)


# The static half of what is compiled: hashable, called with the numbers.
Structure: TypeAlias = Callable[[Numbers], Episodes]
# That of functions that are called in each trace; it may have `traces`, see `TraceCache`.
Factories: TypeAlias = Callable[[Numbers], EpisodeFactory]


class Shape(NamedTuple):
    """Sizes of a batch, static."""

    lanes: int
    refill_from: int  # lanes that must wait before they are written out and refilled
    refill_most: int  # lanes that are refilled at once
    queue: int
    moves: MoveTraits  # of the algorithm
    engine: str = "xla"  # one of `ENGINES`, `FUSED` or `SCHEDULES`
    gathers: bool = False  # of "xla", see `lanewise`

    @property
    def records(self) -> int:
        """Rows for all that can end in a call, started or under way, and for one more refill."""
        return self.queue + 2 * self.lanes


def _key(factory, inputs, id):
    _, replication = factory.locate(jnp.maximum(id, 0))
    return fold_in(inputs.root, replication)


def start_lane(
    factory: EpisodeFactory,
    inputs: LoopInputs,
    id: Scalar,
    problem: Pytree,
    like: Run | None = None,
) -> Lane:
    """The lane of a replication; a dead one for id -1 or where a check of the problem failed.

    Args:
      like: see `episode.start`.
    """
    key = _key(factory, inputs, id)
    env, algorithm, checks = factory.build(problem)
    return _lane(inputs, id, problem, checks, start(key, env, algorithm, like))


def _lane(inputs, id, problem, checks, run):
    run = run._replace(live=checks.passed & (id >= 0))
    return Lane(run, problem, checks, id, jnp.zeros(inputs.rounds.shape, float))


def held(shape: Shape, lane: Lane) -> Lane:
    """A lane as a `Batch` of this shape holds it."""
    return with_state(lane, packed) if shape.engine == "in turn" else lane


def example_lane(factory: EpisodeFactory, inputs: LoopInputs) -> tuple[Lane, Record, MoveTraits]:
    """A lane, its record and the traits of its moves, all from one trace of the algorithm."""
    zero = jnp.zeros((), int)
    key, problem = _key(factory, inputs, zero), factory.problem(inputs, zero)
    env, algorithm, checks = factory.build(problem)
    state = initial_state(key, algorithm)
    like = asked(key, zero, state, env, algorithm)
    lane = _lane(inputs, zero, problem, checks, run_from(key, state, env, like))
    return lane, record_of(factory, inputs, lane, stops=False), like.traits


def lane_chunk(
    factory: EpisodeFactory, inputs: LoopInputs, moves: MoveTraits, lane: Lane
) -> tuple[Lane, Int[Array, ""], Int[Array, ""]]:
    """One chunk: the lane after it, rounds played, rounds computed."""
    env, algorithm, _ = factory.build(lane.problem)
    before, curve = lane.run, lane.curve
    run, regrets = chunk(before, env, algorithm, inputs.limits, moves, to_the_last=curve.size > 0)
    if curve.size:
        settled, regret = _recorded(inputs.rounds, before, run, regrets)
        if moves.stops:  # from there on its answer is drawn
            each = jnp.where(run.done, env.regret(_draw_of(run.answer)), 0.0)
            regret = regret + each * jnp.maximum(inputs.rounds - run.pulls, 0)
        curve = jnp.where(settled, regret, curve)
    played, offered = run.rounds - before.rounds, jnp.array(regrets.size)
    return lane._replace(run=run, curve=curve), played, offered


def _recorded(rounds, before, run, regrets):
    """At which of the `rounds [T]` a chunk settles the regret, and the regret there.

    A round is a draw. Those of a phase come in random order: the regret expected after some of
    them is their share of the phase's.
    """
    if regrets.size == 1:
        settled = (rounds > before.pulls) & ((rounds <= run.pulls) | ~run.live) & before.live
        share = (rounds - before.pulls) / jnp.maximum(run.pulls - before.pulls, 1)
        return settled, before.regret + jnp.clip(share, 0.0, 1.0) * (run.regret - before.regret)
    index = rounds - before.rounds - 1
    settled = (index >= 0) & ((index < regrets.size) | ~run.live) & before.live
    return settled, regrets[jnp.clip(index, 0, regrets.size - 1)]


def _draw_of(answer):
    """The move that draws the arm of an answer."""
    return Move(answer, None, jnp.array(False), answer)


def record_of(factory: EpisodeFactory, inputs: LoopInputs, lane: Lane, *, stops: bool) -> Record:
    """What is kept of a lane whose run has ended; its answer is drawn until the horizon."""
    run = lane.run
    facts: dict[str, Any] = {"broken": run.broken}
    env, _, _ = factory.build(lane.problem)
    if env.unsettled is not None:
        facts["unsettled"] = env.unsettled(run.answer)
    if not lane.curve.size:
        # An algorithm that never stops is not kept from stopping by ties.
        tied = env.tied(run.answer) if stops else jnp.array(False)
        facts |= {"tied": tied, "idle": is_idle(run), "hidden": ~lane.checks.spans}
    elif stops:
        rest = jnp.where(run.done, inputs.limits.pulls - run.pulls, 0)
        more = jnp.where(jnp.arange(env.num_arms) == run.answer, rest, 0)
        run = run._replace(pulls=run.pulls + rest, arm_pulls=run.arm_pulls + more)
    return Record(
        lane.id,
        lane.checks,
        run.pulls,
        run.answer,
        env.correct(run.answer),
        run.done,
        run.arm_pulls,
        lane.curve,
        run.info,
        jax.tree.map(jnp.asarray, facts),
        ~lane.run.done | answer_exists(env, run.answer),
        None
        if env.regret_errors is None or not lane.curve.size
        else env.regret_errors(run.arm_pulls),
    )


def _available(batch, inputs):
    """Lanes to write out or to fill, lanes at work, bool [L]; whether the queue has more."""
    lanes = batch.lanes
    filled = lanes.id >= 0
    end = inputs.queue.size - 1
    waiting = (batch.taken <= end) & (inputs.queue[jnp.minimum(batch.taken, end)] >= 0)
    at_work = filled & lanes.run.live
    return jnp.where(filled, ~lanes.run.live, waiting), at_work, waiting


def _rank(mask):
    """How many lanes of a mask come before each, int [L]."""
    number = len(mask)
    if number > PAIRED_LANES:
        return jnp.cumsum(mask) - mask
    return (mask & np.tri(number, k=-1, dtype=bool)).sum(1)


def _inverse(rows):
    """The lane that goes to each row, int [L]; any lane for a row to which none goes."""
    number = len(rows)
    if number > PAIRED_LANES:
        return jnp.zeros(number, int).at[rows].set(jnp.arange(number), mode="drop")
    lane = np.arange(number)
    return jnp.where(rows == lane[:, None], lane, 0).sum(1)


def refill(episodes: Episodes, inputs: LoopInputs, shape: Shape, batch: Batch) -> Batch:
    """Write out the lanes that have ended and start the next replications in free ones.

    All lanes compute it and a mask says for which it counts: whole rows of lanes are cheap, a few
    scattered ones are not. Instances that are drawn anew are not cheap, hence
    `shape.refill_most`.
    """
    available, _, _ = _available(batch, inputs)
    rank = _rank(available)
    served = available & (rank < shape.refill_most)
    ended = served & (batch.lanes.id >= 0)
    index = batch.taken + rank
    queued = inputs.queue[jnp.minimum(index, shape.queue - 1)]
    begins = served & (index < shape.queue) & (queued >= 0)
    begins = materialised(begins, inputs.unit)  # it decides over each array of a lane
    ids = jnp.where(begins, queued, -1)
    lanes = _started(episodes, inputs, shape, begins, ids, rank, batch.lanes)
    # A lane without a successor is left as it ended, for there its loops are short.
    lanes = lanes._replace(id=jnp.where(served, ids, batch.lanes.id))
    record = partial(episodes.record, inputs, stops=shape.moves.stops)
    write = lanewise(record, shape.lanes, inputs.unit)
    rows = jnp.where(ended, _rank(ended), shape.lanes)
    first = _inverse(rows)

    def append(table, columns):
        return lax.dynamic_update_slice_in_dim(table, _rows(columns, first), batch.written, 0)

    return batch._replace(
        lanes=lanes,
        records=jax.tree.map(append, batch.records, columns_of(write(batch.lanes))),
        written=batch.written + ended.sum(),
        taken=batch.taken + begins.sum(),
    )


@jax.jit  # traced once for a shape
def _rows(columns, lanes):
    """The columns of these lanes, as rows."""
    return jnp.moveaxis(columns, -1, 0)[lanes]


def _started(episodes, inputs, shape, begins, ids, rank, lanes):
    """The lanes, where `begins [L]` with the run of their id; see `refill`."""
    like = _one_lane(lanes)
    if shape.engine in STARTS_TOO and bytes_of(like) <= STARTED_BYTES:
        with contextlib.suppress(Unsupported):
            return _started_natively(episodes, inputs, shape, begins, ids, lanes)
    over = partial(lanewise, unit=inputs.unit)
    most = shape.refill_most
    draw = over(partial(episodes.problem, inputs), most)
    drawn = jnp.zeros(most, int).at[jnp.where(ids >= 0, rank, most)].set(ids, mode="drop")
    # Of the instances drawn, a lane gets the one of its rank.
    rank = jnp.clip(rank, 0, most - 1)
    problems = jax.tree.map(lambda x: x[..., rank], draw(drawn))

    def start_one(id, problem):
        return held(shape, episodes.start(inputs, id, problem, like.run))

    begun = over(start_one, shape.lanes)(ids, problems)
    return jax.tree.map(partial(where, begins), begun, lanes)


def _started_natively(episodes, inputs, shape, begins, ids, lanes):
    """The same by a program of the engine, in the registers in which a lane begins.

    Raises:
      Unsupported: an operation has no rule there.
    """
    like = _one_lane(lanes).run

    def started(id):
        return episodes.start(inputs, id, episodes.problem(inputs, id), like)

    return renewed(started, shape.lanes, FUSED[shape.engine])(begins, lanes, ids)


def bytes_of(shapes: Pytree) -> int:
    """Bytes of arrays of these shapes; a key has two words of 32 bits."""

    def plain(dtype):
        return np.uint64 if jnp.issubdtype(dtype, jax.dtypes.prng_key) else dtype

    return sum(x.size * np.dtype(plain(x.dtype)).itemsize for x in jax.tree.leaves(shapes))


def _one_lane(lanes):
    """The shapes of one of the lanes."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[:-1], x.dtype), lanes)


def _chunk_of_all_lanes(episodes, inputs, shape):
    """A function `lanes -> (lanes, rounds played, rounds computed)`."""
    one_lane = partial(episodes.chunk, inputs, shape.moves)
    if shape.engine == "xla":
        return lanewise(one_lane, shape.lanes, inputs.unit, gathers=shape.gathers)
    if shape.engine in SCHEDULES:
        scheduled = SCHEDULES[shape.engine]
        return lambda lanes: scheduled(one_lane, _burst(shape.engine, lanes))(lanes)

    def step(lane):
        lane, played, offered = one_lane(lane)
        return lane, (played, offered)

    target = FUSED[shape.engine]

    def chunk_lanes(lanes):
        most = _burst(shape.engine, lanes)
        burst = repeated(step, shape.lanes, lambda lane: lane.run.live, most, target)
        lanes, (played, offered) = burst(lanes)
        return lanes, played, offered

    return chunk_lanes


def _burst(engine, lanes):
    """Chunks of a lane before the engine looks at the others; on a GPU those of a launch."""
    (fewest, most), room = (1, BURST), BURST_BYTES
    if engine == "cuda":
        (fewest, most), room = LAUNCH_BURSTS, LAUNCH_BYTES
    return max(fewest, min(most, room // bytes_of(_one_lane(lanes))))


def run_queue(structure: Structure, shape: Shape, inputs: LoopInputs, batch: Batch) -> Batch:
    """The compiled loop: until the queue is done, or empty with more to come, or `max_chunks`."""
    episodes = structure(inputs.numbers)
    chunk_lanes = _chunk_of_all_lanes(episodes, inputs, shape)

    def refill_is_due(batch):
        """Enough lanes wait to be refilled, or some do and no lane is at work."""
        available, at_work, _ = _available(batch, inputs)
        number = available.sum()
        return (number >= shape.refill_from) | ((number > 0) & ~at_work.any())

    def goes_on(batch):
        _, at_work, waiting = _available(batch, inputs)
        paused = (batch.chunks >= inputs.max_chunks) | (inputs.more & ~waiting)
        return at_work.any() & ~paused

    def advance(batch):
        lanes, played, offered = chunk_lanes(batch.lanes)
        return batch._replace(
            lanes=lanes,
            chunks=batch.chunks + 1,
            offered=batch.offered + offered.sum(),
            useful=batch.useful + played.sum(),
        )

    def refill_and_advance(batch):
        batch = lax.while_loop(refill_is_due, partial(refill, episodes, inputs, shape), batch)
        return lax.while_loop(lambda batch: goes_on(batch) & ~refill_is_due(batch), advance, batch)

    zero = jnp.zeros((), int)
    batch = batch._replace(written=zero, taken=zero, chunks=zero, offered=zero, useful=zero)
    return lax.while_loop(
        lambda batch: goes_on(batch) | refill_is_due(batch), refill_and_advance, batch
    )


def empty_batch(
    lane: Lane,
    record: Record,
    shape: Shape,
    leading: tuple[int, ...] = (),
    numpy: Any = np,
) -> Batch:
    """A batch with nothing in it, for lanes and records like these; `leading` axes come first.

    Args:
      numpy: what makes the arrays, such as `jax.numpy` within a compiled program. By NumPy itself
        nothing is compiled, which would take a moment.
    """
    lanes = jax.tree.map(lambda x: _zeros((*leading, *x.shape, shape.lanes), x.dtype, numpy), lane)
    records = empty_tables(record, (*leading, shape.records), numpy)
    # Runs that have ended, and were not cut short.
    ended = lanes.run._replace(done=numpy.ones((*leading, shape.lanes), bool))
    unfilled = lanes._replace(run=ended, id=numpy.full((*leading, shape.lanes), -1))
    return Batch(unfilled, records, *(numpy.zeros(leading, int) for _ in range(5)))


def _zeros(shape, dtype, numpy):
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        data: Any = numpy.zeros((*shape, 2), np.uint32)
        return jax.random.wrap_key_data(data, impl="threefry2x32")
    return numpy.zeros(shape, dtype)
