"""`simulate`: many replications of one algorithm on one instance."""

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import jax
import numpy as np
from jaxtyping import Int

from ..instances.settled import check_settled
from ..parameters import Option, check, choice, require
from ..signatures import function_of, hinting_at_partial, name_of, parameters_of
from ..system.callbacks import errors_named
from ..system.caller import warn_caller
from ..system.interrupts import TRACES, held_back
from ..system.jax_options import pinned, pinning
from ..system.progress import Bar, on_screen
from ..system.traces import reading
from ..version import VERSION
from . import checkpoints
from .checkpoints import RecordedRounds
from .checks import (
    DeviceChoice,
    check_engine,
    check_engine_name,
    check_memory,
    cores_of,
    devices_of,
    size_of,
    size_or_none,
)
from .compile_times import about
from .debugging import FAULT, REPORT, fault_text
from .device_loop import REPLICATIONS_PER_CELL, Record
from .episode import MAX_PULLS, UNLIMITED, Limits, root_key
from .host_loop import HostLoop
from .multihost import Alone, RunsByCell, team_of
from .partition import (
    Constructor,
    PreparedCell,
    ProblemSource,
    answers_with_arms,
    bound_options,
    prepared,
)
from .purity import check_randomness
from .results import Runs, estimated_facts, joined
from .stack import stacked
from .traits import as_checked, keep_checked, shapes_of, sizes, traits_of

FLAG: Option = choice(False, True)
PROGRESS: Option = FLAG._replace(allowed="None, True, False or a callable `(done, total)`")
# `(done, total)`: how many replications have ended; `done` None closes.
Report: TypeAlias = Callable[[int | None, int], Any]
# `(cell, runs)`, for what is new of a cell.
Keep: TypeAlias = Callable[[int, Runs], Any]
# Replications of each cell that are to be run.
Waiting: TypeAlias = Mapping[int, Sequence[int] | Int[np.ndarray, " R"]]


