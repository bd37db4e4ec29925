"""Lanes, the compiled half: many replications side by side, each lane refilled when it ends.

Stopping times differ by a factor of 100 inside a batch. A compiled loop plays all lanes for a
chunk (32 rounds, or one phase); when enough of them have ended, their records are written out
and the next replications of a queue start in their place. A replication's numbers come from
its own key and round counter, so neither the number of lanes nor the neighbours change them.
Arrays hold the lane in their last axis, see `lanewise`; records have it first.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.random import fold_in

from ..compilers.cpp import repeated
from ..compilers.lanewise import lanewise
from ..core import Move
from .episode import Limits, chunk, exists, idle, start
from .schedules import in_turn, together

ENGINES = ("xla", "native")  # to choose from; a world with a context has its own, see `schedules`
FEW = 256  # lanes among which each is compared with each: compiled in a moment, and as fast
BURST = 8  # chunks that an engine plays before it looks whether lanes wait
APART = {"in turn": partial(in_turn, most=BURST), "together": together}
SPAN = 2**40  # replications that a world can have: `id = world * SPAN + replication`


class Sound(NamedTuple):
    """Whether the problem of a replication can be played."""

    finite: Any  # bool []: without NaN or infinity
    told: Any  # bool []: its arms span what they have to, as far as double precision tells

    @property
    def both(self):
        """Whether it can."""
        return self.finite & self.told


class EpisodeFactory(NamedTuple):
    """How a replication gets its world and its algorithm."""

    draw: Any  # (key, world, replication) -> problem: a pytree, empty where all share one
    build: Any  # problem -> (env, algorithm, Sound)
    place: Any = lambda id: (0, id)  # id -> (world, replication)


class Lane(NamedTuple):
    """A run, with what belongs to it alone."""

    run: Any
    problem: Any
    sound: Any
    id: Any  # int []: its replication, see `SPAN`, -1 for none
    curve: Any  # float [T]: regret at the recorded rounds


class Record(NamedTuple):
    """What is kept of a replication."""

    id: Any
    sound: Any
    pulls: Any
    answer: Any
    correct: Any
    stopped: Any
    arm_pulls: Any
    regret: Any
    info: Any
    facts: Any  # bool [] each: what explains how a run has ended; of regret runs `broken` alone
    exists: Any  # bool []: whether there is such an answer, or none was given


class Batch(NamedTuple):
    """Everything a device holds between two calls."""

    lanes: Lane  # [L]
    records: Record  # [Q], of which `written` count
    written: Any  # int []
    taken: Any  # int []: started from the queue
    chunks: Any  # int []: played by all lanes
    offered: Any  # int []: rounds of all lanes
    useful: Any  # int []: those played by lanes that were live


class LoopInputs(NamedTuple):
    """What the host decides anew for each call; numbers only."""

    numbers: Any  # of the trial
    root: Any  # key of the seed
    queue: Any  # int [Q]: replications to start, -1 from the end of the queue on
    rounds: Any  # int [T]: where the regret is recorded
    limits: Limits
    max_chunks: Any
    unit: Any  # 1.0, see `lanewise`
    more: Any  # bool []: the queue will be filled again, so return when it is empty


class Shape(NamedTuple):
    """Sizes of a batch, static."""

    lanes: int
    turn: int  # lanes that wait before any is written out and refilled
    lot: int  # lanes that are refilled at once
    queue: int
    engine: str = "xla"  # what plays, one of `ENGINES` or `APART`
    stops: bool = True  # whether the algorithm may ever be done

    @property
    def records(self):
        """Rows for what a call can end, started or under way, and for one turn's overhang."""
        return self.queue + 2 * self.lanes


def _key(trial, inputs, id):
    _, replication = trial.place(jnp.maximum(id, 0))
    return fold_in(inputs.root, replication)


def _problem(trial, inputs, id):
    world, replication = trial.place(jnp.maximum(id, 0))
    return trial.draw(_key(trial, inputs, id), world, replication)


def start_lane(trial, inputs, id, problem):
    """The lane of a replication; a dead one for id -1 or an instance that cannot be played."""
    key = _key(trial, inputs, id)
    env, algorithm, sound = trial.build(problem)
    run = start(key, env, algorithm)
    run = run._replace(live=sound.both & (id >= 0))
    return Lane(run, problem, sound, id, jnp.zeros(inputs.rounds.shape, float))


