"""Any part of a sweep's dataset, brought to the one form that figures and tables read.

A user selects as xarray allows it: a value of an axis, some replications, one instance; joins two
sweeps; masks what does not count; reads a file again. The summaries that the dataset came with are
then those of something else, so they are computed anew.
"""

import json
import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..parameters import require
from ..real_numbers import fault
from ..system.data_files import Unreadable
from .columns import SUMMARY
from .stated import check_stated, stated
from .summaries import EACH, summarised

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

PARTS = ("instance", "algorithm")
NEEDED = ("pulls", "correct", "stopped")
# Tables with one entry for each cell, which do not follow from the replications.
OF_CELLS = (
    *("judged", "num_arms", "promised_error", "pull_lower_bound", "error_bound"),
    *("seconds", "compile_seconds", "arm_pulls_mean", "regret_errors", "engine_reason"),
)
# By table, the dimension that it has besides those of replications.
INSIDE = {
    **dict.fromkeys(("regret", "average_reward"), "round"),
    **dict.fromkeys(("arm_pulls", "arm_pulls_mean", "regret_errors"), "arm"),
}
UNUSED = ("info_", "facts_", "answers")  # what no figure and no table shows
# Tables that figures and tables compute with: `NEEDED`, and these where they are there.
FLAGS = ("correct", "stopped", "judged")
COUNTS = ("pulls", "reason", "arm_pulls", "num_arms")
MEASURED = (
    *("regret", "average_reward", "promised_error", "pull_lower_bound", "error_bound"),
    *("arm_pulls_mean", "regret_errors", "seconds", "compile_seconds"),
)
COMPUTED = (*FLAGS, *COUNTS, *MEASURED)
# By replication, all that figures and tables read.
KNOWN = (*NEEDED, "regret", "average_reward", "arm_pulls", "answers")
BY_REPLICATION = (*KNOWN, "reason", "unsettled")
SELECT = "select replications, instances and algorithms, and average nothing over them"


def complete(dataset: Any, *, whole: bool = False) -> "Dataset":
    """A sweep's dataset, or a part of it, with all its dimensions and the summaries of what it has.

    Args:
      dataset: what `sweep` returns, or any selection of it; a `Comparison` stands for its dataset.
      whole: whether answers, and what algorithms count of themselves, are kept.
    Returns:
      A dataset in memory with the dimensions instance, algorithm, one for each axis, replication,
      in this order; what was selected by a single value has length 1. `SUMMARY` and `reasons` are
      those of the replications that are there. Rounds increase. Labels are text or numbers.
    Raises:
      ValueError: says what is missing, or that replications were averaged.
    """
    dataset = _renewed(_given(dataset, whole))
    axes = axes_of(dataset)
    grid = (*PARTS, *axes)
    dataset = _named(_in_rounds(_with_inside(_expanded(dataset, (*grid, EACH)))), grid)
    _check(dataset, grid)
    dataset = _of_cells(dataset.transpose(*grid, EACH, ..., missing_dims="ignore"), grid)
    return summarised(dataset.assign_attrs(axes=json.dumps(axes)))


def axes_of(dataset: "Dataset") -> list[str]:
    """Names of the axes of a sweep's dataset; a new dimension, as of two sweeps joined, is one."""
    known = [name for name in _stated_axes(dataset) if name in dataset.coords]
    new = [str(name) for name in dataset.pulls.dims if name not in (*PARTS, EACH, *known)]
    return [*known, *new]


def replications_text(dataset: "Dataset") -> str:
    """How many replications a cell of a complete dataset has: a number, or the least and most."""
    numbers = dataset.replications.values[dataset.replications.values > 0]
    ends = dict.fromkeys((numbers.min(), numbers.max())) if numbers.size else [0]
    return " to ".join(f"{number:,}" for number in ends)


def _stated_axes(dataset: "Dataset") -> list[str]:
    return stated(dataset.attrs, "axes") if "axes" in dataset.attrs else []


