"""The table of a sweep: a row for each cell, with 95% intervals."""

import functools
import math
from typing import TYPE_CHECKING

from .. import estimates
from ..intervals import ONE
from ..sweeps.dataset import engines_text, listed_cells, reasons_text, unsettled_text
from ..sweeps.selection import complete
from ..sweeps.stated import stated
from ..sweeps.summaries import last_regret, width_of_pulls
from .labels import texts_of
from .pairs import DIFFERENCE, Differences, differences, note, pairs

if TYPE_CHECKING:
    from xarray import Dataset

NUMBERS = ("replications", "errors", "error rate [95%]", "pulls ± 95%")
OPTIONAL = {"pull_lower_bound": "/ lower bound", "regret": "regret ± 95%"}

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
    some_cut = bool(dataset.cut_short.any())
    header = [*grid, *NUMBERS]
    if some_cut:
        header.insert(len(grid) + 1, "cut short")
    why = "reasons" in dataset and bool((dataset.reasons > 0).any())
    if why:
        header.insert(len(grid) + 1 + some_cut, "reasons")
    header += [text for name, text in OPTIONAL.items() if name in dataset]
    texts = {name: texts_of(dataset[name].values.tolist()) for name in grid}
    lines = [
        [text(shown[name]) for name, text in texts.items()]
        + _numbers(dataset.sel(point), some_cut, why)
        for point, shown in listed_cells(dataset)
    ]
    if paired is not None:
        header.append(DIFFERENCE)
        lines = [[*line, text] for line, text in zip(lines, paired.texts, strict=True)]
    return header, lines


def _numbers(cell: "Dataset", some_cut: bool, why: bool) -> list[str]:
    total = int(cell.pulls.count())
    rate = float(cell.error_rate)
    interval = float(cell.error_low), float(cell.error_high)
    mean, width = float(cell.pulls_mean), width_of_pulls(cell)
    at_least = bool(cell.pulls_mean_is_lower_bound)
    texts = [
        str(total),
        *([str(int(cell.cut_short))] if some_cut else []),
        *([reasons_text(cell)] if why else []),
        estimates.TERMINAL.missing if math.isnan(rate) else str(int(cell.errors)),
        _estimate(rate, interval=interval, digits=estimates.RATE_DIGITS),
        _estimate(mean, width, at_least=at_least),
    ]
    if "pull_lower_bound" in cell:
        bound = float(cell.pull_lower_bound)
        ratio = mean / bound if bound > 0 else math.nan
        texts.append(_estimate(ratio, at_least=at_least, digits=estimates.RATE_DIGITS))
    if "regret" in cell:
        texts.append(_estimate(*last_regret(cell)))
    return texts


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
