"""What a panel of a figure shows of a sweep: pulls, errors, regret, the pulls of each arm."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..drawing import (
    band,
    colour,
    hatch,
    ink,
    interval_label,
    intervals,
    mean_label,
    paper,
    promised,
    rates,
    text,
)
from ..estimates import rounded
from ..instances.estimated_regret import along_the_rounds, error_of_means, with_means
from ..intervals import half_width, standard_error
from ..sweeps.summaries import confidence_of, regret_errors
from .labels import label_axis, label_groups, positions_of, side_by_side
from .limits import highest_rate, pull_limits, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray, Dataset

CURVES_LOG_FROM = 10  # a ratio of the ends of curves from which the lower ones could not be seen
BOUND = "lower bound"
BEST = "best choice"
CUT_SHORT = "some cut short: at least this"
PROMISED = "promised: delta"
HIGHEST_BOUND = 30.0  # drawn of a probability, though a bound above 1 says nothing
HIGHEST_RATE = 1.02
BOUND_DIGITS = 3
DIAGONAL = 100  # points of the diagonal


def _pulls(ax: "Axes", data: "Dataset", along: str | None, whole: "Dataset") -> None:
    if along is None:
        _boxes(ax, data, whole)
        return
    columns = data.pulls_mean, data.pulls_low, data.pulls_high
    for i, (name, positions) in enumerate(_rows(data, along)):
        middle, bottom, top = (x.sel(algorithm=name).values for x in columns)
        intervals(ax, positions, middle, bottom, top, i, label=text(name), joined=True)
        cut = data.cut_short.sel(algorithm=name).values > 0
        if cut.any():
            _cut_short(ax, positions[cut], middle[cut])
    label_axis(ax, data, along)
    ax.set_ylabel(mean_label("pulls", _fewest(whole)))
    limits = pull_limits(whole)
    if limits is not None:
        ax.set_yscale(limits.scale)
        ax.set_ylim(limits.low, limits.high)
    _bound(ax, data, along)


def _fewest(data: "Dataset") -> int:
    """Replications of the cell that has fewest, of those that were played."""
    numbers = data.replications.values
    return int(numbers[numbers > 0].min(initial=np.iinfo(int).max))


def _rows(data: "Dataset", along: str) -> Iterator[tuple[str, np.ndarray]]:
    """Each algorithm with its positions along the axis."""
    return zip(data.algorithm.values, side_by_side(data, along), strict=True)


def _bound(ax: "Axes", data: "Dataset", along: str) -> None:
    """Draw the lower bound on the pulls of any algorithm, and say where it is outside the panel."""
    if "pull_lower_bound" not in data:
        return
    bounds = data.pull_lower_bound.min("algorithm").values
    known = bounds[np.isfinite(bounds)]
    bottom, top = ax.get_ylim()
    if ((known >= bottom) & (known <= top)).any():
        style: dict[str, Any] = {"ls": ":", "color": ink(), "lw": 1.3, "label": BOUND}
        _line(ax, positions_of(data, along)[0], bounds, style)
        ax.set_ylim(bottom, top)
    for outside, up in ((known[known < bottom], False), (known[known > top], True)):
        if outside.size:
            _at_the_edge(ax, f"{BOUND}: {_span(outside)}", up=up)


def _line(ax: "Axes", positions: Any, values: np.ndarray, style: dict[str, Any]) -> None:
    """A line through values along the axis; a level one where there is a single point."""
    if len(values) == 1:
        ax.axhline(float(values[0]), **style)
    else:
        ax.plot(positions, values, **style)


def _span(values: np.ndarray) -> str:
    ends = dict.fromkeys(rounded(x, BOUND_DIGITS) for x in (values.min(), values.max()))
    return " to ".join(ends)


def _at_the_edge(ax: "Axes", label: str, *, up: bool) -> None:
    """Say what lies above or below the panel."""
    ax.text(
        0.98,
        0.97 if up else 0.03,
        f"{'▲' if up else '▼'} {label}",
        transform=ax.transAxes,
        ha="right",
        va="top" if up else "bottom",
        fontsize=8,
        color=ink(),
        bbox={"facecolor": paper(), "edgecolor": "none", "pad": 1.5, "alpha": 0.85},
    )


def _cut_short(ax: "Axes", positions: Any, pulls: Any) -> None:
    ax.plot(positions, pulls, "^", color=ink(), ls="none", ms=9, mfc="none", label=CUT_SHORT)


def _errors(ax: "Axes", data: "Dataset", along: str | None, whole: "Dataset") -> None:
    _rates(ax, data, along)
    ax.set_ylabel("error rate (95%)")
    if along is not None and "error_bound" in data:
        _error_bounds(ax, data, along)
    else:
        ax.set_ylim(0, highest_rate(whole))
    _promise(ax, data, along)


def _error_bounds(ax: "Axes", data: "Dataset", along: str) -> None:
    """The proved bounds, down to the rates that so many replications can show."""
    least = 0.3 / max(1.0, float(data.replications.max()))
    positions = positions_of(data, along)[0]
    for i, name in enumerate(data.bound.values):
        values = data.error_bound.sel(bound=name).values
        style: dict[str, Any] = {"color": ink(), "lw": 1.3, "alpha": 1 - 0.2 * i}
        style |= {"ls": ("--", "-.", ":")[i % 3], "label": text(name)}
        _line(ax, positions, values, style)
    ax.set_yscale("log")
    ax.set_ylim(least, HIGHEST_BOUND)


def _accuracy(ax: "Axes", data: "Dataset", along: str | None, whole: "Dataset") -> None:
    _rates(ax, data, along, correct=True)
    ax.set_ylabel("correct (95%)")
    ax.set_ylim(1 - highest_rate(whole), HIGHEST_RATE)
    _promise(ax, data, along, correct=True)


def _rates(ax: "Axes", data: "Dataset", along: str | None, *, correct: bool = False) -> None:
    """Lines with intervals, or points of every algorithm on every instance."""
    columns = data.error_rate, data.error_low, data.error_high
    if along is not None:
        for i, (name, positions) in enumerate(_rows(data, along)):
            rate, low, high = (x.sel(algorithm=name).values for x in columns)
            label = text(name)
            rates(ax, positions, rate, low, high, i, label=label, joined=True, correct=correct)
        label_axis(ax, data, along)
        return
    for i, position, cell, label in _groups(ax, data):
        rate, low, high = (np.atleast_1d(x.sel(cell).values) for x in columns)
        rates(ax, [position], rate, low, high, i, label=label, correct=correct)


def _promise(ax: "Axes", data: "Dataset", along: str | None, *, correct: bool = False) -> None:
    """The error rate that the algorithms of the panel promise, where it is the same for all."""
    deltas = promised_errors(data, along)
    if deltas is None:
        return
    same = np.ptp(deltas) == 0
    values = 1 - deltas if correct else deltas
    label = f"{PROMISED} = {deltas[0]:g}" if same else PROMISED
    if same or along is None:
        promised(ax, None, values[0], label)
        return
    positions, _ = positions_of(data, along)
    if np.array_equal(positions, deltas):  # a straight line need not be one on this scale
        positions = np.geomspace(deltas.min(), deltas.max(), DIAGONAL)
        values = 1 - positions if correct else positions
    promised(ax, positions, values, label)


def promised_errors(data: "Dataset", along: str | None) -> np.ndarray | None:
    """What the algorithms promise at each point along the axis, None unless they promise the same.

    Algorithms without a promise, such as those with a budget, do not count.
    """
    if "promised_error" not in data:
        return None
    others = [name for name in data.promised_error.dims if name != along]
    found = data.promised_error.transpose(*([along] if along else []), *others).values
    found = found.reshape(data.sizes[along] if along else 1, -1)
    per_point = [row[np.isfinite(row)] for row in found]
    if not all(row.size and np.ptp(row) == 0 for row in per_point):
        return None
    return np.array([row[0] for row in per_point])


def _boxes(ax: "Axes", data: "Dataset", whole: "Dataset") -> None:
    """Quantiles of the pulls as boxes, and beside each its mean with an interval."""
    for i, position, cell, label in _groups(ax, data):
        pulls = data.pulls.sel(cell).dropna("replication").values
        style: dict[str, Any] = {"facecolor": colour(i), "alpha": 0.5, "hatch": hatch(i)}
        style["edgecolor"] = ink()
        ax.boxplot(
            pulls,
            positions=[position],
            widths=0.6 / data.sizes["algorithm"],
            whis=(5, 95),
            showfliers=False,
            manage_ticks=False,
            patch_artist=True,
            boxprops=style,
            medianprops={"color": colour(i), "lw": 2},
            whiskerprops={"color": ink()},
            capprops={"color": ink()},
        )
        if label:
            ax.fill_between([], [], label=label, **style)
        columns = data.pulls_mean, data.pulls_low, data.pulls_high
        middle, low, high = (np.atleast_1d(x.sel(cell).values) for x in columns)
        intervals(ax, [position + 0.4 / data.sizes["algorithm"]], middle, low, high, i)
        if int(data.cut_short.sel(cell)):
            _cut_short(ax, position, pulls.max())
    level = interval_label(_fewest(whole))
    ax.set_ylabel(f"pulls (box: 25, 50, 75%;\nwhiskers: 5, 95%;\nmarker: mean, {level})")
    ax.set_yscale(scale_of(_middle(whole.pulls.transpose(..., "replication").values)))


def _middle(pulls: np.ndarray) -> np.ndarray:
    """5% and 95% quantiles of the pulls of each cell that was played."""
    cells = pulls.reshape(-1, pulls.shape[-1])
    played = cells[~np.isnan(cells).all(1)]
    return np.nanquantile(played, [0.05, 0.95], axis=1)


def _groups(ax: "Axes", data: "Dataset") -> Iterator[tuple[int, float, dict[str, str], str | None]]:
    """`(number, position, cell, label)` of every algorithm on every instance, side by side.

    The label is that of the algorithm, at the first instance alone.
    """
    instances, algorithms = data.instance.values, data.algorithm.values
    label_groups(ax, instances)
    ax.set_xlim(-0.6, len(instances) - 0.4)
    offsets = (np.arange(len(algorithms)) - (len(algorithms) - 1) / 2) * 0.8 / len(algorithms)
    for (group, instance), (i, name) in itertools.product(
        enumerate(instances), enumerate(algorithms)
    ):
        label = text(name) if group == 0 else None
        yield i, group + offsets[i], {"instance": instance, "algorithm": name}, label


def _regret(ax: "Axes", data: "Dataset", along: str | None, whole: "Dataset") -> None:
    parts = {
        name: error_of_means(regret_errors(data.sel(algorithm=name)))
        for name in data.algorithm.values
    }
    _curves(ax, data, data.regret, parts)
    ax.set_ylabel(mean_label("regret", _fewest(whole)))
    last = whole.regret.isel(round=-1).mean("replication").values
    last = last[last > 0]
    if last.size and last.max() / last.min() > CURVES_LOG_FROM:
        ax.set_yscale("log")
        ax.set_ylim(last.min() / CURVES_LOG_FROM, 2.0 * last.max())


def _reward(ax: "Axes", data: "Dataset", along: str | None, whole: "Dataset") -> None:
    """Average expected reward per round, and that of who knows the answer."""
    _curves(ax, data, data.average_reward)
    ax.axhline(float(data.best_average.mean()), ls=":", color=ink(), lw=1.3, label=BEST)
    ax.set_ylabel("average reward (95%)")


def _curves(
    ax: "Axes", data: "Dataset", table: "DataArray", parts: Mapping[str, float] | None = None
) -> None:
    """A curve with its interval for each algorithm.

    Args:
      parts: by algorithm, the part of estimated means in the error at the last round.
    """
    rounds = data["round"].values
    for i, name in enumerate(data.algorithm.values):
        curves = table.sel(algorithm=name)
        mean, count = curves.mean("replication").values, curves.count("replication").values
        error = curves.std("replication").values / np.sqrt(np.maximum(1, count - 1))
        part = along_the_rounds(parts[name] if parts else 0.0, mean)
        width = half_width(with_means(error, part), count, confidence_of(data))
        band(ax, rounds, mean, width, i, label=text(name))
    ax.set_xlabel("round")


def _arms(ax: "Axes", data: "Dataset", along: str | None, whole: "Dataset") -> None:
    """Mean pulls of each arm."""
    pulls = data.arm_pulls
    names = data.algorithm.values
    for i, name in enumerate(names):
        one = pulls.sel(algorithm=name).dropna("replication", how="all")
        mean = one.mean("replication").values
        error = standard_error(one.transpose("replication", "arm").values)
        width = half_width(error, one.sizes["replication"], confidence_of(data))
        positions = data.arm.values + 1 + (i - (len(names) - 1) / 2) * 0.12
        # Down to a tenth of the mean at most: the scale is logarithmic.
        low = mean - np.minimum(width, 0.9 * mean)
        intervals(ax, positions, mean, low, mean + width, i, label=text(name))
    ax.set_xticks(data.arm.values + 1)
    ax.set_yscale("log")
    ax.set_xlabel("arm")
    ax.set_ylabel(mean_label("pulls", _fewest(whole)))


# Draws a quantity into a panel, given the data of the panel, the axis of the sweep that lines go
# along, or None, and the data of all panels, which share their limits.
Draw: TypeAlias = "Callable[[Axes, Dataset, str | None, Dataset], None]"

DRAWN: dict[str, Draw] = {
    "pulls": _pulls,
    "errors": _errors,
    "accuracy": _accuracy,
    "regret": _regret,
    "reward": _reward,
    "arms": _arms,
}
