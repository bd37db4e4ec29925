"""Figures of `Runs`: matplotlib axes in, the same axes out, and nothing global.

Each function takes one `Runs`, several by name, or what `compare` returns, and draws on `ax`;
without it on the axes of a new figure, `ax.figure`, to save it: pyplot does not know it but in a
notebook, which shows it.
"""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from .drawing import LINE, band, colour, ink, mean_label, promised, rates, stroke, text
from .instances.estimated_regret import along_the_rounds, error_of_means, with_means
from .intervals import half_width, standard_error
from .messages import brief
from .parameters import check, probability, require
from .system.extras import needed_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["arm_pulls", "error_rates", "regret", "stopping_times"]

MOST_STEPS: int = 2000  # of a curve; more cannot be seen
MOST_TICKS: int = 20  # of arms
LEGEND_ROOM: float = 1.25  # of the height of a panel, so that its legend hides no rate
SIZE: tuple[float, float] = (5.2, 3.6)  # of a new figure, inches


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


def stopping_times(runs: Several, *, ax: "Axes | None" = None) -> "Axes":
    """The share of replications that are still under way after so many pulls.

    A replication that was cut short never stops: its curve does not reach 0.

    Args:
      runs: `Runs` without a horizon, several by name, or a `Comparison`.
      ax: where to draw.
    Raises:
      ValueError: names runs with a horizon.

    >>> import jaxbandits as jb
    >>> from functools import partial
    >>> halving = partial(jb.sequential_halving, budget=40)
    >>> runs = jb.simulate(jb.instances.canonical(4, gap=1.0), halving, replications=20)
    >>> stopping_times({"sequential halving": runs}).get_ylabel()
    'share of replications under way'
    """
    ax, pairs = _axes(ax), _named(runs)
    for i, (name, one) in enumerate(pairs):
        has_horizon = one.regret is not None
        require(not has_horizon, f"runs: {name or 'these'} play to a horizon: draw their regret")
        ends = np.sort(one.pulls[one.stopped])
        total = len(one.pulls)
        chosen = np.linspace(0, len(ends) - 1, min(len(ends), MOST_STEPS)).astype(int)
        x = np.unique(np.concatenate([[0], ends[chosen], [one.pulls.max(initial=0)]]))
        y = (total - np.searchsorted(ends, x, side="right")) / max(total, 1)
        style: dict[str, Any] = {"color": colour(i), "ls": stroke(i), "lw": LINE}
        ax.step(x, y, where="post", label=text(name), **style)
    ax.set(xlabel="pulls", ylabel="share of replications under way", ylim=(0, 1.02))
    ax.set_xlim(left=0)
    return _finished(ax, pairs)


def regret(runs: Several, *, ax: "Axes | None" = None) -> "Axes":
    """Mean regret along the rounds, with a band of 95% (Student's) where it is known.

    One replication has no band, and the axis says so.

    Args:
      runs: `Runs` with a `horizon`, several by name, or a `Comparison`.
      ax: where to draw.
    Raises:
      ValueError: names runs that have no regret.

    >>> import jaxbandits as jb
    >>> instance = jb.instances.linear([[1.0, 0.0], [0.0, 1.0]], [0.9, 0.4])
    >>> runs = jb.simulate(instance, jb.uniform, replications=20, horizon=50)
    >>> regret({"uniform": runs}).get_ylabel()
    'regret, mean (95%)'
    """
    ax = _axes(ax)
    pairs = _named(runs)
    for i, (name, one) in enumerate(pairs):
        require(
            one.regret is not None and one.rounds is not None,
            f"runs: {name or 'these'} have no regret; simulate them with a horizon",
        )
        mean, part = one.regret.mean(0), error_of_means(one.regret_errors)
        error = with_means(standard_error(one.regret), along_the_rounds(part, mean))
        band(ax, one.rounds, mean, half_width(error, len(one.regret)), i, label=text(name))
    fewest = min(len(one.regret) for _, one in pairs)
    ax.set(xlabel="round", ylabel=mean_label("regret", fewest))
    return _finished(ax, pairs)


