"""The table of a comparison, printed in few columns; imported only where pandas is needed."""

import html
from typing import Any

import numpy as np
import pandas

from ..estimates import NORMAL, RATE_DIGITS, TERMINAL, estimate
from .pairs import DIFFERENCE, difference_text


class ComparisonTable(pandas.DataFrame):
    """A `DataFrame` printed narrow, with 95% intervals; parts of it are printed as usual."""

    @property
    def _constructor(self) -> Any:
        return pandas.DataFrame

    def __repr__(self) -> str:
        """A line that says what is compared, and a line for each algorithm."""
        header, lines = shown(self)
        widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
        texts = [
            "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in [header, *lines]
        ]
        return "\n".join([_title(self), *texts])

    def __str__(self) -> str:
        """The same."""
        return repr(self)

    def _repr_html_(self) -> str:
        """The same as an HTML table, which notebooks show."""
        return html_of(self)


def html_of(table: pandas.DataFrame) -> str:
    """The narrow table as HTML, with its title as the caption."""
    header, lines = shown(table)
    text = pandas.DataFrame(lines, columns=header).to_html(index=False)
    return text.replace("<thead>", f"<caption>{html.escape(_title(table))}</caption><thead>", 1)


def shown(table: pandas.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Header and lines of text, a line for each algorithm."""
    cost = "regret" if "regret_mean" in table else "pulls"
    header = ["algorithm", "error rate [95%]", f"{cost} ± 95%"]
    cut = bool((table.cut_short > 0).any())
    header += ["cut short"] if cut else []
    header += ["/ bound"] if "over_bound" in table else []
    header += [DIFFERENCE]
    rows = [_row(table, k, cost, cut) for k in range(len(table))]
    return header, rows


def _title(table: pandas.DataFrame) -> str:
    number = int(table.replications.max())
    compared = table.attrs["difference"]
    return f"{number:,} replications; difference: {compared} less those of {table.index[0]}, paired"


def _row(table: pandas.DataFrame, k: int, cost: str, cut: bool) -> list[str]:
    row: Any = table.iloc[k]
    at_least = bool(row.cut_short) and cost == "pulls"
    interval = row.error_low, row.error_high
    rate = _text(row.error_rate, interval=interval, digits=RATE_DIGITS)
    texts = [str(table.index[k]), rate]
    width = NORMAL * row[f"{cost}_se"]
    texts.append(_text(row[f"{cost}_mean"], width, at_least=at_least))
    texts += [f"{row.cut_short:.0f}"] if cut else []
    if "over_bound" in table:
        texts.append(_text(row.over_bound, digits=RATE_DIGITS, at_least=at_least))
    ends = {"mean": row.difference, "low": row.difference_low, "high": row.difference_high}
    return [*texts, difference_text(ends if bool(k) and np.isfinite(row.difference) else {})]


def _text(value: float, *more: float, **options: Any) -> str:
    return estimate(float(value), *map(float, more), style=TERMINAL, **options)
