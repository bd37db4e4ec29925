"""Datasets of runs as `pandas.DataFrame`s: a row for each replication, or for what is in it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..parameters import require

if TYPE_CHECKING:
    import pandas
    import xarray

EACH = "replication"
SET = "target"  # dimension of a mask
PER: tuple[str, ...] = (EACH, "round", "arm")  # what a row may stand for


# What is given in place of one that runs do not have, and why.
PER_OTHERS: dict[str, str] = {
    "round": "'replication' or 'arm' for these runs, which have no rounds: they need a horizon",
    "arm": "'replication' for these runs, which are too many to keep the pulls of arms",
}


def frame_of(dataset: "xarray.Dataset", per: str, outer: Sequence[str] = ()) -> "pandas.DataFrame":
    """The numbers of single replications as a table.

    Args:
      dataset: with the dimension replication, and `outer`.
      per: "replication", "round" or "arm": what a row stands for; of the latter two, in each
        replication.
      outer: dimensions of the dataset that stand before the replication in the index.
    Raises:
      ValueError: another `per`, or one that the runs do not have.
    """
    require(per in PER, f"per must be one of {', '.join(map(repr, PER))}", per)
    played = dataset.pulls.notnull().transpose(*outer, EACH)
    found = _single(dataset, outer) if per == EACH else _inner(dataset, per, outer)
    frame = found.to_dataframe(dim_order=[*outer, EACH, *([] if per == EACH else [per])])
    known = np.repeat(played.values.ravel(), len(frame) // max(1, played.size))
    frame = frame[list(found.data_vars)][known]
    frame.attrs = dict(dataset.attrs)
    return frame


def _single(dataset: "xarray.Dataset", outer: Sequence[str]) -> "xarray.Dataset":
    """One number, or one set, of each replication."""
    dims = {*outer, EACH}
    if "regret" in dataset:
        dataset = dataset.assign(regret=dataset.regret.isel(round=-1, drop=True))
    if "answer" in dataset and SET in dataset.answer.dims:
        dataset = dataset.assign(answer=_sets(dataset.answer.transpose(..., SET)))
    return dataset[[name for name, table in dataset.items() if set(table.dims) == dims]]


def _inner(dataset: "xarray.Dataset", per: str, outer: Sequence[str]) -> "xarray.Dataset":
    """What there is of each round or arm of a replication."""
    dims = {*outer, EACH, per}
    names = [name for name, table in dataset.items() if set(table.dims) == dims]
    require(bool(names), f"per must be {PER_OTHERS[per]}", per)
    return dataset[names].assign_coords({per: dataset[per].values})


def _sets(masks: "xarray.DataArray") -> "xarray.DataArray":
    """Masks as tuples of indices, which can be compared and counted."""
    import xarray

    rows = masks.values.reshape(-1, masks.sizes[SET])
    tuples: Any = np.empty(len(rows), object)
    for i, row in enumerate(rows):
        tuples[i] = tuple(np.flatnonzero(row == 1).tolist())
    return xarray.DataArray(tuples.reshape(masks.shape[:-1]), dims=masks.dims[:-1])
