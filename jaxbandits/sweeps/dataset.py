"""The cells of a sweep on one labelled grid, and that grid on disk."""

import contextlib
import io
import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..engine.engine_reasons import hindrance
from ..engine.reasons import text_of
from ..engine.results import REASON_ATTRIBUTES, Runs, none_of
from ..messages import brief
from ..system.data_files import Unreadable, check_fits, check_seal, opened, seal_of
from ..system.files import replacing
from ..system.machine import provenance
from .bounds import promised_error, pull_lower_bounds
from .cells import Cell
from .columns import PER_REPLICATION, TIMES
from .description import attributes
from .spec import Sweep
from .stated import NotOfASweep, check_results, stated
from .summaries import LEVEL, summarised
from .until import confidence

if TYPE_CHECKING:
    import xarray

Grid: TypeAlias = tuple[str, ...]  # the dimensions of a column with an entry for each cell
Layer: TypeAlias = Callable[[Iterable[Any]], np.ndarray]  # entries of all cells on the grid
# By name: dimensions, values, and attributes where there are any.
Columns: TypeAlias = dict[str, tuple[Any, ...]]

ANY = "any"  # in a table, the value of an axis on which a cell does not depend
MOST_NUMBERS = 20_000_000  # of a column that few readers need
# Smaller tables become larger, by what HDF5 notes of their pieces. Level 1 is as good for counts as
# level 9, and several times as fast.
LEAST_COMPRESSED = 4096  # numbers
ZLIB = {"zlib": True, "complevel": 1, "shuffle": True}


def assemble(plan: Sweep, found: Sequence[Runs | None]) -> "xarray.Dataset":
    """An `xarray.Dataset` of the `Runs` of all cells.

    Args:
      plan: the `Sweep`.
      found: in the order of the grid, None for cells that were not simulated.
    """
    import xarray

    cells = _filled(plan, found)

    axes = tuple(plan.axes)
    grid = ("instance", "algorithm", *axes)
    shape = (len(plan.instances), len(plan.algorithms), *map(len, plan.axes.values()))

    def layer(values: Iterable[Any]) -> np.ndarray:
        stacked = np.stack([np.asarray(v) for v in values])
        return stacked.reshape(*shape, *stacked.shape[1:])

    columns: Columns = {
        name: ((*grid, "replication"), layer(_level([getattr(runs, name) for runs in cells])))
        for name in PER_REPLICATION
    }
    columns["reason"] += (REASON_ATTRIBUTES,)
    if any("unsettled" in runs.facts for runs in cells):
        facts = [runs.facts.get("unsettled", np.zeros(len(runs), bool)) for runs in cells]
        columns["unsettled"] = (*grid, "replication"), layer(_level(facts))
    columns["engine_reason"] = grid, layer([runs.meta.get("engine_reason", "") for runs in cells])
    columns["judged"] = grid, layer([not runs.meta.get("contextual", False) for runs in cells])
    if plan.horizon is None:
        columns["promised_error"] = (grid, layer(_promised_errors(plan)))
    columns |= _arm_columns(grid, cells, layer) | _answers(grid, cells, layer)
    columns |= _info_columns(grid, cells, layer) | _facts_columns(grid, cells, layer)
    coordinates = {
        "instance": [part.label for part in plan.instances],
        "algorithm": [part.label for part in plan.algorithms],
        **{name: list(values) for name, values in plan.axes.items()},
        "replication": np.arange(max(map(len, cells))),
        "arm": np.arange(max(runs.arm_pulls.shape[1] for runs in cells)),
    }
    regrets = [runs.regret for runs in cells if runs.regret is not None]
    if regrets:
        columns["regret"] = (*grid, "replication", "round"), layer(_level(regrets))
        coordinates["round"] = cells[0].rounds
    if any(runs.regret_errors is not None for runs in cells):
        columns["regret_errors"] = (*grid, "arm"), layer(_regret_errors(cells))
    for name in TIMES:
        columns[name] = (grid, layer([runs.meta.get(name, np.nan) for runs in cells]))
    # An axis can have the name of a column: that of num_arms says the same.
    columns = {name: column for name, column in columns.items() if name not in coordinates}
    return summarised(xarray.Dataset(columns, coordinates, _attributes(plan, cells)))


