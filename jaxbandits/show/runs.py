"""Figures of `Runs`: of one, of several by name, or of what `compare` returns.

Each function returns the figure: a new one that pyplot knows, or that of the axes `ax`.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from ..instances.estimated_regret import along_the_rounds, error_of_means, with_means
from ..intervals import half_width, standard_error
from ..messages import brief
from ..parameters import probability, require
from ..real_numbers import fault
from .canvas import (
    Scale,
    Width,
    check_scale,
    figure_of,
    fix_letters,
    given_axes,
    grid_of,
    grow_for_names,
    grows,
    handles,
    legend_below,
    legend_inside,
    letters,
    new_figure,
    size_of,
)
from .labels import label_arms, label_groups, set_scale
from .marks import LINE, band, colour, dashes, ink, mean_label, promised, rates, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["arm_pulls", "error_rates", "regret", "stopping_times"]

MOST_STEPS: int = 2000  # of a curve; more cannot be seen
RATES_ROOM: tuple[float, float] = (1.06, 1.3)  # above the highest rate: linear, logarithmic scale
BARS_ROOM: float = 1.3  # of the height, so that a legend inside hides none
LOG_ROOM: float = 1.25  # between the first end of a replication and the side of a logarithmic scale
LEAST_RATE: float = 0.3  # of one error in all replications: the bottom of a logarithmic scale


class Drawable(Protocol):
    """What is used of `Runs`."""

    @property
    def pulls(self) -> np.ndarray: ...

    @property
    def arm_pulls(self) -> np.ndarray: ...

    @property
    def stopped(self) -> np.ndarray: ...

    @property
    def rounds(self) -> np.ndarray | None: ...

    @property
    def regret(self) -> np.ndarray | None: ...

    @property
    def regret_errors(self) -> np.ndarray | None: ...

    def summary(self) -> dict[str, Any]: ...


class Compared(Protocol):
    """What is used of a `Comparison`."""

    @property
    def runs(self) -> Mapping[str, Drawable]: ...


Several: TypeAlias = "Drawable | Mapping[str, Drawable] | Compared"
Pairs: TypeAlias = list[tuple[str, Drawable]]


def stopping_times(
    runs: Several, *, ax: "Axes | None" = None, scale: Scale = None, width: Width = None
) -> "Figure":
    """The share of replications that are still under way after so many pulls.

    A replication that was cut short never stops: its curve does not reach 0.

    Args:
      runs: `Runs` without a horizon, several by name, or a `Comparison`.
      ax: axes of matplotlib to draw on; those of a new figure by default.
      scale: of the pulls, "linear" (the default) or "log".
      width: of a new figure, as in `sweep`.
    Returns:
      The figure, see `sweep`.
    Raises:
      ValueError: names runs with a horizon.

    >>> import jaxbandits as jb
    >>> from functools import partial
    >>> halving = partial(jb.sequential_halving, budget=40)
    >>> runs = jb.simulate(jb.instances.canonical(4, gap=1.0), halving, replications=20)
    >>> stopping_times({"sequential halving": runs}, width="column").axes[0].get_ylabel()
    'share of replications under way'
    """

    def draw(ax: "Axes", pairs: Pairs) -> None:
        for i, (name, one) in enumerate(pairs):
            style: dict[str, Any] = {"color": colour(i), "ls": dashes(i), "lw": LINE}
            ax.step(*_under_way(one), where="post", label=text(name), **style)
        ax.set(xlabel="pulls", ylabel="share of replications under way", ylim=(0, 1.02))
        if scale == "log":
            first = min((int(one.pulls.min()) for _, one in pairs if one.pulls.size), default=1)
            set_scale(ax, "x", scale)
            ax.set_xlim(left=max(1, first) / LOG_ROOM)
        else:
            ax.set_xlim(left=0)

    pairs = _named(runs)
    for name, one in pairs:
        has_horizon = one.regret is not None
        require(not has_horizon, f"runs: {name or 'these'} play to a horizon: draw their regret")
    return _drawn(draw, pairs, ax, scale, width)


def _under_way(one: Drawable) -> tuple[np.ndarray, np.ndarray]:
    """Pulls, and the share of the replications that have made more of them without stopping."""
    ends = np.sort(one.pulls[one.stopped])
    total = len(one.pulls)
    chosen = np.linspace(0, len(ends) - 1, min(len(ends), MOST_STEPS)).astype(int)
    x = np.unique(np.concatenate([[0], ends[chosen], [one.pulls.max(initial=0)]]))
    return x, (total - np.searchsorted(ends, x, side="right")) / max(total, 1)


def regret(
    runs: Several, *, ax: "Axes | None" = None, scale: Scale = None, width: Width = None
) -> "Figure":
    """Mean regret along the rounds, with a band of 95% (Student's) where it is known.

    One replication has no band, and the axis says so.

    Args:
      runs: `Runs` with a `horizon`, several by name, or a `Comparison`.
      ax: axes of matplotlib to draw on; those of a new figure by default.
      scale: of the regret, "linear" (the default) or "log".
      width: of a new figure, as in `sweep`.
    Returns:
      The figure, see `sweep`.
    Raises:
      ValueError: names runs that have no regret.

    >>> import jaxbandits as jb
    >>> instance = jb.instances.linear([[1.0, 0.0], [0.0, 1.0]], [0.9, 0.4])
    >>> runs = jb.simulate(instance, jb.uniform, replications=20, horizon=50)
    >>> regret({"uniform": runs}).axes[0].get_ylabel()
    'regret, mean (95%)'
    """

    def draw(ax: "Axes", pairs: Pairs) -> None:
        for i, (name, one) in enumerate(pairs):
            assert one.regret is not None
            mean, part = one.regret.mean(0), error_of_means(one.regret_errors)
            error = with_means(standard_error(one.regret), along_the_rounds(part, mean))
            half = half_width(error, len(one.regret))
            band(ax, one.rounds, mean, half, i, label=text(name))
        fewest = min(len(one.pulls) for _, one in pairs)
        ax.set(xlabel="round", ylabel=mean_label("regret", fewest))
        set_scale(ax, "y", scale)

    pairs = _named(runs)
    for name, one in pairs:
        known = one.regret is not None and one.rounds is not None
        require(known, f"runs: {name or 'these'} have no regret; simulate them with a horizon")
    return _drawn(draw, pairs, ax, scale, width)


def error_rates(
    runs: Several,
    *,
    delta: float | None = None,
    ax: "Axes | None" = None,
    scale: Scale = None,
    width: Width = None,
) -> "Figure":
    """Error rates with exact 95% intervals; where there is no error, the end of the interval alone.

    Args:
      runs: `Runs`, several by name, or a `Comparison`.
      delta: the error rate that was promised, drawn as a line.
      ax: axes of matplotlib to draw on; those of a new figure by default.
      scale: of the error rates, "linear" (the default) or "log".
      width: of a new figure, as in `sweep`.
    Returns:
      The figure, see `sweep`.

    >>> import jaxbandits as jb
    >>> from functools import partial
    >>> halving = partial(jb.sequential_halving, budget=40)
    >>> runs = jb.simulate(jb.instances.canonical(4, gap=1.0), halving, replications=20)
    >>> error_rates(runs, delta=0.1).axes[0].get_ylabel()
    'error rate (95%)'
    """
    if delta is not None:
        require(probability.holds(delta), f"delta must be {probability.allowed}", delta)
        delta = float(delta)

    def draw(ax: "Axes", pairs: Pairs) -> None:
        label_groups(ax, [name for name, _ in pairs])
        for position, (_, one) in enumerate(pairs):
            found = one.summary()
            if np.isnan(found["error_rate"]):  # nothing is known of its errors
                continue
            columns = (np.array([found[x]]) for x in ("error_rate", "error_low", "error_high"))
            rates(ax, [position], *columns, position)
        if delta is not None:
            promised(ax, None, delta, f"promised: delta = {delta:g}")
        ax.set_ylabel("error rate (95%)")
        if scale == "log":
            most = max((len(one.pulls) for _, one in pairs), default=1)
            set_scale(ax, "y", scale)
            ax.set_ylim(bottom=LEAST_RATE / max(1, most))
        else:
            ax.set_ylim(bottom=0)
        if ax.dataLim.y1 > 0:  # something was drawn
            ax.set_ylim(top=RATES_ROOM[scale == "log"] * ax.dataLim.y1)

    return _drawn(draw, _named(runs), ax, scale, width)


def arm_pulls(
    runs: Several,
    *,
    allocation: Any = None,
    ax: "Axes | None" = None,
    width: Width = None,
) -> "Figure":
    """The mean share of the pulls that each arm gets.

    Args:
      runs: `Runs`, several by name, or a `Comparison`, of the same arms.
      allocation: a design, such as `jb.design.oracle(instance)`, or its weights `[K]`, to compare
        with.
      ax: axes of matplotlib to draw on; those of a new figure by default.
      width: of a new figure, as in `sweep`.
    Returns:
      The figure, see `sweep`.
    Raises:
      ValueError: the runs or the allocation have different numbers of arms.

    >>> import jaxbandits as jb
    >>> from functools import partial
    >>> halving = partial(jb.sequential_halving, budget=40)
    >>> runs = jb.simulate(jb.instances.canonical(4, gap=1.0), halving, replications=20)
    >>> figure = arm_pulls(runs, allocation=[0.4, 0.2, 0.2, 0.2])
    >>> figure.axes[0].get_ylabel()
    'share of the pulls'
    """
    pairs = _named(runs)
    num_arms = pairs[0][1].arm_pulls.shape[1]
    for name, one in pairs:
        number = one.arm_pulls.shape[1]
        require(number == num_arms, f"runs: all must have {num_arms} arms, {name} has {number}")
    wanted = getattr(allocation, "weights", allocation)
    weights = None if wanted is None else _share(wanted, num_arms)
    inside = ax is not None  # then the legend is

    def draw(ax: "Axes", pairs: Pairs) -> None:
        wide = 0.8 / len(pairs)
        for position, (name, one) in enumerate(pairs):
            share = one.arm_pulls.sum(0) / max(one.arm_pulls.sum(), 1)
            at = np.arange(num_arms) + (position - (len(pairs) - 1) / 2) * wide
            ax.bar(at, share, wide, label=text(name), color=colour(position))
        if weights is not None:
            left = np.arange(num_arms) - 0.45
            ax.hlines(weights, left, left + 0.9, ink(), label="allocation")
        ax.set_ylabel("share of the pulls")
        ax.set_axisbelow(True)
        label_arms(ax, range(num_arms))
        if inside and (pairs[0][0] or weights is not None):
            ax.set_ylim(top=BARS_ROOM * ax.get_ylim()[1])

    return _drawn(draw, pairs, ax, None, width)


def _share(weights, num_arms):
    """Weights `[K]` of sum 1."""
    wrong = fault(weights)
    require(wrong is None, f"allocation {wrong}")
    try:
        weights = np.asarray(weights, float)
    except (TypeError, ValueError, OverflowError):  # ragged, traced, or an integer beyond double
        raise ValueError(
            f"allocation must be a design or K numbers, got {brief(weights)}"
        ) from None
    message = f"allocation must have shape ({num_arms},), got {weights.shape}"
    require(weights.shape == (num_arms,), message)
    fits = bool((weights >= 0).all() and 0 < weights.sum() < np.inf)
    require(fits, f"allocation must have weights of 0 or more with a finite sum, got {weights}")
    return weights / weights.sum()


def of_runs(
    runs: Drawable, *, ax: "Axes | None" = None, scale: Scale = None, width: Width = None
) -> "Figure":
    """Regret of runs that have it, stopping times of others."""
    draw = stopping_times if runs.regret is None else regret
    return draw(runs, ax=ax, scale=scale, width=width)


def _named(runs: Several) -> Pairs:
    """Pairs of a name and `Runs`."""
    found = getattr(runs, "runs", runs)  # of a `Comparison`
    wanted = "runs must be Runs, a dict of Runs by name, or a Comparison, got"
    is_dataset = hasattr(found, "data_vars")  # of xarray: a mapping, of its tables
    require(not is_dataset, f"{wanted} an xarray.Dataset; those of sweeps are for jb.plot.sweep")
    pairs = list(found.items()) if isinstance(found, Mapping) else [("", found)]
    require(bool(pairs), "runs must not be empty: give Runs, or a dict of Runs by name")
    names = [str(name) for name, _ in pairs]
    fits = len(pairs) == 1 or (all(map(str.strip, names)) and len(set(names)) == len(names))
    require(fits, "runs must have names that are not empty and differ as text", names)
    for _, one in pairs:
        if not all(hasattr(one, name) for name in ("pulls", "arm_pulls", "regret", "summary")):
            raise ValueError(f"{wanted} {brief(one)}")
    return pairs


def _drawn(
    draw: "Callable[[Axes, Pairs], None]",
    pairs: Pairs,
    ax: "Axes | None",
    scale: Scale,
    width: Width,
) -> "Figure":
    """The figure on which `draw` has drawn, with a grid and a legend of what has a label."""
    check_scale(scale)
    size = size_of(1, 1, width)
    if ax is not None:
        (given,) = given_axes(ax, 1, "the panels")
        draw(given, pairs)
        given.grid(alpha=0.3)
        legend_inside(given, _entries(given, pairs))
        return figure_of(given)
    with letters(width), new_figure(size) as figure:
        panel = grid_of(figure, 1, 1)[0][0]
        fix_letters([panel])
        draw(panel, pairs)
        panel.grid(alpha=0.3)
        if grows(width):
            grow_for_names(figure, [panel])
        legend_below(figure, _entries(panel, pairs), grow=grows(width))
    return figure


def _entries(ax: "Axes", pairs: Pairs) -> dict[str, Any]:
    """What the legend shows, by label: the runs first, in their order."""
    found = handles([ax])
    names = [text(name) for name, _ in pairs]
    return {name: found[name] for name in names if name in found} | found
