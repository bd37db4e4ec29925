"""What claims are about, measured on the dataset of a sweep: pulls, errors, accuracy, time, regret.

Algorithms are compared on the same replications, which meet the same instances there: a difference
or ratio of two algorithms has a standard error that does not grow with the differences between
instances. What is not known, because an algorithm was not run or replications were cut short, is
NaN.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

from ..intervals import binomial_interval, half_width, standard_error
from ..report.measured import REPLICATIONS
from ..sweeps.stated import WHOLE_AXES, stated

if TYPE_CHECKING:
    from xarray import Dataset

Verdict: TypeAlias = bool | None  # None: the data leave it open
Where: TypeAlias = Mapping[str, Any]  # values, or lists of them, by name of a dimension
Values: TypeAlias = Float[np.ndarray, " R"]
Curves: TypeAlias = Float[np.ndarray, "R T"]

CLEAR = math.erf(2.0 / math.sqrt(2.0))  # confidence: 2 standard errors of many replications


class Estimate(NamedTuple):
    """A mean and its standard error; NaN where they are not known.

    Attributes:
      value, error: the two.
      number: of the replications that the error is computed from, for Student's t.
    """

    value: float
    error: float
    number: float

    def below(self, limit: float) -> Verdict:
        """True or False where the value is clearly below or above `limit`, None in between.

        None too where they are equal and nothing is left to chance: two curves that are the same
        run by run are no evidence that one of them is behind.
        """
        width = half_width(self.error, self.number, CLEAR)
        if math.isnan(self.value) or math.isnan(width):
            return None
        if self.value == limit or abs(self.value - limit) <= width:
            return None
        return bool(self.value < limit)

    def above(self, limit: float) -> Verdict:
        """True or False where the value is clearly above or below `limit`, None in between."""
        below = self.below(limit)
        return None if below is None else not below

    def within(self, low: float, high: float) -> Verdict:
        """True or False where the value is clearly inside or outside `[low, high]`, else None."""
        return all_hold([self.above(low), self.below(high)])


class ErrorRate(NamedTuple):
    """Errors among the runs that ended, and the exact 95% interval of their rate."""

    errors: int
    runs: int
    low: float
    high: float

    def within(self, low: float, high: float) -> Verdict:
        """True or False where the interval lies inside or outside `[low, high]`, else None."""
        if low <= self.low and self.high <= high:
            return True
        return False if self.high < low or high < self.low else None


def all_hold(verdicts: Iterable[Verdict]) -> Verdict:
    """Whether all hold: False if one does not; None if one is open, or if there are none."""
    verdicts = list(verdicts)
    if any(verdict is False for verdict in verdicts):
        return False
    return None if not verdicts or None in verdicts else True


def enough_hold(verdicts: Sequence[Verdict], number: int | None) -> Verdict:
    """Whether so many hold, or all: False if too few can; None if that is open, or if none is."""
    if number is None or not verdicts:
        return all_hold(verdicts)
    if sum(one is True for one in verdicts) >= number:
        return True
    return None if sum(one is not False for one in verdicts) >= number else False


def mean_of(values: Values) -> Estimate:
    """Mean and standard error of the values of the replications."""
    mean = float(values.mean()) if len(values) else math.nan
    return Estimate(mean, standard_error(values), len(values))


def difference_of(first: Estimate, second: Estimate) -> Estimate:
    """The first less the second, as if they were independent; the smaller number counts."""
    error = math.hypot(first.error, second.error)
    return Estimate(first.value - second.value, error, min(first.number, second.number))


def error_of(found: Estimate, name: str = "standard_error") -> dict[str, float]:
    """The error of an estimate as it stands in `claims.json`, behind the value.

    Args:
      found: the estimate.
      name: of the error, one of `ERRORS` of `report.measured`.
    """
    return {name: found.error, REPLICATIONS: found.number}


def ratio_of_means(first: Values, second: Values) -> Estimate:
    """The ratio of two means, and its standard error from their joint variation."""
    if not second.mean():
        return Estimate(math.nan, math.nan, 0)
    ratio = first.mean() / second.mean()
    error = standard_error((first - ratio * second) / second.mean())
    return Estimate(float(ratio), error, len(first))


# What was run, of all that the paper has. A small version of an experiment leaves algorithms and
# points out.


def not_run(dataset: "Dataset", names: Iterable[str]) -> list[str]:
    """Those of the algorithms that were not run."""
    return [name for name in dict.fromkeys(names) if name not in dataset.algorithm.values]


def whole_axis(dataset: "Dataset", axis: str) -> list[Any]:
    """The values of an axis in the whole experiment; those that were run where it is not known."""
    known = stated(dataset.attrs, WHOLE_AXES)
    return known.get(axis) or dataset[axis].values.tolist()


def points_not_run(cells: "Dataset", at: slice) -> list[str]:
    """Those points of the whole axis that were not run.

    Args:
      at: which points, by their positions along the whole axis.
    """
    axis = _axis(cells)
    return values_not_run(cells, {axis: whole_axis(cells, axis)[at]}) if axis else []


def ends_not_run(cells: "Dataset") -> list[str]:
    """The least and the largest value of the whole axis, where they were not run."""
    axis = _axis(cells)
    whole = whole_axis(cells, axis) if axis else []
    return values_not_run(cells, {axis: [min(whole), max(whole)]}) if whole else []


def average_not_run(dataset: "Dataset", where: Where) -> list[str]:
    """Values at which nothing was run, of those that an average over all other points needs."""
    axes = stated(dataset.attrs, WHOLE_AXES)
    return values_not_run(dataset, {**axes, **where})


def values_not_run(dataset: "Dataset", where: Where) -> list[str]:
    """Those of some values of the dimensions at which nothing was run, as `dim = 5`."""
    return [
        f"{name} = {value}"
        for name, values in where.items()
        for value in (values if isinstance(values, list | tuple) else [values])
        if value not in dataset[name].values.tolist()
    ]


# Pulls and errors, on the cells of one instance with at most one axis.


def only_instance(dataset: "Dataset") -> "Dataset":
    """The cells of the only instance, without that dimension."""
    return dataset.squeeze("instance", drop=True) if "instance" in dataset.dims else dataset


def error_rate(cells: "Dataset", name: str) -> ErrorRate:
    """The `ErrorRate` of an algorithm, at all points of the axis together."""
    cell = cells.sel(algorithm=name)
    finished, wrong = int(cell.stopped.sum()), int((cell.stopped & ~cell.correct).sum())
    return ErrorRate(wrong, finished, *binomial_interval(wrong, finished))


def log_ratios(
    cells: "Dataset", one: str, two: str, at: slice = slice(None)
) -> dict[str, Estimate]:
    """The mean logarithm of the ratio of pulls, by point of the axis.

    Args:
      at: which points, by their positions along the whole axis; those that were run count.
    """
    return _by_point(cells, at, lambda cell: _log_pulls(cell, one, two))


def growth(cells: "Dataset", name: str, over: str | None = None) -> Estimate:
    """The power of the axis with which the pulls grow.

    It is the least-squares slope of mean log pulls in the logarithm of the axis.

    Args:
      over: an algorithm by whose pulls in the same replication they are divided, or None.
    """
    axis = _axis(cells)
    if cells.sizes[axis] < 2:
        return Estimate(math.nan, math.nan, 0)
    found = _by_point(cells, slice(None), lambda cell: _log_pulls(cell, name, over))
    means, errors, numbers = np.array(list(found.values())).T
    logs = np.log(cells[axis].values.astype(float))
    centred = logs - logs.mean()
    weights = centred / (centred**2).sum()
    error = float(np.sqrt((weights**2) @ errors**2))
    return Estimate(float(weights @ means), error, int(numbers.min()))


def _axis(cells: "Dataset") -> str:
    """The name of the axis, empty where there is none."""
    return next((name for name in cells.pulls.dims if name not in ("algorithm", "replication")), "")


def _by_point(
    cells: "Dataset", at: slice, measure: "Callable[[Dataset], Estimate]"
) -> dict[str, Estimate]:
    """The measure at the points of the axis, by name; without an axis, under an empty one."""
    axis = _axis(cells)
    if not axis:
        return {"": measure(cells)}
    run = cells[axis].values.tolist()
    wanted = run if at == slice(None) else whole_axis(cells, axis)[at]
    points = [value for value in run if value in wanted]
    return {f"{axis} {value}": measure(cells.sel({axis: value})) for value in points}


def _log_pulls(cell: "Dataset", one: str, over: str | None) -> Estimate:
    """Mean logarithm of the pulls, or of their ratio to those of `over`."""
    names = [name for name in (one, over) if name is not None]
    if not set(names) <= set(cell.algorithm.values):
        return Estimate(math.nan, math.nan, 0)
    named = [cell.sel(algorithm=name) for name in names]
    logs = [np.log(part.pulls.values) for part in named]
    values = logs[0] - (logs[1] if len(logs) > 1 else 0.0)
    complete = all(bool(part.stopped.all()) for part in named)
    error = standard_error(values) if complete else math.nan
    return Estimate(float(values.mean()), error, len(values))


# Accuracy and time, over the points of the axes together: the mean of a replication counts, so that
# it makes no difference how the points are correlated. A point at which one of two algorithms was
# not run is left out.


def cells_at(dataset: "Dataset", where: Where) -> "Dataset":
    """The cells at some values of the dimensions; values that are not there are left out."""
    for name, values in where.items():
        known = set(dataset[name].values.tolist())
        wanted = values if isinstance(values, list | tuple) else [values]
        dataset = dataset.sel({name: [v for v in wanted if v in known]})
    return dataset


def accuracy(dataset: "Dataset", name: str, where: Where) -> Estimate:
    """The share of right answers."""
    return _mean_over_points(_correct(dataset, name, where), least=0.0)


def accuracy_difference(dataset: "Dataset", one: str, two: str, where: Where) -> Estimate:
    """The accuracy of one algorithm less that of another."""
    difference = _correct(dataset, one, where) - _correct(dataset, two, where)
    return _mean_over_points(difference, least=-1.0)


def most_accurate(dataset: "Dataset", names: Sequence[str], where: Where) -> str:
    """The algorithm with the largest accuracy; the first where none is known."""
    means = {name: accuracy(dataset, name, where).value for name in names}
    known = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    return max(known, key=lambda name: known[name]) if known else names[0]


def seconds_ratio(dataset: "Dataset", one: str, two: str, where: Where) -> float | None:
    """The seconds of one algorithm over those of another, without those for compiling."""
    return _ratio_of_sums(*(_seconds(dataset, name, where) for name in (one, two)))


def seconds_growth(dataset: "Dataset", name: str, before: Where, after: Where) -> float | None:
    """The seconds of an algorithm at some points over those at as many others."""
    return _ratio_of_sums(*(_seconds(dataset, name, where) for where in (after, before)))


def _seconds(dataset: "Dataset", name: str, where: Where) -> np.ndarray:
    """The seconds of each cell, NaN where it was not run; none of an unknown algorithm."""
    cells = cells_at(dataset, where)
    known = name in cells.algorithm.values
    return cells.seconds.sel(algorithm=name).values.ravel() if known else np.empty(0)


def _ratio_of_sums(first: np.ndarray, second: np.ndarray) -> float | None:
    """Over the points that both have; None where there are none."""
    if first.shape != second.shape:
        return None
    both = np.isfinite(first) & np.isfinite(second)
    if not both.any() or second[both].sum() <= 0:
        return None
    return float(first[both].sum() / second[both].sum())


def _correct(dataset: "Dataset", name: str, where: Where) -> Float[np.ndarray, "R points"]:
    """1 where a replication was right, 0 where it was wrong, NaN where it was not run."""
    cells, runs = cells_at(dataset, where).correct, dataset.sizes["replication"]
    if name not in dataset.algorithm:
        return np.full((runs, 1), np.nan)
    cells = cells.sel(algorithm=name)
    table = cells.transpose("replication", ...).values.astype(float)
    return table.reshape(runs, cells.size // runs)


def _mean_over_points(values: Float[np.ndarray, "R points"], least: float) -> Estimate:
    """Mean over the points that all replications have run.

    The error is that of the replications and two more, one at each end of the scale (Agresti and
    Caffo, 2000; Bonett and Price, 2012). It is above 0 where all replications agree, which ten of
    them may do by chance.

    Args:
      values: from `least` to 1.
    """
    values = values[:, ~np.isnan(values).any(0)]
    if values.size == 0:
        return Estimate(math.nan, math.nan, 0)
    each = values.mean(1)
    error = standard_error(np.append(each, [least, 1.0])) if len(each) > 1 else math.nan
    return Estimate(float(each.mean()), error, len(each))


# Regret and reward, at each instance and point of the axes.


def regret_curves(dataset: "Dataset", *names: str) -> Iterator[tuple[str, list[Curves]]]:
    """`(point, curves of each name)` of every instance and point that all have run."""
    if not set(names) <= set(dataset.algorithm.values.tolist()):
        return
    over = ["instance", *stated(dataset.attrs, "axes")]
    for corner in itertools.product(*(dataset[name].values.tolist() for name in over)):
        point = dict(zip(over, corner, strict=True))
        cells = dataset.regret.sel(point)
        found = [cells.sel(algorithm=n).transpose("replication", "round").values for n in names]
        if not any(np.isnan(curve).any() for curve in found):
            label = [f"{point.pop('instance')}"] if dataset.sizes["instance"] > 1 else []
            axes = [f"{name} {value}" for name, value in point.items() if name != "instance"]
            yield ", ".join([*label, *axes]), found


def late_and_early_rates(rounds: np.ndarray, curves: Curves) -> tuple[Values, Values]:
    """Regret per round in the last half, and in the quarter before it."""
    last = rounds[-1]
    quarter, half = (
        np.array([np.interp(last * share, rounds, curve) for curve in curves])
        for share in (0.25, 0.5)
    )
    return (curves[:, -1] - half) / (0.5 * last), (half - quarter) / (0.25 * last)


def average_rewards(dataset: "Dataset", *names: str) -> Iterator[tuple[str, Estimate]]:
    """`(point, average reward at the last round)` of every instance and point.

    Args:
      names: of an algorithm; of two, whose difference it is, the first less the second.
    """
    if not set(names) <= set(dataset.algorithm.values.tolist()):
        return
    last = dataset.average_reward.isel(round=-1)
    first, *others = (last.sel(algorithm=name, drop=True) for name in names)
    cells = first - others[0] if others else first
    points = cells.stack(point=[d for d in cells.dims if d != "replication"])
    for point in points.point.values:
        values = points.sel(point=point).dropna("replication").values
        yield ", ".join(map(str, point)), mean_of(values)
