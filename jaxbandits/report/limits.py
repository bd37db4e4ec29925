"""Limits of scales, by the measurements of all panels that share them."""

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from ..show.canvas import Scale
from ..show.labels import in_reach

if TYPE_CHECKING:
    from xarray import Dataset

LOG_FROM = 20  # a range of this ratio is drawn on a logarithmic scale
MARGIN = 0.06  # of the range, on each side
LEAST_RANGE = 0.1  # of the largest value


class Limits(NamedTuple):
    """A scale and its ends."""

    scale: Literal["linear", "log"]
    low: float
    high: float


def scale_of(
    values: np.ndarray, bounds: Float[np.ndarray, " bounds"] | None = None
) -> Literal["linear", "log"]:
    """Logarithmic where all values are above 0 and lie far apart, or far above their bounds.

    Args:
      values: NaN: not known.
      bounds: lower bounds, which a linear scale would show on its bottom alone.
    """
    values = values[np.isfinite(values)]
    if not (values.size and values.min() > 0):
        return "linear"
    highest = np.inf if bounds is None or not bounds.size else bounds.max()
    least, largest = float(min(values.min(), highest)), float(values.max())
    return "log" if largest > LOG_FROM * least else "linear"  # a quotient might overflow


def pull_limits(data: "Dataset", scale: Scale = None) -> Limits | None:
    """The `Limits` for the mean pulls with their intervals and lower bounds.

    Args:
      data: of all panels.
      scale: what the user wants; None: logarithmic where means and bounds lie far apart.
    Returns:
      None where nothing was measured.
    """
    means, bounds = data.pulls_mean.values, known_bounds(data)
    scale = scale or scale_of(means, bounds)
    least = means[means > 0].min(initial=np.inf) / 2 if scale == "log" else 0.0
    # One replication has no interval, but a place.
    bottoms, tops = (x.fillna(data.pulls_mean).values for x in (data.pulls_low, data.pulls_high))
    ends = np.concatenate([np.maximum(least, bottoms).ravel(), tops.ravel(), bounds])
    ends = ends[np.isfinite(ends)]
    if not np.isfinite(means).any():
        return None
    to, back = (np.log, np.exp) if scale == "log" else (np.asarray, np.asarray)
    bottom, top = _with_margins(to(ends[ends > 0] if scale == "log" else ends))
    return Limits(scale, max(0.0, float(back(bottom))), float(back(top)))


def known_bounds(data: "Dataset") -> np.ndarray:
    """The lower bounds of the pulls that are known, and that a scale can show."""
    bounds = data.pull_lower_bound.values if "pull_lower_bound" in data else np.array([])
    return bounds[in_reach(bounds) & (bounds > 0)]


def highest_rate(data: "Dataset") -> float:
    """The top of the scale of error rates: above all intervals and all promised rates."""
    known = data.error_high.values[np.isfinite(data.error_rate.values)]
    promises = data.promised_error.values if "promised_error" in data else np.array([])
    highest = np.append(known, promises[np.isfinite(promises)]).max(initial=0.0)
    return float(highest) * (1 + MARGIN) or 1.0


def _with_margins(ends: np.ndarray) -> tuple[float, float]:
    """Bottom and top of the scale, for values on it."""
    bottom, top = float(ends.min()), float(ends.max())
    spread = max(top - bottom, LEAST_RANGE * abs(top), np.finfo(float).tiny)
    return bottom - MARGIN * spread, top + MARGIN * spread
