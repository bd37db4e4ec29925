"""`simulate`: many replications of one algorithm on one instance."""

import contextlib
import functools
import time
import warnings

import jax
import numpy as np

from ..parameters import require
from ..signatures import name_of
from . import checkpoints
from .checks import check_engine, check_memory, check_sizes, devices_of
from .debugging import FAULT, REPORT, explained
from .device_loop import SPAN
from .episode import MAX_PULLS, UNLIMITED, Limits, root_key
from .host_loop import HostLoop, manner_of, shapes_of, sizes
from .multihost import team_of
from .partition import answers_with_arms, prepared
from .results import Runs, joined
from .stack import stacked


def simulate(
    instance,
    algorithm,
    *,
    replications,
    seed=0,
    max_pulls=MAX_PULLS,
    horizon=None,
    batch=None,
    devices=None,
    engine="xla",
    record="mixed",
    progress=False,
    debug=False,
):
    """Play `replications` independent copies of an algorithm, in float64.

    Replication r depends on `(seed, r)` and the inputs alone: `batch`, `devices`, the number of
    replications and the fate of the others change nothing. A second call that differs in
    numbers only (arrays, `delta`, `budget`, ...) compiles nothing. Ctrl-C returns the
    replications that are done, with a warning.

    Args:
      instance: an `Instance`, or a callable `key -> Instance`, drawn afresh for each replication;
        or a contextual problem, such as `instances.digits()`.
      algorithm: a constructor, or `functools.partial` of one with its options. It is called
        with `arms` and those of `targets, family, noise_var, theta_norm, horizon` (and `theta`)
        that its signature names; options that are bound win.
      replications: R.
      seed: a whole number, 0 or above.
      max_pulls: a replication whose next draw would exceed it is cut short: `stopped` is False,
        and `Runs.reason` says what is known of why. An algorithm that never stops needs one of its
        own, or a `horizon`.
      horizon: rounds of a cumulative-regret run, a draw each; the regret is recorded at some of
        them. Every replication then plays all rounds, and `max_pulls` is not used. Where the
        algorithm stops before, its answer is drawn in the rounds that are left: the regret, `pulls`
        and `arm_pulls` count them. A phase that would go beyond the horizon is cut in proportion.
      batch: replications side by side, rounded up to a multiple of 8; by default what the cache
        of a CPU or the memory of an accelerator holds.
      devices: JAX devices of this process to share the lanes, or how many of them; one by
        default. "all": those of every process that `jax.distributed` has joined; each of them
        calls this, plays a share of the replications, and gets the whole.
      engine: "xla", or "native" for rounds compiled by the machine's C++ compiler, on a CPU:
        about twice as fast, and the same numbers up to rounding, see
        `jaxbandits.compilers.cpp`. It makes no difference for contextual problems, whose
        replications are played by themselves.
      record: at which rounds: about 100 of "even" or geometric ("log") spacing, or half of each
        ("mixed"); or a list of rounds. All of a run of 200 rounds or fewer.
      progress: True for a bar, or a callable `(done, total)`.
      debug: check every round of an algorithm of your own: arms and answers that exist, counts
        that are not negative, rewards and a state that are finite. The numbers are the same; it
        is compiled by itself, and somewhat slower.
    Returns:
      `Runs`, sorted by replication.
    Raises:
      ValueError: names the argument, what it was and what is allowed; before any compilation. Or
        an algorithm has drawn arms that do not exist; with `debug` it names the replication, the
        round and what was wrong there.

    >>> from functools import partial
    >>> import jaxbandits as jb
    >>> algorithm = partial(jb.lingape, delta=0.1)
    >>> runs = simulate(jb.instances.canonical(3, gap=2.0), algorithm, replications=10)
    >>> runs.pulls.dtype, runs.arm_pulls.shape
    (dtype('int64'), (10, 3))
    """
    check_sizes(replications, seed, max_pulls, horizon, batch)
    world, numbers = prepared(instance, algorithm, horizon)
    simulation = Simulation(
        [(world._replace(debug=debug), numbers)],
        replications=replications,
        seed=seed,
        max_pulls=max_pulls,
        horizon=horizon,
        batch=batch,
        devices=devices,
        engine=engine,
        record=record,
    )
    return simulation.play({0: np.arange(replications)}, reporter(progress))[0]


