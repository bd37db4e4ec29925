"""The table of a sweep in numbers: a row for each cell, its columns with their intervals."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..instances.estimated_regret import error_of_means, with_means
from ..intervals import half_width, standard_error
from ..sweeps.columns import DIFFERENCE, OVER_BOUND, REGRET
from ..sweeps.dataset import engines_text, unsettled_text
from ..sweeps.grid import PARTIAL
from ..sweeps.selection import PARTS, axes_of, complete
from ..sweeps.summaries import EACH, confidence_of
from ..system.files import replacing
from .pairs import compared_by, difference

if TYPE_CHECKING:
    import pandas
    from xarray import Dataset

COUNTED = ("replications", "cut_short", "errors", "error_rate", "error_low", "error_high")
PULLS = ("pulls_mean", "pulls_se", "pulls_low", "pulls_high")
ENDS = dict(zip(DIFFERENCE, ("mean", "low", "high"), strict=True))


def frame(dataset: "Dataset") -> "pandas.DataFrame":
    """A `pandas.DataFrame` with a row for each cell.

    Args:
      dataset: what `sweep` returns, or a selection of it.
    Returns:
      Its index has the instance, the algorithm and the point of the axes. Its columns are those of
      `Comparison.table`. Differences are to the first algorithm on the same instance at the same
      point. `attrs` have the quantity that is compared and what is said below.
    """
    import pandas

    dataset = complete(dataset)
    grid = [*PARTS, *axes_of(dataset)]
    cells = {name: dataset[name].transpose(*grid).values.ravel() for name in (*COUNTED, *PULLS)}
    columns: dict[str, Any] = _regret(dataset, grid) if "regret" in dataset else {}
    columns |= cells
    if "pull_lower_bound" in dataset:
        bound = dataset.pull_lower_bound.transpose(*grid).values.ravel()
        with np.errstate(over="ignore"):
            ratio = columns["pulls_mean"] / np.where(bound > 0, bound, np.nan)  # no ratio to 0
        columns |= {"pull_lower_bound": bound, OVER_BOUND: ratio}
    quantity = compared_by(dataset)
    found = _differences(dataset, grid, quantity)
    columns |= {name: [one.get(key, np.nan) for one in found] for name, key in ENDS.items()}
    index = pandas.MultiIndex.from_product([dataset[name].values for name in grid], names=grid)
    table = pandas.DataFrame(columns, index=index)
    table.attrs |= {"difference": quantity, "unsettled": unsettled_text(dataset)}
    table.attrs |= {"engines": engines_text(dataset), PARTIAL: dataset.attrs.get(PARTIAL)}
    return table


def write_csv(dataset: "Dataset", path: Path | str) -> None:
    """Write the `frame` of a dataset as CSV, without cells that were not played, in one step."""
    table = frame(dataset)
    text = table[table.replications > 0].to_csv()
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8")


def _regret(dataset: "Dataset", grid: list[str]) -> dict[str, np.ndarray]:
    """Mean regret of each cell at the last round, with its error and interval."""
    last = dataset.regret.isel(round=-1).transpose(*grid, EACH).values
    cells = last.reshape(-1, last.shape[-1])
    parts = np.zeros((len(cells), 0))
    if "regret_errors" in dataset:
        parts = dataset.regret_errors.transpose(*grid, "arm").values.reshape(len(cells), -1)
    found = []
    for values, part in zip(cells, parts, strict=True):
        played = values[np.isfinite(values)]
        mean = played.mean() if played.size else np.nan
        error = with_means(standard_error(played), error_of_means(part))
        half = half_width(error, played.size, confidence_of(dataset))
        found.append((mean, error, mean - half, mean + half))
    return dict(zip(REGRET, np.array(found).T, strict=True))


def _differences(dataset: "Dataset", grid: list[str], quantity: str) -> list[dict[str, Any]]:
    """The paired difference of each cell to the first algorithm there, in the order of the grid."""
    points = {
        corner: dataset.sel(dict(zip(grid[2:], corner[1:], strict=True)), drop=True).sel(
            instance=corner[0], drop=True
        )
        for corner in itertools.product(*(_values(dataset, n) for n in grid if n != PARTS[1]))
    }
    return [
        difference(points[instance, *point], k, 0, quantity)
        for instance, k, *point in itertools.product(
            _values(dataset, PARTS[0]),
            range(dataset.sizes[PARTS[1]]),
            *(_values(dataset, name) for name in grid[2:]),
        )
    ]


def _values(dataset: "Dataset", name: str) -> list[Any]:
    return dataset[name].values.tolist()
