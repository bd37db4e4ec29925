"""Run the cells of a sweep and lay them out on one labelled grid."""

import contextlib
import functools

from ..engine.episode import MAX_PULLS
from ..parameters import require
from ..signatures import unknown
from .ahead import Ahead
from .cell_progress import CellProgress
from .cells import cells_of, located
from .dataset import assemble, with_bounds
from .description import digests_of
from .folder import Folder, locked
from .groups import groups_of
from .spec import Part, Sweep
from .store import Store

CHECKPOINT_SECONDS = 20.0  # what a killed sweep loses at most, and a call of the lanes


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
    record="mixed",
    until=None,
    only=None,
    batch=None,
    devices=None,
    engine="xla",
    bounds=False,
):
    """Simulate every algorithm on every instance at every point of the axes.

    Cells that differ in numbers alone compile once, and are played side by side where that is
    faster.

    Args:
      instances: by name, an `Instance`, or a constructor of one with its options bound by
        `functools.partial`; one that takes `key` first is redrawn for each replication.
      algorithms: by name, constructors with their options bound.
      replications, seed, horizon, max_pulls, record: as in `simulate`.
      out: folder where each cell is stored as soon as it is done, locked meanwhile against other
        sweeps. Cells of several sweeps may lie in one folder.
      resume: use the cells that `out` holds.
      axes: by name, values of an option; it reaches every constructor with such an option.
      cluster: address of a running dask scheduler, or a `distributed.Client`: its workers play,
        this process stores. A worker that is killed costs the pieces it was at, played again by
        others.
      progress: whether to show it.
      until: limits by name: a cell ends once all hold, looked at after 100, 150, 225, ...
        replications; `replications` is then the most. "error_width": of the 95% interval of the
        error rate; "pulls_se", "regret_se": standard error of the mean. Replications that a cell
        has not played are NaN in the result.
      only: by name of an instance or an algorithm, values by axis: elsewhere it is not played, and
        its results are NaN. An algorithm too slow for the largest problems, say.
      bounds: add `pull_lower_bound`, see `theory`, to cells of one linear instance with normal
        rewards and an algorithm with a `delta`; compiles for some seconds.
      batch, devices, engine: what plays, as in `simulate`; the pulls stay the same, but for ties
        that hang on the last bit. Of several processes that share `out`, with `devices="all"`,
        each stores its replications.
    Returns:
      An `xarray.Dataset` with dimensions instance, algorithm, one per axis, and replication.
    Raises:
      ValueError: names what was wrong; before any cell is run.

    >>> from functools import partial
    >>> import jaxbandits as jb
    >>> dataset = sweep(
    ...     {"basis": partial(jb.instances.canonical, dim=3)},
    ...     {"halving": partial(jb.sequential_halving, budget=30)},
    ...     axes={"gap": [0.5, 1.0]},
    ...     replications=20,
    ...     progress=False,
    ... )
    >>> dict(dataset.pulls.sizes)
    {'instance': 1, 'algorithm': 1, 'gap': 2, 'replication': 20}
    """
    plan = planned(
        instances,
        algorithms,
        axes=axes,
        replications=replications,
        seed=seed,
        horizon=horizon,
        max_pulls=max_pulls,
        record=record,
        until=until,
        only=only,
    )
    how = {"batch": batch, "devices": devices, "engine": engine}
    settings = {"out": out, "resume": resume, "progress": progress, "cluster": cluster}
    return run(plan, bounds=bounds, **settings, **how)


def planned(instances, algorithms, *, axes=None, until=None, only=None, **rest):
    """The `Sweep` of the arguments of `sweep`."""
    only = only or {}
    for name in only:
        if name not in {**instances, **algorithms}:
            raise unknown("name in only", name, {**instances, **algorithms})
    return Sweep(
        instances=tuple(_part("instance", *item, only) for item in instances.items()),
        algorithms=tuple(_part("algorithm", *item, only) for item in algorithms.items()),
        axes={name: _listed(values) for name, values in (axes or {}).items()},
        until={} if until is None else until,
        **rest,
    )


