"""The table of a comparison in few columns of text; imported only where pandas is needed."""

import html
from typing import Any

import numpy as np
import pandas

from ..estimates import RATE_DIGITS, TERMINAL, estimate
from ..intervals import ONE
from .pairs import DIFFERENCE, difference_text


def text_of(table: pandas.DataFrame) -> str:
    """A line that says what is compared, and a line for each algorithm.

    Args:
      table: that of a `Comparison`.
    """
    header, lines = shown(table)
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    texts = [
        "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in [header, *lines]
    ]
    return "\n".join([_title(table), *texts])


def html_of(table: pandas.DataFrame) -> str:
    """The lines as a table in HTML, with the first line as its caption."""
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
    header += [DIFFERENCE] if len(table) > 1 else []
    rows = [_row(table, k, cost, cut) for k in range(len(table))]
    return header, rows


def _title(table: pandas.DataFrame) -> str:
    number = int(table.replications.max())
    played = f"{number:,} replications" if number > 1 else ONE
    compared = table.attrs["difference"]
    paired = f"; difference: {compared} less those of {table.index[0]}, paired"
    said = played + (paired if len(table) > 1 else "")
    notes = (table.attrs.get(name) for name in ("unsettled", "engines"))
    return "\n".join(filter(None, [said, *notes]))


def _row(table: pandas.DataFrame, k: int, cost: str, cut: bool) -> list[str]:
    row: Any = table.iloc[k]
    at_least = bool(row.cut_short) and cost == "pulls"
    interval = row.error_low, row.error_high
    rate = _text(row.error_rate, interval=interval, digits=RATE_DIGITS)
    texts = [str(table.index[k]), rate]
    width = (row[f"{cost}_high"] - row[f"{cost}_low"]) / 2
    texts.append(_text(row[f"{cost}_mean"], width, at_least=at_least))
    texts += [f"{row.cut_short:.0f}"] if cut else []
    if "over_bound" in table:
        texts.append(_text(row.over_bound, digits=RATE_DIGITS, at_least=at_least))
    if len(table) == 1:  # nothing to compare with
        return texts
    ends = {"mean": row.difference, "low": row.difference_low, "high": row.difference_high}
    return [*texts, difference_text(ends if bool(k) and np.isfinite(row.difference) else {})]


def _text(value: float, *more: float, **options: Any) -> str:
    return estimate(float(value), *map(float, more), style=TERMINAL, **options)
