"""Run the cells of a sweep, in order, and lay them out on one labelled grid."""

import dataclasses
import functools
import inspect
from typing import Any

from ..options import require
from ..results import first_of, joined
from ..version import VERSION
from . import names
from .dataset import assemble
from .spec import MAX_PULLS, Part, Sweep
from .store import Store, describe, digest_files
from .until import enough, stages

CHECKPOINT_SECONDS = 20.0  # what a killed sweep loses at most, and a call of the lanes
SIMULATED = ("replications", "seed", "horizon", "max_pulls")


@dataclasses.dataclass(frozen=True)
class Cell:
    """One instance with one algorithm at one point of the axes."""

    instance: Part
    algorithm: Part
    point: dict
    spec: dict

    @property
    def identity(self):
        """Equal for cells that hold the same runs."""
        return str(self.spec)

    @property
    def title(self):
        """What a reader calls the cell."""
        where = "".join(f", {name} = {value}" for name, value in self.point.items())
        return f"{self.algorithm.label} on {self.instance.label}{where}"


def sweep(
    instances,
    algorithms,
    *,
    replications,
    seed=0,
    out=None,
    resume=True,
    axes=None,
    cluster=None,
    progress=True,
    horizon=None,
    max_pulls=MAX_PULLS,
    until=None,
):
    """Simulate every algorithm on every instance at every point of the axes.

    Args:
      instances: by name, an `Instance`, or a constructor of one with its options bound by
        `functools.partial`; one that takes `key` first is redrawn for each replication.
      algorithms: by name, constructors with their options bound.
      replications, seed, horizon, max_pulls: as in `simulate`.
      out: folder where each cell is stored as soon as it is done.
      resume: use the cells that `out` holds.
      axes: by name, values of an option; it reaches every constructor with such an option.
      cluster: not available in this version.
      progress: whether to show it.
      until: limits by name: a cell ends once all hold, looked at after 100, 150, 225, ...
        replications; `replications` is then the most. "error_width": of the 95% interval of the
        error rate; "pulls_se", "regret_se": standard error of the mean. Replications that a cell
        has not played are NaN in the result.
    Returns:
      An `xarray.Dataset` with dimensions instance, algorithm, one per axis, and replication.
    Raises:
      ValueError: names what was wrong; before any cell is run.
    """
    if cluster is not None:
        raise ValueError(f"cluster is not available in this version, got {cluster!r}")
    plan = Sweep(
        instances=tuple(_part("instance", *item) for item in instances.items()),
        algorithms=tuple(_part("algorithm", *item) for item in algorithms.items()),
        axes={name: tuple(values) for name, values in (axes or {}).items()},
        replications=replications,
        seed=seed,
        horizon=horizon,
        max_pulls=max_pulls,
        until={} if until is None else until,
    )
    return run(plan, out=out, resume=resume, progress=progress)


def run(plan, *, out=None, resume=True, progress=False, shard=(1, 1)):
    """Run a `Sweep`; see `sweep` for the arguments and the result.

    An interrupt keeps the replications that are done. With `shard=(i, n)` every n-th cell is
    played, from the i-th on, and the result is None as long as `out` lacks the others.
    """
    from .display import Display

    require_shard(shard, out)
    first, step = shard
    cells = [_cell(plan, *corner) for corner in _corners(plan)]
    checked = [_built(plan, cell) for cell in cells]
    store, done = Store(out) if out is not None else None, {}
    if store is not None and resume:  # read first, for what cannot be read ends the run
        done = _stored(store, cells)
    mine = list(zip(cells, checked, strict=True))[first - 1 :: step]
    with Display(len(mine), plan.replications, progress) as display:
        for cell, built in mine:
            runs = done.get(cell.identity)
            reused = runs is not None
            if not reused:
                report = display.start(cell.title)
                runs = done[cell.identity] = _play(plan, cell, built, store, resume, report)
            display.finish(cell.title, runs, reused)
    if step > 1:  # others may have finished theirs meanwhile
        done |= _stored(store, [cell for cell in cells if cell.identity not in done])
    if any(cell.identity not in done for cell in cells):
        return None
    return assemble(plan, [done[cell.identity] for cell in cells])


