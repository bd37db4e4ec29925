"""Where figures are drawn: their sizes and letters, the axes that were given, legends."""

import contextlib
import textwrap
import threading
from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ..parameters import real, require
from ..system.extras import needed_by
from .marks import BAND, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Width: TypeAlias = "Literal['column', 'page'] | float | None"
Scale: TypeAlias = "Literal['linear', 'log'] | None"

WIDTHS = {"column": 3.3, "page": 6.9}  # inches: of one and of both columns of a paper
INCHES = real("'column', 'page' or 1 to 100 inches", lambda v: 1.0 <= v <= 100.0)
PRINT_POINTS = 8.0  # letters of a figure of given width, which is printed as it is
WHOLE, PANEL, MARGIN = 5.2, 3.9, 0.6  # inches of a figure on a screen: least, a panel, around them
PANEL_HEIGHT = 3.1  # inches at most
LEAST_PANEL = 1.6, 1.6  # inches: width and height with the words around it
ASPECT = 0.68  # height of a panel by its width, in a figure of given width
LEAST_LETTERS = 5  # of a line of a label that is wrapped
THIN = 0.35  # of the size of a letter: the width of a narrow one
LINE_HEIGHT = 1.45  # of a line of a legend, in the size of its letters
LEGEND_MARK = 5.0  # beside a label, for its mark and the spaces, in the size of its letters
MOST_LEGEND_COLUMNS = 4
LEFT, RIGHT = 0.7, 0.1  # inches beside the panels, for what stands at their ticks


def check_scale(scale: Any) -> None:
    """Raise unless `scale` is one."""
    fits = scale is None or (isinstance(scale, str) and scale in ("linear", "log"))
    require(fits, "scale must be 'linear', 'log' or None", scale)


def inches(width: Width) -> float | None:
    """The width of a figure in inches; None where none is given.

    >>> inches("column"), inches(5), inches(None)
    (3.3, 5.0, None)
    """
    if width is None:
        return None
    if isinstance(width, str) and width in WIDTHS:
        return WIDTHS[width]
    require(INCHES.holds(width), f"width must be {INCHES.allowed}", width)
    return float(width)


def _settings() -> tuple[Any, Any]:
    """The `rcParams` of matplotlib, and those that it begins with."""
    with needed_by("a figure"):
        from matplotlib import rcParams, rcParamsDefault

    return rcParams, rcParamsDefault


def points(name: str) -> float:
    """The size of letters that one of the `rcParams` names, in points."""
    from matplotlib.font_manager import FontProperties

    return float(FontProperties(size=_settings()[0][name]).get_size_in_points())


