"""What a panel of a figure shows of a sweep: pulls, errors, regret, the pulls of each arm."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..instances.estimated_regret import along_the_rounds, error_of_means, with_means
from ..intervals import half_width, standard_error
from ..show.canvas import Scale, room_of
from ..show.labels import (
    label_arms,
    label_axis,
    label_groups,
    positions_of,
    set_scale,
    side_by_side,
)
from ..show.marks import (
    CAP,
    LINE,
    MARK,
    band,
    colour,
    hatch,
    ink,
    interval_label,
    intervals,
    mean_label,
    promised,
    rates,
    text,
)
from ..sweeps.stated import stated
from ..sweeps.summaries import confidence_of, regret_errors
from .limits import highest_rate, known_bounds, pull_limits, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray, Dataset

BOX = "quartiles; 5%, 95%"
MEAN = "mean"
BOUND = "lower bound"
BEST = "best choice"
CUT_SHORT = "some cut short: at least this"
PROMISED = "promised: delta"
HIGHEST_BOUND = 30.0  # drawn of a probability, though a bound above 1 says nothing
HIGHEST_RATE = 1.02
LEAST_RATE = 0.3  # of one error in all replications: the bottom of a logarithmic scale
DIAGONAL = 100  # points of the diagonal
ALIKE = 1e-9  # of the largest bound: a smaller difference is one of rounding
USUAL_ROOM = 24  # points of a cell with boxes: where there are fewer, marks are smaller
GROUP = 0.8  # of the distance of two instances or arms: the room of all algorithms on one
ARM_SHIFT = 0.12  # of the distance of two arms, from one algorithm to the next, at most
BOX_WIDTH, BOX_SHIFT, MEAN_SHIFT = 0.55, 0.1, 0.3  # of the room of a cell; its mean is on the right


def _pulls(ax: "Axes", data: "Dataset", along: str | None, whole: "Dataset", scale: Scale) -> None:
    if along is None:
        _boxes(ax, _with_instances(data), whole, scale)
        return
    columns = data.pulls_mean, data.pulls_low, data.pulls_high
    for i, (name, label, positions) in enumerate(_rows(data, along, whole)):
        middle, bottom, top = (x.sel(algorithm=name).values for x in columns)
        intervals(ax, positions, middle, bottom, top, i, label=label, joined=True)
        cut = data.cut_short.sel(algorithm=name).values > 0
        if cut.any():
            _cut_short(ax, positions[cut], middle[cut])
    label_axis(ax, data, along)
    ax.set_ylabel(mean_label("pulls", _fewest(whole)))
    limits = pull_limits(whole, scale)
    if limits is not None:
        set_scale(ax, "y", limits.scale)
        ax.set_ylim(limits.low, limits.high)
    _bound(ax, data, along)


def _fewest(data: "Dataset") -> int:
    """Replications of the cell that has fewest, of those that were played."""
    numbers = data.replications.values
    return int(numbers[numbers > 0].min(initial=np.iinfo(int).max))


def _rows(data: "Dataset", along: str, whole: "Dataset") -> Iterator[tuple[str, str, np.ndarray]]:
    """Each algorithm with its label and its positions along the axis."""
    labels = labels_along(whole, along)
    return zip(data.algorithm.values, labels, side_by_side(data, along), strict=True)


def labels_along(whole: "Dataset", along: str) -> list[str]:
    """The labels of the algorithms; they say which do not depend on the axis in any panel."""
    always = _always_level(whole, along)
    said = f" ({_level_text(along)})"
    names = whole.algorithm.values.tolist()
    return [text(f"{name}{said if name in always else ''}") for name in names]


def level_said(whole: "Dataset", along: str | None, instance: Any) -> str:
    """What the title of a panel says of lines that are level since nothing depends on the axis.

    An instance without such an option gives the same problem at all its values. What the labels
    say already is left out.
    """
    if along is None:
        return ""
    level = _level(whole, along)[instance]
    if len(level) == whole.sizes["algorithm"]:
        return _level_text(along)
    some = [str(name) for name in level if name not in _always_level(whole, along)]
    return f"{', '.join(some)} {_level_text(along)}" if some else ""


def _level_text(along: str) -> str:
    return f"does not depend on {along}"


def _level(whole: "Dataset", along: str) -> dict[Any, list[Any]]:
    """By instance, the algorithms whose results do not depend on the axis."""
    pairs = stated(whole.attrs, "independent").get(along, [])
    algorithms = whole.algorithm.values.tolist()
    return {
        instance: [name for name in algorithms if [instance, name] in pairs]
        for instance in whole.instance.values.tolist()
    }


def _always_level(whole: "Dataset", along: str) -> set[Any]:
    """The algorithms that do so in all panels, but those where all algorithms do."""
    panels = _level(whole, along).values()
    mixed = [set(level) for level in panels if len(level) < whole.sizes["algorithm"]]
    return set.intersection(*mixed) if mixed else set()


def _bound_style() -> dict[str, Any]:
    return {"ls": ":", "lw": 1.3, "color": ink(), "label": BOUND}


def _bound(ax: "Axes", data: "Dataset", along: str) -> None:
    """The lower bound on the pulls of any algorithm."""
    if known_bounds(data).size:
        bounds = data.pull_lower_bound.min("algorithm").values
        _line(ax, positions_of(data, along)[0], bounds, _bound_style())


def _bounds_of_cells(ax: "Axes", data: "Dataset") -> None:
    """The lower bound of each cell as a line across its place; one line where they are alike."""
    known = known_bounds(data)
    if not known.size:
        return
    if np.ptp(known) <= ALIKE * known.max():
        ax.axhline(float(known[0]), **_bound_style())
        return
    places, half = [*_groups(data)], _distance(data) / 2
    values = np.array([float(data.pull_lower_bound.sel(place.cell)) for place in places])
    at, fits = np.array([place.position for place in places]), np.isin(values, known)
    ax.hlines(values[fits], (at - half)[fits], (at + half)[fits], **_bound_style())


def _line(ax: "Axes", positions: Any, values: np.ndarray, style: dict[str, Any]) -> None:
    """A line through values along the axis; a level one where there is a single point."""
    if len(values) == 1:
        ax.axhline(float(values[0]), **style)
    else:
        ax.plot(positions, values, **style)


def _cut_short(ax: "Axes", positions: Any, pulls: Any) -> None:
    ax.plot(positions, pulls, "^", color=ink(), ls="none", ms=9, mfc="none", label=CUT_SHORT)


def _errors(ax: "Axes", data: "Dataset", along: str | None, whole: "Dataset", scale: Scale) -> None:
    _rates(ax, data, along, whole)
    ax.set_ylabel("error rate (95%)")
    bounded = along is not None and "error_bound" in data
    if bounded:
        _error_bounds(ax, data, along)
    scale = scale or ("log" if bounded else "linear")
    least = LEAST_RATE / max(1.0, float(whole.replications.max())) if scale == "log" else 0.0
    set_scale(ax, "y", scale)
    ax.set_ylim(least, HIGHEST_BOUND if bounded else highest_rate(whole))
    _promise(ax, data, along)


def _error_bounds(ax: "Axes", data: "Dataset", along: str) -> None:
    """The proved bounds."""
    positions = positions_of(data, along)[0]
    lightest = max(data.bound.size - 1, 1)
    for i, name in enumerate(data.bound.values):
        values = data.error_bound.sel(bound=name).values
        style: dict[str, Any] = {"color": ink(), "lw": 1.3, "alpha": 1 - 0.6 * i / lightest}
        style |= {"ls": ("--", "-.", ":")[i % 3], "label": text(name)}
        _line(ax, positions, values, style)


def _accuracy(
    ax: "Axes", data: "Dataset", along: str | None, whole: "Dataset", scale: Scale
) -> None:
    _rates(ax, data, along, whole, correct=True)
    ax.set_ylabel("correct (95%)")
    ax.set_ylim(1 - highest_rate(whole), HIGHEST_RATE)
    _promise(ax, data, along, correct=True)


def _rates(
    ax: "Axes", data: "Dataset", along: str | None, whole: "Dataset", *, correct: bool = False
) -> None:
    """Lines with intervals, or points of every algorithm on every instance."""
    data = data if along else _with_instances(data)
    columns = data.error_rate, data.error_low, data.error_high
    if along is not None:
        for i, (name, label, positions) in enumerate(_rows(data, along, whole)):
            rate, low, high = (x.sel(algorithm=name).values for x in columns)
            rates(ax, positions, rate, low, high, i, label=label, joined=True, correct=correct)
        label_axis(ax, data, along)
        return
    for place in _groups(data):
        rate, low, high = (np.atleast_1d(x.sel(place.cell).values) for x in columns)
        style: dict[str, Any] = {"label": place.label, "correct": correct}
        rates(ax, [place.position], rate, low, high, place.number, **style)
    _name_groups(ax, data)


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


def _boxes(ax: "Axes", data: "Dataset", whole: "Dataset", scale: Scale) -> None:
    """Quantiles of the pulls as boxes, and beside each its mean with an interval."""
    _name_groups(ax, data)
    room = _distance(data)
    shrunk = min(1.0, 72 * room * room_of(ax) / float(np.ptp(ax.get_xlim())) / USUAL_ROOM)
    columns = data.pulls_mean, data.pulls_low, data.pulls_high
    outline: dict[str, Any] = {"edgecolor": ink(), "lw": 1.0}
    for i, position, cell, label in _groups(data):
        pulls = data.pulls.sel(cell).dropna("replication").values
        style: dict[str, Any] = {"facecolor": colour(i), "alpha": 0.5, "hatch": hatch(i)}
        style |= outline
        ax.boxplot(
            pulls,
            positions=[position - BOX_SHIFT * room],
            widths=BOX_WIDTH * room,
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
        middle, low, high = (np.atleast_1d(x.sel(cell).values) for x in columns)
        intervals(ax, [position + MEAN_SHIFT * room], middle, low, high, i, shrunk=shrunk)
        if int(data.cut_short.sel(cell)):
            _cut_short(ax, position - BOX_SHIFT * room, pulls.max())
    ax.set_ylabel("pulls")
    middles = _middle(whole.pulls.transpose(..., "replication").values)
    set_scale(ax, "y", scale or scale_of(middles, known_bounds(whole)))
    _bounds_of_cells(ax, data)
    if ax.get_yscale() == "linear":
        ax.set_ylim(bottom=0)
    _explained(ax, interval_label(_fewest(whole)), outline)


def _explained(ax: "Axes", level: str, outline: dict[str, Any]) -> None:
    """Say in the legend what boxes and the marks beside them are."""
    ax.fill_between([], [], label=BOX, facecolor="none", **outline)
    marks: dict[str, Any] = {"marker": "o", "ms": MARK, "capsize": CAP, "lw": LINE, "ls": "none"}
    ax.errorbar([], [], yerr=[], color=ink(), label=f"{MEAN} ({level})", **marks)


def _middle(pulls: np.ndarray) -> np.ndarray:
    """5% and 95% quantiles of the pulls of each cell that was played."""
    cells = pulls.reshape(-1, pulls.shape[-1])
    played = cells[~np.isnan(cells).all(1)]
    return np.nanquantile(played, [0.05, 0.95], axis=1)


class _Place(NamedTuple):
    """Where a cell is drawn, in a panel without an axis of the sweep.

    Attributes:
      number: of the algorithm, which decides its colour.
      position: along the horizontal axis.
      cell: the coordinates of the cell.
      label: for the legend; None where the axis names the algorithms, and after the first instance.
    """

    number: int
    position: float
    cell: dict[str, str]
    label: str | None


def _groups(data: "Dataset") -> Iterator[_Place]:
    """Every algorithm on every instance: side by side, or each by itself on a single one."""
    instances, algorithms = data.instance.values, data.algorithm.values
    single = len(instances) == 1
    offsets = (np.arange(len(algorithms)) - (len(algorithms) - 1) / 2) * _distance(data)
    for (group, instance), (i, name) in itertools.product(
        enumerate(instances), enumerate(algorithms)
    ):
        label = text(name) if group == 0 and not single else None
        position = float(i if single else group + offsets[i])
        yield _Place(i, position, {"instance": instance, "algorithm": name}, label)


def _with_instances(data: "Dataset") -> "Dataset":
    """The data of a panel with their instances as a dimension, also where it is of a single one."""
    return data if "instance" in data.dims else data.expand_dims("instance")


def _distance(data: "Dataset") -> float:
    """The room of a cell along the horizontal axis."""
    return 1.0 if data.sizes["instance"] == 1 else GROUP / data.sizes["algorithm"]


def _name_groups(ax: "Axes", data: "Dataset") -> None:
    """Name the instances or, of a single one, the algorithms."""
    names = data.instance if data.sizes["instance"] > 1 else data.algorithm
    label_groups(ax, names.values.tolist())


def _regret(ax: "Axes", data: "Dataset", along: str | None, whole: "Dataset", scale: Scale) -> None:
    parts = {
        name: error_of_means(regret_errors(data.sel(algorithm=name)))
        for name in data.algorithm.values
    }
    _curves(ax, data, data.regret, parts)
    ax.set_ylabel(mean_label("regret", _fewest(whole)))
    set_scale(ax, "y", scale)


def _reward(ax: "Axes", data: "Dataset", along: str | None, whole: "Dataset", scale: Scale) -> None:
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


def _arms(ax: "Axes", data: "Dataset", along: str | None, whole: "Dataset", scale: Scale) -> None:
    """Mean pulls of each arm."""
    pulls = data.arm_pulls
    names = data.algorithm.values
    apart = min(ARM_SHIFT, GROUP / len(names))
    for i, name in enumerate(names):
        one = pulls.sel(algorithm=name).dropna("replication", how="all")
        mean = one.mean("replication").values
        error = standard_error(one.transpose("replication", "arm").values)
        width = half_width(error, one.sizes["replication"], confidence_of(data))
        positions = data.arm.values + (i - (len(names) - 1) / 2) * apart
        # Down to a tenth of the mean at most: the scale is logarithmic.
        low = mean - np.minimum(width, 0.9 * mean)
        intervals(ax, positions, mean, low, mean + width, i, label=text(name))
    label_arms(ax, data.arm.values.tolist())
    set_scale(ax, "y", scale or "log")
    ax.set_ylabel(mean_label("pulls", _fewest(whole)))


# Draws a quantity into a panel, given the data of the panel, the axis of the sweep that lines go
# along, or None, the data of all panels, which share their limits, and the scale that is wanted.
Draw: TypeAlias = "Callable[[Axes, Dataset, str | None, Dataset, Scale], None]"

DRAWN: dict[str, Draw] = {
    "pulls": _pulls,
    "errors": _errors,
    "accuracy": _accuracy,
    "regret": _regret,
    "reward": _reward,
    "arms": _arms,
}