def check_ending(world, max_pulls, horizon, record):
    """Raise where no replication would end by itself, or none could be played to its horizon.

    Args:
      world: `(structure, numbers)` as `partition.prepared` makes it. It is traced, not compiled.
      max_pulls, horizon, record: as in `simulate`.
    """
    structure, numbers = world
    structure = structure._replace(debug=False)  # under which any algorithm may be done
    num_rounds = 0 if horizon is None else checkpoints.padded_length(record, int(horizon))
    manner = manner_of(structure, numbers, num_rounds)
    problem, build, _ = structure.tree(numbers)
    name = name_of(build)
    late = getattr(getattr(problem, "stress", None), "delay", 0)
    limit = max_pulls if horizon is None else horizon
    told = f"instance: its rewards come {late} rounds late, and a replication has {limit} at most"
    require(late < limit, told)
    if horizon is None:
        require(
            manner.stops or max_pulls != MAX_PULLS,
            f"algorithm {name} never stops: give `horizon` or `at_budget`, or the `max_pulls` at "
            "which each replication is to be cut",
        )
    elif manner.stops:
        say = f"horizon must be None for {name}: when it has stopped, its answer is to be drawn, "
        require(
            not manner.contextual,
            f"algorithm must not stop on a contextual instance, as {name} may: its answer is no "
            "arm of later rounds. Play it without a budget, to the horizon",
        )
        require(manner.answers_one, say + "which is a set, not an arm")
        require(answers_with_arms(problem, build), say + "which is a target, not an arm")