def any_lane(trial, inputs):
    """A lane and its record, for their shapes."""
    zero = jnp.zeros((), int)
    lane = start_lane(trial, inputs, zero, _problem(trial, inputs, zero))
    return lane, record_of(trial, inputs, lane, stops=False)


def lane_chunk(trial, inputs, lane, *, stops):
    """One chunk: the lane after it, rounds played, rounds there were to play."""
    env, algorithm, _ = trial.build(lane.problem)
    before, curve = lane.run, lane.curve
    run, regrets = chunk(before, env, algorithm, inputs.limits, to_the_last=curve.size > 0)
    if curve.size:
        here, regret = _recorded(inputs.rounds, before, run, regrets)
        if stops:  # from there on its answer is drawn
            each = jnp.where(run.done, env.regret(_drawing(run.answer)), 0.0)
            regret = regret + each * jnp.maximum(inputs.rounds - run.pulls, 0)
        curve = jnp.where(here, regret, curve)
    played, offered = run.rounds - before.rounds, jnp.array(regrets.size)
    return lane._replace(run=run, curve=curve), played, offered


def _recorded(rounds, before, run, regrets):
    """At which of the `rounds [T]` a chunk has settled the regret, and that regret, up to its end.

    A round is a draw. Those of a phase come in random order: the regret expected after some of
    them is their share of the phase's.
    """
    if regrets.size == 1:
        here = (rounds > before.pulls) & ((rounds <= run.pulls) | ~run.live) & before.live
        share = (rounds - before.pulls) / jnp.maximum(run.pulls - before.pulls, 1)
        return here, before.regret + jnp.clip(share, 0.0, 1.0) * (run.regret - before.regret)
    place = rounds - before.rounds - 1
    here = (place >= 0) & ((place < regrets.size) | ~run.live) & before.live
    return here, regrets[jnp.clip(place, 0, regrets.size - 1)]


def _drawing(answer):
    """The move that draws the arm of an answer."""
    return Move(answer, None, jnp.array(False), answer)


def record_of(trial, inputs, lane, *, stops):
    """What is kept of a lane whose run has ended; its answer is drawn until the horizon."""
    run, facts = lane.run, {"broken": lane.run.broken}
    env, _, _ = trial.build(lane.problem)
    if not lane.curve.size:
        # Ties keep nobody from stopping who never stops.
        tied = env.tied(run.answer) if stops else jnp.array(False)
        facts |= {"tied": tied, "idle": idle(run), "hidden": ~lane.sound.told}
    elif stops:
        rest = jnp.where(run.done, inputs.limits.pulls - run.pulls, 0)
        more = jnp.where(jnp.arange(env.num_arms) == run.answer, rest, 0)
        run = run._replace(pulls=run.pulls + rest, arm_pulls=run.arm_pulls + more)
    return Record(
        lane.id,
        lane.sound,
        run.pulls,
        run.answer,
        env.correct(run.answer),
        run.done,
        run.arm_pulls,
        lane.curve,
        run.info,
        jax.tree.map(jnp.asarray, facts),
        ~lane.run.done | exists(env, run.answer),
    )


def _available(batch, inputs):
    """Lanes to write out or to fill, lanes at work, bool [L]; whether the queue has more."""
    lanes = batch.lanes
    filled = lanes.id >= 0
    end = inputs.queue.size - 1
    waiting = (batch.taken <= end) & (inputs.queue[jnp.minimum(batch.taken, end)] >= 0)
    at_work = filled & lanes.run.live
    return jnp.where(filled, ~lanes.run.live, waiting), at_work, waiting


def _before(mask):
    """How many lanes of a mask come before each, int [L]."""
    number = len(mask)
    if number > FEW:
        return jnp.cumsum(mask) - mask
    return (mask & np.tri(number, k=-1, dtype=bool)).sum(1)


def _inverse(places):
    """The lane that goes to each place, int [L]; any for a place to which none goes."""
    number = len(places)
    if number > FEW:
        return jnp.zeros(number, int).at[places].set(jnp.arange(number), mode="drop")
    lane = np.arange(number)
    return jnp.where(places == lane[:, None], lane, 0).sum(1)