def _filled(plan: Sweep, cells: Sequence[Runs | None]) -> list[Runs]:
    """Empty `Runs` for cells that are not simulated, with as many arms as other cells there."""
    algorithms, points = len(plan.algorithms), len(list(plan.points()))
    anywhere = next(runs for runs in cells if runs is not None)

    def nothing(number: int) -> Runs:
        instance, point = number // (algorithms * points), number % points
        there = (cells[(instance * algorithms + a) * points + point] for a in range(algorithms))
        return none_of(next((runs for runs in there if runs is not None), anywhere))

    return [nothing(i) if runs is None else runs for i, runs in enumerate(cells)]


def _promised_errors(plan: Sweep) -> list[float]:
    """The error rate that each cell's algorithm promises not to exceed; NaN: none."""
    return [
        promised_error(one.algorithm.build, one.algorithm_options) if one.wanted else np.nan
        for one in plan.combinations()
    ]


def with_bounds(dataset: "xarray.Dataset", cells: Iterable[Cell | None]) -> "xarray.Dataset":
    """The dataset with `pull_lower_bound`, if that is known of any of its cells."""
    bounds = np.reshape(pull_lower_bounds(cells), dataset.error_rate.shape)
    if np.isnan(bounds).all():
        return dataset
    return dataset.assign(pull_lower_bound=(dataset.error_rate.dims, bounds))


def _arm_columns(grid: Grid, cells: Sequence[Runs], layer: Layer) -> Columns:
    """Pulls of each arm; instances with fewer arms than others are filled up with 0.

    Those of single replications are left out where they would fill the memory.
    """
    num_arms = [runs.arm_pulls.shape[1] for runs in cells]
    most = max(num_arms)
    padded = [np.pad(r.arm_pulls, ((0, 0), (0, most - r.arm_pulls.shape[1]))) for r in cells]
    columns: Columns = {
        "num_arms": (grid, layer(num_arms)),
        "arm_pulls_mean": ((*grid, "arm"), layer([_mean(pulls) for pulls in padded])),
    }
    if sum(pulls.size for pulls in padded) <= MOST_NUMBERS:
        columns["arm_pulls"] = ((*grid, "replication", "arm"), layer(_level(padded)))
    return columns


def _regret_errors(cells: Sequence[Runs]) -> list[np.ndarray]:
    """Mean `Runs.regret_errors` of each arm; 0 where means are known, and of arms there are not."""
    most = max(runs.arm_pulls.shape[1] for runs in cells)
    found = []
    for runs in cells:
        errors = np.zeros(runs.arm_pulls.shape) if (x := runs.regret_errors) is None else x
        known = errors[~np.isnan(errors).any(1)]
        found.append(np.pad(_mean(known), (0, most - errors.shape[1])))
    return found


def _answers(grid: Grid, cells: Sequence[Runs], layer: Layer) -> Columns:
    """Answers as indices or, where some algorithm answers with a set, all of them as masks.

    Their name is not `answer`, which is an option of `at_budget` and so may be an axis.
    """
    given = [runs.answer for runs in cells]
    if all(answer.ndim == 1 for answer in given):
        return {"answers": ((*grid, "replication"), layer(_level(given)))}
    most = max(x.shape[1] if x.ndim > 1 else int(x.max(initial=0)) + 1 for x in given)
    if sum(map(len, given)) * most > MOST_NUMBERS:
        return {}
    masks = [_masks(answer, most) for answer in given]
    return {"answers": ((*grid, "replication", "target"), layer(_level(masks)))}


def _masks(answer: np.ndarray, number: int) -> np.ndarray:
    """Sets of so many targets `[R, number]`; an index is a set of one, and -1 the empty one."""
    if answer.ndim == 1:
        return answer[:, None] == np.arange(number)
    return np.pad(answer, ((0, 0), (0, number - answer.shape[1])))


def _facts_columns(grid: Grid, cells: Sequence[Runs], layer: Layer) -> Columns:
    """What the engine found out, where single replications fit; see `Runs.facts`."""
    names = sorted({name for runs in cells for name in runs.facts})
    if len(cells) * max(map(len, cells)) * len(names) > MOST_NUMBERS:
        return {}
    return {
        f"facts_{name}": (
            (*grid, "replication"),
            layer(_level([r.facts.get(name, np.zeros(len(r), bool)) for r in cells])),
        )
        for name in names
    }


