"""Figures of sweeps. Nothing global: `Figure` objects, drawn by Agg, and no pyplot."""

import itertools
import json
import textwrap
from typing import NamedTuple

import numpy as np

from .labels import (
    LETTERS_PER_INCH,
    PANEL,
    dress,
    name_groups,
    positions_of,
    side_by_side,
    text,
    wrapped,
)

NORMAL = 1.96  # two-sided 95%
LOG_FROM = 20  # a range of this ratio is drawn on a logarithmic scale
MOST_COLUMNS = 5  # of panels; more go below
LEGEND_MARK = 6  # letters that the mark before a label takes
LEGEND_LINE = 0.22  # inches
BOUND = "lower bound"
CUT_SHORT = "some cut short: at least this"
MARKERS = "osD^vPX*"
STROKES = ("-", "--", "-.", ":")
# Told apart by readers who are colour-blind: Petroff, "Accessible color sequences for data
# visualization" (2021), ten colours.
COLOURS = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
)


class Layout(NamedTuple):
    """Which panels a figure has."""

    rows: list  # quantities, one for each row of panels
    along: str | None  # the axis that lines go along
    others: list  # dimensions with a column of panels for each point; none: a single column


def layout(dataset, quantities=None):
    """The `Layout` of the figure of a sweep's dataset."""
    axes = json.loads(dataset.attrs["axes"])
    rows = list(quantities or _quantities(dataset))
    along = None if "regret" in rows else _longest(dataset, axes)
    split = axes or "regret" in rows or "arms" in rows
    others = ["instance", *[name for name in axes if name != along]] if split else []
    return Layout(rows, along, others)