def turn_over(trial, inputs, shape, batch):
    """Write out the lanes that have ended and start the next replications in free ones.

    All lanes do it and a mask says for which it counts: whole rows of lanes are cheap, a few
    scattered ones are not. Instances that are drawn anew are not cheap, hence `shape.lot`.
    """
    available, _, _ = _available(batch, inputs)
    turn = _before(available)
    served = available & (turn < shape.lot)
    ended = served & (batch.lanes.id >= 0)
    place = batch.taken + turn
    ids = inputs.queue[jnp.minimum(place, shape.queue - 1)]
    ids = jnp.where(served & (place < shape.queue), ids, -1)
    begun = _start_lanes(trial, inputs, shape, ids, jnp.clip(turn, 0, shape.lot - 1))
    lanes = jax.tree.map(lambda new, old: jnp.where(ids >= 0, new, old), begun, batch.lanes)
    # A lane without a successor is left as it ended, for there its loops are short.
    lanes = lanes._replace(id=jnp.where(served, ids, batch.lanes.id))
    record = partial(record_of, trial, inputs, stops=shape.stops)
    write = lanewise(record, shape.lanes, inputs.unit)
    rows = jnp.where(ended, _before(ended), shape.lanes)
    first = _inverse(rows)

    def append(table, columns):
        new = jnp.moveaxis(columns, -1, 0)[first]
        return lax.dynamic_update_slice_in_dim(table, new, batch.written, 0)

    return batch._replace(
        lanes=lanes,
        records=jax.tree.map(append, batch.records, write(batch.lanes)),
        written=batch.written + ended.sum(),
        taken=batch.taken + (ids >= 0).sum(),
    )


def _start_lanes(trial, inputs, shape, ids, turn):
    """Lanes for `ids [L]`; of the drawn instances only those whose turn it is count."""
    over = partial(lanewise, unit=inputs.unit)
    draw = over(partial(_problem, trial, inputs), shape.lot)
    lot = jnp.zeros(shape.lot, int).at[jnp.where(ids >= 0, turn, shape.lot)].set(ids, mode="drop")
    problems = jax.tree.map(lambda x: x[..., turn], draw(lot))
    return over(partial(start_lane, trial, inputs), shape.lanes)(ids, problems)


def _chunk_of_lanes(trial, inputs, shape):
    """What plays all lanes: `lanes -> (lanes, rounds played, rounds there were to play)`."""
    one = partial(lane_chunk, trial, inputs, stops=shape.stops)
    if shape.engine == "xla":
        return lanewise(one, shape.lanes, inputs.unit)
    if shape.engine in APART:
        return APART[shape.engine](one)

    def step(lane):
        lane, played, offered = one(lane)
        return lane, (played, offered)

    burst = repeated(step, shape.lanes, lambda lane: lane.run.live, BURST)

    def chunk_lanes(lanes):
        lanes, (played, offered) = burst(lanes)
        return lanes, played, offered

    return chunk_lanes


def go(world, shape, inputs, batch):
    """Play until the queue is done, or empty with more to come, or `max_chunks` are played."""
    trial = world(inputs.numbers)
    chunk_lanes = _chunk_of_lanes(trial, inputs, shape)

    def due(batch):
        """Whether to turn over now: enough lanes wait for it, or no lane is at work."""
        available, at_work, _ = _available(batch, inputs)
        number = available.sum()
        return (number >= shape.turn) | ((number > 0) & ~at_work.any())

    def playing(batch):
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

    def leg(batch):
        batch = lax.while_loop(due, partial(turn_over, trial, inputs, shape), batch)
        return lax.while_loop(lambda batch: playing(batch) & ~due(batch), advance, batch)

    zero = jnp.zeros((), int)
    batch = batch._replace(written=zero, taken=zero, chunks=zero, offered=zero, useful=zero)
    return lax.while_loop(lambda batch: playing(batch) | due(batch), leg, batch)


def empty(lane, record, shape, first=()):
    """A batch with nothing in it, for lanes and records like these; `first` are leading axes.

    Made by the host: a program for it would take a moment to compile.
    """
    lanes = jax.tree.map(lambda x: _zeros((*first, *x.shape, shape.lanes), x.dtype), lane)
    records = jax.tree.map(lambda x: _zeros((*first, shape.records, *x.shape), x.dtype), record)
    ended = lanes.run._replace(done=np.ones((*first, shape.lanes), bool))  # and not cut short
    nobody = lanes._replace(run=ended, id=np.full((*first, shape.lanes), -1))
    return Batch(nobody, records, *(np.zeros(first, int) for _ in range(5)))


def _zeros(shape, dtype):
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        data = np.zeros((*shape, 2), np.uint32)
        return jax.random.wrap_key_data(data, impl="threefry2x32")
    return np.zeros(shape, dtype)
