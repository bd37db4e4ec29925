"""`simulate`: many replications of one algorithm on one instance."""

import functools
import inspect
import time
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .batch import Trial
from .checks import check_engine, check_sizes, devices_of
from .driver import INSTANCE, UNLIMITED, Limits, root_key
from .envs.finite import finite
from .instances import Instance
from .lanes import Player
from .options import is_concrete, nonnegative, require
from .results import Runs

GRID = 100  # rounds at which a regret run is recorded


class World(NamedTuple):
    """The static half of a trial; calling it with the numbers gives world and algorithm.

    Hashable, so that two calls which differ in numbers alone share their programs.
    """

    treedef: Any
    names: tuple  # static leaves, None where a number goes

    def __call__(self, numbers):
        """The `Trial`: what is drawn for each replication, and how its world is built."""
        fill = iter(numbers)
        leaves = [next(fill) if static is _NUMBER else static for static in self.names]
        problem, build, horizon = jax.tree.unflatten(self.treedef, leaves)
        if isinstance(problem, Instance):
            once = _built(problem, build, horizon)
            return Trial(lambda key: (), lambda _: once)

        def draw(key):
            return jax.tree.map(jnp.asarray, problem(jax.random.fold_in(key, INSTANCE)))

        return Trial(draw, lambda instance: _built(instance, build, horizon))


def _built(instance, build, horizon):
    """World, algorithm, and whether the instance is finite."""
    facts = offered(instance, build, horizon)
    tables = (instance.arms, instance.means, instance.values, instance.noise_var)
    healthy = jnp.stack([jnp.isfinite(x).all() for x in tables]).all()
    env = finite(instance, epsilon=bound_options(build).get("epsilon", 0.0))
    return env, build(jnp.asarray(instance.arms), **facts), healthy


class _Number:
    """Marks a leaf that is traced."""

    def __repr__(self):
        return "number"


_NUMBER = _Number()


def split(tree):
    """`(World, numbers)`: arrays and floats are numbers, everything else is structure."""
    leaves, treedef = jax.tree.flatten(tree)
    is_number = [isinstance(x, float | np.ndarray | np.generic | jax.Array) for x in leaves]
    names = tuple(_NUMBER if n else x for n, x in zip(is_number, leaves, strict=True))
    numbers = tuple(x for n, x in zip(is_number, leaves, strict=True) if n)
    return World(treedef, names), numbers


def as_tree(build):
    """A `functools.partial` as a pytree whose options are leaves, checked and converted."""
    if isinstance(build, functools.partial):
        options = getattr(build.func, "convert", lambda keywords: keywords)(build.keywords)
        options = {name: as_tree(value) for name, value in options.items()}
        return jax.tree_util.Partial(build.func, *build.args, **options)
    # Without leaves of its own a function is structure: two names for it compile once.
    return jax.tree_util.Partial(build) if inspect.isroutine(build) else build


def bound_options(build):
    """The options a caller has bound to a constructor."""
    return build.keywords if isinstance(build, functools.partial) else {}


def offered(instance, build, horizon):
    """What `simulate` passes to a constructor: what its signature names and nobody has bound."""
    facts = {
        "targets": instance.targets,
        "family": instance.family,
        "noise_var": instance.noise_var,
        "theta_norm": instance.theta_norm,
        "theta": instance.theta,
        "horizon": horizon,
    }
    names = inspect.signature(build).parameters
    return {k: v for k, v in facts.items() if k in names and k not in bound_options(build)}


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
    check_sizes(replications, seed, max_pulls, horizon, batch)
    devices = devices_of(devices)
    check_engine(engine, devices)
    build, problem = as_tree(algorithm), instance
    require(callable(build), f"algorithm must be a constructor, got {algorithm!r}")
    if not isinstance(instance, Instance):
        fits = callable(instance)
        require(fits, f"instance must be an Instance or a callable of a key, got {instance!r}")
        problem = as_tree(instance)
    with jax.enable_x64(True):
        check_build(problem, build, horizon)
        rounds = None if horizon is None else regret_grid(int(horizon))
        horizon_leaf = None if horizon is None else np.int64(horizon)
        world, numbers = split((problem, build, horizon_leaf))
        free = horizon is None
        player = Player(
            world,
            numbers,
            root_key(seed),
            replications=replications,
            batch=batch,
            limits=Limits(max_pulls, UNLIMITED) if free else Limits(2**62, horizon),
            rounds=[] if free else np.pad(rounds, (0, 2 * GRID - len(rounds))),
            devices=devices,
            engine=engine,
        )
        began = time.perf_counter()
        parts = _collect(player, replications, _reporter(progress))
        seconds = time.perf_counter() - began
    meta = {"seed": int(seed), "seconds": round(seconds, 3), "device": jax.default_backend()}
    meta["engine"] = engine
    meta["compile_seconds"] = round(player.compile_seconds, 3)
    meta["lane_use"] = round(player.useful / max(1, player.offered), 4)
    return _assemble(parts, rounds, meta | {"jax": jax.__version__})


