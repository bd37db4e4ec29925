"""What a panel of a figure shows of a sweep: pulls, errors, regret, the pulls of each arm."""

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..estimates import NORMAL
from .labels import label_axis, label_groups, positions_of, side_by_side, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray, Dataset

LOG_FROM = 20  # a range of this ratio is drawn on a logarithmic scale
CURVES_LOG_FROM = 10  # the same for the ends of curves, or the lower ones could not be seen
BOUND = "lower bound"
BEST = "best choice"
CUT_SHORT = "some cut short: at least this"
MARKERS = "osD^vPX*"
HIGHEST_BOUND = 30.0  # drawn of a probability, though a bound above 1 says nothing
HATCHES = (None, "///", "xxx")
STROKES = ("-", "--", "-.", ":")
# Readers who are colour-blind can distinguish them: Petroff, "Accessible color sequences for data
# visualization" (2021), ten colours.
COLOURS = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
)


def _colour(i: int) -> str:
    return COLOURS[i % len(COLOURS)]


def _hatch(i: int) -> str | None:
    """The pattern of a box, which differs once the colours repeat."""
    return HATCHES[i // len(COLOURS) % len(HATCHES)]


def _lines(
    ax: "Axes", data: "Dataset", along: str, mean: "DataArray", low: "DataArray", high: "DataArray"
) -> None:
    """A line with intervals for each algorithm."""
    names = data.algorithm.values
    for i, (name, positions) in enumerate(zip(names, side_by_side(data, along), strict=True)):
        one = {"algorithm": name}
        middle, bottom, top = (x.sel(one).values for x in (mean, low, high))
        errors = np.maximum(0, [middle - bottom, top - middle])
        ax.errorbar(
            positions,
            middle,
            errors,
            label=text(name),
            color=_colour(i),
            linestyle=STROKES[i // len(COLOURS) % len(STROKES)],
            marker=MARKERS[i % len(MARKERS)],
            markersize=5,
            capsize=3,
            lw=1.3,
        )
    label_axis(ax, data, along)


def _pulls(ax: "Axes", data: "Dataset", along: str | None) -> None:
    ax.set_ylabel("pulls")
    if along is None:
        _boxes(ax, data)
        return
    width = NORMAL * data.pulls_se.fillna(0)
    _lines(ax, data, along, data.pulls_mean, data.pulls_mean - width, data.pulls_mean + width)
    ax.set_ylabel("pulls, mean (95%)")
    bounds = _bound(ax, data, along)
    cut = data.cut_short.values > 0
    if cut.any():
        rows = side_by_side(data, along)
        for row, some, means in zip(rows, cut, data.pulls_mean.values, strict=True):
            if some.any():
                _cut_short(ax, row[some], means[some])
    _scale(ax, np.append(bounds, data.pulls_mean.values))


def _bound(ax: "Axes", data: "Dataset", along: str) -> np.ndarray:
    """Draw the lower bound on the pulls of any algorithm, where it is known, and return it."""
    if "pull_lower_bound" not in data:
        return np.array([])
    bounds = data.pull_lower_bound.min("algorithm").values
    ax.plot(positions_of(data, along)[0], bounds, ":", color="k", lw=1.3, label=BOUND)
    return bounds


def _cut_short(ax: "Axes", positions: Any, pulls: Any) -> None:
    ax.plot(positions, pulls, "k^", ms=9, mfc="none", label=CUT_SHORT)


def _errors(ax: "Axes", data: "Dataset", along: str | None) -> None:
    _rates(ax, data, along, data.error_rate, data.error_low, data.error_high)
    ax.set_ylabel("error rate (95%)")
    if along is not None and "error_bound" in data:
        _error_bounds(ax, data, along)


def _error_bounds(ax: "Axes", data: "Dataset", along: str) -> None:
    """The proved bounds, down to the rates that so many replications can show."""
    least = 0.3 / max(1.0, float(data.replications.max()))
    positions = positions_of(data, along)[0]
    for i, name in enumerate(data.bound.values):
        values = data.error_bound.sel(bound=name).values
        ax.plot(positions, values, STROKES[1 + i % 3], color="k", lw=1.3, alpha=1 - 0.2 * i)
        ax.lines[-1].set_label(text(name))
    ax.set_yscale("log")
    ax.set_ylim(least, HIGHEST_BOUND)


def _accuracy(ax: "Axes", data: "Dataset", along: str | None) -> None:
    _rates(ax, data, along, 1 - data.error_rate, 1 - data.error_high, 1 - data.error_low)
    ax.set_ylabel("correct (95%)")


def _rates(
    ax: "Axes",
    data: "Dataset",
    along: str | None,
    rate: "DataArray",
    low: "DataArray",
    high: "DataArray",
) -> None:
    """Lines with intervals, or points of every algorithm on every instance."""
    if along is not None:
        _lines(ax, data, along, rate, low, high)
        return
    for i, position, cell in _groups(ax, data):
        middle, bottom, top = (float(x.sel(cell)) for x in (rate, low, high))
        errors = np.maximum(0, [[middle - bottom], [top - middle]])
        label = text(cell["algorithm"]) if position < 0.5 else None
        ax.errorbar(position, middle, errors, fmt="o", color=_colour(i), capsize=4, label=label)


def _boxes(ax: "Axes", data: "Dataset") -> None:
    for i, position, cell in _groups(ax, data):
        pulls = data.pulls.sel(cell).dropna("replication").values
        label = text(cell["algorithm"]) if position < 0.5 else None
        style: dict[str, Any] = {"facecolor": _colour(i), "alpha": 0.5, "hatch": _hatch(i)}
        ax.boxplot(
            pulls,
            positions=[position],
            widths=0.6 / data.sizes["algorithm"],
            whis=(5, 95),
            showfliers=False,
            manage_ticks=False,
            patch_artist=True,
            boxprops=style,
            medianprops={"color": _colour(i), "lw": 2},
        )
        if label:
            ax.fill_between([], [], label=label, **style)
        if int(data.cut_short.sel(cell)):
            _cut_short(ax, position, pulls.max())
    ax.set_ylabel("pulls\n(5, 25, 50, 75, 95%)")
    _scale(ax, data.pulls.quantile([0.05, 0.95], "replication").values)


def _groups(ax: "Axes", data: "Dataset") -> Iterator[tuple[int, float, dict[str, str]]]:
    """`(colour, position, cell)` of every algorithm on every instance, side by side."""
    instances, algorithms = data.instance.values, data.algorithm.values
    label_groups(ax, instances)
    ax.set_xlim(-0.6, len(instances) - 0.4)
    offsets = (np.arange(len(algorithms)) - (len(algorithms) - 1) / 2) * 0.8 / len(algorithms)
    for (group, instance), (i, name) in itertools.product(
        enumerate(instances), enumerate(algorithms)
    ):
        yield i, group + offsets[i], {"instance": instance, "algorithm": name}


def _regret(ax: "Axes", data: "Dataset", along: str | None) -> None:
    _curves(ax, data, data.regret)
    ax.set_ylabel("regret, mean (95%)")
    last = data.regret.isel(round=-1).mean("replication").values
    last = last[last > 0]
    if last.size and last.max() / last.min() > CURVES_LOG_FROM:
        ax.set_yscale("log")
        ax.set_ylim(last.min() / CURVES_LOG_FROM, 2.0 * last.max())


def _reward(ax: "Axes", data: "Dataset", along: str | None) -> None:
    """Average expected reward per round, and that of who knows the answer."""
    _curves(ax, data, data.average_reward)
    ax.axhline(float(data.best_average.mean()), ls=":", color="k", lw=1.3, label=BEST)
    ax.set_ylabel("average reward (95%)")


def _curves(ax: "Axes", data: "Dataset", table: "DataArray") -> None:
    """A curve with its interval for each algorithm."""
    rounds = data["round"].values
    for i, name in enumerate(data.algorithm.values):
        curves = table.sel(algorithm=name)
        mean, count = curves.mean("replication").values, curves.count("replication").values
        width = NORMAL * curves.std("replication").values / np.sqrt(count)
        stroke = STROKES[i % len(STROKES)]
        ax.plot(rounds, mean, stroke, color=_colour(i), label=text(name))
        ax.fill_between(rounds, mean - width, mean + width, color=_colour(i), alpha=0.2, lw=0)
    ax.set_xlabel("round")


def _arms(ax: "Axes", data: "Dataset", along: str | None) -> None:
    """Mean pulls of each arm."""
    pulls = data.arm_pulls
    names = data.algorithm.values
    for i, name in enumerate(names):
        one = pulls.sel(algorithm=name).dropna("replication", how="all")
        mean = one.mean("replication").values
        width = NORMAL * one.std("replication", ddof=1).values / np.sqrt(one.sizes["replication"])
        positions = np.arange(mean.size) + 1 + (i - (len(names) - 1) / 2) * 0.12
        style: dict[str, Any] = {
            "color": _colour(i),
            "marker": MARKERS[i % len(MARKERS)],
            "label": text(name),
        }
        # Down to a tenth of the mean at most: the scale is logarithmic.
        errors = [np.minimum(width, 0.9 * mean), width]
        ax.errorbar(positions, mean, np.nan_to_num(errors), ls="none", capsize=3, **style)
    ax.set_xticks(np.arange(mean.size) + 1)
    ax.set_yscale("log")
    ax.set_xlabel("arm")
    ax.set_ylabel("pulls, mean (95%)")


def _scale(ax: "Axes", values: np.ndarray) -> None:
    values = values[np.isfinite(values)]
    if values.size and values.min() > 0 and values.max() / values.min() > LOG_FROM:
        ax.set_yscale("log")


# Draws a quantity into a panel, given the axis of the sweep that lines go along, or None.
Draw: TypeAlias = "Callable[[Axes, Dataset, str | None], None]"

DRAWN: dict[str, Draw] = {
    "pulls": _pulls,
    "errors": _errors,
    "accuracy": _accuracy,
    "regret": _regret,
    "reward": _reward,
    "arms": _arms,
}
