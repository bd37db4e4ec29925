"""Figures of `Runs`, of comparisons and of sweeps, by matplotlib.

The first four functions take one `Runs`, several by name, or what `compare` returns; `sweep` draws
all panels of a sweep's dataset. All return a `matplotlib.figure.Figure`: a new one, which
`pyplot.show()` shows, or that of the axes `ax`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .report import plot as panels
from .show.runs import arm_pulls, error_rates, regret, stopping_times
from .signatures import publish

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

    from .show.canvas import Scale, Width

__all__ = ["arm_pulls", "error_rates", "regret", "stopping_times", "sweep"]

publish(globals())


def sweep(
    dataset: "Dataset",
    *,
    title: str | None = None,
    quantities: Sequence[str] | None = None,
    ax: Any = None,
    scale: "Scale" = None,
    width: "Width" = None,
) -> "Figure":
    """A figure of a sweep's dataset, of `jb.sweep` or read from `results.nc`.

    Without axes: boxes of the pulls (quartiles, and whiskers at 5% and 95%; a mere line where half
    of the replications make the same pulls, as after whole phases), beside each its mean. With
    axes: lines along the longest one, a column of panels for each instance and point of the other
    axes. Intervals are 95%. Error rates have a panel where there was an error. Where the lower
    bound of the pulls is known (`bounds=True`), it is a dotted line.

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
      ax: axes of matplotlib to draw on, one for each panel (row by row), or one for each panel of
        the first row alone; those of a new figure by default.
      scale: "linear" or "log", of pulls and regret, or of what stands alone. By default regret has
        a linear one, and pulls a logarithmic one where they, or their bounds, lie far apart.
      width: of a new figure, which is then to be printed as it is, with letters of 8 points:
        "column" (3.3 inches) or "page" (6.9 inches) of a paper, or inches. By default
        `figure.figsize` of `rcParams` or, where that is not set, as the panels need.
    Returns:
      The `matplotlib.figure.Figure`. pyplot knows a new one: `pyplot.show()` shows it, and
      `pyplot.close` forgets it. What it saves holds letters as text (TrueType in PDF). Colours,
      fonts and sizes are those of `rcParams` where they are set.
    Raises:
      ValueError: a quantity is unknown; or the dataset is no sweep's, is empty, lacks what is
        drawn, holds means over replications, instances or algorithms, or one replication several
        times; or there are more or fewer axes than panels.

    >>> import jaxbandits as jb
    >>> from functools import partial
    >>> instances = {"basis": partial(jb.instances.canonical, 4)}
    >>> algorithms = {"halving": partial(jb.sequential_halving, budget=40)}
    >>> axes = {"gap": [0.5, 1.0]}
    >>> dataset = jb.sweep(instances, algorithms, axes=axes, replications=20, progress=False)
    >>> figure = sweep(dataset, width="column")
    >>> [panel.get_ylabel() for panel in figure.axes]
    ['correct (95%)']
    >>> float(figure.get_figwidth())
    3.3
    """
    how: dict[str, Any] = {"ax": ax, "scale": scale, "width": width}
    return panels.figure(dataset, title=title, quantities=quantities, shown=True, **how)
