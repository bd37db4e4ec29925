"""Words along the axes of a figure: what has room, and where."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from .canvas import Scale, length, points, room_of, wrapped
from .marks import text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

LOG_AXIS_FROM = 8  # ratio of the largest value along an axis to the least
OFFSET = 0.022  # of the axis, from one algorithm to the next
WIDEST = 0.5  # of the way to the next point, at most, for all algorithms together
TICKS_WIDTH = 0.85  # of a panel, from the first tick to the last
TICK = "xtick.labelsize"  # in `rcParams`
SLANTED = 0.45, 2.0  # of the axis, and inches, at most: the length of a slanted label
ANGLES = 30, 90  # degrees of labels that have no room level
APART = 0.92  # of the distance of two names: the room of one that stands level
SPACING = 1.25  # of a line, in the size of its letters
SIDE = 0.6  # beside the first and the last of several names, in distances of two
STEPS = 1, 2, 5  # between the arms that are named, and these by powers of ten
FARTHEST = 1e150  # from 1, as a ratio: what scales and their margins can show
DIGITS, MOST_DIGITS = 6, 17  # of a value of an axis: usually, and where only more tell two apart


def texts_of(values: Iterable[object]) -> Callable[[object], str]:
    """What to call each of the values of an axis, with the digits that tell them apart.

    >>> list(map(texts_of([0.5, 1000000.0]), [0.5, 1000000.0]))
    ['0.5', '1e+06']
    >>> list(map(texts_of([1000000.0, 1000000.5]), [1000000.0, 1000000.5]))
    ['1000000', '1000000.5']
    """
    numbers = {value for value in values if isinstance(value, float)}
    enough = (
        digits
        for digits in range(DIGITS, MOST_DIGITS)
        if len({value_text(value, digits) for value in numbers}) == len(numbers)
    )
    return functools.partial(value_text, digits=next(enough, MOST_DIGITS))


def value_text(value: object, digits: int = DIGITS) -> str:
    """A value of an axis of the sweep, or a name."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def positions_of(data: "Dataset", along: str) -> tuple[np.ndarray, bool]:
    """The positions of the values of the axis, and whether these are the values themselves.

    They are for numbers; infinity has no place among them, nor what no scale can show.
    """
    values = data[along].values
    numeric = values.dtype.kind in "iuf" and bool((in_reach(values) | (values == 0)).all())
    return (values if numeric else np.arange(len(values))), numeric


def in_reach(values: np.ndarray) -> Bool[np.ndarray, "..."]:
    """Which numbers a scale can show, of either kind."""
    sizes = np.abs(values.astype(float))
    return (sizes >= 1 / FARTHEST) & (sizes <= FARTHEST)


def side_by_side(data: "Dataset", along: str) -> Float[np.ndarray, "algorithms points"]:
    """Positions for each algorithm, with small offsets so that none hides another."""
    positions, _ = positions_of(data, along)
    num, log = data.sizes["algorithm"], _is_log(positions)
    centres = np.log(positions) if log else positions.astype(float)
    nearest = np.diff(np.sort(centres)).min() if centres.size > 1 else 0.0
    step = min(OFFSET * np.ptp(centres), WIDEST * nearest / num)
    offsets = (np.arange(num) - (num - 1) / 2) * step
    return np.exp(centres + offsets[:, None]) if log else centres + offsets[:, None]


def _is_log(positions: np.ndarray) -> bool:
    """Whether values along an axis are drawn on a logarithmic scale."""
    least, largest = float(positions.min()), float(positions.max())
    return least > 0 and largest >= LOG_AXIS_FROM * least  # a quotient might overflow


def label_axis(ax: "Axes", data: "Dataset", along: str) -> None:
    """Name the horizontal axis, and as many of its values as have room."""
    positions, numeric = positions_of(data, along)
    ax.set_xlabel(text(along))
    if not numeric:
        values = data[along].values.tolist()
        label_groups(ax, list(map(texts_of(values), values)))
        return
    log = _is_log(positions)
    if log:
        set_scale(ax, "x", "log")
    numbers = positions.astype(float).tolist()
    label_numbers(ax, positions, list(map(texts_of(numbers), numbers)), log=log)