def regret_grid(horizon):
    """Rounds to record: all of a short run, else half evenly and half geometrically spaced."""
    if horizon <= 2 * GRID:
        return np.arange(1, horizon + 1)
    even = np.linspace(0, horizon, GRID // 2 + 1)[1:]
    geometric = np.geomspace(1, horizon, GRID // 2)
    return np.unique(np.round(np.concatenate([even, geometric])).astype(np.int64))


def _collect(player, replications, report):
    """Records as they end; an interrupt keeps what is done."""
    done, parts = 0, []
    try:
        for record in player.play(range(replications)):
            broken = record.id[~record.finite]
            if broken.size:
                raise ValueError(f"instance: replication {broken[0]} drew one with NaN or infinity")
            parts.append(record)
            done += len(record.id)
            report(done, replications)
    except KeyboardInterrupt:
        warnings.warn(f"interrupted: {done} of {replications} replications are done", stacklevel=3)
    finally:
        report(None, replications)
    return parts


def _assemble(parts, rounds, meta):
    if not sum(len(part.id) for part in parts):
        raise KeyboardInterrupt("interrupted before any replication was done")
    record = jax.tree.map(lambda *xs: np.concatenate(xs), *parts)
    order = np.argsort(record.id)
    record = jax.tree.map(lambda x: x[order], record)
    regret = None if rounds is None else record.regret[:, : len(rounds)]
    return Runs(
        replication=record.id,
        pulls=record.pulls,
        answer=record.answer,
        correct=record.correct,
        stopped=record.stopped if rounds is None else np.ones_like(record.stopped),
        arm_pulls=record.arm_pulls,
        rounds=rounds,
        regret=regret,
        info=record.info,
        meta=meta,
    )


def check_build(problem, build, horizon):
    """Bind and check every option where values are known, before anything compiles."""
    if not isinstance(problem, Instance):
        problem = jax.eval_shape(lambda: problem(root_key(0)))
        require(
            isinstance(problem, Instance),
            f"instance must return an Instance for a key, got {type(problem).__name__}",
        )
    check_instance(problem)
    facts = offered(problem, build, horizon) | bound_options(build)
    function = build.func if isinstance(build, functools.partial) else build
    try:
        inspect.signature(function).bind(problem.arms, **facts)
    except TypeError as error:
        name = getattr(function, "__name__", repr(function))
        raise ValueError(f"algorithm {name}: {error}") from None
    check = getattr(function, "check", None)
    if check is not None:
        check(problem.arms, **facts)


def check_instance(instance):
    """Finite numbers and matching shapes, for instances built by hand."""
    num_arms, num_targets = np.shape(instance.arms)[0], np.shape(instance.targets)[0]
    for name, shape in (("means", (num_arms,)), ("values", (num_targets,))):
        table = getattr(instance, name)
        require(np.shape(table) == shape, f"{name} must have shape {shape}, got {np.shape(table)}")
        if is_concrete(table):
            require(np.isfinite(table).all(), f"{name} must be finite, got NaN or infinity")
    if is_concrete(instance.noise_var):
        ok = nonnegative.accepts(instance.noise_var)
        require(ok, f"noise_var must be {nonnegative.allowed}, got {instance.noise_var!r}")


def _reporter(progress):
    """A callable `(done, total)`; `done` None closes."""
    if callable(progress):
        return lambda done, total: None if done is None else progress(done, total)
    if not progress:
        return lambda done, total: None
    from .progress import bar

    return bar("replications")
