"""Limits of scales, by the measurements of all panels that share them."""

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from xarray import Dataset

LOG_FROM = 20  # a range of this ratio is drawn on a logarithmic scale
MARGIN = 0.06  # of the range, on each side
BOUND_ROOM = (
    0.5  # of the range, at most, for a lower bound; or it would squeeze the curves together
)
LEAST_RANGE = 0.1  # of the largest value


class Limits(NamedTuple):
    """A scale and its ends."""

    scale: Literal["linear", "log"]
    low: float
    high: float


def scale_of(values: np.ndarray) -> Literal["linear", "log"]:
    """Logarithmic where all values are above 0 and lie far apart."""
    values = values[np.isfinite(values)]
    apart = values.size and values.min() > 0 and values.max() / values.min() > LOG_FROM
    return "log" if apart else "linear"


def pull_limits(data: "Dataset") -> Limits | None:
    """The `Limits` for the mean pulls with their intervals; None where nothing was measured."""
    means = data.pulls_mean.values
    scale = scale_of(means)
    least = means[means > 0].min(initial=np.inf) / 2 if scale == "log" else 0.0
    # One replication has no interval, but a place.
    bottoms, tops = (x.fillna(data.pulls_mean).values for x in (data.pulls_low, data.pulls_high))
    ends = np.array([np.maximum(least, bottoms), tops])
    if not np.isfinite(ends).any():
        return None
    bounds = data.pull_lower_bound.values if "pull_lower_bound" in data else np.array([])
    to, back = (np.log, np.exp) if scale == "log" else (np.asarray, np.asarray)
    bottom, top = _with_room(to(ends), to(bounds[bounds > 0]))
    return Limits(scale, max(0.0, float(back(bottom))), float(back(top)))


def highest_rate(data: "Dataset") -> float:
    """The top of the scale of error rates: above all intervals and all promised rates."""
    known = data.error_high.values[np.isfinite(data.error_rate.values)]
    promises = data.promised_error.values if "promised_error" in data else np.array([])
    highest = np.append(known, promises[np.isfinite(promises)]).max(initial=0.0)
    return float(highest) * (1 + MARGIN) or 1.0


def _with_room(ends: np.ndarray, bounds: np.ndarray) -> tuple[float, float]:
    """Bottom and top of the scale, for values on it."""
    bottom, top = float(np.nanmin(ends)), float(np.nanmax(ends))
    spread = max(top - bottom, LEAST_RANGE * abs(top), np.finfo(float).tiny)
    near = bounds[(bounds > bottom - BOUND_ROOM * spread) & (bounds < top + BOUND_ROOM * spread)]
    bottom, top = min([bottom, *near]), max([top, *near])
    return bottom - MARGIN * spread, top + MARGIN * spread
