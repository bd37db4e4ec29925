"""Pairs of algorithms of which the paired difference says more than their single intervals.

All algorithms of a sweep meet the same noise in the same replication. The difference over these
pairs may be significant though the single intervals overlap, or the other way round.
"""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from ..engine.results import mean_difference, standard_error
from ..estimates import NORMAL, TERMINAL, Style, estimate
from .labels import value_text

if TYPE_CHECKING:
    from xarray import Dataset

LEAST_DISCORDANT = 10  # replications in which one alone errs; Student's interval needs some of them
MOST_SHOWN = 4  # pairs, in one text


class Pair(NamedTuple):
    """Two algorithms in one cell each, and the mean of the first less that of the second.

    Attributes:
      where: the instance, and the point of the axes.
      first, second: names of the algorithms.
      quantity: "pulls", "regret" or "errors".
      mean, low, high: the mean paired difference, and its 95% interval (Student's).
      overlap: whether the single intervals overlap.
    """

    where: str
    first: str
    second: str
    quantity: str
    mean: float
    low: float
    high: float
    overlap: bool


def pairs(dataset: "Dataset", axes: list[str]) -> list[Pair]:
    """The pairs whose single intervals and whose paired difference disagree.

    Args:
      dataset: what `sweep` returns.
      axes: names of the sweep's axes.
    """
    return [
        pair
        for where, data in _points(dataset, axes)
        for pair in _of_point(where, data)
        if pair.overlap == (pair.low > 0 or pair.high < 0)
    ]


def in_words(pair: Pair, style: Style = TERMINAL) -> str:
    """One sentence on a pair."""
    interval = pair.low, pair.high
    difference = estimate(pair.mean, interval=interval, digits=3, style=style)
    single = "overlap" if pair.overlap else "do not overlap"
    return (
        f"{pair.quantity} of {pair.first} less those of {pair.second} on {pair.where}: "
        f"{difference}, while the single intervals {single}"
    )


def note(found: list[Pair]) -> str:
    """One line on the pairs, empty where there are none."""
    if not found:
        return ""
    more = f"; and {len(found) - MOST_SHOWN:,} more" if len(found) > MOST_SHOWN else ""
    texts = "; ".join(in_words(pair) for pair in found[:MOST_SHOWN])
    return f"A paired comparison says more (mean difference [95%]): {texts}{more}."


def _points(dataset: "Dataset", axes: list[str]) -> "Iterator[tuple[str, Dataset]]":
    """All algorithms of each instance at each point."""
    grid = ["instance", *axes]
    for corner in itertools.product(*[dataset[name].values.tolist() for name in grid]):
        point = dict(zip(grid, corner, strict=True))
        facts = [f"{name} = {value_text(point[name])}" for name in axes]
        yield ", ".join([str(point["instance"]), *facts]), dataset.sel(point)


def _of_point(where: str, data: "Dataset") -> Iterator[Pair]:
    names = [str(name) for name in data.algorithm.values]
    whole = [
        not x and np.isfinite(y)
        for x, y in zip(data.pulls_mean_is_lower_bound.values, data.pulls_mean.values, strict=True)
    ]
    cost = "regret" if "regret" in data else "pulls"
    costs = data.regret.isel(round=-1) if "regret" in data else data.pulls
    for i, j in itertools.combinations(range(len(names)), 2):
        if not (whole[i] and whole[j]):
            continue
        one, two = _both(costs.values[i], costs.values[j])
        if one.size > 1 and np.ptp(one - two) > 0:
            yield _pair(where, names[i], names[j], cost, one, two, _means_overlap(one, two))
        if cost == "pulls":
            wrong = 1.0 - data.correct.values
            one, two = _both(wrong[i], wrong[j])
            if (one != two).sum() >= LEAST_DISCORDANT:
                low, high = data.error_low.values, data.error_high.values
                overlap = bool(low[i] <= high[j] and low[j] <= high[i])
                yield _pair(where, names[i], names[j], "errors", one, two, overlap)


def _both(
    one: Float[np.ndarray, " R"], two: Float[np.ndarray, " R"]
) -> tuple[Float[np.ndarray, " S"], Float[np.ndarray, " S"]]:
    """The replications that both hold."""
    one, two = one.astype(float), two.astype(float)
    both = np.isfinite(one) & np.isfinite(two)
    return one[both], two[both]


def _means_overlap(one: Float[np.ndarray, " R"], two: Float[np.ndarray, " R"]) -> bool:
    """Whether the 95% intervals of the two means overlap."""
    width = NORMAL * (standard_error(one) + standard_error(two))
    return bool(abs(one.mean() - two.mean()) <= width)


def _pair(
    where: str,
    first: str,
    second: str,
    quantity: str,
    one: Float[np.ndarray, " R"],
    two: Float[np.ndarray, " R"],
    overlap: bool,
) -> Pair:
    found = mean_difference(one, two)
    mean, low, high = (float(found[name]) for name in ("mean", "low", "high"))
    return Pair(where, first, second, quantity, mean, low, high, overlap)
