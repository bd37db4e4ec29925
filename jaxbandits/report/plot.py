"""Figures of sweeps. Nothing global: `Figure` objects, drawn by Agg, and no pyplot."""

import itertools
import json
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..system.extras import needed_by
from ..system.files import replacing
from .labels import LETTERS_PER_INCH, PANEL, text, wrapped
from .panels import BOUND, CUT_SHORT, DRAWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

CURVES = {"regret", "reward"}  # along the rounds
MOST_COLUMNS = 5  # of panels; more go below
LEGEND_MARK = 6  # letters that the mark before a label takes
LEGEND_LINE = 0.22  # inches


class Layout(NamedTuple):
    """Which panels a figure has."""

    rows: list[str]  # quantities, one for each row of panels
    along: str | None  # the axis of the sweep that lines go along
    others: list[str]  # dimensions with a column of panels for each point; none: a single column


def layout(dataset: "Dataset", quantities: Sequence[str] | None = None) -> Layout:
    """The `Layout` of the figure of a sweep's dataset."""
    axes = json.loads(dataset.attrs["axes"])
    rows = list(quantities or _quantities(dataset))
    curves = CURVES & set(rows)
    along = None if curves else _longest(dataset, axes)
    split = axes or curves or "arms" in rows
    others = ["instance", *[name for name in axes if name != along]] if split else []
    return Layout(rows, along, others)


def figure(
    dataset: "Dataset", *, title: str | None = None, quantities: Sequence[str] | None = None
) -> "Figure":
    """A `matplotlib` figure of a sweep's dataset.

    Without axes: boxes of the pulls and error rates. With axes: lines along the longest one, a
    column of panels for each instance and point of the other axes. Intervals are 95%.

    Args:
      dataset: what `sweep` returns.
      title: above the panels.
      quantities: rows of panels among "pulls", "errors", "accuracy", "regret", "reward", "arms"
        (the pulls of each); chosen by the kind of the runs by default.
    """
    with needed_by("a figure"):
        from matplotlib.figure import Figure

    rows, along, others = layout(dataset, quantities)
    panels = _panels(dataset, others)
    blocks = -(-len(panels) // MOST_COLUMNS)
    columns = -(-len(panels) // blocks)
    size = (max(5.2, 3.9 * columns + 0.6), 0.6 + 3.1 * len(rows) * blocks)
    fig = Figure(figsize=size, layout="constrained")
    grid = fig.subplots(len(rows) * blocks, columns, squeeze=False)
    for (row, quantity), (number, panel) in itertools.product(enumerate(rows), enumerate(panels)):
        block, column = divmod(number, columns)
        ax = grid[block * len(rows) + row, column]
        if number:
            ax.sharey(grid[row, 0])
        DRAWN[quantity](ax, panel.data, along)
        ax.grid(alpha=0.3)
        if row == 0:
            ax.set_title(wrapped(panel.title, PANEL), fontsize=10)
        if column:
            ax.set_ylabel("")
            ax.tick_params(labelleft=False)
        if row < len(rows) - 1 and not CURVES & set(rows):  # all rows share what the last one names
            ax.set_xlabel("")
            ax.tick_params(labelbottom=False)
    for ax in grid[-len(rows) :, len(panels) - columns * (blocks - 1) :].flat:
        ax.remove()
    _legend(fig, fig.axes)
    if title:
        wide = int(LETTERS_PER_INCH * size[0])
        lines = [part for line in title.splitlines() for part in textwrap.wrap(line, wide)]
        fig.suptitle(text("\n".join(lines)), fontsize=11)
    return fig


def save(
    dataset: "Dataset",
    path: Path | str,
    *,
    title: str | None = None,
    quantities: Sequence[str] | None = None,
) -> None:
    """Draw `figure` and write it as PNG, in one step."""
    fig = figure(dataset, title=title, quantities=quantities)
    with replacing(path) as new:
        fig.savefig(new, dpi=130, format="png", metadata={"Software": None})


class _Panel(NamedTuple):
    title: str
    data: "Dataset"


def _quantities(dataset: "Dataset") -> list[str]:
    if "regret" in dataset:
        return ["reward" if "average_reward" in dataset else "regret"]
    fixed = (dataset.pulls.max("replication") == dataset.pulls.min("replication")).all()
    return ["accuracy"] if bool(fixed) else ["pulls", "errors"]


def _longest(dataset: "Dataset", axes: list[str]) -> str | None:
    numeric = [name for name in axes if np.issubdtype(dataset[name].dtype, np.number)]
    return max(numeric or axes, key=lambda name: dataset.sizes[name], default=None)


def _panels(dataset: "Dataset", others: list[str]) -> list[_Panel]:
    """One panel for each point of `others`, the instance first; one of all without any."""
    if not others:
        return [_Panel("", dataset)]
    found = []
    for corner in itertools.product(*[dataset[name].values for name in others]):
        data = dataset.sel(dict(zip(others, corner, strict=True)))
        points = zip(others[1:], corner[1:], strict=True)
        facts = [f"{name} = {value}" for name, value in points]
        found.append(_Panel(", ".join([str(corner[0]), *facts]), data))
    return found


def _legend(fig: "Figure", panels: "Iterable[Axes]") -> None:
    """One legend for all panels, each label once."""
    found: dict[str, Any] = {}
    for ax in panels:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        wide = LETTERS_PER_INCH * fig.get_figwidth()
        longest = max(len(label) for label in found) + LEGEND_MARK
        columns = max(1, min(4, len(found), int(wide / longest)))
        lines = -(-len(found) // columns)
        fig.set_figheight(fig.get_figheight() + LEGEND_LINE * (lines - 1))
        for last in (BOUND, CUT_SHORT):
            if last in found:
                found[last] = found.pop(last)
        fig.legend(
            list(found.values()),
            list(found),
            loc="outside lower center",
            ncols=columns,
            frameon=False,
        )
