"""What papers say of their figures and tables, as claims that a dataset supports or refutes.

A `Claim` is a text and a function `dataset -> Finding`; a finding has the measured numbers and a
verdict. `compare` makes the claims that say between which limits a quantity of some algorithms
lies: pulls, errors, accuracy, time, regret or reward. A claim of another form is a function
decorated by `claim` or `claim_on_cells`. Estimates come from `measures`; one that is not clearly on
one side of its limit leaves the claim open. So does an algorithm that was not run (`--quick` leaves
some out). A small version of an axis can support what a paper says of its ends or its length, but
not refute it.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..intervals import binomial_interval
from ..report.measured import measured_text
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
LONGEST = 160  # characters of the numbers that stand beside a verdict

Names: TypeAlias = str | Sequence[str]  # one algorithm or several
Find: TypeAlias = "Callable[[Dataset], Finding]"
Text: TypeAlias = "str | Callable[[Dataset], str]"  # where its numbers depend on what was run


class Finding(NamedTuple):
    """What a dataset says of a claim.

    Attributes:
      measured: by name, numbers, lists of them, or such tables.
      verdict: whether the claim holds; None where that is open.
      missing: what the claim is about and was not run, algorithms or points.
      ours: the number that decides, as text; by default all that was measured, where it is short.
    """

    measured: Mapping[str, Any]
    verdict: Verdict
    missing: Sequence[str] = ()
    ours: str = ""


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement of a paper, or one of ours on what the paper shows.

    Attributes:
      text: the statement.
      find: `dataset -> Finding`.
      paper: the words or the number of the paper that say it, and where they stand; empty for an
        expectation of ours.
    """

    text: Text
    find: Find
    paper: str = ""

    def __call__(self, dataset: "Dataset") -> "ClaimRow":
        """The claim as a row of `claims.json`."""
        measured, verdict, missing, ours = self.find(dataset)
        text = self.text if isinstance(self.text, str) else self.text(dataset)
        holds = None if verdict is None else bool(verdict)  # of NumPy's truth values too
        if holds is None and missing:
            measured = {NOT_PLAYED: list(dict.fromkeys(missing)), **measured}
        plain = _plain(dict(measured))
        ours = ours or measured_text(plain)
        return {
            "claim": text,
            "paper": self.paper,
            "ours": ours if len(ours) <= LONGEST else "",
            "measured": plain,
            "holds": holds,
        }


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


def claim(text: Text, paper: str = "") -> Callable[[Find], Claim]:
    """Make a `Claim` of a function `dataset -> Finding`."""
    return lambda find: Claim(text, find, paper)


def claim_on_cells(text: Text, paper: str = "") -> Callable[[Find], Claim]:
    """Make a `Claim` of a function `cells -> Finding`, with the cells of the only instance."""
    return lambda find: Claim(text, lambda data: find(measures.only_instance(data)), paper)


def in_the_end(whole: Claim, rounds: int) -> Claim:
    """The claim, open where fewer rounds refute it: exploration costs first and pays later."""

    def find(dataset: "Dataset") -> Finding:
        found, run = whole.find(dataset), int(dataset["round"][-1])
        left = [f"rounds {run + 1} to {rounds}"] if run < rounds else []
        return on_a_part(found._replace(measured={"rounds": run, **found.measured}), left)

    return dataclasses.replace(whole, find=find)


class Measured(NamedTuple):
    """A quantity of one algorithm or a pair, at one point of the axes.

    Attributes:
      point: as `dim 5`; empty where there is one.
      shown: the number and its error, as they stand in `claims.json`.
      value: on the scale of the limits; NaN where it is not known.
      within: `(least, most) -> verdict`.
    """

    point: str
    shown: dict[str, Any]
    value: float
    within: Callable[[float, float], Verdict]