def _listed(values):
    """A tuple of what can be listed; anything else is for `Sweep` to refuse."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    return tuple(values) if isinstance(values, list | tuple | range) else values


def run(
    plan,
    *,
    cells=None,
    out=None,
    resume=True,
    progress=False,
    shard=(1, 1),
    cluster=None,
    bounds=False,
    **how,
):
    """Run a `Sweep`; see `sweep` for the arguments and the result.

    An interrupt keeps the replications that are done. With `shard=(i, n)` every n-th cell is
    played, from the i-th on, and the result is None as long as `out` lacks the others.

    Args:
      cells: those of the plan, where `check` has made them before.
      out: a path, or the `Folder` that the caller has locked.
      how: `batch`, `devices` and `engine`.
    """
    from ..engine.multihost import team_of

    require_shard(shard, out)
    check_how(cluster, **how)
    cells = check(plan, progress=progress) if cells is None else cells
    team = team_of(how.get("devices"))
    with team.leading(functools.partial(_taken, out, cells, shard)):
        store = None if out is None else Store(getattr(out, "path", out))
        begun = None
        if store is not None and resume:
            begun = functools.partial(store.begun, earlier=getattr(out, "earlier", 0))
        done = _run(plan, cells, store, begun, team, progress, shard, cluster, how)
    if any(cell is not None and cell.identity not in done for cell in cells):
        return None
    dataset = assemble(plan, [done[cell.identity] if cell else None for cell in cells])
    dataset.attrs["data"] = digests_of(cells)
    return with_bounds(dataset, cells) if bounds else dataset


def _taken(out, cells, shard):
    """A context in which the folder is ours."""
    if out is None or isinstance(out, Folder):
        return contextlib.nullcontext(out)
    return locked(out, cells, shared=shard[1] > 1)


def _run(plan, everywhere, store, begun, team, progress, shard, cluster, how):
    """`Runs` by the identity of their cell; of those that other shards have not ended, none.

    Args:
      begun: a callable `spec -> Runs or None` for what is stored of a cell, None to play all anew.
    """
    from ..engine.api import check_ending
    from .display import Display

    first, step = shard
    cells, done = [cell for cell in everywhere if cell is not None], {}
    if begun is not None:  # read first, for what cannot be read ends the run
        done = _stored(store, cells)
    distinct = {cell.identity: cell for cell in cells}
    for cell in [cell for identity, cell in distinct.items() if identity not in done]:
        located(
            cell.algorithm,
            cell.point,
            check_ending,
            *(cell.world, plan.max_pulls, plan.horizon, plan.record),
        )
    mine = dict(list(distinct.items())[first - 1 :: step])
    work = [
        (group, _open_cells(plan, group, store, begun, team, mine.keys() - done.keys()))
        for group in groups_of(plan, cells)
    ]
    team.agree(functools.partial(_view, done, work))
    if store is not None and any(open_cells for _, open_cells in work):
        store.check_writable()
    with Display(len(mine), progress and team.index == 0) as display:
        for identity, cell in mine.items():
            if identity in done:
                display.finish(cell.title, done[identity], True)
        _work(plan, work, cluster, display, how)
    team.meet()  # for none to leave before the last cell is stored
    done |= {f.cell.identity: f.found for _, open_cells in work for f in open_cells.values()}
    if step > 1:  # others may have finished theirs meanwhile
        done |= _stored(store, [cell for cell in cells if cell.identity not in done])
    return done


def _view(done, work):
    """What a process sees of the stored cells."""
    parts = [(f.cell.identity, f.missing()) for _, open_cells in work for f in open_cells.values()]
    return repr((sorted(done), parts))


def require_shard(shard, out):
    """Raise unless `shard` is `(i, n)` with 1 <= i <= n, and `out` says where its cells go."""
    first, step = shard
    require(1 <= first <= step, f"shard must be i/n with 1 <= i <= n, got {first}/{step}")
    require(step == 1 or out is not None, "shard needs a folder `out` for its cells, got none")


def check_how(cluster, batch=None, devices=None, engine="xla"):
    """Raise unless a sweep can be played so."""
    from ..engine.checks import check_engine, check_sizes, devices_of

    check_sizes(1, 0, 1, None, batch)
    if cluster is None:  # else devices and engine are for the workers to say
        check_engine(engine, devices_of(devices))


def _stored(store, cells):
    found = {cell.identity: store.get(cell.spec) for cell in cells}
    return {identity: runs for identity, runs in found.items() if runs is not None}


def _open_cells(plan, group, store, begun, team, wanted):
    """A `CellProgress` of each cell of the group that is wanted, by its number."""
    return {
        number: CellProgress(plan, cell, store, begun=begun, leads=team.index == 0)
        for number, cell in enumerate(group.cells)
        if cell.identity in wanted
    }


def _work(plan, work, cluster, display, how):
    """Play all groups until their cells are whole."""
    from ..engine.multihost import team_of

    def keep(open_cell, runs, **more):
        open_cell.add(runs, **more)
        if open_cell.found is not None:
            display.finish(open_cell.cell.title, open_cell.found, False)

    for _, open_cells in work:
        for open_cell in open_cells.values():
            if open_cell.found is not None:  # in parts, all of them stored before
                open_cell.close()
                display.finish(open_cell.cell.title, open_cell.found, True)
    going = [(g, {n: f for n, f in fs.items() if f.found is None}) for g, fs in work]
    going = [(group, open_cells) for group, open_cells in going if open_cells]
    if cluster is None:
        makers = [functools.partial(_made, plan, *item, how) for item in going]
        alone = team_of(how.get("devices")).alone  # else all processes do the same in one order
        with Ahead(makers, None if alone else 0) as ahead:
            for number, (group, open_cells) in enumerate(going):
                _play(plan, group, open_cells, keep, display, functools.partial(ahead.take, number))
    elif going:
        from . import cluster as many

        many.play(cluster, plan, going, keep, display, how)


def _made(plan, group, open_cells, how):
    """The `Simulation` for what a group has left."""
    return group.simulation(plan, sum(len(f.missing()) for f in open_cells.values()), **how)


def _play(plan, group, open_cells, keep, display, take):
    """Play the cells of a group on this machine."""
    most = plan.replications * len(open_cells)
    report = display.start(group.title, most)
    simulation = None

    def keep_number(number, runs):
        keep(open_cells[number], runs)

    while waiting := {n: f.missing() for n, f in open_cells.items() if f.found is None}:
        simulation = simulation or take()
        known = sum(map(len, open_cells.values()))
        progress = functools.partial(_shifted, report, known, most)
        played = simulation.run(waiting, progress, keep_number, CHECKPOINT_SECONDS)
        if not simulation.team.alone:
            for number, runs in played.items():
                if open_cells[number].found is None:
                    keep(open_cells[number], runs, ours=False)


def _shifted(report, known, most, done, total):
    report(done if done is None else known + done, most)


def check(plan, *, progress=False):
    """The cells of a `Sweep`, for `run`; raises what that would raise for a bad option."""
    from .display import checking

    report = checking(plan.num_cells) if progress else None
    return cells_of(plan) if report is None else cells_of(plan, report)


def _part(kind, label, build, only):
    there = dict(only.get(label, {}))
    if isinstance(build, functools.partial) and not build.args:
        return Part(kind, label, build.func, dict(build.keywords), only=there)
    return Part(kind, label, build, {}, only=there)
