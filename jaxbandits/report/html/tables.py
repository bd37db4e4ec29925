"""The cells of a sweep as tables, one for each instance."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ... import estimates
from ...intervals import ONE
from ...show.labels import texts_of
from ...sweeps.dataset import engines_text, listed_cells, reasons_text, unsettled_text
from ...sweeps.summaries import last_regret, width_of_pulls
from ..pairs import DIFFERENCE, Differences, differences
from ..reading import Results

if TYPE_CHECKING:
    from xarray import Dataset

Column: TypeAlias = tuple[str, Sequence[str]]  # header, and a text for each cell

LEVELS = (0.05, 0.5, 0.95)
QUANTILE_DIGITS = 3
CUT, PULLS, RATIO = "cut short", "mean pulls ± 95%", "/ lower bound ± 95%"
CELL = ("errors", "error rate [95%]", CUT, PULLS, "median pulls", "pulls, 5% to 95%")
BOUND = "pull_lower_bound"
SECONDS = {"compile_seconds": "compile seconds", "seconds": "run seconds"}


class Table(NamedTuple):
    """A table of text.

    Attributes:
      caption: what it shows.
      header: names of the columns.
      lines: cells of each row, in the order of the header.
      num_labels: how many columns from the left name the row.
      note: what is said below it.
    """

    caption: str
    header: Sequence[str]
    lines: Sequence[Sequence[str]]
    num_labels: int
    note: str = ""


def table(results: Results, label: str) -> Table:
    """The cells of an instance."""
    dataset, grid = results.dataset.sel(instance=[label]), ["algorithm", *results.axes]
    listed = list(listed_cells(dataset))
    texts = {name: texts_of(dataset[name].values.tolist()) for name in grid}
    labels = [(name, [text(shown[name]) for _, shown in listed]) for name, text in texts.items()]
    paired = differences(dataset, estimates.PAGE)
    columns = [*labels, *_columns([dataset.sel(at) for at, _ in listed], paired)]
    lines = list(zip(*[texts for _, texts in columns], strict=True))
    notes = [] if paired is None else [paired.note]
    notes += [f"Means of {ONE}."] if bool((dataset.replications == 1).any()) else []
    note = " ".join([*notes, unsettled_text(dataset), engines_text(dataset)]).strip()
    return Table(f"Cells of {label}", [name for name, _ in columns], lines, len(grid), note)


def _columns(cells: "list[Dataset]", paired: Differences | None) -> list[Column]:
    """Every column that the dataset has something for."""
    texts = dict(zip(CELL, zip(*map(_cell, cells), strict=True), strict=True))
    if not any(int(cell.cut_short) for cell in cells):
        del texts[CUT]
    columns: list[Column] = list(texts.items())
    if BOUND in cells[0]:  # beside the pulls, of which it is a ratio
        columns.insert(list(texts).index(PULLS) + 1, (RATIO, [_ratio(cell) for cell in cells]))
    if "reasons" in cells[0] and any((cell.reasons > 0).any() for cell in cells):
        columns.append(("reasons", list(map(reasons_text, cells))))
    if "regret" in cells[0]:
        last = cells[0]["round"].values[-1]
        columns.insert(0, (f"regret at round {last:,} ± 95%", [_regret(cell) for cell in cells]))
    if paired is not None:
        columns.append((DIFFERENCE, paired.texts))
    for name, title in SECONDS.items():
        if name in cells[0]:
            columns.append((title, [estimates.number(float(cell[name]), 3) for cell in cells]))
    return columns


def _cell(cell: "Dataset") -> tuple[str, ...]:
    total, cut = int(cell.pulls.count()), int(cell.cut_short)
    rate, interval = float(cell.error_rate), (float(cell.error_low), float(cell.error_high))
    mean, width = float(cell.pulls_mean), width_of_pulls(cell)
    missing = estimates.PAGE.missing
    ends = np.nanquantile(cell.pulls.values, LEVELS) if total else np.full(len(LEVELS), np.nan)
    quantile = estimates.rounded if width > 0 else estimates.number  # all alike: exact
    low, median, high = (quantile(end, QUANTILE_DIGITS) for end in ends)
    return (
        missing if np.isnan(rate) else f"{int(cell.errors):,} of {total - cut:,}",
        estimates.estimate(rate, interval=interval, digits=3),
        f"{cut:,}",
        estimates.estimate(mean, width, at_least=bool(cell.pulls_mean_is_lower_bound)),
        median,
        f"{low} to {high}" if total else missing,
    )


def _regret(cell: "Dataset") -> str:
    return estimates.estimate(*last_regret(cell))


def _ratio(cell: "Dataset") -> str:
    bound = float(cell[BOUND])
    if not bound > 0:
        return estimates.PAGE.missing
    mean, width = float(cell.pulls_mean) / bound, width_of_pulls(cell) / bound
    return estimates.estimate(mean, width, at_least=bool(cell.pulls_mean_is_lower_bound))