@dataclasses.dataclass(frozen=True)
class Quantity:
    """What `compare` holds against its limits.

    Attributes:
      measure: `(dataset, one[, other]) -> Measured` at each point.
      sign: between the names of a pair; empty where it is about single algorithms.
      missing: `dataset -> points` of the whole experiment that it needs and were not run.
      partial: whether without them a claim can be supported, but not refuted.
      stated: what `claims.json` says besides the limits.
    """

    measure: Callable[..., Iterable[Measured]]
    sign: str = ""
    missing: "Callable[[Dataset], list[str]]" = lambda dataset: []
    partial: bool = True
    stated: "Callable[[Dataset], Mapping[str, Any]]" = lambda dataset: {}


def compare(
    text: Text,
    quantity: Quantity,
    ones: Names,
    others: Names | None = None,
    *,
    least: float = -INF,
    most: float = INF,
    at_least: int | None = None,
    paper: str = "",
) -> Claim:
    """A quantity of each of `ones`, with each of `others`, lies between two limits at every point.

    Args:
      text: the claim.
      quantity: one of those below.
      ones, others: names of algorithms. A quantity of pairs without `others` is that of each pair
        among `ones`.
      least, most: the limits; the value must be clearly inside or outside of them.
      at_least: at how many points of a single group it must lie there; by default at all.
      paper: see `Claim`.
    """
    groups = _groups(quantity, _listed(ones), None if others is None else _listed(others))
    limits = {"least": least, "most": most}
    stated = {name: limit for name, limit in limits.items() if math.isfinite(limit)}

    def find(dataset: "Dataset") -> Finding:
        table: dict[str, Any] = {**stated, **quantity.stated(dataset)}
        cases: list[tuple[str, Measured, Verdict]] = []
        for group in groups:
            name = f" {quantity.sign} ".join(group)
            found = list(quantity.measure(dataset, *group))
            table[name] = _by_point(found)
            cases += [(name, one, one.within(least, most)) for one in found]
        absent = measures.not_run(dataset, itertools.chain(*groups))
        verdict = measures.enough_hold([one for *_, one in cases], at_least)
        whole = Finding(table, None if absent and verdict else verdict, absent)
        whole = whole._replace(ours=_deciding(cases, least, most, at_least))
        points = quantity.missing(dataset)
        if quantity.partial:
            return on_a_part(whole, points)
        return whole._replace(missing=[*absent, *points])

    return Claim(text, find, paper)


def _groups(
    quantity: Quantity, ones: Sequence[str], others: Sequence[str] | None
) -> list[tuple[str, ...]]:
    """Names that are measured together: an algorithm or a pair, but none with itself."""
    if not quantity.sign:
        return [(one,) for one in ones]
    pairs = itertools.combinations(ones, 2) if others is None else itertools.product(ones, others)
    return [pair for pair in pairs if pair[0] != pair[1]]


def _by_point(found: Sequence[Measured]) -> Any:
    """The numbers of a group: one table, or one for each point."""
    if len(found) == 1 and not found[0].point:
        return found[0].shown
    return {one.point: one.shown for one in found}


def _deciding(
    cases: Sequence[tuple[str, Measured, Verdict]],
    least: float,
    most: float,
    at_least: int | None = None,
) -> str:
    """The case that is nearest to its limit, or farthest beyond it, as text.

    Where some cases suffice, that of the last of them if those that are farthest inside come first.
    """
    known = [case for case in cases if not math.isnan(case[1].value)]
    if not known:
        return ""
    known.sort(key=lambda case: min(case[1].value - least, most - case[1].value))
    name, one, _ = known[0 if at_least is None else max(0, len(known) - at_least)]
    where = f", {one.point}" if one.point else ""
    return f"{name}: {measured_text({'': one.shown}).removeprefix(': ')}{where}"


def few_errors(*, but: Sequence[str] = (), paper: str = "") -> Claim:
    """The error rate of each algorithm is at most delta.

    Args:
      but: algorithms that know the answer, or promise nothing: the claim is not about them.
      paper: see `Claim`.
    """
    text = f"The error rate of each algorithm is at most {DELTA}."

    def find(dataset: "Dataset") -> Finding:
        names = [str(name) for name in dataset.algorithm.values if name not in but]
        return compare(text, error_rate, names, most=DELTA).find(dataset)

    return Claim(text, find, paper)


