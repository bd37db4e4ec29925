"""The cells of a sweep on one labelled grid, and that grid on disk."""

import contextlib
import io
from pathlib import Path

import numpy as np

from ..engine.reasons import REASONS, text_of
from ..engine.results import REASON_ATTRIBUTES, none_of, standard_error
from ..system.files import replacing
from .bounds import pull_lower_bounds
from .description import attributes

PER_REPLICATION = ("pulls", "correct", "stopped", "reason")
TIMES = ("seconds", "compile_seconds")  # of a cell; in the attributes, of the whole sweep
OURS = {"jaxbandits", "replications", "axes", "options"}  # attributes of a sweep's results
MOST_NUMBERS = 20_000_000  # of a column that only some look at
SUMMARY = (
    "replications",
    "cut_short",
    "errors",
    "error_rate",
    "error_low",
    "error_high",
    "pulls_mean",
    "pulls_se",
    "pulls_mean_is_lower_bound",
)


def assemble(plan, cells):
    """An `xarray.Dataset` of the `Runs` of all cells in the order of the grid, None: not played."""
    import xarray

    cells = _filled(plan, cells)

    axes = tuple(plan.axes)
    grid = ("instance", "algorithm", *axes)
    shape = (len(plan.instances), len(plan.algorithms), *map(len, plan.axes.values()))

    def layer(values):
        values = np.stack([np.asarray(v) for v in values])
        return values.reshape(*shape, *values.shape[1:])

    columns = {
        name: ((*grid, "replication"), layer(_level([getattr(runs, name) for runs in cells])))
        for name in PER_REPLICATION
    }
    columns["reason"] += (REASON_ATTRIBUTES,)
    digests = [runs.summary() for runs in cells]
    columns |= {name: (grid, layer([d[name] for d in digests])) for name in SUMMARY}
    names = [reason.name for reason in REASONS]
    numbers = [[digest["reasons"].get(name, 0) for name in names] for digest in digests]
    columns["reasons"] = ((*grid, "why"), layer(numbers))
    columns |= _arm_columns(grid, cells, layer) | _info_columns(grid, cells, layer)
    coordinates = {
        "instance": [part.label for part in plan.instances],
        "algorithm": [part.label for part in plan.algorithms],
        **{name: list(values) for name, values in plan.axes.items()},
        "replication": np.arange(max(map(len, cells))),
        "why": names,
    }
    if cells[0].regret is not None:
        columns["regret"] = (
            (*grid, "replication", "round"),
            layer(_level([r.regret for r in cells])),
        )
        coordinates["round"] = cells[0].rounds
    for name in TIMES:
        columns[name] = (grid, layer([runs.meta.get(name, np.nan) for runs in cells]))
    # An axis can have the name of a column: that of num_arms says the same.
    columns = {name: column for name, column in columns.items() if name not in coordinates}
    return xarray.Dataset(columns, coordinates, _attributes(plan, cells))


def _filled(plan, cells):
    """No replication for cells that are not played; as many arms as others have there."""
    algorithms, points = len(plan.algorithms), len(list(plan.points()))
    anywhere = next(runs for runs in cells if runs is not None)

    def nothing(number):
        instance, point = number // (algorithms * points), number % points
        there = (cells[(instance * algorithms + a) * points + point] for a in range(algorithms))
        return none_of(next((runs for runs in there if runs is not None), anywhere))

    return [nothing(i) if runs is None else runs for i, runs in enumerate(cells)]


def with_bounds(dataset, cells):
    """The dataset with `pull_lower_bound`, if that is known of any of its cells."""
    bounds = np.reshape(pull_lower_bounds(cells), dataset.error_rate.shape)
    if np.isnan(bounds).all():
        return dataset
    return dataset.assign(pull_lower_bound=(dataset.error_rate.dims, bounds))


