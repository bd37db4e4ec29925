"""What a simulation returns: `Runs`, with intervals, labels and a file format."""

import contextlib
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from ..instances.estimated_regret import (
    SHARE,
    error_of_difference,
    error_of_means,
    share_of_means,
    with_means,
)
from ..intervals import CONFIDENCE, binomial_interval, half_width, standard_error
from ..parameters import check, probability, require
from ..system.data_files import ArrayFacts, Unreadable, check_path, opened
from ..system.extras import needed_by
from ..system.files import replacing
from . import saved
from .frames import frame_of
from .reasons import NAMES, codes_of, counted
from .shown import as_html, as_text, facts_of

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..show.canvas import Scale, Width

LEVELS: tuple[float, ...] = (0.05, 0.25, 0.5, 0.75, 0.95)
# Tables with an entry for each replication.
TABLES: tuple[str, ...] = ("pulls", "answer", "correct", "stopped", "arm_pulls")
OF_SOME: tuple[str, ...] = ("regret", "regret_errors")  # or None
REASON_ATTRIBUTES: dict[str, Any] = {  # by the CF conventions for netCDF
    "flag_values": np.array(sorted(NAMES), np.int8),
    "flag_meanings": " ".join(NAMES[code] or "none" for code in sorted(NAMES)),
}