def length(words: str, size: float) -> float:
    """How many inches words in letters of so many points are long, in the font of `rcParams`."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size)
    lines = words.replace("\\$", "$").splitlines()
    widths = (text_to_path.get_text_width_height_descent(x, font, ismath=False)[0] for x in lines)
    return float(max(widths, default=0.0)) / 72


def wrapped(label: object, inches: float, size: float) -> str:
    """A label in lines that are at most so long; a longer word is broken.

    Args:
      label: what stands there.
      inches: the room for a line.
      size: of the letters, in points.
    """
    words = str(label)
    most = max(LEAST_LETTERS, int(72 * inches / (THIN * size)))
    found = text(words)
    for letters in range(min(most, len(words)), LEAST_LETTERS - 1, -1):
        lines = (textwrap.wrap(line, letters) for line in words.splitlines())
        found = text("\n".join(part for line in lines for part in line))
        if length(found, size) <= inches:
            break
    return found


@contextlib.contextmanager
def letters(width: Width) -> Generator[None]:
    """Letters for print in a figure of given width, unless `rcParams` have a size of their own."""
    own, usual = _settings()
    small = width is not None and own["font.size"] == usual["font.size"]
    from matplotlib import rc_context

    with rc_context({"font.size": PRINT_POINTS} if small else {}):
        yield


def fix_letters(axes: "Iterable[Axes]") -> None:
    """Keep the size that letters at ticks have now: matplotlib makes ticks when it draws them."""
    sizes = {side: points(f"{side}tick.labelsize") for side in "xy"}
    for ax in axes:
        for side, size in sizes.items():
            ax.tick_params(axis=side, which="both", labelsize=size)  # ty: ignore[invalid-argument-type]


def most_columns(width: Width, usual: int) -> int:
    """How many panels stand side by side at most."""
    wide = inches(width) or (_own_size() or [np.inf])[0]
    return max(1, int(min(usual, wide / LEAST_PANEL[0])))


def size_of(rows: int, columns: int, width: Width) -> tuple[float, float]:
    """Width and height of a figure in inches.

    Args:
      rows, columns: of panels.
      width: what the user wants; None: `figure.figsize` of `rcParams`, where that is not the one
        of matplotlib, else as large as the panels need.
    """
    wide = inches(width)
    if wide is None:
        own = _own_size()
        if own is not None:
            return own[0], own[1]
        return max(WHOLE, PANEL * columns + MARGIN), MARGIN + PANEL_HEIGHT * rows
    high = float(np.clip(ASPECT * wide / columns, LEAST_PANEL[1], PANEL_HEIGHT))
    return wide, MARGIN / 2 + high * rows


def _own_size() -> list[float] | None:
    """`figure.figsize`, where the user has set it."""
    size, usual = (list(map(float, rc["figure.figsize"])) for rc in _settings())
    return None if size == usual else size


def grows(width: Width) -> bool:
    """Whether the height of a figure may follow from what is in it."""
    return width is not None or _own_size() is None


@contextlib.contextmanager
def new_figure(size: tuple[float, float], *, shown: bool = True) -> "Generator[Figure]":
    """A figure without axes, to draw on in this block; where that fails, nothing is left of it.

    Args:
      size: width and height in inches.
      shown: whether pyplot knows it, so that `pyplot.show()` shows it. It does not where its
        backend needs a display that there is not, and in other threads than the first.
    """
    with needed_by("a figure"):
        from matplotlib.figure import Figure

    options: dict[str, Any] = {"figsize": size, "layout": "constrained"}
    figure = _of_pyplot(options) if shown else Figure(**options)
    try:
        yield figure
    except BaseException:
        if shown:
            from matplotlib import pyplot

            pyplot.close(figure)
        raise


def _of_pyplot(options: dict[str, Any]) -> "Figure":
    """A figure that pyplot knows, where it can."""
    from .picture import Figure

    if threading.current_thread() is threading.main_thread():
        with contextlib.suppress(ImportError):
            from matplotlib import pyplot

            return pyplot.figure(FigureClass=Figure, **options)
    return Figure(**options)


def axes_in(ax: Any) -> list[Any]:
    """What the user gives as axes, in any order of nesting, one by one."""
    try:
        return np.ravel(np.asarray(ax, dtype=object)).tolist()
    except (TypeError, ValueError):  # of what refuses to be an array
        return [ax]


def given_axes(ax: Any, number: int, what: str) -> "list[Axes]":
    """The axes that the user gives.

    Args:
      ax: axes of matplotlib, or several in any order of nesting.
      number: how many panels there are.
      what: the panels, in words.
    """
    from matplotlib.axes import Axes

    found = axes_in(ax)
    for one in found:
        require(isinstance(one, Axes), "ax must be axes of matplotlib", one)
        require(one.figure is not None, "ax must be axes of a figure; these were removed from it")
        flat = not (hasattr(one, "zaxis") or hasattr(one, "transProjection"))
        require(flat, "ax must be axes with straight x and y", one)
    require(
        len(found) == number,
        f"ax must be {number} axes, one for each of {what}, got {len(found)}; "
        "select one instance and one point of the axes to draw on one",
    )
    require(len(set(found)) == number, "ax must be axes that differ, got the same ones twice")
    return found


def figure_of(ax: "Axes") -> "Figure":
    """The whole figure that axes belong to, also where they lie in a part of it."""
    return ax.figure.figure


def handles(axes: "Iterable[Axes]") -> dict[str, Any]:
    """What a legend of all axes shows, by label: each once, a curve with its band."""
    found: dict[str, Any] = {}
    for ax in axes:
        bands = {band.get_label(): band for band in ax.collections}
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            band = bands.get(BAND + label)
            found.setdefault(label, handle if band is None else (band, handle))
    return found


def legend_below(fig: "Figure", found: dict[str, Any], *, grow: bool) -> None:
    """A legend below all panels, for which a figure that may `grow` becomes higher."""
    if not found:
        return
    size = points("legend.fontsize")
    widths = [length(label, size) + LEGEND_MARK * size / 72 for label in found]

    def fits(columns: int) -> bool:
        parts = np.array_split(widths, columns)  # as matplotlib does it
        return sum(max(part) for part in parts) <= fig.get_figwidth()

    most = min(MOST_LEGEND_COLUMNS, len(found))
    columns = next((n for n in range(most, 1, -1) if fits(n)), 1)
    lines = -(-len(found) // columns)
    if grow:
        line = LINE_HEIGHT * size / 72
        fig.set_figheight(fig.get_figheight() + line * (lines - 1))
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": columns, "frameon": False}
    fig.legend([*found.values()], [*found], **place)


def legend_inside(ax: "Axes", found: dict[str, Any]) -> None:
    """A legend in axes of the user, where it hides least."""
    if found:
        ax.legend([*found.values()], [*found], frameon=False, loc="best")


def grow_for_names(fig: "Figure", axes: "Iterable[Axes]") -> None:
    """Make a figure higher for names below its last row of axes that stand in more than a line."""
    one, line = [], points("xtick.labelsize") / 72
    for ax in axes:
        for name in ax.get_xticklabels():
            words, angle = name.get_text(), np.deg2rad(float(name.get_rotation()))
            size = float(name.get_fontsize())
            lines = LINE_HEIGHT * size / 72 * len(words.splitlines())
            one.append(length(words, size) * np.sin(angle) + lines * np.cos(angle))
    fig.set_figheight(fig.get_figheight() + max(0.0, max(one, default=0.0) - LINE_HEIGHT * line))


def room_of(ax: "Axes") -> float:
    """Inches along the horizontal axis."""
    return float(ax.bbox.width / ax.figure.dpi)


def grid_of(fig: "Figure", rows: int, columns: int) -> "Sequence[Sequence[Axes]]":
    """Axes of a new figure, about where they will be when it is laid out."""
    wide = fig.get_figwidth()
    sides = {"left": min(0.5, LEFT / wide), "right": 1 - RIGHT / wide}
    return fig.subplots(rows, columns, squeeze=False, gridspec_kw=sides)  # ty: ignore[invalid-explicit-return]