def no_errors(runs: int, *, paper: str = "") -> Claim:
    """No run of any algorithm errs, at any point.

    Args:
      runs: how many replications the paper has; with fewer, no error leaves the claim open.
      paper: see `Claim`.
    """

    def find(dataset: "Dataset") -> Finding:
        names = [str(name) for name in dataset.algorithm.values]
        cells = measures.only_instance(dataset)
        rates = {name: measures.error_rate(cells, name) for name in names}
        errors, ended = (sum(getattr(r, key) for r in rates.values()) for key in ("errors", "runs"))
        whole = ended == dataset.stopped.size and dataset.sizes["replication"] >= runs
        verdict = False if errors else True if whole else None
        table = {name: rate._asdict() for name, rate in rates.items()}
        return Finding(table, verdict, ours=f"{errors} of {ended:,} runs wrong")

    return Claim("No run of any algorithm is wrong.", find, paper)


def below_bound(name: str, paper: str) -> Claim:
    """At most a share of delta of the runs of an algorithm take more pulls than its bound.

    The bound is `pull_bound`, of each algorithm or also of each point, of `Experiment.extended`;
    it follows from `complexity`, which is shown. Runs at all points count together.
    """

    def find(dataset: "Dataset") -> Finding:
        if missing := measures.not_run(dataset, [name]):
            return Finding({}, None, missing)
        cell = measures.only_instance(dataset).sel(algorithm=name)
        if "pull_bound" not in cell:
            return Finding({"bound": None}, None)
        bound, pulls = cell.pull_bound, cell.pulls.astype(float)
        # A run that was cut short below the bound may have gone above it.
        over = pulls > bound
        above, runs = int(over.sum()), pulls.size
        known = bool((cell.stopped | over).all())
        found = measures.ErrorRate(above, runs, *binomial_interval(above, runs))
        means, most = pulls.mean("replication"), pulls.max("replication")
        measured = {
            "bound": bound.values.tolist(),
            "complexity": cell.complexity.values.tolist(),
            "mean_pulls": means.values.tolist(),
            "most_pulls": most.values.tolist(),
            "above": above,
            "runs": runs,
            "share": [found.low, found.high],
        }
        if bound.ndim:
            ours = f"{above} of {runs} runs above; at most {float((most / bound).max()):.2f} of it"
        else:
            ours = f"{above} of {runs} runs above {float(bound):,.0f}; mean {float(means):,.0f}"
        return Finding(measured, found.within(0.0, DELTA) if known else None, [], ours)

    text = f"At least 95% of the runs of {name} take no more pulls than its bound."
    return Claim(text, find, paper)


def best_of(
    text: Text,
    ones: Names,
    others: Names,
    *,
    where: Where = EVERYWHERE,
    by: float = 0.02,
    paper: str = "",
) -> Claim:
    """The most accurate of `ones` is behind none of `others` by more than `by`."""

    def find(dataset: "Dataset") -> Finding:
        best = measures.most_accurate(dataset, _listed(ones), where)
        found = compare(text, accuracy(where), best, others, least=-by).find(dataset)
        return on_a_part(found, measures.not_run(dataset, _listed(ones)))

    return Claim(text, find, paper)


def fewer_pulls(text: str, smaller: Names, larger: Names, factor: float = 1.0) -> Claim:
    """`compare` with pulls, as plugins for version 0.2.0 write it."""
    return compare(text, pulls(), smaller, larger, most=factor)


# Quantities. Pulls and errors are those of the only instance of a sweep; pulls are compared at each
# point of the axis, by the mean logarithm of their ratio in the same replication.


def pulls(at: slice = slice(None)) -> Quantity:
    """The ratio of the pulls of two algorithms.

    Args:
      at: which points along the axis, by their positions; all by default.
    """

    def measure(dataset: "Dataset", one: str, other: str) -> Iterator[Measured]:
        cells = measures.only_instance(dataset)
        for point, found in measures.log_ratios(cells, one, other, at).items():
            yield _ratio_of_logs(point, found)

    def missing(dataset: "Dataset") -> list[str]:
        cells = measures.only_instance(dataset)
        return [] if at == slice(None) else measures.points_not_run(cells, at)

    return Quantity(measure, "/", missing, partial=False)