@dataclasses.dataclass(frozen=True, repr=False)
class Runs:
    """The replications of one algorithm on one instance; NumPy arrays, replication first.

    Attributes:
      replication: int64 `[R]`, the number r of each replication.
      pulls: int64 `[R]`; in a regret run all of its rounds, also those after the algorithm has
        stopped, in which its answer is drawn.
      answer: int64 `[R]`, an index into the targets, or bool `[R, M]` for sets.
      correct: bool `[R]`, whether the answer is right; in a regret run, the answer at the end.
      stopped: bool `[R]`, False where `max_pulls` cut the replication short; in a regret run always
        True.
      arm_pulls: int64 `[R, K]`; a row sums to `pulls`.
      rounds: int64 `[T]` where the regret was recorded, or None. A round is one draw.
      regret: float64 `[R, T]` expected regret up to those rounds, or None.
      info: what the algorithm counted, each `[R]`: phases, fits that did not converge, ...
      facts: what the engine knows besides, bool `[R]` each. `broken`: the state held NaN when the
        replication ended. `unsettled`, where means are estimated: they do not settle which answer
        is right, see `instances.simulated`. Without a horizon also, of those cut short, `tied`:
        several answers are equally good; `idle`: thousands of rounds without a draw; `hidden`: the
        arms that were generated for this replication do not span, or rounding hides a direction.
      meta: facts about the run: seed, `seconds` it took, `compile_seconds` before them (of cells
        that share a program, for the first of them), device, engine, `engine_reason`: why this
        engine played: "asked", "fastest" with a few words perhaps, or what kept a faster one from
        it; `cores`: how many of a CPU played at once, `jax` and `jaxbandits`: their versions, and
        `lane_use`: the share of all rounds computed that belonged to a replication under way.
        `unsettled`, where means are estimated: the share of replications of which it is not settled
        which answer is right; and, with a horizon, `regret_variance_of_means`: the share of the
        variance of the mean regret that is due to the errors of these means.
      regret_errors: float64 `[R, K]` of regret runs where means are estimated, else None: by how
        much the regret at the last round changes with one standard error of the mean of each arm.

    >>> import jaxbandits as jb
    >>> from functools import partial
    >>> halving = partial(jb.sequential_halving, budget=40)
    >>> runs = jb.simulate(jb.instances.canonical(4, gap=1.0), halving, replications=20)
    >>> runs.pulls.shape, runs.arm_pulls.shape
    ((20,), (20, 4))
    >>> runs.summary()["pulls_mean"]
    40.0
    """

    replication: Int[np.ndarray, " R"]
    pulls: Int[np.ndarray, " R"]
    answer: Int[np.ndarray, " R"] | Bool[np.ndarray, "R M"]
    correct: Bool[np.ndarray, " R"]
    stopped: Bool[np.ndarray, " R"]
    arm_pulls: Int[np.ndarray, "R K"]
    rounds: Int[np.ndarray, " T"] | None = None
    regret: Float[np.ndarray, "R T"] | None = None
    info: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    meta: dict[str, Any] = dataclasses.field(default_factory=dict)
    facts: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    regret_errors: Float[np.ndarray, "R K"] | None = None

    def __post_init__(self) -> None:
        tables = {name: np.asarray(table) for name, table in self._tables().items()}
        try:
            saved.check_shapes({name: ArrayFacts(x.dtype, x.shape) for name, x in tables.items()})
        except Unreadable as error:
            raise ValueError(f"Runs: {error}") from None

    def __len__(self) -> int:
        return len(self.pulls)

    def _tables(self) -> dict[str, Any]:
        """All arrays, by their names in a file."""
        tables = {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(self)
            if f.name not in ("meta", *saved.DICTS) and getattr(self, f.name) is not None
        }
        for group in saved.DICTS:
            tables |= {f"{group}/{name}": values for name, values in getattr(self, group).items()}
        return tables

    def __repr__(self) -> str:
        """The summary in at most ten lines; the arrays are the attributes."""
        return as_text("Runs", self._facts_shown())

    def _repr_html_(self) -> str:
        """The same as a table, which notebooks show."""
        return as_html("Runs", self._facts_shown())

    def plot(
        self, *, ax: "Axes | None" = None, scale: "Scale" = None, width: "Width" = None
    ) -> "Figure":
        """Draw the regret along the rounds, or the stopping times of runs without; see `jb.plot`.

        Args:
          ax: axes of matplotlib to draw on; those of a new figure by default.
          scale: "linear" (the default) or "log", of the regret, or of the pulls.
          width: of a new figure: "column" or "page" of a paper, or inches; see `jb.plot.sweep`.
        Returns:
          The figure.
        """
        from ..show.runs import of_runs

        return of_runs(self, ax=ax, scale=scale, width=width)

    def _facts_shown(self):
        return facts_of(self.summary(), self.arm_pulls.shape[1], self.meta)

    @property
    def reason(self) -> Int[np.ndarray, " R"]:
        """Why a replication has no answer that can be used, as a code; int8 `[R]`.

        0 where it stopped with an answer based on its data, 1 where `max_pulls` was reached and
        nothing else is known. The page "Read and compare results" has a table of all reasons;
        `jaxbandits.engine.reasons.NAMES` gives the name of a code.
        """
        return codes_of(self.stopped, self.info | self.facts)

    def summary(self, *, confidence: float = CONFIDENCE) -> dict[str, Any]:
        """Error rate with its exact binomial interval, mean and quantiles of the pulls.

        Replications cut short count as neither right nor wrong, and so do all of a contextual run,
        where each round has another best arm; where none is left the rate is NaN. Those cut short
        enter `pulls_mean` at the pulls they made, which is then a lower bound:
        `pulls_mean_is_lower_bound` is True.

        Args:
          confidence: of the intervals, in (0, 1); 0.95 by default.
        Returns:
          A dict of plain numbers. `pulls_se` is the standard error of `pulls_mean`, `pulls_low` and
          `pulls_high` are the ends of its interval by Student's t, NaN for one replication;
          `regret_mean`, `regret_se`, `regret_low` and `regret_high`, at the last round, are added
          for regret runs. Where means are estimated, these hold the errors of the means too:
          `regret_se_of_means` is the part of `regret_se` that more replications do not reduce, see
          `instances.estimated_regret`. `reasons` counts the replications without an answer that can
          be used, by reason: all that were cut short, and those that stopped with a random answer
          or from draws that do not span. `info` has totals of counts (whole numbers and flags) and
          means over the replications of all other numbers.
        """
        check("confidence", probability, confidence)
        finished = int(self.stopped.sum())
        # In a contextual run each round has another best arm: no answer can be judged.
        judged = 0 if self.meta.get("contextual") else finished
        errors = int((self.stopped & ~self.correct).sum()) if judged else 0
        low, high = binomial_interval(errors, judged, confidence)
        total = len(self)
        digest: dict[str, Any] = {
            "replications": total,
            "cut_short": total - finished,
            "errors": errors,
            "error_rate": errors / judged if judged else float("nan"),
            "error_low": low,
            "error_high": high,
            **_mean("pulls", self.pulls, confidence),
            "pulls_quantiles": _quantiles(self.pulls),
            "pulls_mean_is_lower_bound": finished < total,
            "reasons": counted(self.reason),
        }
        if self.regret is not None:
            part = error_of_means(self.regret_errors)
            digest |= _mean("regret", self.regret[:, -1], confidence, part)
            if self.regret_errors is not None:
                digest["regret_se_of_means"] = part
        return {**digest, "info": {name: _digest(values) for name, values in self.info.items()}}

    def to_xarray(self) -> "xarray.Dataset":
        """An `xarray.Dataset` with dimensions replication, arm, target and round.

        It holds everything: `info` and `facts` as `info_...` and `facts_...`, and `meta`, as text,
        in its attributes.
        """
        with needed_by("to_xarray"):
            import xarray

        columns: dict[str, Any] = {
            "pulls": ("replication", self.pulls),
            "answer": (("replication", "target")[: self.answer.ndim], self.answer),
            "correct": ("replication", self.correct),
            "stopped": ("replication", self.stopped),
            "arm_pulls": (("replication", "arm"), self.arm_pulls),
            "reason": ("replication", self.reason, REASON_ATTRIBUTES),
        }
        for group in saved.DICTS:
            tables = getattr(self, group).items()
            columns |= {f"{group}_{name}": ("replication", x) for name, x in tables}
        coordinates: dict[str, Any] = {
            "replication": self.replication,
            "arm": np.arange(self.arm_pulls.shape[1]),
        }
        if self.regret is not None:
            columns["regret"] = (("replication", "round"), self.regret)
            coordinates["round"] = self.rounds
        if self.regret_errors is not None:
            columns["regret_errors"] = (("replication", "arm"), self.regret_errors)
        attributes = {k: v if isinstance(v, str) else json.dumps(v) for k, v in self.meta.items()}
        return xarray.Dataset(columns, coordinates, attributes)

    def to_dataframe(
        self, *, per: Literal["replication", "round", "arm"] = "replication"
    ) -> "pandas.DataFrame":
        """A `pandas.DataFrame`, by default with a row for each replication.

        Args:
          per: "replication": `pulls`, `answer`, `correct`, `stopped`, `reason`, `info_...`,
            `facts_...`, and `regret` at the last round where there is some. An answer that is a set
            is a tuple of indices. "round": the curve, `regret` by replication and round. "arm":
            `arm_pulls` by replication and arm. The three together hold all of the runs; `meta` is
            in `attrs`.
        Raises:
          ValueError: another `per`, or "round" of runs without a horizon.
        """
        return frame_of(self.to_xarray(), per)

    def save(self, path: Path | str) -> None:
        """Write to `path` (.npz, no pickle) in one step: a reader never sees half a file.

        Raises:
          ValueError: the name has another ending; for other formats see `to_dataframe` and
            `to_xarray`.
        """
        check_path("path", path)
        ending = Path(path).suffix
        require(ending in ("", ".npz"), f"path must end in .npz (or in nothing), got {path}")
        with replacing(path) as new, new.open("wb") as stream:
            self.write(stream)

    def write(self, stream: IO[bytes]) -> None:
        """Write what `save` puts into a file."""
        header = json.dumps({"format": saved.FORMAT, "meta": self.meta})
        np.savez_compressed(stream, header=np.array(header), **self._tables())