def set_scale(ax: "Axes", side: Literal["x", "y"], scale: Scale) -> None:
    """Scale one side of axes, linear where `scale` is None; a logarithmic one gets round ticks."""
    (ax.set_xscale if side == "x" else ax.set_yscale)(scale or "linear")
    if scale == "log":
        from matplotlib.ticker import NullFormatter

        from .log_ticks import LogTicks, LogWords

        axis = ax.xaxis if side == "x" else ax.yaxis
        axis.set_major_locator(LogTicks())
        axis.set_major_formatter(LogWords())
        axis.set_minor_formatter(NullFormatter())


def label_arms(ax: "Axes", arms: Sequence[int]) -> None:
    """Name arms by their indices, from 0: each, each second one, ..., as there is room."""
    ax.set_xlabel("arm")
    steps = (step * 10**power for power in itertools.count() for step in STEPS)
    for step in steps:
        shown = [arm for arm in arms if arm % step == 0] or [*arms[:1]]
        if len(shown) == 1 or all(_with_room(np.array(shown), [*map(str, shown)], room_of(ax))):
            break
    ax.set_xticks(shown, [*map(str, shown)])


def label_numbers(
    ax: "Axes", positions: np.ndarray, labels: Sequence[str], *, log: bool = False
) -> None:
    """Ticks at all positions along the horizontal axis, and those of the labels that have room."""
    shown = _with_room(np.log(positions) if log else positions, labels, room_of(ax))
    ax.set_xticks(positions, [x if s else "" for x, s in zip(labels, shown, strict=True)])
    ax.set_xticks([], minor=True)


def _with_room(
    positions: np.ndarray, labels: Sequence[str], inches: float
) -> Bool[np.ndarray, " labels"]:
    """Which labels do not overlap along so many inches; always the first and the last."""
    width = max(float(np.ptp(positions)), np.finfo(float).tiny)
    centres = (positions - positions.min()) / width * inches * TICKS_WIDTH
    size = points(TICK)
    half = np.array([length(f"{label}0", size) for label in labels]) / 2  # and a space
    order = np.argsort(positions)
    shown, last, free = np.zeros(len(labels), bool), order[-1], -np.inf
    for i in order:
        before_last = centres[i] + half[i] <= centres[last] - half[last]
        if centres[i] - half[i] >= free and (before_last or i == last):
            shown[i], free = True, centres[i] + half[i]
    shown[last] = True
    return shown


def label_groups(ax: "Axes", names: Sequence[object]) -> None:
    """Names along the axis, at 0, 1, ...: level where every word has room, else slanted.

    Where even upright ones would touch, their letters are smaller.
    """
    ax.set_xlim(-SIDE, len(names) - 1 + SIDE)
    whole, size = room_of(ax), points(TICK)
    room = whole / (len(names) - 1 + 2 * SIDE)
    words = [word for name in names for word in str(name).split()]
    if max((length(word, size) for word in words), default=0) <= APART * room:
        ax.set_xticks(range(len(names)), [wrapped(name, APART * room, size) for name in names])
        return
    long = min(SLANTED[0] * whole, SLANTED[1])
    labels = [wrapped(name, long, size) for name in names]
    lines = 1 + max(label.count("\n") for label in labels)
    line = SPACING * size / 72  # inches
    needed = {angle: lines * line / math.sin(math.radians(angle)) for angle in ANGLES}
    angle = next((angle for angle in ANGLES if needed[angle] <= room), ANGLES[-1])
    style: dict[str, Any] = {"rotation": angle, "ha": "right", "rotation_mode": "anchor"}
    if angle == ANGLES[-1]:
        style["va"] = "center"
        style["fontsize"] = size * min(1.0, room / needed[angle])
    ax.set_xticks(range(len(names)), labels, **style)
