"""Run the cells of a sweep and lay them out on one labelled grid."""

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..engine.episode import MAX_PULLS
from ..engine.results import Runs
from ..messages import brief
from ..parameters import check as check_option
from ..parameters import choice, require
from ..signatures import hinting_at_partial
from ..system.caller import warn_caller
from ..system.data_files import check_path
from ..system.extras import needed_by
from ..system.jax_options import check_devices, pinning
from ..system.progress import Progress
from ..whole_numbers import is_whole
from . import local
from .cell_progress import CellProgress, OpenCells, Work
from .cells import Cell, cells_of, check_endings
from .dataset import assemble, with_bounds
from .description import facts_of
from .folder import Folder, locked
from .groups import groups_of
from .names import Constructor
from .spec import Only, Sweep, planned
from .store import Spec, Store
from .unused import warn_of_unused

if TYPE_CHECKING:
    import xarray

    from ..engine.multihost import Alone

# A folder that this process has to lock, or one that its caller has locked; None: nowhere.
Out: TypeAlias = Path | str | Folder | None
RunsByCell: TypeAlias = dict[str, Runs]  # by the identity of the cell

PARTIAL = "partial"  # attribute of a dataset: what was done when it was interrupted
SHOWN_SECONDS = 0.5  # of compiling: less is not worth a word