def _info_columns(grid: Grid, cells: Sequence[Runs], layer: Layer) -> Columns:
    """What algorithms count of themselves; NaN where one does not count that.

    As with arms, means are always there, and single replications where they fit.
    """
    columns: Columns = {}
    names = sorted({name for runs in cells for name in runs.info})
    fits = len(cells) * max(map(len, cells)) * len(names) <= MOST_NUMBERS
    for name in names:
        counts = [r.info.get(name, np.full(len(r), np.nan)).astype(float) for r in cells]
        columns[f"info_{name}_mean"] = (grid, layer([_mean(values) for values in counts]))
        if fits:
            columns[f"info_{name}"] = ((*grid, "replication"), layer(_level(counts)))
    return columns


def _mean(values: np.ndarray) -> np.ndarray:
    return values.mean(0) if len(values) else np.full(values.shape[1:], np.nan)


def _level(tables: list[np.ndarray]) -> list[np.ndarray]:
    """Tables of equal length: cells that ended early are filled up with NaN."""
    most = max(map(len, tables))
    if all(len(table) == most for table in tables):
        return tables
    ends = [((0, most - len(x)), *((0, 0),) * (x.ndim - 1)) for x in tables]
    return [
        np.pad(x.astype(float), end, constant_values=np.nan)
        for x, end in zip(tables, ends, strict=True)
    ]


def _attributes(plan: Sweep, cells: Sequence[Runs]) -> dict[str, Any]:
    distinct = {id(runs): runs for runs in cells}.values()  # a cell may be at many points
    return {
        **attributes(plan),
        **({LEVEL: confidence(plan.replications, plan.until)} if plan.until else {}),
        **{name: _met(name, cells) for name in ("jax", "device", "engine")},
        **provenance(),
        **{name: round(sum(runs.meta.get(name, 0.0) for runs in distinct), 3) for name in TIMES},
    }


def _met(name: str, cells: Iterable[Runs]) -> str:
    """The distinct values of a fact about the runs of the cells."""
    return ", ".join(sorted({str(runs.meta.get(name, "")) for runs in cells}))