def _given(dataset: Any, whole: bool) -> "Dataset":
    """The dataset that was meant, in memory."""
    import xarray

    own = isinstance(dataset, xarray.Dataset)
    given = dataset if own else getattr(dataset, "dataset", dataset)  # of a `Comparison`
    message = f"dataset must be that of a sweep, an xarray.Dataset, got a {type(given).__name__}"
    require(isinstance(given, xarray.Dataset), message)
    told = "axes" in given.attrs or any(name in (*given.coords, *given.dims) for name in PARTS)
    message = "dataset must be that of a sweep, this has no attribute 'axes' and no instances"
    require(told, message)
    try:
        check_stated(given.attrs)
    except Unreadable as error:
        raise ValueError(f"dataset: {error}") from None
    for name in NEEDED:
        missing = f"dataset has no variable {name!r}, by replication, to compute from"
        require(name in given.data_vars, missing)
    unused = [name for name in given.data_vars if str(name).startswith(UNUSED)]
    found = given.drop_vars([] if whole else unused).unstack().compute()
    found = _with_own_labels(found)
    for table in (found[name] for name in KNOWN if name in found and name != "arm_pulls"):
        for name, size in table.sizes.items():
            require(size > 0, f"dataset holds no {name}: the selection is empty")
    _check_dimensions(found)
    return found.assign({name: _of_numbers(found[name]) for name in COMPUTED if name in found})


def _with_own_labels(dataset: "Dataset") -> "Dataset":
    """The dataset whose dimensions have the labels of their own names, and no other ones.

    Where a dimension was renamed without its labels, these give it its name again. Labels beside
    those of a dimension, as `swap_dims` leaves them, are left out: the dimension is the axis.
    """
    for name in (*PARTS, *_stated_axes(dataset), EACH):
        dims = dataset[name].dims if name in dataset.coords else ()
        if len(dims) == 1 and dims[0] not in dataset.coords:
            labels = dataset[name].values
            dataset = dataset.drop_vars(name).rename_dims({dims[0]: name})
            dataset = dataset.assign_coords({name: labels})
    beside = [name for name, x in dataset.coords.items() if x.dims and name not in x.dims]
    return dataset.drop_vars(beside)


def _check_dimensions(dataset: "Dataset") -> None:
    """Raise where a table has a dimension that `pulls` lacks, or the other way round."""
    for name in (*PARTS, *_stated_axes(dataset), EACH):
        spread = name in dataset.pulls.dims or name not in dataset.dims
        require(spread, f"dataset: 'pulls' has no {name}, which other tables have")
    for name in (name for name in BY_REPLICATION if name in dataset):
        spread = EACH in dataset[name].dims or EACH not in dataset.pulls.dims
        require(spread, f"dataset: {name!r} has no {EACH}, which 'pulls' has")
    for name in (name for name in COMPUTED if name in dataset):
        allowed = {*dataset.pulls.dims, INSIDE.get(name)}
        allowed |= {"bound"} if name == "error_bound" else set()
        more = [str(dim) for dim in dataset[name].dims if dim not in allowed]
        require(not more, f"dataset: {name!r} has the dimension {', '.join(more)}, 'pulls' has not")


def _of_numbers(table: "DataArray") -> "DataArray":
    """A table of numbers or flags; sweeps that are joined may hold these as objects.

    Numbers in floating point are of double precision: means of shorter ones would be rounded.
    """
    loose = table.dtype == object
    fits = fault(table.values) is None if loose else table.dtype.kind in "biuf"
    require(fits, f"dataset: {table.name!r} must hold numbers, got {table.dtype}")
    return table.astype(float) if loose or table.dtype.kind == "f" else table


def _renewed(dataset: "Dataset") -> "Dataset":
    """The dataset without summaries of what it may no longer hold."""
    dataset = dataset.assign(judged=_judged(dataset))
    if "arm_pulls" not in dataset and not _is_whole(dataset):
        dataset = dataset.drop_vars("arm_pulls_mean", errors="ignore")
    return dataset.drop_vars([*SUMMARY, "reasons", "why"], errors="ignore")


def _judged(dataset: "Dataset") -> Any:
    """Whether answers count as right or wrong; results of 0.2.0 say so by their error rates."""
    if "judged" in dataset:
        return dataset.judged
    if "error_rate" not in dataset or "cut_short" not in dataset:
        return True
    return dataset.error_rate.notnull() | (dataset.cut_short > 0)


def _is_whole(dataset: "Dataset") -> bool:
    """Whether all replications are there that the summaries are of."""
    if "replications" not in dataset or EACH not in dataset.pulls.dims:
        return False
    return bool((dataset.replications == dataset.pulls.notnull().sum(EACH)).all())


