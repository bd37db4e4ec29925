"""What papers say of their figures and tables, as claims that a dataset supports or refutes.

A `Claim` is a text and a function `dataset -> Finding`; a finding has the measured numbers and a
verdict. The functions below make the claims that several figures share, on pulls, errors, accuracy,
time, regret and reward. A claim of a single figure is a function decorated by `claim` or
`claim_on_cells`. Estimates come from `measures`; one that is not clearly on one side of its limit
leaves the claim open. So does an algorithm that was not run (`--quick` leaves some out). A small
version of an axis can support what a paper says of its ends or its length, but not refute it.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..report.reading import NOT_PLAYED, not_played
from . import measures
from .measures import Estimate, Verdict, Where, all_hold

if TYPE_CHECKING:
    from xarray import Dataset

    from ..report.reading import ClaimRow

DELTA = 0.05  # error probability of every experiment with fixed confidence
EVERYWHERE: Where = {}
INF = math.inf
MOST_NAMED = 4  # of what was not played, in one line

Names: TypeAlias = str | Sequence[str]  # one algorithm or several
Find: TypeAlias = "Callable[[Dataset], Finding]"


class Finding(NamedTuple):
    """What a dataset says of a claim.

    Attributes:
      measured: by name, numbers, lists of them, or such tables.
      verdict: whether the claim holds; None where that is open.
      missing: what the claim is about and was not run, algorithms or points.
    """

    measured: Mapping[str, Any]
    verdict: Verdict
    missing: Sequence[str] = ()


class Case(NamedTuple):
    """One of the comparisons that a claim rests on."""

    name: str
    measured: Any
    verdict: Verdict


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement of a paper.

    Attributes:
      text: the statement, or `dataset -> text` where its numbers depend on what was run.
      find: `dataset -> Finding`.
    """

    text: "str | Callable[[Dataset], str]"
    find: Find

    def __call__(self, dataset: "Dataset") -> "ClaimRow":
        """The claim as a row of `claims.json`."""
        measured, verdict, missing = self.find(dataset)
        text = self.text if isinstance(self.text, str) else self.text(dataset)
        holds = None if verdict is None else bool(verdict)  # of NumPy's truth values too
        if holds is None and missing:
            measured = {NOT_PLAYED: list(dict.fromkeys(missing)), **measured}
        return {"claim": text, "measured": _plain(dict(measured)), "holds": holds}


def on_other_instances(row: "ClaimRow", missing: Sequence[str]) -> "ClaimRow":
    """The row of a claim, open where only other instances than the paper's refute it.

    Args:
      row: the claim on what was run.
      missing: options of the paper's instances that were not run.
    """
    if not missing or row["holds"] is not False:
        return row
    return {**row, "measured": {NOT_PLAYED: list(missing), **row["measured"]}, "holds": None}


def verdict_of(row: "ClaimRow") -> str:
    """The verdict of a row of `claims.json` in words."""
    if names := not_played(row):
        first, rest = names[:MOST_NAMED], names[MOST_NAMED:]
        more = [f"and {len(rest)} more"] if rest else []
        return f"not played ({', '.join([*first, *more])})"
    return {True: "holds", False: "FAILS", None: "too small to tell"}[row["holds"]]


def checked(*claims: Claim) -> "Callable[[Dataset], list[ClaimRow]]":
    """`dataset -> rows`, a row for each claim."""
    return lambda dataset: [one(dataset) for one in claims]


def claim(text: str) -> Callable[[Find], Claim]:
    """Make a `Claim` of a function `dataset -> Finding`."""
    return lambda find: Claim(text, find)


def claim_on_cells(text: "str | Callable[[Dataset], str]") -> Callable[[Find], Claim]:
    """Make a `Claim` of a function `cells -> Finding`, with the cells of the only instance."""
    return lambda find: Claim(text, lambda dataset: find(measures.only_instance(dataset)))


def in_the_end(whole: Claim, rounds: int) -> Claim:
    """The claim, open where fewer rounds refute it: exploration costs first and pays later."""

    def find(dataset: "Dataset") -> Finding:
        found, run = whole.find(dataset), int(dataset["round"][-1])
        left = [f"rounds {run + 1} to {rounds}"] if run < rounds else []
        return _on_a_part(found._replace(measured={"rounds": run, **found.measured}), left)

    return dataclasses.replace(whole, find=find)


