"""Figures as SVG inside the page: a column of panels each, so that a phone shows them whole."""

import io
import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ...show.labels import texts_of
from ...show.marks import COLOURS
from .. import plot
from .rendering import cleaned

if TYPE_CHECKING:
    from markupsafe import Markup
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
# Lines and letters are drawn in a colour that nothing else has. The page replaces it by that of
# its letters, and those of the algorithms by its own, for it may be light or dark.
INK, GRID, PAPER = "#010203", "#b0b0b1", "#fefdfc"
THEME = {INK: "currentColor", GRID: "var(--line)", PAPER: "var(--paper)"} | {
    colour: f"var(--series-{i})" for i, colour in enumerate(COLOURS)
}
INKED = (
    *("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor"),
    *("xtick.color", "ytick.color", "xtick.labelcolor", "ytick.labelcolor"),
)
USUAL: tuple[Any, ...] = ("axes.prop_cycle", "figure.figsize", "font.size")
# Letters as outlines: they are the same wherever the page is read.
STYLE: dict[Any, Any] = dict.fromkeys(INKED, INK) | {
    "svg.fonttype": "path",
    "grid.color": GRID,
    "figure.facecolor": "none",
    "axes.facecolor": PAPER,
    "savefig.facecolor": "none",
}


class Figure(NamedTuple):
    """A figure, what stands below it, and what is read aloud in its place."""

    svg: "Markup"
    caption: str


def figures(dataset: "Dataset", prefix: str, table: str) -> list[Figure]:
    """The figures of one instance.

    Args:
      dataset: of the instance alone.
      prefix: of the ids in these figures, so that they differ from all others in the page.
      table: caption of the table that has the numbers.
    """
    layout = plot.layout(dataset)
    found = []
    for i, part in enumerate(_parts(dataset, layout.others)):
        caption = _caption(part, layout, dataset)
        algorithms = ", ".join(str(name) for name in part.algorithm.values)
        label = f"{caption}, for {algorithms}. The table “{table}” has the numbers."
        found.append(Figure(_svg(part, layout, dataset, f"{prefix}-{i}", label), caption))
    return found


def _parts(dataset: "Dataset", others: list[str]) -> "Iterator[Dataset]":
    """One dataset for each point of `others`; the dimensions stay, with length 1."""
    for corner in itertools.product(*[range(dataset.sizes[name]) for name in others]):
        yield dataset.isel({name: [i] for name, i in zip(others, corner, strict=True)})


def _caption(part: "Dataset", layout: plot.Layout, whole: "Dataset") -> str:
    quantities = " and ".join(NAMES[name] for name in layout.rows)
    along = layout.along or ("round" if plot.CURVES & set(layout.rows) else "")
    by = f" by {along}" if along else ""
    where = ", ".join(str(label) for label in part.instance.values)
    texts = {name: texts_of(whole[name].values.tolist()) for name in layout.others[1:]}
    values = {name: text(part[name].values[0].item()) for name, text in texts.items()}
    points = "".join(f", {name} = {value}" for name, value in values.items())
    return f"{quantities.capitalize()}{by} on {where}{points}"


def _svg(
    part: "Dataset", layout: plot.Layout, whole: "Dataset", prefix: str, label: str
) -> "Markup":
    import matplotlib
    from markupsafe import Markup, escape

    stream = io.StringIO()
    # The salt makes two runs of the same results equal. The page has colours and sizes of its own.
    ours = {name: matplotlib.rcParamsDefault[name] for name in USUAL}
    with matplotlib.rc_context(ours | STYLE | {"svg.hashsalt": prefix}):
        fig = plot.figure(part, quantities=layout.rows, whole=whole)
        fig.savefig(stream, format="svg", metadata=NO_METADATA)
    text = stream.getvalue()
    text = COMMENT.sub("", text[text.index("<svg") :])
    for drawn, themed in THEME.items():
        text = text.replace(drawn, themed)
    start, rest = REFERENCE.sub(rf"\g<1>{prefix}-", text).split(">", 1)
    named = f'{SIZE.sub("", start)} role="img" aria-label="{escape(cleaned(label))}">'
    return Markup(named + rest)
