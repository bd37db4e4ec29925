"""What papers say of their figures, as rules that a dataset obeys, breaks or leaves open.

Algorithms are compared by the ratio of their pulls in the same replication, for they meet the same
instance there: the mean of its logarithm has a standard error that instances of all degrees of
hardness share. A comparison with replications that were cut short, or not played, is left open.
"""

import math

import numpy as np

from ..engine.results import binomial_interval, standard_error
from .base import below, claim

DELTA = 0.05  # of every experiment here


def checked(*rules):
    """`dataset -> [claim]`, one claim a rule."""

    def claims(dataset):
        cells = dataset.squeeze("instance", drop=True)
        return [rule(cells) for rule in rules]

    return claims


def few_errors(*, but=()):
    """The error rate of each algorithm is at most delta.

    Args:
      but: those that are told the answer, or promise nothing: the claim is not about them.
    """

    def rule(cells):
        verdicts, measured = [], {}
        for name in cells.algorithm.values:
            if name in but:
                continue
            found = measured[str(name)] = _errors(cells.sel(algorithm=name))
            right, wrong = found["high"] <= DELTA, found["low"] > DELTA
            verdicts.append(True if right else False if wrong else None)
        text = f"The error rate of each algorithm is at most {DELTA}."
        return claim(text, measured, together(verdicts or [None]))

    return rule


def errs(text, name, low, high):
    """The error rate of an algorithm lies between two numbers, as far as its interval tells."""

    def rule(cells):
        if name not in cells.algorithm:
            return claim(text, {"runs": 0}, None)
        found = _errors(cells.sel(algorithm=name))
        inside = low <= found["low"] and found["high"] <= high
        outside = found["high"] < low or high < found["low"]
        return claim(text, found, True if inside else False if outside else None)

    return rule


def _errors(cell):
    """Of the runs that ended: errors, their number, and the exact interval of the rate."""
    finished, wrong = int(cell.stopped.sum()), int((cell.stopped & ~cell.correct).sum())
    low, high = binomial_interval(wrong, finished)
    return {"errors": wrong, "runs": finished, "low": low, "high": high}


def fewer(text, smaller, larger, factor=1.0, at=slice(None)):
    """Pulls of `smaller` stay below `factor` times those of `larger`.

    Args:
      smaller, larger: an algorithm or several; each of the former with each of the latter.
      at: which points along the axis, by their places; all by default.
    """

    def rule(cells):
        measured, verdicts = {"limit": factor}, []
        for one in listed(smaller):
            for two in (name for name in listed(larger) if name != one):
                found = _by_point(cells, at, lambda cell, one=one, two=two: _ratio(cell, one, two))
                measured[f"{one} / {two}"] = {name: _shown(*x) for name, x in found.items()}
                verdicts += [below(*x, math.log(factor)) for x in found.values()]
        return claim(text, measured, together(verdicts or [None]))

    return rule


def alike(text, one, two, factor):
    """Neither takes `factor` times the pulls of the other."""
    rules = [fewer(text, one, two, factor), fewer(text, two, one, factor)]

    def rule(cells):
        found = [rule(cells) for rule in rules]
        return claim(text, found[0]["measured"], together([x["holds"] for x in found]))

    return rule


def grows(text, names, *, least=-math.inf, most=math.inf, over=None):
    """The pulls grow as a power of the axis between `least` and `most`: a slope of logarithms.

    Args:
      over: an algorithm by whose pulls in the same replication they are divided, or None.
    """

    def rule(cells):
        measured, verdicts = {}, []
        for name in listed(names):
            slope, error = _slope(cells, name, over)
            measured[name] = {"power": slope, "standard_error": error}
            verdicts += [below(slope, error, most), _negated(below(slope, error, least))]
        limits = {"least": least, "most": most}
        measured |= {name: limit for name, limit in limits.items() if math.isfinite(limit)}
        return claim(text, measured, together(verdicts))

    return rule


def between(value, error, low, high):
    """True or False where `value` is clearly inside or outside `[low, high]`, None otherwise."""
    return together([below(value, error, high), below(low, error, value)])


def together(verdicts):
    """Whether all hold: False if one does not, None if one is open."""
    if any(verdict is False for verdict in verdicts):
        return False
    return None if any(verdict is None for verdict in verdicts) else True


def listed(names):
    """The names, of which one may stand alone."""
    return (names,) if isinstance(names, str) else tuple(names)


def _negated(verdict):
    return None if verdict is None else not verdict


def _axis(cells):
    """The name of the axis, empty where there is none."""
    return next((name for name in cells.pulls.dims if name not in ("algorithm", "replication")), "")


def _by_point(cells, at, measure):
    """What `measure` finds at the points of the axis, by name; without an axis, in all."""
    axis = _axis(cells)
    if not axis:
        return {"all": measure(cells)}
    points = cells[axis].values[at]
    return {f"{axis} {value}": measure(cells.sel({axis: value})) for value in points}


def _ratio(cells, one, two=None):
    """Mean logarithm of a ratio of pulls and its standard error, NaN where that is not known."""
    names = [name for name in (one, two) if name is not None]
    if not set(names) <= set(cells.algorithm.values):
        return math.nan, math.nan
    named = [cells.sel(algorithm=name) for name in names]
    logs = [np.log(cell.pulls.values) for cell in named]
    values = logs[0] - (logs[1] if len(logs) > 1 else 0.0)
    complete = all(bool(cell.stopped.all()) for cell in named)
    return float(values.mean()), standard_error(values) if complete else math.nan


def _shown(mean, error):
    return {"ratio": math.exp(mean), "standard_error_of_log": error}


def _slope(cells, name, over):
    """Least-squares slope of mean log pulls in the logarithm of the axis, and its error."""
    if cells.sizes[_axis(cells)] < 2:
        return math.nan, math.nan
    found = _by_point(cells, slice(None), lambda cell: _ratio(cell, name, over))
    means, errors = np.array(list(found.values())).T
    where = np.log(cells[_axis(cells)].values.astype(float))
    apart = where - where.mean()
    parts = apart / (apart**2).sum()
    return float(parts @ means), float(np.sqrt((parts**2) @ errors**2))