def load(path: Path | str | IO[bytes]) -> Runs:
    """Read `Runs` written by `Runs.save`, from a path or an open binary stream.

    Raises:
      ValueError: not such a file, or one of a later format.
    """
    if not hasattr(path, "read"):
        check_path("path", path)
    try:
        return read(path)
    except Unreadable as error:
        raise ValueError(f"path: {path} does not hold saved runs ({error})") from None


def read(path: Path | str | IO[bytes]) -> Runs:
    """As `load`, which names the file in its errors; here they are `Unreadable`, without it."""
    known: Any = path
    with contextlib.nullcontext(known) if hasattr(path, "read") else opened(known) as stream:
        return Runs(**saved.read(stream))


def first_of(runs: Runs, number: int) -> Runs:
    """`Runs` of the replications below `number`."""
    below = runs.replication < number
    if below.all():
        return runs
    return _selected(runs, below)


def _selected(runs, chosen):
    """`Runs` of the replications that a mask or a slice chooses."""
    tables: dict[str, Any] = {
        name: getattr(runs, name)[chosen] for name in ("replication", *TABLES)
    }
    for name in OF_SOME:
        if getattr(runs, name) is not None:
            tables[name] = getattr(runs, name)[chosen]
    for group in saved.DICTS:
        tables[group] = {name: x[chosen] for name, x in getattr(runs, group).items()}
    part = dataclasses.replace(runs, **tables)
    return dataclasses.replace(part, meta=runs.meta | estimated_facts(part))


