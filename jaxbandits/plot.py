"""Figures of `Runs`, of comparisons and of sweeps, on matplotlib axes.

The first four functions take one `Runs`, several by name, or what `compare` returns, and draw on
`ax`, or on the axes of a new figure; `sweep` draws all panels of a sweep's dataset.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .plots_of_runs import arm_pulls, error_rates, regret, stopping_times
from .report import plot as panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

__all__ = ["arm_pulls", "error_rates", "regret", "stopping_times", "sweep"]


def sweep(
    dataset: "Dataset", *, title: str | None = None, quantities: Sequence[str] | None = None
) -> "Figure":
    """A figure of a sweep's dataset, of `jb.sweep` or read from `results.nc`.

    Without axes: boxes of the pulls (quartiles; a mere line where half of the replications make the
    same pulls, as after whole phases) and error rates. With axes: lines along the longest one, a
    column of panels for each instance and point of the other axes. Intervals are 95%.

    What is drawn follows from what is given, so that a part of a sweep may have another kind of
    figure than the whole: the line goes along another axis where the longest one is cut short; runs
    of a regret have curves along the rounds in every case; and where all runs of each cell make
    equally many pulls, one panel of right answers stands in place of pulls and errors.
    `quantities` fixes the rows.

    Args:
      dataset: what `sweep` returns, what is read from `results.nc`, or any selection of it, such
        as `dataset.sel(delta=0.05)` or `dataset.isel(replication=slice(100))`. All that is drawn
        is computed from the replications that are given. Sweeps joined along a new dimension have
        that as an axis.
      title: above the panels; none by default.
      quantities: rows of panels among "pulls", "errors", "accuracy", "regret", "reward", "arms"
        (the pulls of each); chosen by the kind of the runs by default.
    Returns:
      A `matplotlib.figure.Figure`, which pyplot does not know: `savefig` saves it.
    Raises:
      ValueError: a quantity is unknown; or the dataset is no sweep's, is empty, lacks what is
        drawn, holds means over replications, instances or algorithms, or one replication several
        times.

    >>> import jaxbandits as jb
    >>> from functools import partial
    >>> instances = {"basis": partial(jb.instances.canonical, 4)}
    >>> algorithms = {"halving": partial(jb.sequential_halving, budget=40)}
    >>> axes = {"gap": [0.5, 1.0]}
    >>> dataset = jb.sweep(instances, algorithms, axes=axes, replications=20, progress=False)
    >>> [panel.get_ylabel() for panel in sweep(dataset).axes]
    ['correct (95%)']
    """
    return panels.figure(dataset, title=title, quantities=quantities)
