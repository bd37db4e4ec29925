"""Figures as SVG inside the page: a column of panels each, so that a phone shows them whole."""

import io
import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .. import plot
from ..reading import Results
from .markup import Html, element, escape

if TYPE_CHECKING:
    from xarray import Dataset

NAMES = {
    "pulls": "pulls",
    "errors": "error rate",
    "accuracy": "share of correct answers",
    "regret": "regret",
    "reward": "average reward",
}
REFERENCE = re.compile(r'(\bid="|href="#|url\(#)')
COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
SIZE = re.compile(r' (?:width|height)="[\d.]+pt"')
NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def figures(results: Results, prefix: str) -> list[Html]:
    """`figure` elements for a folder's results.

    Args:
      results: `reading.Results`.
      prefix: of the ids in these figures, so that they differ from all others in the page.
    """
    layout = plot.layout(results.dataset)
    found = []
    for i, part in enumerate(_parts(results.dataset, layout.others)):
        caption = _caption(part, layout)
        image = _svg(part, layout, f"{prefix}-{i}", caption)
        found.append(element("figure", image, element("figcaption", caption)))
    return found


def _parts(dataset: "Dataset", others: list[str]) -> "Iterator[Dataset]":
    """One dataset for each point of `others`; the dimensions stay, with length 1."""
    for corner in itertools.product(*[range(dataset.sizes[name]) for name in others]):
        yield dataset.isel({name: [i] for name, i in zip(others, corner, strict=True)})


def _caption(part: "Dataset", layout: plot.Layout) -> str:
    quantities = " and ".join(NAMES[name] for name in layout.rows)
    along = layout.along or ("round" if plot.CURVES & set(layout.rows) else "")
    by = f" by {along}" if along else ""
    where = ", ".join(str(label) for label in part.instance.values)
    points = "".join(f", {name} = {part[name].values[0]}" for name in layout.others[1:])
    return f"{quantities.capitalize()}{by} on {where}{points}"


def _svg(part: "Dataset", layout: plot.Layout, prefix: str, label: str) -> Html:
    import matplotlib

    stream = io.StringIO()
    # Letters as outlines: they are the same wherever the page is read. The salt makes two runs
    # of the same results equal.
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": prefix}):
        fig = plot.figure(part, quantities=layout.rows)
        fig.savefig(stream, format="svg", metadata=NO_METADATA)
    text = stream.getvalue()
    text = COMMENT.sub("", text[text.index("<svg") :])
    start, rest = REFERENCE.sub(rf"\g<1>{prefix}-", text).split(">", 1)
    return Html(f'{SIZE.sub("", start)} role="img" aria-label="{escape(label)}">{rest}')
