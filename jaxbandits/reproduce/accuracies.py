"""What papers say of the accuracies that a budget buys, as rules that a dataset obeys or breaks.

Algorithms are compared on the same replications, which meet the same instances; over several points
of the axes what counts is the mean of a replication, so that it makes no difference how they are
correlated. Points at which one of the two is not played are left out.
"""

import math

import numpy as np

from ..engine.results import standard_error
from .base import below, claim
from .rules import listed, together


def checked(*rules):
    """`dataset -> [claim]`, one claim a rule."""
    return lambda dataset: [rule(dataset) for rule in rules]


def at(dataset, where):
    """The cells at some points: values, or lists of them, by name of a dimension."""
    for name, values in where.items():
        known = set(dataset[name].values.tolist())
        listed = values if isinstance(values, list | tuple) else [values]
        dataset = dataset.sel({name: [v for v in listed if v in known]})
    return dataset


def accuracies(dataset, name, where):
    """`[R, points]` whether each replication was right, NaN where it was not played."""
    cells, runs = at(dataset, where).correct, dataset.sizes["replication"]
    if name not in dataset.algorithm:
        return np.full((runs, 1), np.nan)
    cells = cells.sel(algorithm=name)
    return cells.transpose("replication", ...).values.reshape(runs, cells.size // runs)


def lead(dataset, one, two, where):
    """Mean difference of two accuracies and its standard error, NaN where nothing is known."""
    apart = accuracies(dataset, one, where) - accuracies(dataset, two, where).astype(float)
    return _mean(apart, least=-1.0)


def _mean(values, least=0.0):
    """Mean and standard error over the points that all replications have played.

    The error is that of the replications and two more, one at each end of the scale (Agresti and
    Caffo, 2000; Bonett and Price, 2012). It is above 0 where all replications agree, which ten of
    them may do by chance.

    Args:
      values: `[R, points]`, from `least` to 1.
    """
    values = values[:, ~np.isnan(values.astype(float)).any(0)].astype(float)
    if values.size == 0:
        return math.nan, math.nan
    each = values.mean(1)
    error = standard_error(np.append(each, [least, 1.0])) if len(each) > 1 else math.nan
    return float(each.mean()), error


def _shown(mean, error):
    return {"difference": mean, "standard_error": error}


def ahead(text, ones, others, *, where=None, by=0.0):
    """Each of `ones` is right more often than each of `others`, by more than `by`."""

    def rule(dataset):
        measured, verdicts = {"by": by}, []
        for one in listed(ones):
            for two in (name for name in listed(others) if name != one):
                found = lead(dataset, one, two, where or {})
                measured[f"{one} - {two}"] = _shown(*found)
                verdicts.append(below(by, found[1], found[0]))
        return claim(text, measured, together(verdicts or [None]))

    return rule


def not_behind(text, ones, others, *, where=None, by=0.02):
    """The best of `ones` is behind none of `others` by more than `by`."""

    def rule(dataset):
        best = _best(dataset, listed(ones), where or {})
        return ahead(text, best, others, where=where, by=-by)(dataset)

    return rule


def alike(text, names, *, where=None, within=0.03):
    """No two of them are apart by more than `within`, all points taken together."""
    names = listed(names)

    def rule(dataset):
        measured, verdicts = {"within": within}, []
        for i, one in enumerate(names):
            for two in names[i + 1 :]:
                found = lead(dataset, one, two, where or {})
                measured[f"{one} - {two}"] = _shown(*found)
                verdicts += [
                    below(found[0], found[1], within),
                    below(-within, found[1], found[0]),
                ]
        return claim(text, measured, together(verdicts or [None]))

    return rule


def rises(text, names, axis, *, start=None, end=None, where=None, by=0.0):
    """From one value of the axis to another the accuracy rises by more than `by`.

    Args:
      start, end: values of the axis; the least and the largest by default.
    """

    def rule(dataset):
        measured, verdicts = _changes(dataset, names, axis, (start, end), where)
        holds = [below(by, error, mean) for mean, error in verdicts]
        return claim(text, measured | {"by": by}, together(holds))

    return rule


def falls(text, names, axis, *, start=None, end=None, where=None, by=0.0):
    """From one value of the axis to another the accuracy falls by more than `by`."""

    def rule(dataset):
        measured, verdicts = _changes(dataset, names, axis, (start, end), where)
        holds = [below(mean, error, -by) for mean, error in verdicts]
        return claim(text, measured | {"by": by}, together(holds))

    return rule


def stays(text, names, axis, *, start=None, end=None, where=None, within=0.05):
    """From one value of the axis to another the accuracy rises by less than `within`."""

    def rule(dataset):
        measured, verdicts = _changes(dataset, names, axis, (start, end), where)
        holds = [below(mean, error, within) for mean, error in verdicts]
        return claim(text, measured | {"within": within}, together(holds))

    return rule


def _changes(dataset, names, axis, ends, where):
    """The change of each algorithm's accuracy, to show and to decide by."""
    values = dataset[axis].values.tolist()
    start = min(values) if ends[0] is None else ends[0]
    end = max(values) if ends[1] is None else ends[1]
    measured, found = {"from": start, "to": end}, []
    for name in listed(names):
        first, last = (
            _mean(accuracies(dataset, name, {**(where or {}), axis: one})) for one in (start, end)
        )
        change = last[0] - first[0], math.hypot(first[1], last[1])
        measured[name] = _shown(*change)
        found.append(change)
    return measured, found


def slower(text, name, others, factor, *, where=None):
    """`name` takes more than `factor` times the seconds of each of the others, compiling apart."""

    def rule(dataset):
        cells = at(dataset, where or {})
        measured, verdicts = {"factor": factor}, []
        known = set(cells.algorithm.values)
        for other in (one for one in listed(others) if one in known):
            if name not in known:
                continue
            pair = [cells.seconds.sel(algorithm=one).values for one in (name, other)]
            both = np.isfinite(pair[0]) & np.isfinite(pair[1])
            if both.any() and pair[1][both].sum() > 0:
                ratio = float(pair[0][both].sum() / pair[1][both].sum())
                measured[f"{name} / {other}"] = ratio
                verdicts.append(ratio > factor)
        return claim(text, measured, together(verdicts) if verdicts else None)

    return rule


def _best(dataset, names, where):
    means = {name: _mean(accuracies(dataset, name, where))[0] for name in names}
    known = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    return max(known, key=known.get) if known else names[0]
