"""What all figures share: colours, intervals, one-sided bounds, promised error rates.

Figures of `Runs` (`runs.py`) and of sweeps (`report/`) look alike because both draw with these.
Axes of matplotlib in; nothing global.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ..intervals import ONE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

MARKERS = "osD^vPX*"
HATCHES = (None, "///", "xxx")
STROKES = ("-", "--", "-.", ":")
# Readers who are colour-blind can distinguish them: Petroff, "Accessible color sequences for data
# visualization" (2021), ten colours.
COLOURS = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
)
CAP, LINE, MARK = 3, 1.3, 5  # points: half of a cap, the width of a line, the size of a marker
ARROW = 12  # points: twice the length of the arrow of a one-sided bound
EDGE = 0.1  # of the height of axes, below and above, where such an arrow may end
NO_ERROR = "no error: 95% bound"
BAND = "_band of "  # before the label of a curve, that of its band, which `legend` skips


def text(label: object) -> str:
    """A label as it is: a dollar sign begins no formula, and a line at the start hides nothing.

    Halves of characters, which no font has, are shown as their numbers.

    >>> text("_x")
    ' _x'
    """
    words = str(label).encode("utf-8", "backslashreplace").decode().replace("$", r"\$")
    return f" {words}" if words.startswith("_") else words  # matplotlib leaves such labels out


def colours() -> "Sequence[str]":
    """Colours of algorithms: `axes.prop_cycle` of `rcParams`, where the user has set it."""
    from matplotlib import rcParams, rcParamsDefault

    own = rcParams["axes.prop_cycle"]
    usual = own == rcParamsDefault["axes.prop_cycle"]
    return COLOURS if usual else own.by_key().get("color", COLOURS)


def colour(i: int) -> str:
    """The colour of the i-th algorithm."""
    found = colours()
    return found[i % len(found)]


def marker(i: int) -> str:
    """The marker of the i-th algorithm."""
    return MARKERS[i % len(MARKERS)]


def stroke(i: int) -> str:
    """The dashes of the i-th line with markers, which differ once the colours repeat."""
    return STROKES[i // len(colours()) % len(STROKES)]


def dashes(i: int) -> str:
    """The dashes of the i-th line without markers: the next line has others."""
    return STROKES[i % len(STROKES)]


def hatch(i: int) -> str | None:
    """The pattern of the i-th box, which differs once the colours repeat."""
    return HATCHES[i // len(colours()) % len(HATCHES)]


def ink() -> str:
    """The colour of letters, for lines that belong to no algorithm."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def intervals(
    ax: "Axes",
    positions: Any,
    middle: Float[np.ndarray, " points"],
    low: Float[np.ndarray, " points"],
    high: Float[np.ndarray, " points"],
    i: int,
    *,
    label: str | None = None,
    joined: bool = False,
    shrunk: float = 1.0,
) -> None:
    """Estimates of the i-th algorithm with their intervals.

    Args:
      ax: where to draw.
      positions: along the horizontal axis, one for each point.
      middle, low, high: the estimates and the ends of their intervals; NaN: not drawn.
      i: number of the algorithm, which decides its colour and marker.
      label: for the legend.
      joined: whether a line joins the estimates.
      shrunk: of the usual size of markers and caps.
    """
    ax.errorbar(
        positions,
        middle,
        np.maximum(0, [middle - low, high - middle]),
        label=label,
        color=colour(i),
        linestyle=stroke(i) if joined else "none",
        marker=marker(i),
        markersize=MARK * shrunk,
        capsize=CAP * shrunk,
        lw=LINE,
    )


