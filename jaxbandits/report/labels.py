"""Words along the axes of a figure: what has room, and where."""

import textwrap

import numpy as np

LOG_AXIS_FROM = 8
APART = 0.012  # of the axis, from one algorithm to the next
TOGETHER = 0.5  # of the way to the next point, at most, for all algorithms together
TICKS_SPAN = 0.85  # of a panel, from the first tick to the last
LETTERS_PER_INCH = 11  # of a title, so that it is wrapped and not cut off
PANEL = 3.6  # inches that a panel has for its labels
SLANTED = 3.0  # inches that a slanted label has


def text(label):
    """A label as it is: a dollar sign begins no formula."""
    return str(label).replace("$", r"\$")


def wrapped(label, inches):
    """A label in lines that have room."""
    return text("\n".join(textwrap.wrap(str(label), max(5, int(LETTERS_PER_INCH * inches)))))


def positions_of(data, along):
    """Where the values of the axis go, and whether they are numbers."""
    values = data[along].values
    numeric = np.issubdtype(values.dtype, np.number)
    return (values if numeric else np.arange(len(values))), numeric


def side_by_side(data, along):
    """The same for each algorithm, a little apart, so that none hides another."""
    positions, _ = positions_of(data, along)
    number, log = data.sizes["algorithm"], _is_log(positions)
    where = np.log(positions) if log else positions.astype(float)
    nearest = np.diff(np.sort(where)).min() if where.size > 1 else 0.0
    step = min(APART * np.ptp(where), TOGETHER * nearest / number)
    offsets = (np.arange(number) - (number - 1) / 2) * step
    return np.exp(where + offsets[:, None]) if log else where + offsets[:, None]


def _is_log(positions):
    """Whether values along an axis are drawn on a logarithmic scale."""
    return positions.min() > 0 and positions.max() / positions.min() >= LOG_AXIS_FROM


def dress(place, data, along):
    """Name the axis that lines go along, and as many of its values as have room."""
    positions, numeric = positions_of(data, along)
    place.set_xlabel(text(along))
    if not numeric:
        place.set_xticks(positions, [text(value) for value in data[along].values])
        return
    log = _is_log(positions)
    if log:
        place.set_xscale("log")
    labels = [f"{value:g}" for value in positions]
    shown = _with_room(np.log(positions) if log else positions, labels)
    place.set_xticks(positions, [x if s else "" for x, s in zip(labels, shown, strict=True)])
    place.set_xticks([], minor=True)


def _with_room(where, labels):
    """Which labels stand apart along the axis of a panel; the first and the last always."""
    span = max(float(np.ptp(where)), np.finfo(float).tiny)
    centres = (where - where.min()) / span * PANEL * TICKS_SPAN
    half = np.array([len(label) + 1 for label in labels]) / (2 * LETTERS_PER_INCH)
    order = np.argsort(where)
    shown, last, free = np.zeros(len(labels), bool), order[-1], -np.inf
    for i in order:
        apart = centres[i] + half[i] <= centres[last] - half[last]
        if centres[i] - half[i] >= free and (apart or i == last):
            shown[i], free = True, centres[i] + half[i]
    shown[last] = True
    return shown


def name_groups(place, instances):
    """Instances along the axis: level where every word has room, else slanted."""
    room = PANEL / len(instances)
    words = [word for label in instances for word in str(label).split()]
    level = max(map(len, words), default=0) <= LETTERS_PER_INCH * room
    labels = [wrapped(label, room if level else SLANTED) for label in instances]
    slant = {} if level else {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    place.set_xticks(range(len(instances)), labels, **slant)
