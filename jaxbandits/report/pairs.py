"""Paired differences of the algorithms of a sweep, and the pairs of which they say more.

All algorithms of a sweep meet the same noise in the same replication. The difference over these
pairs may be significant though the single intervals overlap, or the other way round.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from ..engine.results import mean_difference
from ..estimates import TERMINAL, Style, estimate
from ..instances.estimated_regret import error_of_difference, error_of_means, with_means
from ..intervals import half_width, standard_error
from ..show.labels import texts_of
from ..sweeps.dataset import listed_cells
from ..sweeps.selection import complete
from ..sweeps.stated import stated
from ..sweeps.summaries import confidence_of, regret_errors

if TYPE_CHECKING:
    from xarray import Dataset

LEAST_DISCORDANT = 10  # replications in which one alone errs; Student's interval needs some of them
MOST_SHOWN = 4  # pairs, in one text
DIFFERENCE = "difference ± 95%"  # header of the column of differences


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


class Differences(NamedTuple):
    """A column of a table: the difference of each cell to the first algorithm there.

    Attributes:
      note: what is subtracted from what.
      texts: one for each cell, in the order of `listed_cells`.
    """

    note: str
    texts: list[str]


def differences(dataset: "Dataset", style: Style = TERMINAL) -> Differences | None:
    """Paired differences to the first algorithm, with 95% intervals (Student's).

    They are those of the regret, where there is some, else of the pulls or, where all algorithms
    make the same pulls, of the errors. The text is the style's `missing` for the first algorithm
    itself, where replications were cut short, where fewer than `LEAST_DISCORDANT` replications
    differ in their errors, and where the first algorithm depends on an axis and the other does not.

    Args:
      dataset: what `sweep` returns, or a selection of it.
      style: of the medium.
    Returns:
      The `Differences`, or None where no cell has one.
    """
    dataset = complete(dataset)
    quantity, first = compared_by(dataset), str(dataset.algorithm.values[0])
    found = [_to_first(dataset, at, quantity) for at, _ in listed_cells(dataset)]
    if not any(found):
        return None
    note = f"Difference: {quantity} minus those of {first} in the same replications."
    return Differences(note, [difference_text(one, style) for one in found])


def difference_text(found: dict[str, Any], style: Style = TERMINAL) -> str:
    """A mean difference with half the width of its interval; missing where there is none."""
    if not found:
        return style.missing
    return estimate(found["mean"], (found["high"] - found["low"]) / 2, style=style)


def difference(cells: "Dataset", one: int, other: int, quantity: str) -> dict[str, Any]:
    """The `mean_difference` of two algorithms; empty where it is not known.

    Args:
      cells: all algorithms on one instance, at one point of the axes.
      one, other: indices of the algorithms.
      quantity: "pulls", "regret" or "errors".
    """
    if not (_whole(cells)[one] and _whole(cells)[other]):
        return {}
    values = _outcomes(cells, quantity)
    first, second = _both(values[one], values[other])
    few = quantity == "errors" and one != other and (first != second).sum() < LEAST_DISCORDANT
    if few or not first.size:
        return {}
    part = error_of_difference(*_errors_of_means(cells, quantity, one, other))
    return mean_difference(first, second, confidence_of(cells), part)


def _errors_of_means(cells, quantity, *indices):
    """`regret_errors` of some algorithms where regrets are compared; None of other quantities."""
    errors = regret_errors(cells) if quantity == "regret" else None
    return [None if errors is None else errors[index] for index in indices]


def _to_first(dataset: "Dataset", at: dict[str, Any], quantity: str) -> dict[str, Any]:
    names = dataset.algorithm.values.tolist()
    index = names.index(at["algorithm"])
    # A cell that stands for all points of an axis is compared only if the other one does as well.
    independent = stated(dataset.attrs, "independent").values()
    own, first = ([at["instance"], name] for name in (at["algorithm"], names[0]))
    if index == 0 or any(own in cells and first not in cells for cells in independent):
        return {}
    point = {name: value for name, value in at.items() if name != "algorithm"}
    return difference(dataset.sel(point), index, 0, quantity)


def compared_by(dataset: "Dataset") -> str:
    """What the algorithms of a sweep are compared by."""
    if "regret" in dataset:
        return "regret"
    pulls = dataset.pulls.astype(float)  # NaN: a replication that was not needed
    return "pulls" if bool((abs(pulls - pulls.isel(algorithm=0)) > 0).any()) else "errors"


def _outcomes(cells: "Dataset", quantity: str) -> Float[np.ndarray, "algorithms R"]:
    """What is compared, of each algorithm and replication."""
    if quantity == "errors":
        return 1.0 - cells.correct.values
    table = cells.regret.isel(round=-1) if quantity == "regret" else cells.pulls
    return table.values.astype(float)


def _whole(cells: "Dataset") -> list[bool]:
    """Whether no replication of an algorithm was cut short."""
    cut, means = cells.pulls_mean_is_lower_bound.values, cells.pulls_mean.values
    return [bool(not x and np.isfinite(mean)) for x, mean in zip(cut, means, strict=True)]


def pairs(dataset: "Dataset") -> list[Pair]:
    """The pairs whose single intervals and whose paired difference disagree.

    Args:
      dataset: what `sweep` returns, or a selection of it.
    """
    return [
        pair
        for where, data in _points(complete(dataset))
        for pair in _of_point(where, data)
        if pair.overlap == (pair.low > 0 or pair.high < 0)
    ]


def in_words(pair: Pair, style: Style = TERMINAL) -> str:
    """One sentence on a pair."""
    interval = pair.low, pair.high
    difference = estimate(pair.mean, interval=interval, digits=3, style=style)
    single = "overlap" if pair.overlap else "do not overlap"
    return (
        f"{pair.quantity} of {pair.first} minus those of {pair.second} on {pair.where}: "
        f"{difference}, while the single intervals {single}"
    )


def note(found: list[Pair]) -> str:
    """One line on the pairs, empty where there are none."""
    if not found:
        return ""
    more = f"; and {len(found) - MOST_SHOWN:,} more" if len(found) > MOST_SHOWN else ""
    texts = "; ".join(in_words(pair) for pair in found[:MOST_SHOWN])
    return f"A paired comparison says more (mean difference [95%]): {texts}{more}."


def _points(dataset: "Dataset") -> "Iterator[tuple[str, Dataset]]":
    """All algorithms of each instance at each point."""
    axes = stated(dataset.attrs, "axes")
    grid = ["instance", *axes]
    values = {name: dataset[name].values.tolist() for name in grid}
    texts = {name: texts_of(values[name]) for name in axes}
    for corner in itertools.product(*values.values()):
        point = dict(zip(grid, corner, strict=True))
        facts = [f"{name} = {text(point[name])}" for name, text in texts.items()]
        yield ", ".join([str(point["instance"]), *facts]), dataset.sel(point)


def _of_point(where: str, data: "Dataset") -> Iterator[Pair]:
    names = [str(name) for name in data.algorithm.values]
    whole, confidence = _whole(data), confidence_of(data)
    cost = "regret" if "regret" in data else "pulls"
    costs, wrong = _outcomes(data, cost), _outcomes(data, "errors")
    for i, j in itertools.combinations(range(len(names)), 2):
        if not (whole[i] and whole[j]):
            continue
        one, two = _both(costs[i], costs[j])
        if one.size > 1 and np.ptp(one - two) > 0:
            errors = _errors_of_means(data, cost, i, j)
            parts = [error_of_means(each) for each in errors]
            overlap = _means_overlap((one, two), parts, confidence)
            part = error_of_difference(*errors)
            yield _pair(where, (names[i], names[j]), cost, one, two, overlap, confidence, part)
        if cost == "pulls":
            one, two = _both(wrong[i], wrong[j])
            if (one != two).sum() >= LEAST_DISCORDANT:
                low, high = data.error_low.values, data.error_high.values
                overlap = bool(low[i] <= high[j] and low[j] <= high[i])
                yield _pair(where, (names[i], names[j]), "errors", one, two, overlap, confidence)


def _both(
    one: Float[np.ndarray, " R"], two: Float[np.ndarray, " R"]
) -> tuple[Float[np.ndarray, " S"], Float[np.ndarray, " S"]]:
    """The replications that both hold."""
    both = np.isfinite(one) & np.isfinite(two)
    return one[both], two[both]


def _means_overlap(
    both: Sequence[Float[np.ndarray, " R"]], parts: Sequence[float], confidence: float
) -> bool:
    """Whether the intervals of two means overlap; `parts` of their errors are of estimates."""
    widths = (
        half_width(with_means(standard_error(each), part), len(each), confidence)
        for each, part in zip(both, parts, strict=True)
    )
    one, two = both
    return bool(abs(one.mean() - two.mean()) <= sum(widths))


def _pair(
    where: str,
    names: tuple[str, str],
    quantity: str,
    one: Float[np.ndarray, " R"],
    two: Float[np.ndarray, " R"],
    overlap: bool,
    confidence: float,
    part: float = 0.0,
) -> Pair:
    found = mean_difference(one, two, confidence, part)
    mean, low, high = (float(found[name]) for name in ("mean", "low", "high"))
    return Pair(where, *names, quantity, mean, low, high, overlap)