def _expanded(dataset: "Dataset", dims: Sequence[str]) -> "Dataset":
    """The dataset with dimensions of length 1 where a single value was selected."""
    single = [name for name in dims if name not in dataset.pulls.dims]
    # A single one that was selected leaves its number, unlike a mean or the largest of several.
    numbered = EACH not in single or EACH in dataset.coords
    message = f"dataset has no {EACH} left: {SELECT}; a single one keeps its number"
    require(numbered, message)
    bounds = dataset.get("error_bound")
    dataset = dataset.drop_vars("error_bound", errors="ignore").expand_dims(single)
    if bounds is None:
        return dataset
    along = [name for name in single if name not in (*PARTS, EACH, *bounds.dims)]
    return dataset.assign(error_bound=bounds.reset_coords(drop=True).expand_dims(along))


def _with_inside(dataset: "Dataset") -> "Dataset":
    """The dataset whose curves have rounds, and whose pulls of arms have arms."""
    for name, dim in INSIDE.items():
        if name not in dataset or dim in dataset[name].dims:
            continue
        if dim not in dataset.coords:
            require(dim == "arm", f"dataset: {name!r} has no {dim} left: select, say, [-1] of them")
            dataset = dataset.drop_vars(name)
            continue
        require(dataset[dim].size == 1, f"dataset: {name!r} has no {dim}, which other tables have")
        value = dataset[dim].item()
        table = dataset[name].reset_coords(drop=True).expand_dims({dim: [value]})
        dataset = dataset.drop_vars([name]).assign({name: table})
    return dataset


def _in_rounds(dataset: "Dataset") -> "Dataset":
    """The dataset whose rounds increase, so that the last entry is that of the last round."""
    if "round" not in dataset.coords or "round" not in dataset.dims:
        return dataset
    rounds = _of_numbers(dataset["round"]).values
    require(not np.isnan(rounds).any(), "dataset: labels of round must be numbers, got NaN")
    numbers, entries = np.unique(rounds, return_counts=True)
    twice = [f"{number:g}" for number in numbers[entries > 1].tolist()]
    message = f"dataset: the round {', '.join(twice[:3])} stands twice; select each once"
    require(not twice, message)
    return dataset if (np.diff(rounds) > 0).all() else dataset.isel(round=np.argsort(rounds))


def _named(dataset: "Dataset", grid: Sequence[str]) -> "Dataset":
    """The dataset with a label for each entry of the grid: text or a number."""
    without = [name for name in grid if name not in dataset.coords]
    dataset = dataset.assign_coords({name: _labels(dataset, name) for name in without})
    loose = [name for name in grid if not _is_plain(dataset[name].dtype)]
    return dataset.assign_coords({name: _plain_labels(dataset, name) for name in loose})


def _labels(dataset: "Dataset", name: str) -> list[Any]:
    """Labels of a dimension that has lost them: the only name of the sweep, else numbers."""
    if name not in PARTS or dataset.sizes[name] > 1:
        return list(range(dataset.sizes[name]))
    tables = stated(dataset.attrs, "options") if "options" in dataset.attrs else {}
    start = f"[{name}s."
    names = [key.removeprefix(start)[:-1] for key in tables if key.startswith(start)]
    return names if len(names) == 1 else [name]


def _is_plain(dtype: Any) -> bool:
    """Whether labels of this type are found by what Python makes of them."""
    own = isinstance(dtype, np.dtype)  # not one of pandas
    return own and (dtype.kind in "biuU" or dtype in (np.float32, np.float64))


def _plain_labels(dataset: "Dataset", name: str) -> Any:
    """Labels of another kind, such as dates, lengths of time and intervals, as text.

    By what NumPy makes of dates nothing is found: whole numbers, or others in another unit.
    """
    labels = list(dataset[name].to_index())
    for label in labels:
        _check_label(name, label)
    if all(isinstance(label, numbers.Real) for label in labels):  # of a `pandas.Categorical`
        found = np.array(labels)
        return found.astype(float) if found.dtype.kind == "f" else found
    plain = [label if isinstance(label, str | numbers.Real) else str(label) for label in labels]
    return np.array(plain, object)


