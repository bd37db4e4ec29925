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
SELECT = "select replications, instances and algorithms, and average nothing over them"


def complete(dataset: Any) -> "Dataset":
    """A sweep's dataset, or a part of it, with all its dimensions and the summaries of what it has.

    Args:
      dataset: what `sweep` returns, or any selection of it; a `Comparison` stands for its dataset.
    Returns:
      A dataset in memory with the dimensions instance, algorithm, one for each axis, replication,
      in this order; what was selected by a single value has length 1. `SUMMARY` and `reasons` are
      those of the replications that are there. What algorithms count of themselves is left out.
    Raises:
      ValueError: says what is missing, or that replications were averaged.
    """
    dataset = _renewed(_given(dataset))
    axes = axes_of(dataset)
    grid = (*PARTS, *axes)
    dataset = _named(_with_inside(_expanded(dataset, (*grid, EACH))), grid)
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


def _given(dataset: Any) -> "Dataset":
    """The dataset that was meant, in memory."""
    import xarray

    whole = isinstance(dataset, xarray.Dataset)
    given = dataset if whole else getattr(dataset, "dataset", dataset)  # of a `Comparison`
    message = f"dataset must be that of a sweep, an xarray.Dataset, got a {type(given).__name__}"
    require(isinstance(given, xarray.Dataset), message)
    check_stated(given.attrs)
    for name in NEEDED:
        missing = f"dataset has no variable {name!r}, by replication, to compute from"
        require(name in given.data_vars, missing)
    info = [name for name in given.data_vars if str(name).startswith(UNUSED)]
    found = given.drop_vars(info).unstack().compute()
    for table in (found[name] for name in KNOWN if name in found and name != "arm_pulls"):
        for name, size in table.sizes.items():
            require(size > 0, f"dataset holds no {name}: the selection is empty")
    _check_dimensions(found)
    return found.assign({name: _of_numbers(found[name]) for name in COMPUTED if name in found})


def _check_dimensions(dataset: "Dataset") -> None:
    """Raise where a table has a dimension that `pulls` lacks, or the other way round."""
    for name in (*PARTS, *_stated_axes(dataset), EACH):
        spread = name in dataset.pulls.dims or name not in dataset.dims
        require(spread, f"dataset: 'pulls' has no {name}, which other tables have")
    if "reason" in dataset and EACH in dataset.pulls.dims:
        require(EACH in dataset.reason.dims, f"dataset: 'reason' has no {EACH}, which 'pulls' has")
    for name in (name for name in COMPUTED if name in dataset):
        allowed = {*dataset.pulls.dims, INSIDE.get(name)}
        allowed |= {"bound"} if name == "error_bound" else set()
        more = [str(dim) for dim in dataset[name].dims if dim not in allowed]
        require(not more, f"dataset: {name!r} has the dimension {', '.join(more)}, 'pulls' has not")


def _of_numbers(table: "DataArray") -> "DataArray":
    """A table of numbers or flags; sweeps that are joined may hold these as objects."""
    loose = table.dtype == object
    fits = fault(table.values) is None if loose else table.dtype.kind in "biuf"
    require(fits, f"dataset: {table.name!r} must hold numbers, got {table.dtype}")
    return table.astype(float) if loose else table


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
    if EACH in single and EACH not in dataset.coords:
        # Flags of one replication are still flags; of a mean they are numbers.
        require(dataset.correct.dtype == bool, f"dataset has no {EACH} left: {SELECT}")
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


def _named(dataset: "Dataset", grid: Sequence[str]) -> "Dataset":
    """The dataset with a label for each entry of the grid."""
    without = [name for name in grid if name not in dataset.coords]
    return dataset.assign_coords({name: _labels(dataset, name) for name in without})


def _labels(dataset: "Dataset", name: str) -> list[Any]:
    """Labels of a dimension that has lost them: the only name of the sweep, else numbers."""
    if name not in PARTS or dataset.sizes[name] > 1:
        return list(range(dataset.sizes[name]))
    tables = stated(dataset.attrs, "options") if "options" in dataset.attrs else {}
    start = f"[{name}s."
    names = [key.removeprefix(start)[:-1] for key in tables if key.startswith(start)]
    return names if len(names) == 1 else [name]


def _check(dataset: "Dataset", grid: Sequence[str]) -> None:
    for name in grid:
        labels, numbers = np.unique(list(map(str, dataset[name].values)), return_counts=True)
        twice = labels[numbers > 1]
        message = f"dataset: the {name} {', '.join(twice[:3])} stands twice"
        require(not twice.size, f"{message}; join sweeps along a dimension of its own")
        for label in dataset[name].values.tolist():
            _check_label(name, label)
    if "round" in dataset.coords:
        _of_numbers(dataset["round"])
    for name in (name for name in (*FLAGS, *COUNTS) if name in dataset):
        _check_whole(dataset[name], name)
    _check_once(dataset)


def _check_label(name: str, label: Any) -> None:
    """Raise for a label by which nothing is found or drawn."""
    if name in PARTS:
        fits = isinstance(label, str | numbers.Real) and label == label
        require(fits, f"dataset: labels of {name} must be text or numbers", label)
    else:  # dates too, of sweeps that are joined along them
        fits = label == label and not isinstance(label, complex)
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