# Pulls and errors, on the only instance of a sweep with at most one axis. Pulls are compared at
# each point of the axis, by the mean logarithm of their ratio in the same replication.


def fewer_pulls(
    text: str, smaller: Names, larger: Names, factor: float = 1.0, at: slice = slice(None)
) -> Claim:
    """Pulls of `smaller` stay below `factor` times those of `larger`.

    Args:
      smaller, larger: each of the former with each of the latter.
      at: which points along the axis, by their positions; all by default.
    """
    limits = (-INF, math.log(factor))
    return _pull_ratios(text, _pairs(smaller, larger), limits, factor, at)


def similar_pulls(text: str, one: str, two: str, factor: float) -> Claim:
    """Neither takes `factor` times the pulls of the other."""
    limits = (-math.log(factor), math.log(factor))
    return _pull_ratios(text, [(one, two)], limits, factor)


def _pull_ratios(
    text: str,
    pairs: Iterable[tuple[str, str]],
    limits: tuple[float, float],
    factor: float,
    at: slice = slice(None),
) -> Claim:
    pairs = list(pairs)

    @claim_on_cells(text)
    def find(cells: "Dataset") -> Finding:
        cases, missing = [], measures.not_run(cells, itertools.chain(*pairs))
        if at != slice(None):
            missing += measures.points_not_run(cells, at)
        for one, two in pairs:
            found = measures.log_ratios(cells, one, two, at)
            ratios = {
                point: {"ratio": math.exp(x.value), **measures.error_of(x, "standard_error_of_log")}
                for point, x in found.items()
            }
            verdict = all_hold(x.within(*limits) for x in found.values())
            cases.append(Case(f"{one} / {two}", ratios, verdict))
        return _together(cases, limit=factor)._replace(missing=missing)

    return find


def pulls_grow(
    text: str, names: Names, *, least: float = -INF, most: float = INF, over: str | None = None
) -> Claim:
    """The pulls grow as a power of the axis between `least` and `most`.

    Args:
      over: an algorithm by whose pulls in the same replication they are divided, or None.
    """
    limits = {"least": least, "most": most}
    stated = {name: limit for name, limit in limits.items() if math.isfinite(limit)}

    @claim_on_cells(text)
    def find(cells: "Dataset") -> Finding:
        found = {name: measures.growth(cells, name, over) for name in _listed(names)}
        cases = [Case(n, _shown(x, "power"), x.within(least, most)) for n, x in found.items()]
        missing = measures.not_run(cells, [*_listed(names), *([over] if over else [])])
        together = _together(cases, **stated)._replace(missing=missing)
        return _on_a_part(together, measures.ends_not_run(cells))

    return find


def few_errors(*, but: Sequence[str] = ()) -> Claim:
    """The error rate of each algorithm is at most delta.

    Args:
      but: algorithms that know the answer, or promise nothing: the claim is not about them.
    """

    @claim_on_cells(f"The error rate of each algorithm is at most {DELTA}.")
    def find(cells: "Dataset") -> Finding:
        names = [str(name) for name in cells.algorithm.values if name not in but]
        found = {name: measures.error_rate(cells, name) for name in names}
        return _together(Case(n, x._asdict(), x.within(0.0, DELTA)) for n, x in found.items())

    return find


def error_rate_between(text: str, name: str, low: float, high: float) -> Claim:
    """The error rate of an algorithm lies between two numbers, as far as its interval tells."""

    @claim_on_cells(text)
    def find(cells: "Dataset") -> Finding:
        if name not in cells.algorithm:
            return Finding({"runs": 0}, None, [name])
        found = measures.error_rate(cells, name)
        return Finding(found._asdict(), found.within(low, high))

    return find


# Accuracy and time at a budget, over all points together that `where` leaves.


def more_accurate(
    text: str, ones: Names, others: Names, *, where: Where = EVERYWHERE, by: float = 0.0
) -> Claim:
    """Each of `ones` is right more often than each of `others`, by more than `by`."""
    return _accuracies(text, _pairs(ones, others), (by, INF), where, by=by)