def figure(dataset, *, title=None, quantities=None):
    """A `matplotlib` figure of a sweep's dataset.

    Without axes: boxes of the pulls and error rates. With axes: lines along the longest one, a
    column of panels for each instance and point of the other axes. Intervals are 95%.

    Args:
      dataset: what `sweep` returns.
      title: above the panels.
      quantities: rows of panels among "pulls", "errors", "accuracy", "regret", "arms" (the pulls
        of each); chosen by the kind of the runs by default.
    """
    from matplotlib.figure import Figure

    rows, along, others = layout(dataset, quantities)
    panels = _panels(dataset, others)
    blocks = -(-len(panels) // MOST_COLUMNS)
    columns = -(-len(panels) // blocks)
    size = (max(5.2, 3.9 * columns + 0.6), 0.6 + 3.1 * len(rows) * blocks)
    paper = Figure(figsize=size, layout="constrained")
    grid = paper.subplots(len(rows) * blocks, columns, squeeze=False)
    draw = DRAWN
    for (row, quantity), (number, panel) in itertools.product(enumerate(rows), enumerate(panels)):
        block, column = divmod(number, columns)
        place = grid[block * len(rows) + row, column]
        if number:
            place.sharey(grid[row, 0])
        draw[quantity](place, panel.data, along)
        place.grid(alpha=0.3)
        if row == 0:
            place.set_title(wrapped(panel.title, PANEL), fontsize=10)
        if column:
            place.set_ylabel("")
            place.tick_params(labelleft=False)
        if row < len(rows) - 1 and "regret" not in rows:  # all rows share what the last one names
            place.set_xlabel("")
            place.tick_params(labelbottom=False)
    for place in grid[-len(rows) :, len(panels) - columns * (blocks - 1) :].flat:
        place.remove()
    _legend(paper, paper.axes)
    if title:
        wide = int(LETTERS_PER_INCH * size[0])
        lines = [part for line in title.splitlines() for part in textwrap.wrap(line, wide)]
        paper.suptitle("\n".join(lines), fontsize=11)
    return paper


def save(dataset, path, **options):
    """Draw `figure` and write it as PNG."""
    figure(dataset, **options).savefig(path, dpi=130, format="png", metadata={"Software": None})


class _Panel:
    def __init__(self, title, data):
        self.title, self.data = title, data


def _quantities(dataset):
    if "regret" in dataset:
        return ["regret"]
    fixed = (dataset.pulls.max("replication") == dataset.pulls.min("replication")).all()
    return ["accuracy"] if bool(fixed) else ["pulls", "errors"]


def _longest(dataset, axes):
    numeric = [name for name in axes if np.issubdtype(dataset[name].dtype, np.number)]
    return max(numeric or axes, key=lambda name: dataset.sizes[name], default=None)


def _panels(dataset, others):
    """One panel for each point of `others`, the instance first; one of all without any."""
    if not others:
        return [_Panel("", dataset)]
    found = []
    for corner in itertools.product(*[dataset[name].values for name in others]):
        data = dataset.sel(dict(zip(others, corner, strict=True)))
        points = zip(others[1:], corner[1:], strict=True)
        facts = [f"{name} = {value}" for name, value in points]
        found.append(_Panel(", ".join([str(corner[0]), *facts]), data))
    return found


def _colour(i):
    return COLOURS[i % len(COLOURS)]


def _lines(place, data, along, mean, low, high):
    """A line with intervals for each algorithm."""
    names = data.algorithm.values
    for i, (name, positions) in enumerate(zip(names, side_by_side(data, along), strict=True)):
        one = {"algorithm": name}
        middle, bottom, top = (x.sel(one).values for x in (mean, low, high))
        errors = np.maximum(0, [middle - bottom, top - middle])
        place.errorbar(
            positions,
            middle,
            errors,
            label=text(name),
            color=_colour(i),
            marker=MARKERS[i % len(MARKERS)],
            markersize=5,
            capsize=3,
            lw=1.3,
        )
    dress(place, data, along)


def _pulls(place, data, along):
    place.set_ylabel("pulls")
    if along is None:
        _boxes(place, data)
        return
    width = NORMAL * data.pulls_se.fillna(0)
    _lines(place, data, along, data.pulls_mean, data.pulls_mean - width, data.pulls_mean + width)
    place.set_ylabel("pulls, mean (95%)")
    bounds = _bound(place, data, along)
    cut = data.cut_short.values > 0
    if cut.any():
        rows = side_by_side(data, along)
        for row, some, means in zip(rows, cut, data.pulls_mean.values, strict=True):
            if some.any():
                _cut_short(place, row[some], means[some])
    _scale(place, np.append(bounds, data.pulls_mean.values))


def _bound(place, data, along):
    """Draw what no algorithm can beat, where that is known, and return it."""
    if "pull_lower_bound" not in data:
        return []
    bounds = data.pull_lower_bound.min("algorithm").values
    place.plot(positions_of(data, along)[0], bounds, ":", color="k", lw=1.3, label=BOUND)
    return bounds


def _cut_short(place, where, pulls):
    place.plot(where, pulls, "k^", ms=9, mfc="none", label=CUT_SHORT)


def _errors(place, data, along):
    _rates(place, data, along, data.error_rate, data.error_low, data.error_high)
    place.set_ylabel("error rate (95%)")


def _accuracy(place, data, along):
    _rates(place, data, along, 1 - data.error_rate, 1 - data.error_high, 1 - data.error_low)
    place.set_ylabel("correct (95%)")


def _rates(place, data, along, rate, low, high):
    if along is not None:
        _lines(place, data, along, rate, low, high)
        return
    for i, where, cell in _groups(place, data):
        middle, bottom, top = (float(x.sel(cell)) for x in (rate, low, high))
        errors = np.maximum(0, [[middle - bottom], [top - middle]])
        label = text(cell["algorithm"]) if where < 0.5 else None
        place.errorbar(where, middle, errors, fmt="o", color=_colour(i), capsize=4, label=label)


def _boxes(place, data):
    for i, where, cell in _groups(place, data):
        pulls = data.pulls.sel(cell).dropna("replication").values
        label = text(cell["algorithm"]) if where < 0.5 else None
        place.boxplot(
            pulls,
            positions=[where],
            widths=0.6 / data.sizes["algorithm"],
            whis=(5, 95),
            showfliers=False,
            manage_ticks=False,
            patch_artist=True,
            boxprops={"facecolor": _colour(i), "alpha": 0.5},
            medianprops={"color": _colour(i), "lw": 2},
        )
        if label:
            place.plot([], [], color=_colour(i), lw=6, alpha=0.5, label=label)
        if int(data.cut_short.sel(cell)):
            _cut_short(place, where, pulls.max())
    place.set_ylabel("pulls\n(5, 25, 50, 75, 95%)")
    _scale(place, data.pulls.quantile([0.05, 0.95], "replication").values)


def _groups(place, data):
    """`(colour, position, cell)` of every algorithm on every instance, side by side."""
    instances, algorithms = data.instance.values, data.algorithm.values
    name_groups(place, instances)
    place.set_xlim(-0.6, len(instances) - 0.4)
    offsets = (np.arange(len(algorithms)) - (len(algorithms) - 1) / 2) * 0.8 / len(algorithms)
    for (group, instance), (i, name) in itertools.product(
        enumerate(instances), enumerate(algorithms)
    ):
        yield i, group + offsets[i], {"instance": instance, "algorithm": name}


def _regret(place, data, along):
    rounds = data["round"].values
    for i, name in enumerate(data.algorithm.values):
        curves = data.regret.sel(algorithm=name)
        mean, count = curves.mean("replication").values, curves.count("replication").values
        width = NORMAL * curves.std("replication").values / np.sqrt(count)
        stroke = STROKES[i % len(STROKES)]
        place.plot(rounds, mean, stroke, color=_colour(i), label=text(name))
        place.fill_between(rounds, mean - width, mean + width, color=_colour(i), alpha=0.2, lw=0)
    place.set_xlabel("round")
    place.set_ylabel("regret, mean (95%)")


def _arms(place, data, along):
    """Mean pulls of each arm."""
    pulls = data.arm_pulls
    names = data.algorithm.values
    for i, name in enumerate(names):
        one = pulls.sel(algorithm=name).dropna("replication", how="all")
        mean = one.mean("replication").values
        width = NORMAL * one.std("replication", ddof=1).values / np.sqrt(one.sizes["replication"])
        where = np.arange(mean.size) + 1 + (i - (len(names) - 1) / 2) * 0.12
        style = {"color": _colour(i), "marker": MARKERS[i % len(MARKERS)], "label": text(name)}
        # Down to a tenth of the mean at most: the scale is logarithmic.
        errors = [np.minimum(width, 0.9 * mean), width]
        place.errorbar(where, mean, np.nan_to_num(errors), ls="none", capsize=3, **style)
    place.set_xticks(np.arange(mean.size) + 1)
    place.set_yscale("log")
    place.set_xlabel("arm")
    place.set_ylabel("pulls, mean (95%)")


def _scale(place, values):
    values = values[np.isfinite(values)]
    if values.size and values.min() > 0 and values.max() / values.min() > LOG_FROM:
        place.set_yscale("log")


DRAWN = {
    "pulls": _pulls,
    "errors": _errors,
    "accuracy": _accuracy,
    "regret": _regret,
    "arms": _arms,
}


def _legend(paper, places):
    """One legend for all panels, each label once."""
    found = {}
    for place in places:
        for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        wide = LETTERS_PER_INCH * paper.get_figwidth()
        longest = max(len(label) for label in found) + LEGEND_MARK
        columns = max(1, min(4, len(found), int(wide / longest)))
        lines = -(-len(found) // columns)
        paper.set_figheight(paper.get_figheight() + LEGEND_LINE * (lines - 1))
        for last in (BOUND, CUT_SHORT):
            if last in found:
                found[last] = found.pop(last)
        place = {"loc": "outside lower center", "ncols": columns, "frameon": False}
        paper.legend(list(found.values()), list(found), **place)