def one_sided(ax: "Axes", positions: Any, ends: Any, i: int, *, down: bool = True) -> None:
    """Intervals that reach the end of the scale: a cap at the other end, and an arrow from it.

    What was never observed has no estimate to mark, only a bound.

    Args:
      ax: where to draw.
      positions, ends: where the caps are; one for each point.
      i: number of the algorithm.
      down: whether the interval lies below the cap.
    """
    from matplotlib.transforms import Bbox, TransformedBbox

    if not np.size(ends):
        return
    style: dict[str, Any] = {"marker": _arrow(down), "mew": LINE, "mfc": "none"}
    (line,) = ax.plot(positions, ends, ls="none", color=colour(i), ms=ARROW, **style)
    # A bound near the end of the scale keeps its arrow, which then crosses the frame.
    line.set_clip_box(TransformedBbox(Bbox.from_extents(0, -EDGE, 1, 1 + EDGE), ax.transAxes))
    if NO_ERROR not in ax.get_legend_handles_labels()[1]:
        style["marker"] = _arrow(down, centred=True)
        ax.plot([], [], ls="none", color=ink(), label=NO_ERROR, ms=ARROW / 2, **style)


def _arrow(down: bool, centred: bool = False) -> "Path":
    """A cap with an arrow from its middle.

    matplotlib scales a marker to its largest coordinate: 1, or 1/2 of one that is `centred`, as in
    a legend. So that one is as large as what is drawn where its size is half as large.
    """
    from matplotlib.path import Path

    end = -1.0 if down else 1.0
    cap, shaft = [(-0.35, 0.0), (0.35, 0.0)], [(0.0, 0.0), (0.0, end)]
    head = [(-0.2, 0.65 * end), (0.0, end), (0.2, 0.65 * end)]
    codes = [Path.MOVETO, Path.LINETO, Path.MOVETO, Path.LINETO, Path.MOVETO, *[Path.LINETO] * 2]
    middle = end / 2 if centred else 0.0
    return Path([(x, y - middle) for x, y in (*cap, *shaft, *head)], codes)


def rates(
    ax: "Axes",
    positions: Any,
    rate: Float[np.ndarray, " points"],
    low: Float[np.ndarray, " points"],
    high: Float[np.ndarray, " points"],
    i: int,
    *,
    label: str | None = None,
    joined: bool = False,
    correct: bool = False,
) -> None:
    """Error rates with exact intervals; where there was no error, the bound alone.

    Args:
      correct: whether to draw the rates of correct answers instead.
      ax, positions, rate, low, high, i, label, joined: as in `intervals`.
    """
    none = rate == 0
    measured = np.where(none, np.nan, rate)
    if correct:
        intervals(ax, positions, 1 - measured, 1 - high, 1 - low, i, label=label, joined=joined)
    else:
        intervals(ax, positions, measured, low, high, i, label=label, joined=joined)
    ends = 1 - high if correct else high
    one_sided(ax, np.asarray(positions)[none], ends[none], i, down=not correct)


def promised(ax: "Axes", positions: Any, deltas: Any, label: str) -> None:
    """The error rates that were promised at some positions; None: the same rate everywhere."""
    style: dict[str, Any] = {"color": ink(), "ls": (0, (5, 3)), "lw": 1.0, "zorder": 1}
    if positions is None:
        ax.axhline(float(deltas), label=label, **style)
    else:
        ax.plot(positions, deltas, label=label, **style)


def mean_label(quantity: str, fewest: int) -> str:
    """What an axis of means is called; it says where there is no interval.

    Args:
      quantity: of which the mean is drawn.
      fewest: replications behind any of the means.
    """
    return f"{quantity}, mean ({interval_label(fewest)})"


def interval_label(fewest: int) -> str:
    """What intervals of means are called, by the fewest replications behind any of them."""
    return "95%" if fewest > 1 else ONE


def band(ax: "Axes", rounds: Any, mean: Any, width: Any, i: int, *, label: str) -> None:
    """A curve of the i-th algorithm with a band of `width` on each side; NaN: without."""
    ax.plot(rounds, mean, dashes(i), color=colour(i), lw=LINE, label=label)
    style: dict[str, Any] = {"color": colour(i), "alpha": 0.2, "lw": 0, "label": BAND + label}
    ax.fill_between(rounds, mean - width, mean + width, **style)
