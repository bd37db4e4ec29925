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
from jax import lax
from jax.random import fold_in

from .driver import Limits, chunk, start
from .lanewise import lanewise


class Trial(NamedTuple):
    """How a replication gets its world and its algorithm."""

    draw: Any  # key -> problem: a pytree of arrays, empty where all replications share one
    build: Any  # problem -> (env, algorithm, finite)


class Lane(NamedTuple):
    """A run, with what belongs to it alone."""

    run: Any
    problem: Any
    finite: Any  # bool []: whether its instance is
    id: Any  # int []: its replication, -1 for none
    curve: Any  # float [T]: regret at the recorded rounds


class Record(NamedTuple):
    """What is kept of a replication."""

    id: Any
    finite: Any
    pulls: Any
    answer: Any
    correct: Any
    stopped: Any
    arm_pulls: Any
    regret: Any
    info: Any


class Batch(NamedTuple):
    """Everything a device holds between two calls."""

    lanes: Lane  # [L]
    records: Record  # [Q], of which `written` count
    written: Any  # int []
    taken: Any  # int []: started from the queue
    chunks: Any  # int []: played by all lanes
    offered: Any  # int []: rounds of all lanes
    useful: Any  # int []: those played by lanes that were live


class Orders(NamedTuple):
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
    turn: int  # lanes that are written out and refilled at once
    queue: int

    @property
    def records(self):
        """Rows for what a call can end, started or under way, and for one turn's overhang."""
        return self.queue + self.lanes + self.turn


def start_lane(trial, orders, id):
    """The lane of a replication; a dead one for id -1 or an instance that is not finite."""
    key = fold_in(orders.root, jnp.maximum(id, 0))
    problem = trial.draw(key)
    env, algorithm, finite = trial.build(problem)
    run = start(key, env, algorithm)
    run = run._replace(live=finite & (id >= 0))
    return Lane(run, problem, finite, id, jnp.zeros(orders.rounds.shape, float))


def play_lane(trial, orders, lane):
    """One chunk: the lane after it, rounds played, rounds there were to play."""
    env, algorithm, _ = trial.build(lane.problem)
    begun = lane.run.rounds
    run, regrets = chunk(lane.run, env, algorithm, orders.limits)
    curve = lane.curve
    if curve.size:
        place = orders.rounds - begun - 1
        here = (place >= 0) & (place < regrets.size) & lane.run.live
        curve = jnp.where(here, regrets[jnp.clip(place, 0, regrets.size - 1)], curve)
    return lane._replace(run=run, curve=curve), run.rounds - begun, jnp.array(regrets.size)


def record_of(trial, lane):
    """What is kept of a lane whose run has ended."""
    run = lane.run
    env, _, _ = trial.build(lane.problem)
    correct = env.correct(run.answer)
    return Record(
        lane.id,
        lane.finite,
        run.pulls,
        run.answer,
        correct,
        run.done,
        run.arm_pulls,
        lane.curve,
        run.info,
    )


def _available(batch, orders):
    """Lanes to write out or to fill, lanes at work, bool [L]; whether the queue has more."""
    lanes = batch.lanes
    filled = lanes.id >= 0
    end = orders.queue.size - 1
    waiting = (batch.taken <= end) & (orders.queue[jnp.minimum(batch.taken, end)] >= 0)
    at_work = filled & lanes.run.live
    return jnp.where(filled, ~lanes.run.live, waiting), at_work, waiting


def turn_over(trial, orders, shape, batch):
    """Write out and refill up to `shape.turn` of the lanes that are available."""
    available, _, _ = _available(batch, orders)
    # Lanes with something to write come first, so that the records have no gaps.
    urgency = jnp.where(available, 1 + (batch.lanes.id >= 0), 0).astype(jnp.int32)
    urgency, which = lax.top_k(urgency, shape.turn)
    leaving = jax.tree.map(lambda x: x[..., which], batch.lanes)
    ended = urgency == 2
    written = jax.vmap(partial(record_of, trial), -1)(leaving)
    place = batch.taken + jnp.cumsum(urgency > 0) - 1
    ids = orders.queue[jnp.minimum(place, shape.queue - 1)]
    ids = jnp.where((urgency > 0) & (place < shape.queue), ids, -1)
    started = jax.vmap(partial(start_lane, trial, orders), 0, -1)(ids)
    # A lane without a successor is left as it ended, for there its loops are short.
    emptied = batch.lanes._replace(id=batch.lanes.id.at[which].min(jnp.where(ended, -1, 2**62)))
    rows = jnp.where(ids >= 0, which, shape.lanes)  # out of range: nothing is written

    def append(table, new):
        return lax.dynamic_update_slice_in_dim(table, new, batch.written, 0)

    return batch._replace(
        lanes=jax.tree.map(lambda x, new: x.at[..., rows].set(new), emptied, started),
        records=jax.tree.map(append, batch.records, written),
        written=batch.written + ended.sum(),
        taken=batch.taken + (ids >= 0).sum(),
    )


def go(world, shape, orders, batch):
    """Play until the queue is done, or empty with more to come, or `max_chunks` are played."""
    trial = world(orders.numbers)
    play = lanewise(partial(play_lane, trial, orders), shape.lanes, orders.unit)

    def due(batch):
        """Whether to turn over now: enough lanes wait for it, or no lane is at work."""
        available, at_work, _ = _available(batch, orders)
        number = available.sum()
        return (number >= shape.turn) | ((number > 0) & ~at_work.any())

    def playing(batch):
        _, at_work, waiting = _available(batch, orders)
        paused = (batch.chunks >= orders.max_chunks) | (orders.more & ~waiting)
        return at_work.any() & ~paused

    def advance(batch):
        lanes, played, offered = play(batch.lanes)
        return batch._replace(
            lanes=lanes,
            chunks=batch.chunks + 1,
            offered=batch.offered + offered.sum(),
            useful=batch.useful + played.sum(),
        )

    def leg(batch):
        batch = lax.while_loop(due, partial(turn_over, trial, orders, shape), batch)
        return lax.while_loop(lambda batch: playing(batch) & ~due(batch), advance, batch)

    zero = jnp.zeros((), int)
    batch = batch._replace(written=zero, taken=zero, chunks=zero, offered=zero, useful=zero)
    return lax.while_loop(lambda batch: playing(batch) | due(batch), leg, batch)


def empty(world, shape, orders):
    """A batch with nothing in it."""
    trial = world(orders.numbers)
    lane = jax.eval_shape(lambda: start_lane(trial, orders, jnp.zeros((), int)))
    record = jax.eval_shape(partial(record_of, trial), lane)

    lanes = jax.tree.map(lambda x: _zeros((*x.shape, shape.lanes), x.dtype), lane)
    records = jax.tree.map(lambda x: _zeros((shape.records, *x.shape), x.dtype), record)
    zero = jnp.zeros((), int)
    nobody = lanes._replace(id=jnp.full(shape.lanes, -1))
    return Batch(nobody, records, zero, zero, zero, zero, zero)


def _zeros(shape, dtype):
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        data = jnp.zeros((*shape, 2), jnp.uint32)
        return jax.random.wrap_key_data(data, impl="threefry2x32")
    return jnp.zeros(shape, dtype)