def listed_cells(
    dataset: "xarray.Dataset",
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every cell of a sweep's dataset once, for a table.

    A cell that does not depend on an axis has the same numbers at all its points. It is listed at
    the first of those at which it was run.

    Yields:
      By name of a dimension, where the cell is, and what to call that: `ANY` for such an axis.
    """
    axes = stated(dataset.attrs, "axes")
    independent = stated(dataset.attrs, "independent")
    pairs = itertools.product(dataset.instance.values.tolist(), dataset.algorithm.values.tolist())
    for pair in pairs:
        fixed = [axis for axis in axes if list(pair) in independent.get(axis, [])]
        own = dict(zip(("instance", "algorithm"), pair, strict=True))
        own |= _first_run(dataset.sel(own), fixed)
        free = [axis for axis in axes if axis not in fixed]
        for values in itertools.product(*(dataset[axis].values.tolist() for axis in free)):
            point = own | dict(zip(free, values, strict=True))
            point = {name: point[name] for name in ("instance", "algorithm", *axes)}
            yield point, point | dict.fromkeys(fixed, ANY)


def _first_run(cells: "xarray.Dataset", axes: Sequence[str]) -> dict[str, Any]:
    """The first point of some axes at which any cell was run; the first of all where none was."""
    points = [
        dict(zip(axes, values, strict=True))
        for values in itertools.product(*(cells[axis].values.tolist() for axis in axes))
    ]
    run = (point for point in points if cells.pulls.sel(point).notnull().any())
    return next(run, points[0])


def reasons_text(cell: "xarray.Dataset") -> str:
    """Why replications of a cell have no reliable answer, with the number for each reason."""
    numbers = zip(cell.why.values.tolist(), cell.reasons.values.tolist(), strict=True)
    return text_of({name: int(number) for name, number in numbers if number > 0})


def engines_text(dataset: "xarray.Dataset") -> str:
    """A line for each reason why a faster engine did not play; "" where there is none."""
    if "engine_reason" not in dataset:
        return ""
    said = sorted({hindrance(str(x)) for x in dataset.engine_reason.values.ravel()} - {""})
    return "\n".join(f"A faster engine did not play: {reason}." for reason in said)


def unsettled_text(dataset: "xarray.Dataset") -> str:
    """A sentence where estimated means do not settle which answers are right; "" where they do."""
    if "unsettled" not in dataset:
        return ""
    share = float(dataset.unsettled.mean("replication").max())
    where = f"up to {share:.3g} of the replications of a cell"
    said = f"In {where}, estimated means do not settle which answer is right."
    return said if share > 0 else ""


@contextlib.contextmanager
def opened_results(path: Path | str) -> "Generator[xarray.Dataset]":
    """The dataset of a sweep in a file, whose tables are read when they are used.

    Raises:
      Unreadable: it is no file of results, damaged, or larger than the memory.
    """
    import xarray

    with opened(path) as stream:
        check_seal(stream)  # HDF5 itself may read a damaged file for ever
    try:
        _check_self_contained(path)
        dataset = xarray.open_dataset(path)
    except Unreadable:
        raise
    except Exception:  # damage shows in as many ways as the format has layers
        raise Unreadable("it cannot be read as netCDF") from None
    with dataset:
        check_results(dataset.attrs)
        check_fits(dataset.nbytes)
        yield dataset


def _check_self_contained(path: Path | str) -> None:
    """Raise `Unreadable` where numbers would come from other files, which HDF5 can name."""
    try:
        import h5py
    except ImportError:  # without it no such file can be read
        return
    if not h5py.is_hdf5(path):
        return
    with h5py.File(path) as file:
        for name in file:
            link = file.get(name, getlink=True)
            inside = None if isinstance(link, h5py.ExternalLink) else file[name]
            elsewhere = isinstance(inside, h5py.Dataset) and (inside.external or inside.is_virtual)
            if inside is None or elsewhere:
                raise Unreadable(f"its {brief(name)} lies in another file")


def loaded(dataset: "xarray.Dataset") -> "xarray.Dataset":
    """The dataset in memory; raises `Unreadable` where its file is damaged."""
    try:
        return dataset.load()
    except Exception:
        raise Unreadable("its tables are damaged") from None


@contextlib.contextmanager
def read_ours(path: Path | str) -> "Generator[xarray.Dataset | None]":
    """The dataset of a sweep that `path` holds, or None where there is no such file.

    Raises:
      ValueError: names the file and says what it is instead.
    """
    if not Path(path).exists():
        yield None
        return
    with contextlib.ExitStack() as open_files:
        try:
            dataset = open_files.enter_context(opened_results(path))
            _check_labels(dataset)
        except NotOfASweep:
            why = "it holds something else and is not overwritten; move it away"
            raise ValueError(f"{path}: {why}") from None
        except Unreadable as error:
            why = f"{error}; it is not overwritten: move it away"
            raise ValueError(f"{path}: {why}") from None
        yield dataset


def _check_labels(dataset: "xarray.Dataset") -> None:
    """Raise `Unreadable` where a dimension of the grid has no labels."""
    for name in ("instance", "algorithm", *stated(dataset.attrs, "axes")):
        if name not in dataset.coords or dataset[name].dims != (name,):
            raise Unreadable(f"it has no labels of the dimension {name!r}")


def write(dataset: "xarray.Dataset", path: Path | str) -> None:
    """Write netCDF in one step, by h5netcdf or, where that is missing, by scipy."""
    try:
        import h5netcdf  # noqa: F401

        engine = "h5netcdf"
    except ImportError:
        engine = "scipy"
    # In memory first: HDF5 may end the process if the disk is full when it closes a file.
    stream = io.BytesIO()
    encoding = _compressed(dataset) if engine == "h5netcdf" else {}
    dataset.to_netcdf(stream, engine=engine, encoding=encoding)
    with replacing(path) as new, new.open("wb") as file:
        file.write(stream.getbuffer())
        file.write(seal_of(stream.getbuffer()))


def _compressed(dataset: "xarray.Dataset") -> dict[str, dict[str, Any]]:
    """How whole numbers and flags are stored: the same values in fewer bytes.

    Where a cell has fewer replications than others they are floats; those too are compressed.
    Measured numbers, such as regret, would hardly become smaller.
    """
    return {
        str(name): ZLIB
        for name, column in dataset.variables.items()
        if column.size >= LEAST_COMPRESSED and _holds_whole(column.values)
    }


def _holds_whole(values: np.ndarray) -> bool:
    """Whether a table holds flags or whole numbers, or NaN in their place."""
    if values.dtype.kind in "biu":
        return True
    whole = values.dtype.kind == "f" and ((values == np.round(values)) | np.isnan(values)).all()
    return bool(whole)
