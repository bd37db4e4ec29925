"""The table of a sweep: a row for each cell, with its intervals."""

import itertools
import json

from ..sweeps.dataset import last_regret, reasons_text

NUMBERS = ("replications", "errors", "error rate [95%]", "pulls")
OPTIONAL = {"pull_lower_bound": "/ lower bound", "regret": "regret"}


def rows(dataset):
    """Header and rows of text, one for each cell of a sweep's dataset."""
    axes = json.loads(dataset.attrs["axes"])
    grid = ["instance", "algorithm", *axes]
    some_cut = bool(dataset.cut_short.any())
    header = [*grid, *NUMBERS]
    if some_cut:
        header.insert(len(grid) + 1, "cut short")
    why = "reasons" in dataset and bool((dataset.reasons > 0).any())
    if why:
        header.insert(len(grid) + 1 + some_cut, "reasons")
    header += [text for name, text in OPTIONAL.items() if name in dataset]
    labels = [dataset[name].values for name in grid]
    lines = []
    for corner in itertools.product(*labels):
        cell = dataset.sel(dict(zip(grid, corner, strict=True)))
        names = [f"{x:g}" if isinstance(x, float) else str(x) for x in corner]
        lines.append([*names, *_numbers(cell, some_cut, why)])
    return header, lines


def _numbers(cell, some_cut, why):
    total = int(cell.pulls.count())
    finished = bool(cell.cut_short < total)
    rate = f"{float(cell.error_rate):.3g}" if finished else "-"
    texts = [
        str(total),
        *([str(int(cell.cut_short))] if some_cut else []),
        *([reasons_text(cell)] if why else []),
        str(int(cell.errors)),
        f"{rate} [{float(cell.error_low):.2g}, {float(cell.error_high):.2g}]",
        mean_text(
            float(cell.pulls_mean), float(cell.pulls_se), bool(cell.pulls_mean_is_lower_bound)
        ),
    ]
    if "pull_lower_bound" in cell:
        bound = float(cell.pull_lower_bound)
        sign = ">= " if bool(cell.pulls_mean_is_lower_bound) else ""
        texts.append(f"{sign}{float(cell.pulls_mean) / bound:.3g}" if bound > 0 else "-")
    if "regret" in cell:
        texts.append(mean_text(*last_regret(cell)))
    return texts


def mean_text(mean, error, lower_bound=False):
    """`mean ± standard error`, with `>=` before a lower bound."""
    digits = 0 if abs(mean) >= 100 or error == 0 else 2
    text = f"{'>= ' if lower_bound else ''}{mean:.{digits}f}"
    if error != error:  # a single replication has none
        return text
    return text if error == 0 else f"{text} ± {error:.{digits}f}"


def print_table(dataset):
    """Print the table on standard output, by `rich`."""
    from rich.console import Console
    from rich.table import Table

    header, lines = rows(dataset)
    num_labels = 2 + len(json.loads(dataset.attrs["axes"]))
    table = Table(box=None, pad_edge=False)
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i < num_labels else "right", overflow="fold")
    for line in lines:
        # Square brackets of intervals and labels are text, not mark-up.
        table.add_row(*[cell.replace("[", "\\[") for cell in line])
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)
    console.print(table)