def require_shard(shard, out):
    """Raise unless `shard` is `(i, n)` with 1 <= i <= n, and `out` says where its cells go."""
    first, step = shard
    require(1 <= first <= step, f"shard must be i/n with 1 <= i <= n, got {first}/{step}")
    require(step == 1 or out is not None, "shard needs a folder `out` for its cells, got none")


def _stored(store, cells):
    found = {cell.identity: store.get(cell.spec) for cell in cells}
    return {identity: runs for identity, runs in found.items() if runs is not None}


def _play(plan, cell, built, store, resume, report):
    """`Runs` of a cell, stored piece by piece where there is a store."""
    from ..simulation import Simulation

    runs = store.begun(cell.spec) if store is not None and resume else None
    keep = None if store is None else functools.partial(store.add, cell.spec)
    simulation = None
    for number in stages(plan.replications, plan.until):
        known = set() if runs is None else set(runs.replication.tolist())
        left = [r for r in range(number) if r not in known]
        if left:
            settings = {name: getattr(plan, name) for name in SIMULATED}
            simulation = simulation or Simulation(*built, **settings)
            before = number - len(left)

            def progress(done, total, before=before):
                report(done if done is None else before + done, plan.replications)

            new = simulation.play(left, progress, keep, CHECKPOINT_SECONDS)
            runs = joined([new] if runs is None else [runs, new])
            if len(new) < len(left):
                raise KeyboardInterrupt
        found = first_of(runs, number)
        if plan.until and enough(found, plan.until):
            break
    if store is not None:
        store.put(cell.spec, found)
    return found


def check(plan):
    """Raise what `run` would raise for a bad option, without running anything."""
    for corner in _corners(plan):
        _built(plan, _cell(plan, *corner))


def _part(kind, label, build):
    if isinstance(build, functools.partial) and not build.args:
        return Part(kind, label, build.func, dict(build.keywords))
    return Part(kind, label, build, {})


def _corners(plan):
    for instance in plan.instances:
        for algorithm in plan.algorithms:
            for point in plan.points():
                yield instance, algorithm, point


def _cell(plan, instance, algorithm, point):
    options = instance.at(point)
    try:
        data = digest_files(options["path"]) if options.get("path") else None
    except OSError as error:
        raise ValueError(f"{instance.table} path: {error}") from None
    spec = {
        "version": VERSION,
        "instance": [describe(instance.build), describe(options), instance.redraw],
        "algorithm": [describe(algorithm.build), describe(algorithm.at(point))],
        "data": data,
    }
    spec |= {name: getattr(plan, name) for name in SIMULATED}
    if plan.until:
        spec["until"] = {name: repr(float(limit)) for name, limit in plan.until.items()}
    return Cell(instance, algorithm, point, spec)


def _built(plan, cell):
    """`(instance or key -> instance, algorithm)`, with every option checked."""
    import jax

    from ..world import check_build

    problem = _located(cell.instance.table, _problem, plan, cell)
    build = functools.partial(cell.algorithm.build, **cell.algorithm.at(cell.point))
    with jax.enable_x64(True):
        _located(cell.algorithm.table, check_build, problem, build, plan.horizon)
    return problem, build


def _problem(plan, cell) -> Any:
    build, options = cell.instance.build, cell.instance.at(cell.point)
    if not callable(build):
        return build
    inspect.signature(build).bind(*(["key"] if names.is_random(build) else []), **options)
    if not names.is_random(build):
        return build(**options)
    if cell.instance.redraw:
        # Checks the options without drawing anything.
        import jax

        from ..driver import root_key

        draw = functools.partial(build, **options)
        jax.eval_shape(draw, root_key(plan.seed))
        return draw
    return _fixed(build, options, plan.seed)


def _fixed(build, options, seed):
    from jax.random import fold_in

    from ..driver import INSTANCE, root_key

    return build(fold_in(root_key(seed), INSTANCE), **options)


def _located(table, function, *args):
    """Call, and put the table's name in front of what goes wrong."""
    try:
        return function(*args)
    except (ValueError, TypeError, OverflowError) as error:
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{table} {message}") from None