@hinting_at_partial
@pinning
def sweep(
    instances: Mapping[str, Any],
    algorithms: Mapping[str, Constructor],
    *,
    replications: int,
    seed: int = 0,
    out: Path | str | None = None,
    resume: bool = True,
    axes: Mapping[str, Any] | None = None,
    cluster: Any = None,
    progress: bool | None = True,
    horizon: int | None = None,
    max_pulls: int = MAX_PULLS,
    record: str | Sequence[int] = "mixed",
    until: dict[str, float] | None = None,
    only: Mapping[str, Only] | None = None,
    batch: int | None = None,
    devices: Any = None,
    cores: int | None = None,
    engine: str = "auto",
    bounds: bool = False,
) -> "xarray.Dataset":
    """Simulate every algorithm on every instance at every point of the axes.

    Cells that differ in numbers alone compile once, and are simulated side by side where that is
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
      cluster: address of a running dask scheduler, or a `distributed.Client`: its workers
        simulate, this process stores. The pieces of work of a worker that is killed are given to
        others.
      progress: whether to show it; None: as in `simulate`.
      until: limits by name: a cell ends once all hold, checked after 100, 150, 225, ...
        replications; `replications` is then the most. "error_width": of the 95% interval of the
        error rate; "pulls_se", "regret_se": standard error of the mean. Replications that a cell
        did not need are NaN in the result.
      only: by name of an instance or an algorithm, values by axis: elsewhere it is not simulated,
        and its results are NaN. For an algorithm too slow for the largest problems, say.
      bounds: add `pull_lower_bound`, see `theory`, to cells of one linear instance with normal
        rewards and an algorithm with a `delta`; compiles for some seconds.
      batch, devices, cores, engine: as in `simulate`; the pulls stay the same, but for ties that
        depend on the last bit. On a cluster each piece of work takes one core by default. A cell
        that is continued keeps the engine that "auto" began it with. With `devices="all"` several
        processes may run the same sweep with the same folder `out`; each process stores the
        replications that it has simulated.
    Returns:
      An `xarray.Dataset` with dimensions instance, algorithm, one per axis, and replication. A
      cell that depends on no option named by an axis is played once, and has its numbers at every
      value of that axis. The attribute `independent`, JSON, has the pairs of instance and
      algorithm of such cells by axis.
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
    with needed_by("sweep"):  # now, as the last of them is used when all has been played
        import xarray  # noqa: F401

        if out is not None:
            import h5netcdf  # noqa: F401
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
    dataset = run(
        plan,
        out=out,
        resume=resume,
        progress=progress,
        cluster=cluster,
        bounds=bounds,
        batch=batch,
        devices=devices,
        cores=cores,
        engine=engine,
    )
    assert dataset is not None  # as it is for shards alone
    return dataset


@pinning
def run(
    plan: Sweep,
    *,
    cells: Sequence[Cell | None] | None = None,
    out: Out = None,
    resume: bool = True,
    progress: bool | None = False,
    shard: tuple[int, int] = (1, 1),
    cluster: Any = None,
    bounds: bool = False,
    partial: bool = False,
    **how: Any,
) -> "xarray.Dataset | None":
    """Run a `Sweep`; see `sweep` for the arguments and the result.

    An interrupt keeps the replications that are done. With `shard=(i, n)` every n-th cell is
    simulated, from the i-th on, and the result is None as long as `out` lacks the others.

    Args:
      plan: the `Sweep`.
      cells: those of the plan, where `check` has made them before.
      out: a path, or the `Folder` that the caller has locked.
      resume, progress, cluster, bounds: as in `sweep`.
      shard: which of how many parts of the cells.
      partial: an interrupt warns, and what is done of each cell is returned; the attribute
        `PARTIAL` of the dataset says how much. Without, it is raised again.
      how: `batch`, `devices`, `cores` and `engine`.
    """
    from ..engine.multihost import team_of

    if not isinstance(out, Folder | None):
        check_path("out", out)
    require_shard(shard, out)
    flags = {"resume": resume, "progress": bool(progress), "bounds": bounds}
    flags |= {} if progress is None else {"progress": progress}
    for name, flag in flags.items():
        check_option(name, choice(False, True), flag)
    check_how(cluster, **how)
    cells = check(plan, progress=bool(progress)) if cells is None else cells
    team = team_of(how.get("devices"))
    with team.leading(functools.partial(_lock, out, cells, shard)):
        folder = out if isinstance(out, Folder) or out is None else Folder(Path(out))
        store = None if folder is None else Store(folder.path, folder.earlier)
        begun = store.begun if store is not None and resume else None
        done, said = _run(plan, cells, store, begun, team, progress, shard, cluster, how, partial)
    if not said and any(cell is not None and cell.identity not in done for cell in cells):
        return None
    dataset = assemble(plan, [done.get(cell.identity) if cell else None for cell in cells])
    dataset.attrs |= facts_of(cells) | ({PARTIAL: said} if said else {})
    if not bounds or said:
        return dataset
    try:
        return with_bounds(dataset, cells)
    except KeyboardInterrupt:
        if not partial:
            raise
        warn_caller("interrupted: all replications are done, but no bound is known")
        return dataset


def _lock(
    out: Out, cells: Sequence[Cell | None], shard: tuple[int, int]
) -> AbstractContextManager[Any]:
    """A context in which no other sweep writes to the folder."""
    if out is None or isinstance(out, Folder):
        return contextlib.nullcontext(out)
    return locked(out, cells, shared=shard[1] > 1)


def _run(
    plan: Sweep,
    grid: Sequence[Cell | None],
    store: Store | None,
    begun: Callable[[Spec, Any], Runs | None] | None,
    team: "Alone",
    progress: bool | None,
    shard: tuple[int, int],
    cluster: Any,
    how: dict[str, Any],
    partial: bool,
) -> tuple[RunsByCell, str]:
    """`Runs` of all cells but those that other shards have not finished.

    With `partial` they are of what is done after an interrupt, and a text says so, else empty.

    Args:
      grid: the cells, None where nothing is simulated.
      store: where cells are stored, or None.
      begun: what is stored of a cell that is not finished; None: all cells are simulated anew.
    """
    first, step = shard
    cells = [cell for cell in grid if cell is not None]
    # Read first, as a file that cannot be read ends the run.
    done = {} if begun is None else _stored(store, cells)
    distinct = {cell.identity: cell for cell in cells}
    mine = dict(list(distinct.items())[first - 1 :: step])
    wanted = mine.keys() - done.keys()
    if store is not None and wanted:
        store.check_writable()
    check_endings(plan, [cell for cell in distinct.values() if cell.identity not in done])
    if store is not None and begun is not None and team.index == 0:
        anew = [cell for name, cell in mine.items() if name in wanted]
        warn_of_unused(store, anew, distinct.values())
    groups = groups_of(plan, cells)

    def opened(cell: Cell) -> CellProgress:
        stored = None if begun is None else begun(cell.spec, cell.problem)
        return CellProgress(plan, cell, store, stored=stored, leads=team.index == 0)

    work = [
        (group, {n: opened(cell) for n, cell in enumerate(group.cells) if cell.identity in wanted})
        for group in groups
    ]
    team.agree(functools.partial(_view, done, work))
    shown = progress if team.index == 0 else False
    try:
        begun_text = functools.partial(_begun_text, plan, work, store is not None)
        with Progress(shown, items="cells", number=len(mine), begun=begun_text) as display:
            for identity, cell in mine.items():
                if identity in done:
                    display.finish(_line(cell, done[identity], stored=True))
            if before := begun_text():
                display.line(f"going on: {before}")
            _run_groups(plan, work, cluster, display, how)
    except KeyboardInterrupt:
        known = [f for _, open_cells in work for f in open_cells.values() if len(f)]
        if not (partial and known):
            raise
        number = sum(map(len, known))
        said = f"interrupted: {number} of {plan.replications * len(wanted)} replications are done"
        warn_caller(said)
        parts = {f.cell.identity: f.known for f in known}
        return done | {name: runs for name, runs in parts.items() if runs is not None}, said
    team.meet()  # so that none leaves before the last cell is stored
    for _, open_cells in work:
        done |= {f.cell.identity: f.result for f in open_cells.values() if f.result is not None}
    if step > 1:  # others may have finished theirs meanwhile
        done |= _stored(store, [cell for cell in cells if cell.identity not in done])
    return done, ""


def _view(done: RunsByCell, work: Work) -> str:
    """What a process sees of the stored cells."""
    parts = [
        (f.cell.identity, hashlib.sha256(f.missing().tobytes()).hexdigest())
        for _, open_cells in work
        for f in open_cells.values()
    ]
    return repr((sorted(done), parts))


def require_shard(shard: tuple[int, int], out: Out) -> None:
    """Raise unless `shard` is `(i, n)` with 1 <= i <= n, and `out` says where its cells go."""
    pair = isinstance(shard, tuple | list) and len(shard) == 2
    fits = pair and is_whole(shard[1], 1) and is_whole(shard[0], 1, shard[1])
    given = "/".join(map(str, shard)) if pair else brief(shard)
    require(fits, f"shard must be i/n with 1 <= i <= n, got {given}")
    step = shard[1]
    require(step == 1 or out is not None, "shard needs a folder `out` for its cells, got none")


def check_how(
    cluster: Any,
    batch: int | None = None,
    devices: Any = None,
    cores: int | None = None,
    engine: str = "auto",
) -> None:
    """Raise unless a sweep can be run with these options of `simulate`."""
    from ..engine.checks import check_engine, cores_of, devices_of, size_or_none

    size_or_none("batch", batch)
    cores_of(cores, devices)
    # By its name, as a package that is not there has no clients.
    is_client = any(kind.__name__ in ("Client", "Cluster") for kind in type(cluster).__mro__)
    if not (cluster is None or is_client or (isinstance(cluster, str) and cluster.strip())):
        raise ValueError(
            f"cluster must be the address of a scheduler or a distributed.Client, "
            f"got {brief(cluster)}"
        )
    if cluster is None:  # else the workers check devices and engine
        check_engine(engine, devices_of(devices))


def _stored(store: Store | None, cells: Iterable[Cell]) -> RunsByCell:
    """`Runs` of the finished cells that are stored."""
    if store is None:
        return {}
    found = {cell.identity: store.get(cell.spec, cell.problem) for cell in cells}
    return {identity: runs for identity, runs in found.items() if runs is not None}


def _run_groups(
    plan: Sweep, work: Work, cluster: Any, display: Progress, how: dict[str, Any]
) -> None:
    """Simulate all groups until their cells are complete."""

    def keep(open_cell: CellProgress, runs: Runs, *, ours: bool = True) -> None:
        open_cell.add(runs, ours=ours)
        if open_cell.result is not None:
            display.finish(_line(open_cell.cell, open_cell.result, stored=False))

    going: list[tuple[Any, OpenCells]] = []
    for group, open_cells in work:
        for open_cell in open_cells.values():
            if open_cell.result is not None:  # its parts, all of them stored before, complete it
                open_cell.close()
                display.finish(_line(open_cell.cell, open_cell.result, stored=True))
        if left := {n: f for n, f in open_cells.items() if f.result is None}:
            going.append((group, left))
    if cluster is None:
        local.run(plan, going, keep, display, how)
    elif going:
        from . import cluster as many

        many.run(cluster, plan, going, keep, display, how)


def _begun_text(plan: Sweep, work: Work, is_stored: bool) -> str:
    """What is done of the cells that are not finished; "" where nothing is."""
    begun = [f for _, cells in work for f in cells.values() if len(f) and f.result is None]
    if not begun:
        return ""
    number, most = sum(map(len, begun)), plan.replications * len(begun)
    others = "" if len(begun) == 1 else f" and {len(begun) - 1} more"
    limit = "at most " if plan.until else ""
    how = "stored" if is_stored else "done"
    cells = f"'{begun[0].cell.title}'{others}"
    return f"{number:,} of {limit}{most:,} replications of {cells} are {how}"


def _line(cell: Cell, runs: Runs, *, stored: bool) -> str:
    """What is shown of a finished cell; cells that share a program wait for it once."""
    seconds, compiled = (runs.meta.get(name, 0.0) for name in ("seconds", "compile_seconds"))
    waited = f" after {compiled:.1f} s of compiling" if compiled >= SHOWN_SECONDS else ""
    how = "stored before" if stored else f"{seconds:.1f} s{waited}"
    cut = 0 if runs.regret is not None else int((~runs.stopped).sum())
    number = f"{len(runs)} replications" + (f" ({cut} cut short)" if cut else "")
    return f"{cell.title}: {number}, {how}"


@pinning
def check(plan: Sweep, *, progress: bool = False) -> list[Cell | None]:
    """The cells of a `Sweep`, for `run`; raises what that would raise for a bad option."""
    check_devices()  # else the first instance would be named as the fault
    return cells_of(plan, progress=progress)