class Simulation:
    """Worlds that differ in numbers alone, compiled: it plays any of their replications.

    Args:
      worlds: as `partition.prepared` makes them, of one structure and shapes.
      replications: how many to expect, of all worlds together.
      seed, max_pulls, horizon, batch, devices, engine, record: as in `simulate`.
    """

    def __init__(
        self,
        worlds,
        *,
        replications,
        seed=0,
        max_pulls=MAX_PULLS,
        horizon=None,
        batch=None,
        devices=None,
        engine="xla",
        record="mixed",
    ):
        check_sizes(replications, seed, max_pulls, horizon, batch)
        checkpoints.check(record, horizon)
        self.team, devices = team_of(devices), devices_of(devices)
        check_engine(engine, devices)
        for world in worlds:
            check_ending(world, max_pulls, horizon, record)
        free = horizon is None
        self._rounds = None if free else checkpoints.rounds_of(record, int(horizon))
        rounds = [] if free else checkpoints.padded(self._rounds)
        structure, numbers = stacked(worlds)
        with jax.enable_x64(True):
            each = sizes(structure, shapes_of(numbers), len(rounds)).record
            check_memory(replications, each)
            self._loop = HostLoop(
                structure,
                numbers,
                root_key(seed),
                replications=-(-replications // self.team.count),
                batch=batch,
                limits=Limits(max_pulls, UNLIMITED) if free else Limits(horizon, horizon),
                rounds=rounds,
                devices=devices,
                engine=engine,
            )
            self._explained = functools.partial(explained, structure, numbers)
        played = self._loop.shape.engine  # which a contextual problem chooses by itself
        self._meta = {"seed": int(seed), "device": jax.default_backend(), "engine": played}
        self._compile_seconds = self._loop.compile_seconds

    def play(self, waiting, report, keep=None, every=float("inf")):
        """What `_play` does, with a share for each process of a team.

        See `_play`; what `keep` has got is not given back, unless by other processes.
        """
        shares = {world: self.team.share(numbers) for world, numbers in waiting.items()}
        try:
            runs = self._play(shares, report, keep, every)
        except BaseException:
            if not self.team.alone:
                with contextlib.suppress(RuntimeError):
                    self.team.gathered(None)
            raise
        return self.team.gathered(runs)

    def _play(self, waiting, report, keep, every):
        """`Runs` of these replications by world; an interrupt warns and returns what is done.

        Args:
          waiting: numbers of replications, by the number of the world; played in that order.
          report: a callable `(done, total)`; called with `done` None in the end.
          keep: a callable `(world, runs)` for what is new of a world: when its last replication
            ends, when `every` seconds have passed, and in the end, whatever ends it.
          every: see `keep`.
        Raises:
          KeyboardInterrupt: before any replication was done.
          ValueError: an instance was drawn with NaN or infinity.
        """
        ids = np.concatenate([world * SPAN + numbers for world, numbers in waiting.items()])
        left = {world: len(numbers) for world, numbers in waiting.items()}
        collector = RunCollector(left, self._runs, keep, hold=keep is None or not self.team.alone)
        number, total, began = 0, len(ids), time.perf_counter()
        try:
            with jax.enable_x64(True):
                for record in self._loop.run(ids):
                    _check_drawn(record)
                    _check_faults(record, self._explained)
                    collector.add(record)
                    number += len(record.id)
                    report(number, total)
                    if time.perf_counter() - began > every:
                        collector.bind()
                        began = time.perf_counter()
        except KeyboardInterrupt:
            told = f"interrupted: {number} of {total} replications are done"
            if keep is not None or not number:
                raise KeyboardInterrupt(told) from None
            warnings.warn(told, stacklevel=3)
        finally:
            report(None, total)
            collector.bind()
        return {world: joined(parts) for world, parts in collector.bound.items()}

    def _runs(self, record, seconds):
        order = np.argsort(record.id)
        record = jax.tree.map(lambda x: x[order], record)
        rounds, loop = self._rounds, self._loop
        meta = {
            "seconds": round(seconds, 3),
            "compile_seconds": round(self._compile_seconds, 3),
            "lane_use": round(loop.useful / max(1, loop.offered), 4),
            "jax": jax.__version__,
        }
        self._compile_seconds = 0.0  # counted once
        return Runs(
            replication=record.id % SPAN,
            pulls=record.pulls,
            answer=record.answer,
            correct=record.correct,
            stopped=record.stopped if rounds is None else np.ones_like(record.stopped),
            arm_pulls=record.arm_pulls,
            rounds=rounds,
            regret=None if rounds is None else record.regret[:, : len(rounds)],
            info={name: x for name, x in record.info.items() if name not in REPORT},
            facts=record.facts,
            meta=self._meta | meta,
        )


class RunCollector:
    """Records of several worlds as they come, bound into `Runs` of each.

    The time between two harvests is shared by the replications of the later one.

    Args:
      left: how many replications of each world are to come.
      runs: a callable `(record, seconds) -> Runs`.
      keep: a callable `(world, runs)` for what is bound, or None.
      hold: whether it stays in `bound` too, `[Runs]` by world.
    """

    def __init__(self, left, runs, keep, *, hold):
        self._left, self._runs, self._keep, self._hold = left, runs, keep, hold
        self._loose, self._seconds, self.bound = {}, {}, {}
        self._last = time.perf_counter()

    def add(self, record):
        """Take what has ended; bind the worlds of which this was the last."""
        if not len(record.id):
            return
        now = time.perf_counter()
        each, self._last = (now - self._last) / len(record.id), now
        worlds = record.id // SPAN
        for world in np.unique(worlds).tolist():
            mine = worlds == world
            number = int(mine.sum())
            part = jax.tree.map(lambda x, mine=mine: x[mine], record)
            self._loose.setdefault(world, []).append(part)
            self._seconds[world] = self._seconds.get(world, 0.0) + each * number
            self._left[world] -= number
            if not self._left[world]:
                self._bind(world)

    def bind(self):
        """`Runs` of all that is loose."""
        for world in list(self._loose):
            self._bind(world)

    def _bind(self, world):
        record = jax.tree.map(lambda *xs: np.concatenate(xs), *self._loose.pop(world))
        runs = self._runs(record, self._seconds.pop(world))
        if self._hold:
            self.bound.setdefault(world, []).append(runs)
        if self._keep is not None:
            self._keep(world, runs)


def _check_drawn(record):
    broken = record.id[~record.sound.finite]
    if broken.size:
        number = broken[0] % SPAN
        raise ValueError(f"instance: replication {number} drew one with NaN or infinity")
    hidden = record.id[~record.sound.told]
    if hidden.size and "hidden" not in record.facts:  # which says it, without a horizon
        raise ValueError(
            f"instance: replication {hidden[0] % SPAN} drew arms that do not span, or so nearly "
            "not that rounding hides a direction"
        )


def _check_faults(record, explained):
    """Raise where an algorithm has done what none should; of several, for the first replication.

    Args:
      explained: a callable `(code, value)` that says what was wrong.
    """
    counted = record.arm_pulls.sum(1) == record.pulls
    numbers = record.id % SPAN
    if FAULT in record.info:
        for place in np.argsort(numbers):
            code, round, value = (record.info[name][place].item() for name in REPORT)
            if code:
                what = explained(code, value)
                raise ValueError(f"algorithm: replication {numbers[place]}, round {round}: {what}")
    arms, more = record.arm_pulls.shape[1], "simulate(..., debug=True) says in which round"
    if not record.exists.all():
        place = np.flatnonzero(~record.exists)[0]
        answer = record.answer[place]
        raise ValueError(
            f"algorithm: replication {numbers[place]} ends with the answer {answer}, which is none "
            f"of the targets (of the arms where no targets are given); {more}"
        )
    if not counted.all():
        raise ValueError(
            f"algorithm: replication {numbers[~counted].min()} has drawn arms that do not exist, "
            f"or fewer than 0 times; there are {arms}: 0 to {arms - 1}; {more}"
        )


def reporter(progress):
    """A callable `(done, total)`; `done` None closes."""
    if callable(progress):
        return lambda done, total: None if done is None else progress(done, total)
    if not progress:
        return lambda done, total: None
    from ..system.progress import bar

    return bar("replications")
