"""Lanes: many replications side by side, each lane refilled as soon as its run has ended.

Stopping times differ by a factor of 100 inside a batch, so replications are played in chunks of
rounds; between chunks, ended runs are written out and their lanes start the next replications.
A replication's numbers come from its own key and round counter, so neither the number of
lanes, nor the chunk length, nor the neighbours change them.
"""

import functools
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.random import fold_in
from jax.sharding import AxisType, PartitionSpec

from .driver import BLOCK, advance, is_live, start

DEFAULT_LANES = 512
CHUNK_SECONDS = 0.05  # long enough to hide the host's part, short enough to refill promptly


class Record(NamedTuple):
    """What is kept of a replication."""

    pulls: Any
    answer: Any
    correct: Any
    stopped: Any
    arm_pulls: Any
    regret: Any
    info: Any


class Programs(NamedTuple):
    """The two compiled programs of a batch."""

    fill: Any  # (numbers, root, runs, ids, fresh) -> runs, finite
    step: Any  # (numbers, runs, rounds, max_pulls) -> runs, live, record


@functools.lru_cache(maxsize=128)
def programs(world, devices=None):
    """Programs for a `world(numbers, key) -> (env, algorithm, finite)`.

    Cached by the structure of the world, so that other numbers compile nothing.
    """

    def start_lane(numbers, root, replication):
        key = fold_in(root, jnp.maximum(replication, 0))
        env, algorithm, finite = world(numbers, key)
        run = start(key, env, algorithm)
        idle = run.move._replace(done=run.move.done | (replication < 0))
        return run._replace(move=idle), finite

    def fill(numbers, root, runs, ids, fresh):
        started, finite = jax.vmap(start_lane, (None, None, 0))(numbers, root, ids)
        if runs is None:
            return started, finite

        def swap(new, old):
            return jnp.where(fresh.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        return jax.tree.map(swap, started, runs), finite | ~fresh

    def step_lane(numbers, run, rounds, max_pulls):
        env, algorithm, _ = world(numbers, run.key)
        run = advance(run, env, algorithm, rounds, max_pulls)
        answer, done = run.move.answer, run.move.done
        info = run.move.info if isinstance(run.move.info, dict) else {}
        record = Record(
            run.pulls, answer, env.correct(answer), done, run.arm_pulls, run.regret, info
        )
        return run, is_live(run, max_pulls), record

    step = jax.vmap(step_lane, (None, 0, None, None))
    if devices is not None:
        mesh = jax.sharding.Mesh(np.array(devices), ("lanes",), axis_types=(AxisType.Auto,))
        whole, split = PartitionSpec(), PartitionSpec("lanes")
        step = jax.shard_map(
            step,
            mesh=mesh,
            in_specs=(whole, split, whole, whole),
            out_specs=split,
            check_vma=False,
        )
    return Programs(jax.jit(fill), jax.jit(step))


class Lanes:
    """The host's half: which replication is where, and what is finished."""

    def __init__(self, world, numbers, root, *, lanes, max_pulls, devices=None):
        self._programs = programs(world, devices)
        self._numbers, self._root = numbers, root
        self._lanes, self._max_pulls = lanes, np.int64(max_pulls)
        self._runs = None
        self.ids = np.full(lanes, -1)

    def fill(self, waiting):
        """Start the next of `waiting` (a list, consumed) in every lane that is free."""
        free = np.flatnonzero(self.ids < 0)
        fresh = np.zeros(self._lanes, bool)
        take = min(len(free), len(waiting))
        if self._runs is not None and not take:
            return
        self.ids[free[:take]] = waiting[:take]
        fresh[free[:take]] = True
        del waiting[:take]
        self._runs, finite = self._programs.fill(
            self._numbers, self._root, self._runs, self.ids, fresh
        )
        broken = self.ids[~np.asarray(finite) & fresh]
        if broken.size:
            raise ValueError(f"instance: replication {broken[0]} drew one with NaN or infinity")

    def step(self, rounds):
        """Advance every lane; `live [L]` and the `Record` of all lanes."""
        self._runs, live, record = self._programs.step(
            self._numbers, self._runs, np.int64(rounds), self._max_pulls
        )
        return np.asarray(live), record

    def release(self, lanes):
        """Mark lanes as free."""
        self.ids[lanes] = -1


def play_to_the_end(lanes, waiting):
    """Yield `(ids, record)` of replications as they end; each lane is refilled at once."""
    rounds = BLOCK
    while True:
        lanes.fill(waiting)
        if (lanes.ids < 0).all():
            return
        began = time.perf_counter()
        live, record = lanes.step(rounds)
        rounds = _next_chunk(rounds, time.perf_counter() - began)
        ended = np.flatnonzero(~live & (lanes.ids >= 0))
        if ended.size:
            yield lanes.ids[ended], _rows(record, ended)
            lanes.release(ended)


def play_rounds(lanes, waiting, rounds):
    """Yield `(ids, record, regret [n, T])` batch by batch, each played to the same rounds."""
    legs = np.diff(rounds, prepend=0)
    while waiting:
        lanes.fill(waiting)
        taken = np.flatnonzero(lanes.ids >= 0)
        regret = np.zeros((taken.size, len(rounds)))
        for leg, length in enumerate(legs):
            _, record = lanes.step(length)
            regret[:, leg] = np.asarray(record.regret)[taken]
        yield lanes.ids[taken], _rows(record, taken), regret
        lanes.release(taken)


def _rows(record, lanes):
    return jax.tree.map(lambda x: np.asarray(x)[lanes], record)


def _next_chunk(rounds, seconds):
    """Double while a chunk is short for the clock, halve while it is long."""
    if seconds < CHUNK_SECONDS / 2:
        return min(rounds * 2, 2**20)
    if seconds > CHUNK_SECONDS * 2:
        return max(rounds // 2, BLOCK)
    return rounds
