"""Words along the axes of a figure: what has room, and where."""

import functools
import textwrap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from ..drawing import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from xarray import Dataset

LOG_AXIS_FROM = 8  # ratio of the largest value along an axis to the least
OFFSET = 0.012  # of the axis, from one algorithm to the next
WIDEST = 0.5  # of the way to the next point, at most, for all algorithms together
TICKS_WIDTH = 0.85  # of a panel, from the first tick to the last
LETTERS_PER_INCH = 11  # of a title, so that it is wrapped and not cut off
PANEL = 3.6  # inches that a panel has for its labels
SLANTED = 3.0  # inches that a slanted label has
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


def wrapped(label: object, inches: float) -> str:
    """A label in lines that have room."""
    return text("\n".join(textwrap.wrap(str(label), max(5, int(LETTERS_PER_INCH * inches)))))


def positions_of(data: "Dataset", along: str) -> tuple[np.ndarray, bool]:
    """The positions of the values of the axis, and whether these are the values themselves.

    They are for numbers; infinity has no place among them.
    """
    values = data[along].values
    numeric = np.issubdtype(values.dtype, np.number) and bool(np.isfinite(values).all())
    return (values if numeric else np.arange(len(values))), numeric


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
    return bool(positions.min() > 0 and positions.max() / positions.min() >= LOG_AXIS_FROM)


def label_axis(ax: "Axes", data: "Dataset", along: str) -> None:
    """Name the horizontal axis, and as many of its values as have room."""
    positions, numeric = positions_of(data, along)
    ax.set_xlabel(text(along))
    if not numeric:
        values = data[along].values.tolist()
        ax.set_xticks(positions, list(map(text, map(texts_of(values), values))))
        return
    log = _is_log(positions)
    if log:
        ax.set_xscale("log")
    numbers = positions.astype(float).tolist()
    labels = list(map(texts_of(numbers), numbers))
    shown = _with_room(np.log(positions) if log else positions, labels)
    ax.set_xticks(positions, [x if s else "" for x, s in zip(labels, shown, strict=True)])
    ax.set_xticks([], minor=True)


def _with_room(positions: np.ndarray, labels: "Sequence[str]") -> Bool[np.ndarray, " labels"]:
    """Which labels do not overlap along the axis of a panel; always the first and the last."""
    width = max(float(np.ptp(positions)), np.finfo(float).tiny)
    centres = (positions - positions.min()) / width * PANEL * TICKS_WIDTH
    half = np.array([len(label) + 1 for label in labels]) / (2 * LETTERS_PER_INCH)
    order = np.argsort(positions)
    shown, last, free = np.zeros(len(labels), bool), order[-1], -np.inf
    for i in order:
        before_last = centres[i] + half[i] <= centres[last] - half[last]
        if centres[i] - half[i] >= free and (before_last or i == last):
            shown[i], free = True, centres[i] + half[i]
    shown[last] = True
    return shown


def label_groups(ax: "Axes", instances: "Sequence[Any]") -> None:
    """Name instances along the axis: level where every word has room, else slanted."""
    room = PANEL / len(instances)
    words = [word for label in instances for word in str(label).split()]
    level = max(map(len, words), default=0) <= LETTERS_PER_INCH * room
    labels = [wrapped(label, room if level else SLANTED) for label in instances]
    slant: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(instances)), labels, **({} if level else slant))
