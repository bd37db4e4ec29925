"""The table of a sweep: a row for each cell, with 95% intervals."""

import functools
import math
from typing import TYPE_CHECKING

from .. import estimates
from ..intervals import ONE
from ..show.labels import texts_of
from ..sweeps.dataset import engines_text, listed_cells, reasons_text, unsettled_text
from ..sweeps.selection import complete
from ..sweeps.stated import stated
from ..sweeps.summaries import last_regret, width_of_pulls
from .pairs import DIFFERENCE, Differences, differences, note, pairs

if TYPE_CHECKING:
    from xarray import Dataset

NUMBER, CUT, REASONS, ERRORS = "replications", "cut short", "reasons", "errors"
RATE, PULLS = "error rate [95%]", "pulls ± 95%"
RATIO, REGRET = "/ lower bound", "regret ± 95%"

_estimate = functools.partial(estimates.estimate, style=estimates.TERMINAL)


def rows(
    dataset: "Dataset", paired: Differences | None = None
) -> tuple[list[str], list[list[str]]]:
    """Header and rows of text, one for each cell of a sweep's dataset.

    Args:
      dataset: what `sweep` returns, or a selection of it.
      paired: the last column, if there is one.
    """
    dataset = complete(dataset)
    axes = stated(dataset.attrs, "axes")
    grid = ["instance", "algorithm", *axes]
    columns = _columns(dataset)
    header = [*grid, *columns]
    texts = {name: texts_of(dataset[name].values.tolist()) for name in grid}
    lines = [
        [text(shown[name]) for name, text in texts.items()] + _numbers(dataset.sel(point), columns)
        for point, shown in listed_cells(dataset)
    ]
    if paired is not None:
        header.append(DIFFERENCE)
        lines = [[*line, text] for line, text in zip(lines, paired.texts, strict=True)]
    return header, lines


def _columns(dataset: "Dataset") -> list[str]:
    """Headers of the numbers: what is compared before the errors, where that is regret."""
    some = {
        CUT: bool(dataset.cut_short.any()),
        REASONS: "reasons" in dataset and bool((dataset.reasons > 0).any()),
        RATIO: "pull_lower_bound" in dataset,
        REGRET: "regret" in dataset,
    }
    cost, errors = [PULLS, RATIO], [CUT, REASONS, ERRORS, RATE]
    order = [REGRET, *errors, *cost] if some[REGRET] else [*errors, *cost]
    return [NUMBER, *(name for name in order if some.get(name, True))]


def _numbers(cell: "Dataset", columns: list[str]) -> list[str]:
    """The text of a cell in each of the columns."""
    rate = float(cell.error_rate)
    interval = float(cell.error_low), float(cell.error_high)
    mean, width = float(cell.pulls_mean), width_of_pulls(cell)
    at_least = bool(cell.pulls_mean_is_lower_bound)
    bound = float(cell.pull_lower_bound) if RATIO in columns else math.nan
    ratio = mean / bound if bound > 0 else math.nan
    texts = {
        NUMBER: str(int(cell.pulls.count())),
        CUT: str(int(cell.cut_short)),
        REASONS: reasons_text(cell) if REASONS in columns else "",
        ERRORS: estimates.TERMINAL.missing if math.isnan(rate) else str(int(cell.errors)),
        RATE: _estimate(rate, interval=interval, digits=estimates.RATE_DIGITS),
        PULLS: _estimate(mean, width, at_least=at_least),
        RATIO: _estimate(ratio, at_least=at_least, digits=estimates.RATE_DIGITS),
        REGRET: _estimate(*last_regret(cell)) if REGRET in columns else "",
    }
    return [texts[name] for name in columns]


def print_table(dataset: "Dataset") -> None:
    """Print the table on standard output, by `rich`, and what paired comparisons add to it."""
    from rich.console import Console
    from rich.table import Table

    dataset = complete(dataset)
    paired = differences(dataset)
    header, lines = rows(dataset, paired)
    axes = stated(dataset.attrs, "axes")
    num_labels = 2 + len(axes)
    table = Table(box=None, pad_edge=False)
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i < num_labels else "right", overflow="fold")
    for line in lines:
        table.add_row(*line)
    # Square brackets and colons of intervals and labels are text.
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)
    console.print(table)
    if paired is not None:
        console.print(paired.note)
    if bool((dataset.replications == 1).any()):
        console.print(f"Means of {ONE}.")
    if text := unsettled_text(dataset):
        console.print(text)
    if text := engines_text(dataset):
        console.print(text)
    if text := note(pairs(dataset)):
        console.print(text)
