"""Figures of sweeps: which panels there are, and where; and their files."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..estimates import rounded
from ..parameters import require
from ..real_numbers import fault
from ..show.canvas import (
    Scale,
    Width,
    axes_in,
    check_scale,
    figure_of,
    fix_letters,
    given_axes,
    grid_of,
    grow_for_names,
    grows,
    handles,
    inches,
    legend_below,
    legend_inside,
    letters,
    most_columns,
    new_figure,
    points,
    room_of,
    size_of,
    wrapped,
)
from ..show.labels import texts_of
from ..show.marks import NO_ERROR, text
from ..signatures import unknown
from ..sweeps.selection import complete, replications_text
from ..sweeps.stated import stated
from ..system.files import replacing
from .panels import BOUND, BOX, CUT_SHORT, DRAWN, MEAN, PROMISED, level_said

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

CURVES = {"regret", "reward"}  # along the rounds
SCALED = {"pulls", "regret", "arms"}  # what may be told a scale beside something else
# By quantity, the variable that it is drawn from, where sweeps can be without that.
SOURCES = {"regret": "regret", "reward": "average_reward", "arms": "arm_pulls"}
MOST_COLUMNS = 5  # of panels; more go below
DPI = 200
BESIDE = 2.6  # inches that each of several quantities needs to stand beside another
TITLE = 0.96  # of the width of a figure
BOUND_DIGITS = 2  # of the bound on rates of errors that did not happen
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
    named: bool = True,
    ax: Any = None,
    scale: Scale = None,
    width: Width = None,
    shown: bool = False,
) -> "Figure":
    """A `matplotlib` figure of a sweep's dataset; see `jb.plot.sweep`.

    Args:
      dataset: what `sweep` returns, or a selection of it.
      title, quantities, ax, scale, width: as in `jb.plot.sweep`.
      whole: the dataset that this is a part of, which decides how many digits tell values of an
        axis apart; by default itself.
      named: whether titles of panels name the instance.
      shown: whether pyplot knows the figure.
    Raises:
      ValueError: a quantity is unknown, or the dataset lacks what it is computed from.
    """
    check_scale(scale)
    require(title is None or isinstance(title, str), "title must be text or None", title)
    dataset = complete(dataset)
    rows, along, others = layout(dataset, quantities)
    panels = _panels(dataset, along, others, dataset if whole is None else whole, named)
    if ax is not None:
        rows = rows[:1] if len(axes_in(ax)) == len(panels) else rows
        what = f"the panels ({', '.join(rows)})"
        axes = given_axes(ax, len(rows) * len(panels), what)
        grid = [axes[i : i + len(panels)] for i in range(0, len(axes), len(panels))]
        _draw(grid, rows, along, panels, dataset, scale)
        legend_inside(axes[0], _entries(axes))
        if title:
            axes[0].set_title(text(title))
        return figure_of(axes[0])
    blocks = -(-len(panels) // most_columns(width, MOST_COLUMNS))
    columns = -(-len(panels) // blocks)
    shape = len(rows) * blocks, columns
    beside = len(panels) == 1 and (inches(width) or 0.0) >= BESIDE * len(rows)
    if beside:  # the rows of a single panel on a page
        shape = 1, len(rows)
    with letters(width), new_figure(size_of(*shape, width), shown=shown) as fig:
        places = grid_of(fig, *shape)
        fix_letters(itertools.chain(*places))
        grid: list[list[Axes]] = [[] for _ in rows]
        for row, number in itertools.product(range(len(rows)), range(len(panels))):
            block, column = divmod(number, columns)
            place = (0, row) if beside else (block * len(rows) + row, column)
            grid[row].append(places[place[0]][place[1]])
        for first, *more in grid:
            for one in more:
                one.sharey(first)
        _draw(grid, rows, along, panels, dataset, scale)
        if not beside:
            _tidy(grid, columns, own_axes=bool(CURVES & set(rows)))
        for one in set(itertools.chain(*places)).difference(itertools.chain(*grid)):
            one.remove()
        if grows(width):
            grow_for_names(fig, grid[-1] if not beside else fig.axes)
        legend_below(fig, _entries(fig.axes), grow=grows(width))
        if title:
            points_of_title = points("figure.titlesize")
            words = wrapped(title, TITLE * fig.get_figwidth(), points_of_title)
            fig.suptitle(words, fontsize=points_of_title)
    return fig


def _draw(
    grid: "Sequence[Sequence[Axes]]",
    rows: Sequence[str],
    along: str | None,
    panels: "Sequence[_Panel]",
    dataset: "Dataset",
    scale: Scale,
) -> None:
    """Draw each quantity into its row of axes, a panel into each, all with one vertical scale."""
    for axes, quantity in zip(grid, rows, strict=True):
        # Rates have a scale of their own beside pulls.
        wanted = scale if quantity in SCALED or len(rows) == 1 else None
        for ax, panel in zip(axes, panels, strict=True):
            DRAWN[quantity](ax, panel.data, along, dataset, wanted)
            ax.grid(alpha=0.3)
            if axes is grid[0] and panel.title:
                letter = points("axes.labelsize")
                ax.set_title(wrapped(panel.title, room_of(ax), letter), fontsize=letter)


def _tidy(grid: "Sequence[Sequence[Axes]]", columns: int, *, own_axes: bool) -> None:
    """Leave out what the panel on the left or below says too."""
    for number, row in itertools.product(range(len(grid[0])), range(len(grid))):
        ax = grid[row][number]
        if number % columns:
            ax.set_ylabel("")
            ax.tick_params(which="both", labelleft=False)
        if row < len(grid) - 1 and not own_axes:
            ax.set_xlabel("")
            ax.tick_params(labelbottom=False)


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
    said = said_of(dataset)
    return f"{name}\n{said}" if name else said


def said_of(dataset: "Dataset") -> str:
    """How many replications a cell of a complete dataset has, and whether none of them erred."""
    number = f"{replications_text(dataset)} replications"
    if layout(dataset).rows != ["pulls"] or not bool((dataset.error_rate == 0).any()):
        return number
    highest = rounded(float(dataset.error_high.where(dataset.error_rate == 0).max()), BOUND_DIGITS)
    return f"{number}, no error (95%: below {highest})"


def save(
    dataset: "Dataset",
    path: Path | str,
    *,
    title: str | None = None,
    quantities: Sequence[str] | None = None,
    scale: Scale = None,
) -> list[Path]:
    """Draw `figure` and write it as PNG, SVG and PDF, each in one step.

    Args:
      dataset: what `sweep` returns, or a selection of it.
      path: of the PNG file; the others stand beside it, with their endings.
      title: above the panels; `title_of` the dataset by default, "" for none.
      quantities, scale: as in `figure`.
    Returns:
      The paths.
    """
    title = title_of(dataset) if title is None else title
    return write(figure(dataset, title=title, quantities=quantities, scale=scale), path)


def write(fig: "Figure", path: Path | str) -> list[Path]:
    """Write a figure as PNG, SVG and PDF, each in one step; see `save`."""
    import matplotlib

    paths = [Path(path).with_suffix(f".{ending}") for ending in METADATA]
    # The salt makes the names in two files of the same results equal; journals want such fonts.
    from ..show.picture import EMBEDDED

    with matplotlib.rc_context(EMBEDDED | {"svg.hashsalt": "figure"}):
        for one, (ending, metadata) in zip(paths, METADATA.items(), strict=True):
            with replacing(one) as new:
                fig.savefig(new, dpi=DPI, format=ending, metadata=metadata)
    return paths


class _Panel(NamedTuple):
    title: str
    data: "Dataset"


def _checked(dataset: "Dataset", quantities: Sequence[str]) -> list[str]:
    """The quantities that are asked for, all of which can be drawn."""
    listing = getattr(quantities, "tolist", None)  # of an array, or an index of pandas
    given = listing() if callable(listing) else quantities
    listed = isinstance(given, list | tuple) and bool(given)
    fits = listed and all(isinstance(name, str) for name in given)
    require(fits, "quantities must be a list of names", quantities)
    for name in given:
        if name not in DRAWN:
            raise unknown("quantity", name, DRAWN)
        source = SOURCES.get(name, "pulls")
        require(source in dataset, f"quantities: {name!r} needs {source!r}, which dataset lacks")
        numbered = name != "arms" or fault(dataset.arm.values) is None
        require(numbered, "quantities: 'arms' needs arms whose labels are numbers")
    return list(given)


def _quantities(dataset: "Dataset") -> list[str]:
    if "regret" in dataset:
        return ["reward" if "average_reward" in dataset else "regret"]
    fixed = (dataset.pulls.max("replication") == dataset.pulls.min("replication")).all()
    several = (dataset.replications > 1).any()  # else the pulls of a cell are equal in any case
    if bool(fixed & several):
        return ["accuracy"]
    # A panel of errors that nobody made would show intervals alone.
    return ["pulls", "errors"] if _some_errors(dataset) or "error_bound" in dataset else ["pulls"]


def _some_errors(dataset: "Dataset") -> bool:
    return bool((dataset.errors > 0).any())


def _longest(dataset: "Dataset", axes: list[str]) -> str | None:
    numeric = [name for name in axes if np.issubdtype(dataset[name].dtype, np.number)]
    longest = max(numeric or axes, key=lambda name: dataset.sizes[name], default=None)
    # A line of one point says less than boxes do.
    return None if longest is None or dataset.sizes[longest] == 1 else longest


def _panels(
    dataset: "Dataset", along: str | None, others: list[str], whole: "Dataset", named: bool
) -> list[_Panel]:
    """One panel for each point of `others`, the instance first; one of all without any."""
    if not others:
        return [_Panel("", dataset)]
    found = []
    texts = [texts_of(whole[name].values.tolist()) for name in others[1:]]
    for corner in itertools.product(*[dataset[name].values.tolist() for name in others]):
        data = dataset.sel(dict(zip(others, corner, strict=True)))
        points = zip(others[1:], texts, corner[1:], strict=True)
        facts = [f"{name} = {value_text(value)}" for name, value_text, value in points]
        names = [str(corner[0])] if named else []
        said = level_said(dataset, along, corner[0])
        title = ", ".join([*names, *facts])
        found.append(_Panel("\n".join(filter(None, [title, said])), data))
    return found


def _entries(panels: "Iterable[Axes]") -> dict[str, Any]:
    """What the legend of all panels shows, by label: algorithms first."""
    found = handles(panels)
    promises = [label for label in found if label.startswith(PROMISED)]
    if len(promises) > 1:  # the panels differ
        several = [found.pop(label) for label in promises]
        promises, found[PROMISED] = [PROMISED], several[0]
    means = [label for label in found if label.startswith(MEAN)]
    last = [BOX, *means, *promises, BOUND, NO_ERROR, CUT_SHORT]
    return found | {label: found.pop(label) for label in last if label in found}
