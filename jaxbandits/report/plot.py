"""Figures of sweeps. Nothing global: `Figure` objects, drawn by their backend, and no pyplot."""

import itertools
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..drawing import NO_ERROR, text
from ..parameters import require
from ..signatures import unknown
from ..sweeps.selection import complete, replications_text
from ..sweeps.stated import stated
from ..system.extras import needed_by
from ..system.files import replacing
from .labels import LETTERS_PER_INCH, PANEL, texts_of, wrapped
from .panels import BOUND, CUT_SHORT, DRAWN, PROMISED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

CURVES = {"regret", "reward"}  # along the rounds
# By quantity, the variable that it is drawn from, where sweeps can be without that.
SOURCES = {"regret": "regret", "reward": "average_reward", "arms": "arm_pulls"}
MOST_COLUMNS = 5  # of panels; more go below
LEGEND_MARK = 6  # letters that the mark before a label takes
LEGEND_LINE = 0.22  # inches
DPI = 200
# By ending: what `savefig` writes into a file besides the figure. A date would make equal results
# differ.
METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


class Layout(NamedTuple):
    """Which panels a figure has."""

    rows: list[str]  # quantities, one for each row of panels
    along: str | None  # the axis of the sweep that lines go along
    others: list[str]  # dimensions with a column of panels for each point; none: a single column


def layout(dataset: "Dataset", quantities: Sequence[str] | None = None) -> Layout:
    """The `Layout` of the figure of a complete dataset."""
    axes = stated(dataset.attrs, "axes")
    rows = _quantities(dataset) if quantities is None else _checked(dataset, quantities)
    own = (CURVES | {"arms"}) & set(rows)  # what has a horizontal axis of its own
    along = None if own else _longest(dataset, axes)
    split = axes or own
    others = ["instance", *[name for name in axes if name != along]] if split else []
    return Layout(rows, along, others)


def figure(
    dataset: "Dataset",
    *,
    title: str | None = None,
    quantities: Sequence[str] | None = None,
    whole: "Dataset | None" = None,
) -> "Figure":
    """A `matplotlib` figure of a sweep's dataset.

    Without axes: boxes of the pulls and error rates. With axes: lines along the longest one, a
    column of panels for each instance and point of the other axes. Intervals are 95%.

    Args:
      dataset: what `sweep` returns, or a selection of it.
      title: above the panels.
      quantities: rows of panels among "pulls", "errors", "accuracy", "regret", "reward", "arms"
        (the pulls of each); chosen by the kind of the runs by default.
      whole: the dataset that this is a part of, which decides how many digits tell values of an
        axis apart; by default itself.
    Raises:
      ValueError: a quantity is unknown, or the dataset lacks what it is computed from.
    """
    with needed_by("a figure"):
        from matplotlib.figure import Figure

    dataset = complete(dataset)
    rows, along, others = layout(dataset, quantities)
    panels = _panels(dataset, others, dataset if whole is None else whole)
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
        DRAWN[quantity](ax, panel.data, along, dataset)
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


def title_of(dataset: "Dataset") -> str:
    """What was asked: the title of the experiment or sweep, and how many replications.

    A sweep of a file that has no title is called by the file's name. A single instance is named
    here unless the panels are.
    """
    dataset = complete(dataset)
    name = dataset.attrs.get("experiment") or dataset.attrs.get("title") or ""
    if dataset.sizes["instance"] == 1 and not layout(dataset).others:
        instance = str(dataset.instance.values[0])
        name = f"{name}: {instance}" if name else instance
    number = f"{replications_text(dataset)} replications"
    return f"{name}\n{number}" if name else number


def save(
    dataset: "Dataset",
    path: Path | str,
    *,
    title: str | None = None,
    quantities: Sequence[str] | None = None,
) -> list[Path]:
    """Draw `figure` and write it as PNG, SVG and PDF, each in one step.

    Args:
      dataset: what `sweep` returns, or a selection of it.
      path: of the PNG file; the others stand beside it, with their endings.
      title: above the panels; `title_of` the dataset by default, "" for none.
      quantities: as in `figure`.
    Returns:
      The paths.
    """
    import matplotlib

    title = title_of(dataset) if title is None else title
    fig = figure(dataset, title=title, quantities=quantities)
    paths = [Path(path).with_suffix(f".{ending}") for ending in METADATA]
    # The salt makes the names in two files of the same results equal; journals want such fonts.
    with matplotlib.rc_context({"svg.hashsalt": "figure", "pdf.fonttype": 42}):
        for one, (ending, metadata) in zip(paths, METADATA.items(), strict=True):
            with replacing(one) as new:
                fig.savefig(new, dpi=DPI, format=ending, metadata=metadata)
    return paths


class _Panel(NamedTuple):
    title: str
    data: "Dataset"


def _checked(dataset: "Dataset", quantities: Sequence[str]) -> list[str]:
    """The quantities that are asked for, all of which can be drawn."""
    listed = not isinstance(quantities, str) and bool(quantities)
    require(listed, "quantities must be a list of names", quantities)
    for name in quantities:
        if name not in DRAWN:
            raise unknown("quantity", name, DRAWN)
        source = SOURCES.get(name, "pulls")
        require(source in dataset, f"quantities: {name!r} needs {source!r}, which dataset lacks")
    return list(quantities)


def _quantities(dataset: "Dataset") -> list[str]:
    if "regret" in dataset:
        return ["reward" if "average_reward" in dataset else "regret"]
    fixed = (dataset.pulls.max("replication") == dataset.pulls.min("replication")).all()
    several = (dataset.replications > 1).any()  # else the pulls of a cell are equal in any case
    return ["accuracy"] if bool(fixed & several) else ["pulls", "errors"]


def _longest(dataset: "Dataset", axes: list[str]) -> str | None:
    numeric = [name for name in axes if np.issubdtype(dataset[name].dtype, np.number)]
    return max(numeric or axes, key=lambda name: dataset.sizes[name], default=None)


def _panels(dataset: "Dataset", others: list[str], whole: "Dataset") -> list[_Panel]:
    """One panel for each point of `others`, the instance first; one of all without any."""
    if not others:
        return [_Panel("", dataset)]
    found = []
    texts = [texts_of(whole[name].values.tolist()) for name in others[1:]]
    for corner in itertools.product(*[dataset[name].values.tolist() for name in others]):
        data = dataset.sel(dict(zip(others, corner, strict=True)))
        points = zip(others[1:], texts, corner[1:], strict=True)
        facts = [f"{name} = {value_text(value)}" for name, value_text, value in points]
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
        promises = [label for label in found if label.startswith(PROMISED)]
        if len(promises) > 1:  # the panels differ
            handles = [found.pop(label) for label in promises]
            promises, found[PROMISED] = [PROMISED], handles[0]
        for last in (*promises, BOUND, NO_ERROR, CUT_SHORT):  # after the algorithms
            if last in found:
                found[last] = found.pop(last)
        fig.legend(
            list(found.values()),
            list(found),
            loc="outside lower center",
            ncols=columns,
            frameon=False,
        )
