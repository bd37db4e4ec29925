"""`simulate`: many replications of one algorithm on one instance."""

import time
import warnings

import jax
import numpy as np

from .checks import check_engine, check_sizes, devices_of
from .driver import UNLIMITED, Limits, root_key
from .instances import Instance
from .lanes import Player
from .options import require
from .results import Runs, joined
from .world import as_tree, check_build, split

GRID = 100  # rounds at which a regret run is recorded


def simulate(
    instance,
    algorithm,
    *,
    replications,
    seed=0,
    max_pulls=10_000_000,
    horizon=None,
    batch=None,
    devices=None,
    engine="xla",
    progress=False,
):
    """Play `replications` independent copies of an algorithm, in float64.

    Replication r depends on `(seed, r)` and the inputs alone: `batch`, `devices`, the number of
    replications and the fate of the others change nothing. A second call that differs in
    numbers only (arrays, `delta`, `budget`, ...) compiles nothing. Ctrl-C returns the
    replications that are done, with a warning.

    Args:
      instance: an `Instance`, or a callable `key -> Instance`, drawn afresh for each replication.
      algorithm: a constructor, or `functools.partial` of one with its options. It is called
        with `arms` and those of `targets, family, noise_var, theta_norm, horizon` (and `theta`)
        that its signature names; options that are bound win.
      replications: R.
      seed: a whole number, 0 or above.
      max_pulls: a replication whose next draw would exceed it is cut short: `stopped` is False.
      horizon: rounds of a cumulative-regret run; the regret is recorded at about 100 of them.
        Every replication then plays all rounds, and `max_pulls` is not used.
      batch: replications side by side, rounded up to a multiple of 8; by default what the cache
        of a CPU or the memory of an accelerator holds.
      devices: JAX devices to share the lanes, or how many of them; one by default.
      engine: "xla", or "native" for rounds compiled by the machine's C++ compiler, on a CPU:
        about twice as fast, and the same numbers up to rounding, see `jaxbandits.native`.
      progress: True for a bar, or a callable `(done, total)`.
    Returns:
      `Runs`, sorted by replication.
    Raises:
      ValueError: names the argument, what it was and what is allowed; before any compilation.

    >>> from functools import partial
    >>> import jaxbandits as jb
    >>> algorithm = partial(jb.lingape, delta=0.1)
    >>> runs = simulate(jb.instances.canonical(3, gap=2.0), algorithm, replications=10)
    >>> runs.pulls.dtype, runs.arm_pulls.shape
    (dtype('int64'), (10, 3))
    """
    simulation = Simulation(
        instance,
        algorithm,
        replications=replications,
        seed=seed,
        max_pulls=max_pulls,
        horizon=horizon,
        batch=batch,
        devices=devices,
        engine=engine,
    )
    return simulation.play(range(replications), reporter(progress))


class Simulation:
    """A call of `simulate`, checked and compiled: it plays any of its replications.

    The arguments are those of `simulate`; `replications` only says how many to expect.
    """

    def __init__(
        self,
        instance,
        algorithm,
        *,
        replications,
        seed=0,
        max_pulls=10_000_000,
        horizon=None,
        batch=None,
        devices=None,
        engine="xla",
    ):
        check_sizes(replications, seed, max_pulls, horizon, batch)
        devices = devices_of(devices)
        check_engine(engine, devices)
        build, problem = as_tree(algorithm), instance
        require(callable(build), f"algorithm must be a constructor, got {algorithm!r}")
        if not isinstance(instance, Instance):
            fits = callable(instance)
            require(fits, f"instance must be an Instance or a callable of a key, got {instance!r}")
            problem = as_tree(instance)
        free = horizon is None
        self._rounds = None if free else regret_grid(int(horizon))
        with jax.enable_x64(True):
            check_build(problem, build, horizon)
            world, numbers = split((problem, build, None if free else np.int64(horizon)))
            self._player = Player(
                world,
                numbers,
                root_key(seed),
                replications=replications,
                batch=batch,
                limits=Limits(max_pulls, UNLIMITED) if free else Limits(2**62, horizon),
                rounds=[] if free else np.pad(self._rounds, (0, 2 * GRID - len(self._rounds))),
                devices=devices,
                engine=engine,
            )
        self._meta = {"seed": int(seed), "device": jax.default_backend(), "engine": engine}
        self._meta["compile_seconds"] = round(self._player.compile_seconds, 3)

    def play(self, replications, report, keep=None, every=float("inf")):
        """`Runs` of these replications; an interrupt warns and returns those that are done.

        Args:
          replications: their numbers.
          report: a callable `(done, total)`; called with `done` None in the end.
          keep: is given the `Runs` that are new, whenever `every` seconds have passed and in the
            end, whatever ends it.
          every: see `keep`.
        Raises:
          KeyboardInterrupt: before any replication was done.
          ValueError: an instance was drawn with NaN or infinity.
        """
        done, began = [], time.perf_counter()
        parts, number, total = [], 0, len(replications)

        def flush():
            nonlocal parts, began
            if parts:
                done.append(self._runs(parts, time.perf_counter() - began))
                if keep is not None:
                    keep(done[-1])
            parts, began = [], time.perf_counter()

        try:
            with jax.enable_x64(True):
                for record in self._player.play(replications):
                    _check_drawn(record)
                    parts.append(record)
                    number += len(record.id)
                    report(number, total)
                    if time.perf_counter() - began > every:
                        flush()
        except KeyboardInterrupt:
            warnings.warn(f"interrupted: {number} of {total} replications are done", stacklevel=3)
        finally:
            report(None, total)
            flush()
        if not number:
            raise KeyboardInterrupt("interrupted before any replication was done")
        return joined(done)

    def _runs(self, parts, seconds):
        record = jax.tree.map(lambda *xs: np.concatenate(xs), *parts)
        order = np.argsort(record.id)
        record = jax.tree.map(lambda x: x[order], record)
        rounds, player = self._rounds, self._player
        meta = {
            "seconds": round(seconds, 3),
            "lane_use": round(player.useful / max(1, player.offered), 4),
            "jax": jax.__version__,
        }
        return Runs(
            replication=record.id,
            pulls=record.pulls,
            answer=record.answer,
            correct=record.correct,
            stopped=record.stopped if rounds is None else np.ones_like(record.stopped),
            arm_pulls=record.arm_pulls,
            rounds=rounds,
            regret=None if rounds is None else record.regret[:, : len(rounds)],
            info=record.info,
            meta=self._meta | meta,
        )


def _check_drawn(record):
    broken = record.id[~record.finite]
    if broken.size:
        raise ValueError(f"instance: replication {broken[0]} drew one with NaN or infinity")


def regret_grid(horizon):
    """Rounds to record: all of a short run, else half evenly and half geometrically spaced."""
    if horizon <= 2 * GRID:
        return np.arange(1, horizon + 1)
    even = np.linspace(0, horizon, GRID // 2 + 1)[1:]
    geometric = np.geomspace(1, horizon, GRID // 2)
    return np.unique(np.round(np.concatenate([even, geometric])).astype(np.int64))


def reporter(progress):
    """A callable `(done, total)`; `done` None closes."""
    if callable(progress):
        return lambda done, total: None if done is None else progress(done, total)
    if not progress:
        return lambda done, total: None
    from .progress import bar

    return bar("replications")