def similar_accuracy(
    text: str, names: Sequence[str], *, where: Where = EVERYWHERE, within: float = 0.03
) -> Claim:
    """The accuracies of no two of them differ by more than `within`."""
    pairs = list(itertools.combinations(_listed(names), 2))
    return _accuracies(text, pairs, (-within, within), where, within=within)


def not_less_accurate(
    text: str, ones: Names, others: Names, *, where: Where = EVERYWHERE, by: float = 0.02
) -> Claim:
    """The best of `ones` is behind none of `others` by more than `by`."""

    def find(dataset: "Dataset") -> Finding:
        best = measures.most_accurate(dataset, _listed(ones), where)
        found = more_accurate(text, best, others, where=where, by=-by).find(dataset)
        return _on_a_part(found, measures.not_run(dataset, _listed(ones)))

    return Claim(text, find)


def _accuracies(
    text: str,
    pairs: Iterable[tuple[str, str]],
    limits: tuple[float, float],
    where: Where,
    **stated: float,
) -> Claim:
    pairs = list(pairs)

    @claim(text)
    def find(dataset: "Dataset") -> Finding:
        cases = []
        for one, two in pairs:
            found = measures.accuracy_difference(dataset, one, two, where)
            cases.append(Case(f"{one} - {two}", _shown(found, "difference"), found.within(*limits)))
        missing = measures.not_run(dataset, itertools.chain(*pairs))
        together = _together(cases, **stated)._replace(missing=missing)
        return _on_a_part(together, measures.average_not_run(dataset, where))

    return find


def accuracy_rises(
    text: str,
    names: Names,
    axis: str,
    *,
    start: float | None = None,
    end: float | None = None,
    where: Where = EVERYWHERE,
    by: float = 0.0,
) -> Claim:
    """From one value of the axis to another the accuracy rises by more than `by`.

    Args:
      start, end: values of the axis; the least and the largest by default.
    """
    return _changes(text, names, (axis, start, end), where, (by, INF), by=by)


def accuracy_falls(
    text: str,
    names: Names,
    axis: str,
    *,
    start: float | None = None,
    end: float | None = None,
    where: Where = EVERYWHERE,
    by: float = 0.0,
) -> Claim:
    """From one value of the axis to another the accuracy falls by more than `by`."""
    return _changes(text, names, (axis, start, end), where, (-INF, -by), by=by)


def accuracy_stays(
    text: str,
    names: Names,
    axis: str,
    *,
    start: float | None = None,
    end: float | None = None,
    where: Where = EVERYWHERE,
    within: float = 0.05,
) -> Claim:
    """From one value of the axis to another the accuracy rises by less than `within`."""
    return _changes(text, names, (axis, start, end), where, (-INF, within), within=within)


def _changes(
    text: str,
    names: Names,
    along: tuple[str, float | None, float | None],
    where: Where,
    limits: tuple[float, float],
    **stated: float,
) -> Claim:
    axis, start, end = along

    @claim(text)
    def find(dataset: "Dataset") -> Finding:
        values = dataset[axis].values.tolist()
        ends = (min(values) if start is None else start, max(values) if end is None else end)
        whole = measures.whole_axis(dataset, axis)
        wanted = [min(whole) if start is None else start, max(whole) if end is None else end]
        cases = []
        for name in _listed(names):
            first, last = (measures.accuracy(dataset, name, {**where, axis: one}) for one in ends)
            change = measures.difference_of(last, first)
            cases.append(Case(name, _shown(change, "difference"), change.within(*limits)))
        together = _together(cases, **dict(zip(("from", "to"), ends, strict=True)), **stated)
        together = together._replace(missing=measures.not_run(dataset, _listed(names)))
        return _on_a_part(together, measures.average_not_run(dataset, {**where, axis: wanted}))

    return find


def slower(
    text: str, name: str, others: Names, factor: float, *, where: Where = EVERYWHERE
) -> Claim:
    """`name` takes more than `factor` times the seconds of each of the others."""

    @claim(text)
    def find(dataset: "Dataset") -> Finding:
        ratios = {
            f"{name} / {other}": measures.seconds_ratio(dataset, name, other, where)
            for other in _listed(others)
        }
        known = {pair: ratio for pair, ratio in ratios.items() if ratio is not None}
        cases = [Case(pair, ratio, ratio > factor) for pair, ratio in known.items()]
        missing = measures.not_run(dataset, (name, *_listed(others)))
        missing += measures.values_not_run(dataset, where)
        return _complete(_together(cases, factor=factor), missing)

    return find