def _arm_columns(grid, cells, layer):
    """Pulls of each arm; instances with fewer arms than others are filled up with 0.

    Those of single replications are left out where they would fill the memory.
    """
    num_arms = [runs.arm_pulls.shape[1] for runs in cells]
    most = max(num_arms)
    padded = [np.pad(r.arm_pulls, ((0, 0), (0, most - r.arm_pulls.shape[1]))) for r in cells]
    columns = {
        "num_arms": (grid, layer(num_arms)),
        "arm_pulls_mean": ((*grid, "arm"), layer([_mean(pulls) for pulls in padded])),
    }
    if sum(pulls.size for pulls in padded) <= MOST_NUMBERS:
        columns["arm_pulls"] = ((*grid, "replication", "arm"), layer(_level(padded)))
    return columns


def _info_columns(grid, cells, layer):
    """What algorithms count of themselves; NaN where one does not count that.

    As with arms, means are always there, and single replications where they fit.
    """
    columns, names = {}, sorted({name for runs in cells for name in runs.info})
    fits = len(cells) * max(map(len, cells)) * len(names) <= MOST_NUMBERS
    for name in names:
        told = [r.info.get(name, np.full(len(r), np.nan)).astype(float) for r in cells]
        columns[f"info_{name}_mean"] = (grid, layer([_mean(values) for values in told]))
        if fits:
            columns[f"info_{name}"] = ((*grid, "replication"), layer(_level(told)))
    return columns


def _mean(values):
    return values.mean(0) if len(values) else np.full(values.shape[1:], np.nan)


def _level(tables):
    """Tables of equal length: cells that ended early are filled up with NaN."""
    most = max(map(len, tables))
    if all(len(table) == most for table in tables):
        return tables
    ends = [((0, most - len(x)), *((0, 0),) * (x.ndim - 1)) for x in tables]
    return [
        np.pad(x.astype(float), end, constant_values=np.nan)
        for x, end in zip(tables, ends, strict=True)
    ]


def _attributes(plan, cells):
    return {
        **attributes(plan),
        **{name: _met(name, cells) for name in ("jax", "device", "engine")},
        **{name: round(sum(runs.meta.get(name, 0.0) for runs in cells), 3) for name in TIMES},
    }


def _met(name, cells):
    """What the cells say of `name`, each answer once."""
    return ", ".join(sorted({str(runs.meta.get(name, "")) for runs in cells}))


def last_regret(cell):
    """Mean regret of a cell at its last round, and the standard error."""
    last = cell.regret.isel(round=-1).dropna("replication").values
    return float(last.mean()), standard_error(last)


def reasons_text(cell):
    """Why replications of a cell have no answer that they can stand behind, with their numbers."""
    numbers = zip(cell.why.values.tolist(), cell.reasons.values.tolist(), strict=True)
    return text_of({name: int(number) for name, number in numbers if number > 0})


@contextlib.contextmanager
def read_ours(path):
    """The dataset of a sweep that `path` holds, or None where there is no such file.

    Raises:
      ValueError: names the file and says what it is instead.
    """
    import xarray

    if not Path(path).exists():
        yield None
        return
    try:
        dataset = xarray.open_dataset(path)
    except Exception as error:  # damage shows in as many ways as the format has layers
        raise _not_ours(path, f"it cannot be read ({type(error).__name__})") from None
    with dataset:
        if not set(dataset.attrs) >= OURS:
            raise _not_ours(path, "it holds something else")
        yield dataset


def _not_ours(path, reason):
    return ValueError(f"{path}: {reason} and is not overwritten; move it away")


def write(dataset, path):
    """Write netCDF in one step, by h5netcdf or, where that is missing, by scipy."""
    try:
        import h5netcdf  # noqa: F401

        engine = "h5netcdf"
    except ImportError:
        engine = "scipy"
    # By way of memory: HDF5 may end the process when there is no room for a file that it closes.
    stream = io.BytesIO()
    dataset.to_netcdf(stream, engine=engine)
    with replacing(path) as new:
        new.write_bytes(stream.getbuffer())
