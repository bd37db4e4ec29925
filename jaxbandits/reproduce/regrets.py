"""What papers say of regret, as rules that a dataset obeys, breaks or leaves open.

Algorithms are compared on the same replications, which meet the same instances: a difference of
regrets has a standard error that instances of all degrees of hardness share. Each point of the axes
is a case of its own, and a claim holds where it does in all of them.
"""

import itertools
import json
import math

import numpy as np

from ..engine.results import standard_error
from .base import below, claim
from .rules import listed, together


def less(text, ones, others, factor=1.0):
    """The final regret of each of `ones` is less than `factor` times that of each of `others`."""

    def rule(dataset):
        measured, verdicts = {"factor": factor}, []
        for one, two in itertools.product(listed(ones), listed(others)):
            if one == two:
                continue
            for where, (first, second) in _curves(dataset, one, two):
                apart = first[:, -1] - factor * second[:, -1]
                verdicts.append(below(*_mean(apart), 0.0))
                shown = _ratio(first[:, -1], second[:, -1])
                measured[f"{one} / {two}{where}"] = shown
        return claim(text, measured, together(verdicts or [None]))

    return rule


def linear(text, names, least=0.85):
    """Regret grows in the last half at `least` times the rate of the quarter before it."""
    return _bends(text, names, least, False)


def sublinear(text, names, most=0.8):
    """Regret grows in the last half at less than `most` times the rate of the quarter before it.

    Square roots of the rounds grow at 0.71 times the rate, logarithms at half of it.
    """
    return _bends(text, names, most, True)


def _bends(text, names, limit, downwards):
    def rule(dataset):
        measured, verdicts = {"limit": limit}, []
        for name in listed(names):
            for where, (curve,) in _curves(dataset, name):
                late, early = _rates(dataset["round"].values, curve)
                verdict = below(*_mean(late - limit * early), 0.0)
                verdicts.append(verdict if downwards or verdict is None else not verdict)
                measured[f"{name}{where}"] = _ratio(late, early)
        return claim(text, measured, together(verdicts or [None]))

    return rule


def _rates(rounds, curve):
    """Regret a round in the last half, and in the quarter before it, of each replication."""
    last = rounds[-1]
    quarter, half = (np.array([np.interp(last * s, rounds, c) for c in curve]) for s in (0.25, 0.5))
    return (curve[:, -1] - half) / (0.5 * last), (half - quarter) / (0.25 * last)


def _curves(dataset, *names):
    """`(where, curves [R, T] of each name)` of every instance and point that all have played."""
    if not set(names) <= set(dataset.algorithm.values.tolist()):
        return
    over = ["instance", *json.loads(dataset.attrs["axes"])]
    for corner in itertools.product(*(dataset[name].values.tolist() for name in over)):
        point = dict(zip(over, corner, strict=True))
        cells = dataset.regret.sel(point)
        found = [cells.sel(algorithm=n).transpose("replication", "round").values for n in names]
        if not any(np.isnan(curve).any() for curve in found):
            label = [f", {point.pop('instance')}"] if dataset.sizes["instance"] > 1 else []
            axes = [f", {name} {value}" for name, value in point.items() if name != "instance"]
            yield "".join([*label, *axes]), found


def _mean(values):
    return float(values.mean()), standard_error(values)


def _ratio(first, second):
    """Of two means, and its standard error as they vary together."""
    ratio = first.mean() / second.mean() if second.mean() else math.nan
    error = standard_error((first - ratio * second) / second.mean()) if second.mean() else math.nan
    return {"ratio": float(ratio), "standard_error": float(error)}
