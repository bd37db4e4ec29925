"""The table of a comparison in few columns of text; imported only where pandas is needed."""

import html
from typing import Any

import numpy as np
import pandas

from ..estimates import RATE_DIGITS, TERMINAL, estimate
from ..intervals import ONE
from ..show.labels import texts_of
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
    """Header and lines of text, a line for each algorithm, at each point of the axes.

    What is compared comes first: of regret runs the errors stand last.
    """
    cost = "regret" if "regret_mean" in table else "pulls"
    cut, bound = bool((table.cut_short > 0).any()), "over_bound" in table
    rate, first = "error rate [95%]", f"{cost} ± 95%"
    some = {"cut short": cut, "/ bound": bound}
    some[DIFFERENCE] = len(table.index.get_level_values(0).unique()) > 1
    after = [name for name, shown in some.items() if shown]
    header = [rate, first, *after] if cost == "pulls" else [first, *after, rate]
    names = list(map(str, table.index.names))
    levels = [texts_of(table.index.unique(name).tolist()) for name in names]
    lines = []
    for k in range(len(table)):
        at = [table.index.get_level_values(name)[k] for name in names]
        row = _row(table.iloc[k], cost)
        if at[0] == table.index.get_level_values(0)[0]:  # it would be that to itself
            row[DIFFERENCE] = difference_text({})
        labels = [text(one) for text, one in zip(levels, at, strict=True)]
        lines.append([*labels, *(row[name] for name in header)])
    return [*names, *header], lines


def _title(table: pandas.DataFrame) -> str:
    number = int(table.replications.max())
    played = f"{number:,} replications" if number > 1 else ONE
    compared, names = table.attrs["difference"], table.index.get_level_values(0)
    paired = f"; difference: {compared} minus those of {names[0]}, paired"
    said = played + (paired if len(names.unique()) > 1 else "")
    notes = (table.attrs.get(name) for name in ("partial", "unsettled", "engines"))
    return "\n".join(filter(None, [said, *notes]))


def _row(row: Any, cost: str) -> dict[str, str]:
    """By header, the text of a row."""
    at_least = bool(row.cut_short) and cost == "pulls"
    interval = row.error_low, row.error_high
    width = (row[f"{cost}_high"] - row[f"{cost}_low"]) / 2
    ends = {"mean": row.difference, "low": row.difference_low, "high": row.difference_high}
    over = row.get("over_bound", np.nan)
    return {
        "error rate [95%]": _text(row.error_rate, interval=interval, digits=RATE_DIGITS),
        f"{cost} ± 95%": _text(row[f"{cost}_mean"], width, at_least=at_least),
        "cut short": f"{row.cut_short:.0f}",
        "/ bound": _text(over, digits=RATE_DIGITS, at_least=at_least),
        DIFFERENCE: difference_text(ends if np.isfinite(row.difference) else {}),
    }


def _text(value: float, *more: float, **options: Any) -> str:
    return estimate(float(value), *map(float, more), style=TERMINAL, **options)