def _ratio_of_logs(point: str, found: Estimate) -> Measured:
    ratio = math.exp(found.value)

    def within(least: float, most: float) -> Verdict:
        return found.within(_log(least), _log(most))

    shown = {"ratio": ratio, **measures.error_of(found, "standard_error_of_log")}
    return Measured(point, shown, ratio, within)


def _log(limit: float) -> float:
    return math.log(limit) if limit > 0 else -INF


def growth(over: str | None = None) -> Quantity:
    """The power of the axis with which the pulls grow.

    Args:
      over: an algorithm by whose pulls in the same replication they are divided, or None.
    """

    def measure(dataset: "Dataset", name: str) -> Iterator[Measured]:
        yield _estimated(measures.growth(measures.only_instance(dataset), name, over), "power")

    def missing(dataset: "Dataset") -> list[str]:
        absent = [] if over is None else measures.not_run(dataset, [over])
        return absent + measures.ends_not_run(measures.only_instance(dataset))

    return Quantity(measure, missing=missing)


def _error_rate(dataset: "Dataset", name: str) -> Iterator[Measured]:
    if name in dataset.algorithm:
        found = measures.error_rate(measures.only_instance(dataset), name)
        rate = found.errors / found.runs if found.runs else math.nan
        yield Measured("", found._asdict(), rate, found.within)


error_rate: Quantity = Quantity(_error_rate)


def accuracy(where: Where = EVERYWHERE) -> Quantity:
    """The difference of the accuracies of two algorithms, over all points that `where` leaves."""

    def measure(dataset: "Dataset", one: str, other: str) -> Iterator[Measured]:
        yield _estimated(measures.accuracy_difference(dataset, one, other, where), "difference")

    return Quantity(measure, "-", lambda dataset: measures.average_not_run(dataset, where))


def change(
    axis: str, start: float | None = None, end: float | None = None, where: Where = EVERYWHERE
) -> Quantity:
    """By how much the accuracy rises from one value of an axis to another.

    Args:
      axis: its name.
      start, end: values of the axis; the least and the largest by default.
      where: see `accuracy`.
    """
    return _from_end_to_end(axis, start, end, where, measures.accuracy, "")


def change_of_lead(
    axis: str, start: float | None = None, end: float | None = None, where: Where = EVERYWHERE
) -> Quantity:
    """By how much the difference of two accuracies rises from one value of an axis to another.

    Args:
      axis, start, end, where: see `change`.
    """
    return _from_end_to_end(axis, start, end, where, measures.accuracy_difference, "-")


def _from_end_to_end(
    axis: str,
    start: float | None,
    end: float | None,
    where: Where,
    measured: Callable[..., Estimate],
    sign: str,
) -> Quantity:
    """The change of what is measured, `(dataset, names..., where) -> Estimate`."""

    def ends(values: Sequence[Any]) -> list[Any]:
        return [min(values) if start is None else start, max(values) if end is None else end]

    def measure(dataset: "Dataset", *names: str) -> Iterator[Measured]:
        first, last = (
            measured(dataset, *names, {**where, axis: value})
            for value in ends(dataset[axis].values.tolist())
        )
        yield _estimated(measures.difference_of(last, first), "difference")

    def missing(dataset: "Dataset") -> list[str]:
        whole = ends(measures.whole_axis(dataset, axis))
        return measures.average_not_run(dataset, {**where, axis: whole})

    def stated(dataset: "Dataset") -> Mapping[str, Any]:
        return dict(zip(("from", "to"), ends(dataset[axis].values.tolist()), strict=True))

    return Quantity(measure, sign, missing, stated=stated)