def _check(dataset: "Dataset", grid: Sequence[str]) -> None:
    for name in grid:
        labels, numbers = np.unique(list(map(str, dataset[name].values)), return_counts=True)
        twice = labels[numbers > 1]
        message = f"dataset: the {name} {', '.join(twice[:3])} stands twice"
        require(not twice.size, f"{message}; join sweeps along a dimension of its own")
        for label in dataset[name].values.tolist():
            _check_label(name, label)
    for name in (name for name in (*FLAGS, *COUNTS) if name in dataset):
        _check_whole(dataset[name], name)
    for name in ("correct", "stopped"):
        _check_known(dataset, name)
    _check_once(dataset)


def _check_label(name: str, label: Any) -> None:
    """Raise for a label by which nothing is found or drawn."""
    import pandas

    known = not (pandas.api.types.is_scalar(label) and pandas.isna(label))  # NaN, NaT, None
    if name in PARTS:
        fits = isinstance(label, str | numbers.Real) and known
        require(fits, f"dataset: labels of {name} must be text or numbers", label)
    else:  # dates too, of sweeps that are joined along them
        fits = known and not isinstance(label, complex)
        require(fits, f"dataset: labels of {name} must be neither NaN nor complex", label)


def _check_once(dataset: "Dataset") -> None:
    """Raise where one replication stands several times, in a selection or in two shards that meet.

    Sweeps of other seeds have the same numbers and other results. So what counts is whether all
    that is known of a replication is equal too, for all numbers that stand several times.
    """
    labels = dataset[EACH].values
    numbers, entries = np.unique(labels.astype(str), return_counts=True)
    several = numbers[entries > 1]
    if not several.size:
        return
    chosen = np.flatnonzero(np.isin(labels.astype(str), several))
    known = [x for name, x in dataset.data_vars.items() if name in KNOWN and EACH in x.dims]
    tables = [x.isel({EACH: chosen}).transpose(EACH, ...).values.astype(float) for x in known]
    rows = np.concatenate([x.reshape(len(chosen), -1) for x in tables], axis=1)
    found: dict[str, list[bytes]] = {}
    for entry, row in zip(chosen, rows, strict=True):
        if not np.isnan(row).all():  # else it was masked
            found.setdefault(str(labels[entry]), []).append(row.tobytes())
    twice = [name for name, same in found.items() if len(set(same)) < len(same)]
    if twice and all(name in twice for name, same in found.items() if len(same) > 1):
        name, times = twice[0], len(found[twice[0]])
        raise ValueError(
            f"dataset: {EACH} {name} stands {times} times with equal results: select each once; "
            f"of sweeps with other seeds, number them on: assign_coords({EACH}=...)"
        )


def _check_whole(table: "DataArray", name: str) -> None:
    """Raise where values are no counts or flags: then they are means."""
    values = table.values
    known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if name in FLAGS:
        fits = (known == 0) | (known == 1)
    else:
        fits = (known >= 0) & (known == np.round(known)) & np.isfinite(known)
    if not np.all(fits):
        raise ValueError(f"dataset: {name!r} holds {float(known[~fits][0]):g}: {SELECT}")


def _check_known(dataset: "Dataset", name: str) -> None:
    """Raise where a flag of a replication that was played is NaN: it would count as not set."""
    flags = dataset[name]
    if flags.dtype.kind == "f" and bool((flags.isnull() & dataset.pulls.notnull()).any()):
        raise ValueError(
            f"dataset: {name!r} is NaN where 'pulls' is not: select replications of all tables "
            "together, as by dataset.where(...) or dataset.isel(...)"
        )


def _of_cells(dataset: "Dataset", grid: Sequence[str]) -> "Dataset":
    """The dataset whose tables of cells have the dimensions of the grid and no replications.

    A mask of replications, or sweeps joined along them, spread over these tables too.
    """
    if "arm_pulls" in dataset:
        dataset = dataset.assign(arm_pulls_mean=dataset.arm_pulls.mean(EACH))
    cells = dataset.pulls.isel({EACH: 0}, drop=True)
    found = {}
    for name in (name for name in OF_CELLS if name in dataset):
        table = dataset[name].max(EACH) if EACH in dataset[name].dims else dataset[name]
        whole = table if name == "error_bound" else table.broadcast_like(cells)
        found[name] = whole.transpose(*grid, ..., missing_dims="ignore")
    return dataset.assign(found)