def error_rates(runs: Several, *, delta: float | None = None, ax: "Axes | None" = None) -> "Axes":
    """Error rates with exact 95% intervals; where there is no error, the end of the interval alone.

    Args:
      runs: `Runs`, several by name, or a `Comparison`.
      delta: the error rate that was promised, drawn as a line.
      ax: where to draw.

    >>> import jaxbandits as jb
    >>> from functools import partial
    >>> halving = partial(jb.sequential_halving, budget=40)
    >>> runs = jb.simulate(jb.instances.canonical(4, gap=1.0), halving, replications=20)
    >>> error_rates(runs, delta=0.1).get_ylabel()
    'error rate (95%)'
    """
    ax, pairs = _axes(ax), _named(runs)
    if delta is not None:
        check("delta", probability, delta)
    for position, (_, one) in enumerate(pairs):
        found = one.summary()
        if np.isnan(found["error_rate"]):  # nothing is known of its errors
            continue
        columns = (np.array([found[name]]) for name in ("error_rate", "error_low", "error_high"))
        rates(ax, [position], *columns, position)
    if delta is not None:
        promised(ax, None, delta, f"promised: delta = {delta:g}")
    ax.set_xticks(range(len(pairs)), [text(name) for name, _ in pairs])
    ax.set(ylabel="error rate (95%)", xlim=(-0.5, len(pairs) - 0.5))
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    if ax.get_legend_handles_labels()[1]:
        ax.set_ylim(top=LEGEND_ROOM * ax.get_ylim()[1])
        ax.legend(frameon=False, loc="upper right")
    return ax


def arm_pulls(
    runs: Several,
    *,
    allocation: Any = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """The mean share of the pulls that each arm gets.

    Args:
      runs: `Runs`, several by name, or a `Comparison`, of the same arms.
      allocation: a design, such as `jb.design.oracle(instance)`, or its weights `[K]`, to compare
        with.
      ax: where to draw.
    Raises:
      ValueError: the runs or the allocation have different numbers of arms.

    >>> import jaxbandits as jb
    >>> from functools import partial
    >>> halving = partial(jb.sequential_halving, budget=40)
    >>> runs = jb.simulate(jb.instances.canonical(4, gap=1.0), halving, replications=20)
    >>> arm_pulls(runs, allocation=[0.4, 0.2, 0.2, 0.2]).get_ylabel()
    'share of the pulls'
    """
    ax, pairs = _axes(ax), _named(runs)
    num_arms = pairs[0][1].arm_pulls.shape[1]
    width = 0.8 / len(pairs)
    for position, (name, one) in enumerate(pairs):
        number = one.arm_pulls.shape[1]
        require(number == num_arms, f"runs: all must have {num_arms} arms, {name} has {number}")
        share = one.arm_pulls.sum(0) / max(one.arm_pulls.sum(), 1)
        at = np.arange(num_arms) + (position - (len(pairs) - 1) / 2) * width
        ax.bar(at, share, width, label=text(name), color=colour(position))
    if allocation is not None:
        share = _share(getattr(allocation, "weights", allocation), num_arms)
        left = np.arange(num_arms) - 0.45
        ax.hlines(share, left, left + 0.9, ink(), label="allocation")
    ax.set(xlabel="arm", ylabel="share of the pulls")
    ax.set_axisbelow(True)
    if num_arms <= MOST_TICKS:
        ax.set_xticks(range(num_arms))
    return _finished(ax, pairs, always=allocation is not None)


def _share(weights, num_arms):
    """Weights `[K]` of sum 1."""
    try:
        weights = np.asarray(weights, float)
    except (TypeError, ValueError):
        raise ValueError(
            f"allocation must be a design or K numbers, got {brief(weights)}"
        ) from None
    message = f"allocation must have shape ({num_arms},), got {weights.shape}"
    require(weights.shape == (num_arms,), message)
    fits = bool((weights >= 0).all() and 0 < weights.sum() < np.inf)
    require(fits, f"allocation must have weights of 0 or more with a finite sum, got {weights}")
    return weights / weights.sum()


def of_runs(runs: Drawable, *, ax: "Axes | None" = None) -> "Axes":
    """Regret of runs that have it, stopping times of others."""
    return (stopping_times if runs.regret is None else regret)(runs, ax=ax)


def _named(runs):
    """Pairs of a name and `Runs`."""
    runs = getattr(runs, "runs", runs)  # of a `Comparison`
    pairs = list(runs.items()) if isinstance(runs, Mapping) else [("", runs)]
    require(bool(pairs), "runs must not be empty: give Runs, or a dict of Runs by name")
    for _, one in pairs:
        if not all(hasattr(one, name) for name in ("pulls", "arm_pulls", "regret", "summary")):
            raise ValueError(
                f"runs must be Runs, a dict of Runs by name, or a Comparison, got {brief(one)}"
            )
    return pairs


def _axes(ax):
    if ax is not None:
        require(hasattr(ax, "hlines"), "ax must be axes of matplotlib", ax)
        return ax
    with needed_by("a figure"):
        from matplotlib.figure import Figure

    if "ipykernel" in sys.modules:  # a notebook shows figures of pyplot alone
        from matplotlib import pyplot

        return pyplot.figure(figsize=SIZE, layout="constrained").subplots()
    return Figure(figsize=SIZE, layout="constrained").subplots()


def _finished(ax, pairs, always=False):
    ax.grid(alpha=0.3)
    if always or any(name for name, _ in pairs):
        ax.legend(frameon=False)
    return ax