def estimated_facts(runs: Runs) -> dict[str, float]:
    """What `meta` has of runs whose means are estimated."""
    return {**unsettled_share(runs.facts), **share_of_means(runs.regret, runs.regret_errors)}


def unsettled_share(facts: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Of `Runs.meta`, the share of replications whose right answer is not settled, if it is known.

    >>> unsettled_share({"unsettled": np.array([True, False])}), unsettled_share({})
    ({'unsettled': 0.5}, {})
    """
    unsettled = facts.get("unsettled")
    return {} if unsettled is None or not len(unsettled) else {"unsettled": float(unsettled.mean())}


def none_of(runs: Runs) -> Runs:
    """`Runs` like these without a single replication."""
    of_runs = ("seconds", "compile_seconds", "unsettled", "engine_reason", SHARE)
    meta = {name: value for name, value in runs.meta.items() if name not in of_runs}
    return dataclasses.replace(_selected(runs, slice(0)), meta=meta)


def joined(parts: Sequence[Runs]) -> Runs:
    """`Runs` of all replications that the parts hold, each once, sorted by replication.

    Args:
      parts: `Runs` of the same simulation; what two of them hold is equal.
    """
    if len(parts) == 1:
        return parts[0]
    ids, first = np.unique(np.concatenate([x.replication for x in parts]), return_index=True)

    def join(*tables):
        return np.concatenate(tables)[first]

    tables: dict[str, Any] = {name: join(*(getattr(x, name) for x in parts)) for name in TABLES}
    one = parts[-1]
    if one.regret is not None:
        tables["regret"] = join(*(x.regret for x in parts))
    if any(x.regret_errors is not None for x in parts):
        tables["regret_errors"] = join(*map(_regret_errors, parts))
    tables["info"] = {name: join(*(x.info[name] for x in parts)) for name in one.info}
    # Parts that an earlier version has stored lack them.
    known = {name for x in parts for name in x.facts}
    tables["facts"] = {
        name: join(*(x.facts.get(name, np.zeros(len(x), bool)) for x in parts)) for name in known
    }
    times = {
        name: round(sum(x.meta.get(name, 0.0) for x in parts), 3)
        for name in ("seconds", "compile_seconds")
    }
    known = one.meta | times
    for name, between in (("engine", ", "), ("engine_reason", "; ")):
        if said := sorted({x.meta[name] for x in parts if name in x.meta}):
            known |= {name: between.join(said)}
    if cores := [x.meta["cores"] for x in parts if "cores" in x.meta]:
        known |= {"cores": max(cores)}
    judged = join(*(np.full(len(x), "unsettled" in x.facts) for x in parts))
    known |= unsettled_share({k: v[judged] for k, v in tables["facts"].items()})
    known |= share_of_means(tables.get("regret"), tables.get("regret_errors"))
    return dataclasses.replace(one, replication=ids, meta=known, **tables)


def _regret_errors(runs):
    """Those of `Runs`; NaN where an earlier version has stored them without."""
    return np.full(runs.arm_pulls.shape, np.nan) if (x := runs.regret_errors) is None else x


def paired_difference(
    first: Runs,
    second: Runs,
    *,
    of: Literal["pulls", "errors", "regret"] = "pulls",
    confidence: float = CONFIDENCE,
) -> dict[str, Any]:
    """The mean difference, first less second, over the replications that both hold.

    Two simulations with the same seed meet the same noise in replication r, so the difference
    has a far smaller variance than that of two independent samples.

    Args:
      first, second: `Runs`.
      of: "pulls", "errors" (1 where the answer is wrong) or "regret" (at the last round).
      confidence: of the interval, that of Student's t.
    Returns:
      A dict: `replications, mean, se, low, high`, and `correlation` of the two.
    Raises:
      ValueError: fewer than two replications in common, runs cut short, an unknown `of`, or a
        confidence outside of (0, 1).

    >>> import jaxbandits as jb
    >>> from functools import partial
    >>> instance = jb.instances.canonical(4, gap=1.0)
    >>> halving = partial(jb.sequential_halving, budget=40)
    >>> some = jb.simulate(instance, halving, replications=20)
    >>> paired_difference(some, some)["mean"]
    0.0
    """
    check("confidence", probability, confidence)
    tables = [_measured(runs, of) for runs in (first, second)]
    _, *indices = np.intersect1d(first.replication, second.replication, return_indices=True)
    one, two = (table[index] for table, index in zip(tables, indices, strict=True))
    number = len(one)
    require(number >= 2, f"the runs must have 2 replications or more in common, got {number}")
    parts = [x.regret_errors for x in (first, second)] if of == "regret" else [None, None]
    common = [None if x is None else x[index] for x, index in zip(parts, indices, strict=True)]
    return mean_difference(one, two, confidence, error_of_difference(*common))


def mean_difference(
    one: Float[np.ndarray, " R"],
    two: Float[np.ndarray, " R"],
    confidence: float = CONFIDENCE,
    part: float = 0.0,
) -> dict[str, Any]:
    """The mean of `one - two`, with Student's interval; see `paired_difference`.

    Args:
      part: of the standard error, what estimated means add to it.
    """
    number = len(one)
    mean, error = float(np.mean(one - two)), with_means(standard_error(one - two), part)
    width = half_width(error, number, confidence)
    varied = one.std() > 0 and two.std() > 0
    return {
        "replications": number,
        "mean": mean,
        "se": float(error),
        "low": mean - width,
        "high": mean + width,
        "correlation": float(np.corrcoef(one, two)[0, 1]) if varied else float("nan"),
    }


def _measured(runs, of):
    """One number for each replication, float [R]."""
    known = ("pulls", "errors", "regret")
    require(of in known, f"of must be one of {', '.join(map(repr, known))}", of)
    if of == "regret":
        require(runs.regret is not None, "of must be 'pulls' or 'errors' here, got 'regret'")
        return runs.regret[:, -1]
    cut = int((~runs.stopped).sum())
    require(not cut, f"{cut} replications were cut short, so their {of} are not known")
    return (runs.pulls if of == "pulls" else ~runs.correct).astype(float)


def _mean(name, values, confidence, part=0.0):
    """Mean, standard error and interval of a quantity, as entries of a summary.

    Args:
      part: of the standard error, what estimated means add to it.
    """
    mean = float(values.mean()) if len(values) else float("nan")
    error = float(with_means(standard_error(values), part))
    width = half_width(error, len(values), confidence)
    ends = {f"{name}_low": mean - width, f"{name}_high": mean + width}
    return {f"{name}_mean": mean, f"{name}_se": error, **ends}


def _digest(values):
    """The total of whole numbers and flags, the mean of other numbers."""
    if np.issubdtype(values.dtype, np.floating):
        return float(values.mean()) if len(values) else float("nan")
    return np.sum(values).item()


def _quantiles(values):
    if not len(values):
        return {level: float("nan") for level in LEVELS}
    return {level: float(q) for level, q in zip(LEVELS, np.quantile(values, LEVELS), strict=True)}