@hinting_at_partial
@pinning
def simulate(
    instance: ProblemSource,
    algorithm: Constructor,
    *,
    replications: int,
    seed: int = 0,
    max_pulls: int = MAX_PULLS,
    horizon: int | None = None,
    batch: int | None = None,
    devices: DeviceChoice = None,
    cores: int | None = None,
    engine: Literal["auto", "xla", "native", "cuda"] = "auto",
    record: RecordedRounds = "mixed",
    progress: bool | Callable[[int, int], Any] | None = None,
    debug: bool = False,
) -> Runs:
    """Run `replications` independent copies of an algorithm, in float64.

    Replication r depends on `(seed, r)` and the inputs alone: `batch`, `devices`, `cores`, the
    number of replications and the fate of the others change nothing, as long as the engine is the
    same. A second call that differs in numbers only (arrays, `delta`, `budget`, ...) compiles
    nothing. Ctrl-C returns the replications that are done, with a warning; while a program
    compiles, there are none.

    Args:
      instance: an `Instance`, or a callable `key -> Instance`, drawn afresh for each replication;
        or a constructor of one instance, with its options bound; or a contextual problem, such as
        `instances.digits()`.
      algorithm: a constructor, or `functools.partial` of one with its options. It is called
        with `arms` and those of `targets, family, noise_var, theta_norm, horizon` (and `theta`)
        that its signature names; options that are bound win. Do not call the constructor yourself,
        as in `jb.top_two(delta=0.1)`: it would need the arms. Give `jb.top_two` itself, or
        `partial(jb.top_two, delta=0.1)`.
      replications: how many replications, R: 1 or above.
      seed: a whole number, 0 or above.
      max_pulls: 10,000,000 by default. A replication whose next draw would exceed it is cut
        short: `stopped` is False, and `Runs.reason` says what is known of why. For an algorithm
        that never stops, give a `max_pulls` of your own or a `horizon`.
      horizon: rounds of a cumulative-regret run. A round is one draw here. The regret is recorded
        at some of them. Every replication then plays all rounds, and `max_pulls` is not used. Where
        the algorithm stops before, its answer is drawn in the rounds that are left: the regret,
        `pulls` and `arm_pulls` count them. A phase that would go beyond the horizon is cut in
        proportion.
      batch: replications side by side, on each core of a CPU, rounded up to a multiple of 8 (of 16
        by the engine "native", of 128 by "cuda"); by default what the cache of a CPU or the memory
        of an accelerator holds.
      devices: JAX devices of this process to share the lanes, or how many of them; one by
        default. "all": those of every process that `jax.distributed` has joined; each process
        calls `simulate`, runs a share of the replications, and gets all results.
      cores: how many threads play at once on a CPU; `meta["cores"]` says how many did. By default
        as many as this process may use, at most `JAXBANDITS_CORES` of the environment; one in a
        process of `multiprocessing`. No more play than have a batch each, or than there is memory
        for; and work of a few hundredths of a second stays on one. All of them run the same
        program, so no number depends on it.
      engine: "auto", the one of the three that compiles and plays in the shortest time:
        `meta["engine"]` tells which, and `meta["engine_reason"]` why. "xla" is for any device.
        "native", for a CPU with a C++ compiler, compiles in half of the time and plays up to four
        times as fast, see `jaxbandits.compilers.cpp`. "cuda", for a GPU of NVIDIA, plays many
        times as fast where the state of a lane is small, see `jaxbandits.compilers.cuda`; what it
        cannot compile, XLA plays, with a warning. Numbers differ in their last bits, which rarely
        changes a choice, see "Engines" in the documentation. It makes no difference for contextual
        problems: there XLA plays the lanes in turn on a CPU, and all of them together on a GPU.
      record: at which rounds: about 100 of "even" or geometric ("log") spacing, or half of each
        ("mixed"); or a list of rounds. All of a run of 200 rounds or fewer.
      progress: True for a bar, that says what compiles and then how many replications are done and
        how long the others take, and a line where minutes are left; or a callable `(done, total)`.
        None: a bar after one second, on a terminal and in a notebook with `ipywidgets`.
      debug: check every round of an algorithm of your own: arms and answers that exist, counts
        that are not negative, rewards and a state that are finite. The results are the same; it is
        another program, and somewhat slower.
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
    replications, seed = size_of("replications", replications), size_of("seed", seed)
    horizon = size_or_none("horizon", horizon)
    check_engine_name(engine)
    cores = cores_of(cores, devices)
    check("debug", FLAG, debug)
    structure, numbers = prepared(instance, algorithm, horizon)
    report = reporter(progress, name_of(algorithm))
    with _compiling(report, name_of(algorithm) + about(algorithm, engine), replications):
        simulation = Simulation(
            [(structure._replace(debug=bool(debug)), numbers)],
            replications=replications,
            seed=seed,
            max_pulls=max_pulls,
            horizon=horizon,
            batch=batch,
            devices=devices,
            cores=cores,
            engine=engine,
            record=record,
        )
    return simulation.run({0: np.arange(replications)}, report)[0]


@contextlib.contextmanager
def _compiling(report: Report, name: str, replications: int) -> Generator[None]:
    """A block that compiles: a bar says so, and an interrupt says that nothing was played.

    While JAX traces, an interrupt is handled when that ends, a second one at once: inside of JAX it
    can be lost or end the process.
    """
    if isinstance(report, Bar):
        report.wait(f"compiling {name}")
    try:
        with held_back(TRACES):
            yield
    except BaseException as error:
        report(None, replications)
        if isinstance(error, KeyboardInterrupt):
            message = f"interrupted: 0 of {replications} replications are done"
            raise KeyboardInterrupt(message) from None
        raise


def check_ending(
    cell: PreparedCell, max_pulls: int, horizon: int | None, record: RecordedRounds
) -> None:
    """Raise where no replication would end by itself, or none could go on to its horizon.

    Args:
      cell: as `partition.prepared` returns it. It is traced, not compiled.
      max_pulls, horizon, record: as in `simulate`.
    """
    structure, numbers = cell
    structure = structure._replace(debug=False)  # under which any algorithm may be done
    num_rounds = 0 if horizon is None else checkpoints.padded_length(record, int(horizon))
    traits = traits_of(structure, numbers, num_rounds)
    with pinned():
        if as_checked(structure, shapes_of(numbers), num_rounds) is None:
            check_randomness(structure, numbers)
    problem, build, _ = structure.tree(numbers)
    name = name_of(build)
    _check_truth(problem, build, one=horizon is not None or traits.answers_one)
    delay = getattr(getattr(problem, "stress", None), "delay", 0)
    limit = max_pulls if horizon is None else horizon
    require(
        delay < limit,
        f"instance: its rewards come {delay} rounds late, and a replication has {limit} at most",
    )
    if horizon is None:
        require(
            traits.moves.stops or max_pulls != MAX_PULLS,
            f"algorithm {name} never stops: give `horizon` or `at_budget`, or the `max_pulls` at "
            "which each replication is to be cut",
        )
    elif traits.moves.stops:
        message = f"horizon must be None for {name}: when it has stopped, its answer is to be drawn"
        require(
            not traits.contextual,
            f"algorithm must not stop on a contextual instance, as {name} may: its answer is no "
            "arm of later rounds. Play it without a budget, to the horizon",
        )
        require(traits.answers_one, f"{message}, which is a set, not an arm")
        with reading(structure):
            arms = answers_with_arms(problem, build)
        require(arms, f"{message}, which is a target, not an arm")


def _check_truth(problem, build, *, one):
    """Raise where means that are estimates do not settle which answers are right.

    Args:
      one: whether that is the best arm, where no `m` says how many.
    """
    found = getattr(problem, "estimated", None)
    if found is None or found.draws < 2:
        return  # the means are known, there was a warning, or `Runs.facts` will say
    options, defaults = bound_options(build), parameters_of(function_of(build))
    m = options.get("m", defaults["m"].default if "m" in defaults else None)
    if m is None and not one:
        return
    epsilon = float(options.get("epsilon", 0.0))
    check_settled(found, 1 if m is None else int(m), epsilon, role="instance")


class Simulation:
    """Cells that differ in numbers alone, compiled: it runs any of their replications.

    Args:
      cells: as `partition.prepared` returns them, of one structure and shapes.
      replications: how many to expect, of all cells together.
      seed, max_pulls, horizon, batch, devices, cores, engine, record: as in `simulate`.
      prefer, planned: for "auto", as in `HostLoop`.
    """

    @pinning
    def __init__(
        self,
        cells: Sequence[PreparedCell],
        *,
        replications: int,
        seed: int = 0,
        max_pulls: int = MAX_PULLS,
        horizon: int | None = None,
        batch: int | None = None,
        devices: DeviceChoice = None,
        cores: int | None = None,
        engine: str = "auto",
        record: RecordedRounds = "mixed",
        prefer: str | None = None,
        planned: int | None = None,
    ) -> None:
        replications, seed = size_of("replications", replications), size_of("seed", seed)
        max_pulls = size_of("max_pulls", max_pulls)
        horizon, batch = size_or_none("horizon", horizon), size_or_none("batch", batch)
        checkpoints.check(record, horizon)
        self.team: Alone = team_of(devices)
        here = devices_of(devices)
        check_engine(engine, here)
        for cell in cells:
            check_ending(cell, max_pulls, horizon, record)
        free = horizon is None
        self._rounds = None if horizon is None else checkpoints.rounds_of(record, int(horizon))
        rounds = [] if self._rounds is None else checkpoints.padded(self._rounds)
        structure, numbers = stacked(cells)
        with pinned():
            for cell, its_numbers in [*cells, (structure, numbers)]:
                keep_checked(cell, shapes_of(its_numbers), len(rounds))
            known = sizes(structure, shapes_of(numbers), len(rounds))
            check_memory(replications, known.record)
            self._loop = HostLoop(
                structure,
                numbers,
                root_key(seed),
                replications=-(-replications // self.team.count),
                batch=batch,
                limits=Limits(max_pulls, UNLIMITED) if free else Limits(horizon, horizon),
                rounds=rounds,
                devices=here,
                cores=cores_of(cores, devices),
                engine=engine,
                prefer=prefer,
                planned=planned or replications,
            )
            self._fault_text = functools.partial(fault_text, structure, numbers)
        one, its_numbers = cells[0]
        self._name = name_of(one.tree(its_numbers)[1])  # all cells have one constructor
        used = self._loop.shape.engine  # contextual problems have their own
        self._meta = {"seed": int(seed), "device": jax.default_backend(), "engine": used}
        self._meta["engine_reason"] = self._loop.reason
        if known.traits.contextual:
            self._meta["contextual"] = True
        self._compile_seconds = self._loop.compile_seconds

    @pinning
    def run(
        self,
        waiting: Waiting,
        report: Report,
        keep: Keep | None = None,
        every: float = float("inf"),
    ) -> RunsByCell:
        """`Runs` of these replications by cell; each process of a team runs its share.

        An interrupt warns and returns the replications that are done.

        Args:
          waiting: replications by the index of their cell; they start in that order.
          report: a callable `(done, total)`; called with `done` None in the end.
          keep: a callable `(cell, runs)` for what is new of a cell: when its last replication
            ends, when `every` seconds have passed, and in the end, whatever ends it. What `keep`
            has got is not returned, unless it comes from other processes.
          every: see `keep`.
        Raises:
          KeyboardInterrupt: before any replication was done.
          ValueError: an instance was drawn that cannot be, or an algorithm is at fault.
        """
        shares = {cell: self.team.share(numbers) for cell, numbers in waiting.items()}
        try:
            runs = self._run_share(shares, report, keep, every)
        except BaseException:
            if not self.team.alone:
                with contextlib.suppress(RuntimeError):
                    self.team.gathered(None)
            raise
        return self.team.gathered(runs)

    def _run_share(self, shares, report, keep, every):
        """What `run` does, for one process; `shares` are replications by cell."""
        ids = np.concatenate(
            [cell * REPLICATIONS_PER_CELL + numbers for cell, numbers in shares.items()]
        )
        left = {cell: len(numbers) for cell, numbers in shares.items()}
        collector = RunCollector(left, self._runs, keep, hold=keep is None or not self.team.alone)
        done, total, began = 0, len(ids), time.perf_counter()
        try:
            with (
                pinned(),
                errors_named(),
                contextlib.closing(self._loop.run(ids)) as records,
            ):
                for record in records:
                    _check_drawn(record)
                    _check_faults(record, self._name, self._fault_text)
                    collector.add(record)
                    done += len(record.id)
                    report(done, total)
                    if time.perf_counter() - began > every:
                        collector.flush()
                        began = time.perf_counter()
        except KeyboardInterrupt:
            message = f"interrupted: {done} of {total} replications are done"
            if keep is not None or not done:
                raise KeyboardInterrupt(message) from None
            warn_caller(message)
        finally:
            report(None, total)
            collector.flush()
        return {cell: joined(parts) for cell, parts in collector.held.items()}

    def _runs(self, record, seconds):
        """`Runs` of the rows of a record."""
        order = np.argsort(record.id)
        record = jax.tree.map(lambda x: x[order], record)
        rounds, loop = self._rounds, self._loop
        meta = {
            "seconds": round(seconds, 3),
            "compile_seconds": round(self._compile_seconds, 3),
            "cores": loop.cores,
            "lane_use": round(loop.useful / max(1, loop.offered), 4),
            "jax": jax.__version__,
            "jaxbandits": VERSION,
        }
        self._compile_seconds = 0.0  # counted once
        runs = Runs(
            replication=record.id % REPLICATIONS_PER_CELL,
            pulls=record.pulls,
            answer=record.answer,
            correct=record.correct,
            stopped=record.stopped if rounds is None else np.ones_like(record.stopped),
            arm_pulls=record.arm_pulls,
            rounds=rounds,
            regret=None if rounds is None else record.regret[:, : len(rounds)],
            info={name: x for name, x in record.info.items() if name not in REPORT},
            facts=record.facts,
            regret_errors=record.regret_errors,
            meta=self._meta | meta,
        )
        return dataclasses.replace(runs, meta=runs.meta | estimated_facts(runs))


class RunCollector:
    """Collects the records of several cells as they come, and makes `Runs` of each.

    The time between two calls of `add` is shared by the replications of the later one.

    Args:
      left: how many replications of each cell are to come.
      runs: a callable `(record, seconds) -> Runs`.
      keep: a callable `(cell, runs)` for the `Runs` that are made, or None.
      hold: whether they stay in `held` too.
    Attributes:
      held: the `Runs` made so far, by cell.
    """

    def __init__(
        self,
        left: dict[int, int],
        runs: Callable[[Record, float], Runs],
        keep: Keep | None,
        *,
        hold: bool,
    ) -> None:
        self._left, self._runs, self._keep, self._hold = left, runs, keep, hold
        self._records, self._seconds = {}, {}
        self.held: dict[int, list[Runs]] = {}
        self._last = time.perf_counter()

    def add(self, record: Record) -> None:
        """Take what has ended; make `Runs` of the cells of which this was the last."""
        if not len(record.id):
            return
        now = time.perf_counter()
        each, self._last = (now - self._last) / len(record.id), now
        cells = record.id // REPLICATIONS_PER_CELL
        for cell in np.unique(cells).tolist():
            rows = cells == cell
            number = int(rows.sum())
            part = jax.tree.map(lambda x, rows=rows: x[rows], record)
            self._records.setdefault(cell, []).append(part)
            self._seconds[cell] = self._seconds.get(cell, 0.0) + each * number
            self._left[cell] -= number
            if not self._left[cell]:
                self._make(cell)

    def flush(self) -> None:
        """Make `Runs` of all records that are left."""
        for cell in list(self._records):
            self._make(cell)

    def _make(self, cell):
        record = jax.tree.map(lambda *xs: np.concatenate(xs), *self._records.pop(cell))
        runs = self._runs(record, self._seconds.pop(cell))
        if self._hold:
            self.held.setdefault(cell, []).append(runs)
        if self._keep is not None:
            self._keep(cell, runs)


def _check_drawn(record):
    """Raise where an instance was drawn that fails its checks."""
    broken = record.id[~record.checks.possible]
    if broken.size:
        number = broken[0] % REPLICATIONS_PER_CELL
        raise ValueError(
            f"instance: replication {number} drew one with NaN or infinity, a negative noise_var, "
            "or means that its rewards cannot have"
        )
    hidden = record.id[~record.checks.spans]
    if hidden.size and "hidden" not in record.facts:  # it is a reason, unless there is a horizon
        number = hidden[0] % REPLICATIONS_PER_CELL
        raise ValueError(
            f"instance: replication {number} drew arms that do not span, or so nearly "
            "not that rounding hides a direction"
        )


def _check_faults(record, name, text):
    """Raise where an algorithm has done what none should; of several, for the first replication.

    Args:
      name: of its constructor.
      text: a callable `(code, value)` that says what was wrong.
    """
    numbers = record.id % REPLICATIONS_PER_CELL
    if FAULT in record.info:
        for row in np.argsort(numbers):
            code, round, value = (record.info[name][row].item() for name in REPORT)
            if code:
                what = text(code, value)
                where = f"replication {numbers[row]}, round {round}"
                raise ValueError(f"algorithm {name}: {where}: {what}")
    arms, hint = record.arm_pulls.shape[1], "simulate(..., debug=True) says in which round"
    if not record.answer_exists.all():
        row = np.flatnonzero(~record.answer_exists)[0]
        raise ValueError(
            f"algorithm {name}: replication {numbers[row]} ends with the answer "
            f"{record.answer[row]}, which is none of the targets (of the arms where no targets are "
            f"given); {hint}"
        )
    agrees = record.arm_pulls.sum(1) == record.pulls
    if not agrees.all():
        raise ValueError(
            f"algorithm {name}: replication {numbers[~agrees].min()} has drawn arms that do not "
            f"exist, or fewer than 0 times; there are {arms}: 0 to {arms - 1}; {hint}"
        )


def reporter(progress: bool | Callable[[int, int], Any] | None, name: str) -> Report:
    """A callable `(done, total)` for a task of this name; `done` None closes."""
    if not (callable(progress) or progress is None):
        check("progress", PROGRESS, progress)
    if callable(progress):
        return lambda done, total: None if done is None else progress(done, total)
    if progress or (progress is None and on_screen()):
        return Bar("replications", progress, name)
    return lambda done, total: None