def seconds(where: Where = EVERYWHERE) -> Quantity:
    """The seconds of one algorithm over those of another, without those for compiling."""

    def measure(dataset: "Dataset", one: str, other: str) -> Iterator[Measured]:
        yield from _ratio(measures.seconds_ratio(dataset, one, other, where))

    def missing(dataset: "Dataset") -> list[str]:
        return measures.values_not_run(dataset, where)

    return Quantity(measure, "/", missing)


def growth_of_seconds(axis: str, start: float, end: float, where: Where = EVERYWHERE) -> Quantity:
    """The seconds of an algorithm at one value of an axis over those at another.

    Args:
      axis: its name.
      start, end: values of the axis.
      where: see `seconds`.
    """
    ends = {**where, axis: start}, {**where, axis: end}

    def measure(dataset: "Dataset", name: str) -> Iterator[Measured]:
        yield from _ratio(measures.seconds_growth(dataset, name, *ends))

    def missing(dataset: "Dataset") -> list[str]:
        return measures.values_not_run(dataset, {**where, axis: [start, end]})

    return Quantity(measure, "", missing, stated=lambda dataset: {"from": start, "to": end})


def _ratio(found: float | None) -> Iterator[Measured]:
    """A ratio that has no error, where it is known."""
    if found is not None:
        yield Measured("", {"ratio": found}, found, lambda low, high: low < found < high)


# Regret and reward: each instance and point of the axes is a case of its own.


def _final_regret(dataset: "Dataset", one: str, other: str) -> Iterator[Measured]:
    for point, curves in measures.regret_curves(dataset, one, other):
        yield _ratio_of_means(point, *(curve[:, -1] for curve in curves))


def _late_rate(dataset: "Dataset", name: str) -> Iterator[Measured]:
    for point, (curves,) in measures.regret_curves(dataset, name):
        rates = measures.late_and_early_rates(dataset["round"].values, curves)
        yield _ratio_of_means(point, *rates)


def _average_reward(dataset: "Dataset", name: str) -> Iterator[Measured]:
    for point, found in measures.average_rewards(dataset, name):
        yield _estimated(found, "average", point)


def _reward_difference(dataset: "Dataset", one: str, other: str) -> Iterator[Measured]:
    for point, found in measures.average_rewards(dataset, one, other):
        yield _estimated(found, "difference", point)


# The ratio of the regret of two algorithms in the end.
final_regret: Quantity = Quantity(_final_regret, "/")
# The rate of the regret in the last half of the rounds over that of the quarter before it: 1 where
# regret is linear, 0.71 where it grows as a square root, 1/2 as a logarithm.
late_rate: Quantity = Quantity(_late_rate)
average_reward: Quantity = Quantity(_average_reward)
# The difference of the average rewards of two algorithms at the last round.
reward_difference: Quantity = Quantity(_reward_difference, "-")


def _ratio_of_means(point: str, first: measures.Values, second: measures.Values) -> Measured:
    """A ratio of two means, decided by the mean of `first - limit * second`, which is exact."""

    def below(limit: float) -> Verdict:
        return True if limit == INF else measures.mean_of(first - limit * second).below(0.0)

    def above(limit: float) -> Verdict:
        return True if limit == -INF else measures.mean_of(first - limit * second).above(0.0)

    found = measures.ratio_of_means(first, second)
    shown = {"ratio": found.value, **measures.error_of(found)}
    return Measured(
        point, shown, found.value, lambda least, most: all_hold([above(least), below(most)])
    )


def _estimated(found: Estimate, name: str, point: str = "") -> Measured:
    shown = {name: found.value, **measures.error_of(found)}
    return Measured(point, shown, found.value, found.within)


def on_a_part(found: Finding, missing: Sequence[str]) -> Finding:
    """A finding on a part of the points that a claim is about, which cannot refute it."""
    if not missing:
        return found
    verdict = None if found.verdict is False else found.verdict
    return found._replace(verdict=verdict, missing=[*found.missing, *missing])


def _listed(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _plain(value: Any) -> Any:
    """JSON has no NaN (the standard error of one replication): null instead."""
    if isinstance(value, dict):
        return {name: _plain(v) for name, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return None if value != value else value