# Regret and reward: each instance and point of the axes is a case of its own.


def less_regret(text: str, ones: Names, others: Names, factor: float = 1.0) -> Claim:
    """The final regret of each of `ones` is less than `factor` times that of each of `others`."""

    @claim(text)
    def find(dataset: "Dataset") -> Finding:
        cases = []
        for one, two in _pairs(ones, others):
            for point, curves in measures.regret_curves(dataset, one, two):
                first, second = (curve[:, -1] for curve in curves)
                ratio = _shown(measures.ratio_of_means(first, second), "ratio")
                verdict = measures.mean_of(first - factor * second).below(0.0)
                cases.append(Case(f"{one} / {two}{point}", ratio, verdict))
        missing = measures.not_run(dataset, (*_listed(ones), *_listed(others)))
        return _complete(_together(cases, factor=factor), missing)

    return find


def linear_regret(text: str, names: Names, least: float = 0.85) -> Claim:
    """Regret grows in the last half at `least` times the rate of the quarter before it."""
    return _bends(text, names, least, lambda excess: excess.above(0.0))


def sublinear_regret(text: str, names: Names, most: float = 0.8) -> Claim:
    """Regret grows in the last half at less than `most` times the rate of the quarter before it.

    Square roots of the rounds grow at 0.71 times the rate, logarithms at half of it.
    """
    return _bends(text, names, most, lambda excess: excess.below(0.0))


def _bends(text: str, names: Names, limit: float, decide: Callable[[Estimate], Verdict]) -> Claim:
    """`decide` gets the late rate less `limit` times the early rate."""

    @claim(text)
    def find(dataset: "Dataset") -> Finding:
        cases = []
        for name in _listed(names):
            for point, (curves,) in measures.regret_curves(dataset, name):
                late, early = measures.late_and_early_rates(dataset["round"].values, curves)
                ratio = _shown(measures.ratio_of_means(late, early), "ratio")
                verdict = decide(measures.mean_of(late - limit * early))
                cases.append(Case(f"{name}{point}", ratio, verdict))
        missing = measures.not_run(dataset, _listed(names))
        return _complete(_together(cases, limit=limit), missing)

    return find


def enough_reward(text: str, names: Names, least: float) -> Claim:
    """The average reward of each is at least `least`."""

    @claim(text)
    def find(dataset: "Dataset") -> Finding:
        cases = [
            Case(f"{name}, {point}", _shown(found, "average"), found.above(least))
            for name in _listed(names)
            for point, found in measures.average_rewards(dataset, name)
        ]
        missing = measures.not_run(dataset, _listed(names))
        return _complete(_together(cases, least=least), missing)

    return find


def _together(cases: Iterable[Case], **stated: float) -> Finding:
    """A claim that holds where it does in all cases, beside the limits that it states."""
    cases = list(cases)
    measured = {**stated, **{case.name: case.measured for case in cases}}
    return Finding(measured, all_hold(case.verdict for case in cases))


def _complete(found: Finding, missing: Sequence[str]) -> Finding:
    """A finding of cases without those that were not run, which leave open what the others show."""
    open_too = missing and found.verdict is True
    return found._replace(verdict=None if open_too else found.verdict, missing=missing)


def _on_a_part(found: Finding, missing: Sequence[str]) -> Finding:
    """A finding on a part of the points that a claim is about, which cannot refute it."""
    if not missing:
        return found
    verdict = None if found.verdict is False else found.verdict
    return Finding(found.measured, verdict, [*found.missing, *missing])


def _shown(found: Estimate, name: str) -> dict[str, float]:
    return {name: found.value, **measures.error_of(found)}


def _listed(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _pairs(ones: Names, others: Names) -> list[tuple[str, str]]:
    """Each of `ones` with each of `others`, but none with itself."""
    return [(a, b) for a, b in itertools.product(_listed(ones), _listed(others)) if a != b]


def _plain(value: Any) -> Any:
    """JSON has no NaN (the standard error of one replication): null instead."""
    if isinstance(value, dict):
        return {name: _plain(v) for name, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return None if value != value else value
