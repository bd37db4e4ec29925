"""`compare`: several algorithms on one instance, replication by replication."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..engine.episode import MAX_PULLS
from ..engine.frames import frame_of
from ..engine.problems import is_problem
from ..instances.estimated_regret import error_of_means, with_means
from ..intervals import half_width, standard_error
from ..messages import brief
from ..parameters import check, choice, require
from ..signatures import hinting_at_partial
from ..sweeps import sweep
from ..sweeps.dataset import engines_text, unsettled_text
from ..sweeps.selection import axes_of, complete, replications_text
from ..sweeps.stated import stated
from ..sweeps.summaries import regret_errors
from .options import part_text
from .pairs import compared_by, difference
from .plot import figure

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

    from ..plots_of_runs import Drawable

INSTANCE = "instance"  # its name in the dataset
COUNTED = ("replications", "cut_short", "errors", "error_rate", "error_low", "error_high")
PULLS = ("pulls_mean", "pulls_se", "pulls_low", "pulls_high")


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison:
    """What `compare` returns.

    Attributes:
      dataset: an `xarray.Dataset` as that of `sweep`, with every replication.
      table: a `pandas.DataFrame`, a row for each algorithm: counts and error rate with its exact
        95% interval, mean pulls with their standard error and 95% interval (Student's),
        `pull_lower_bound` and `over_bound`, the ratio to it, where the bound is known, and of
        regret runs the same of the regret at the last round: `regret_mean`, ... .
        `difference` is the mean difference to the first algorithm over the same replications, of
        regret where there is some, else of pulls or, where all algorithms make the same pulls, of
        errors; with its 95% interval `difference_low` to `difference_high`. It is NaN where
        replications were cut short, or too few differ in their errors. `print` of the comparison
        shows the same in few columns of text.

    >>> import jaxbandits as jb
    >>> from functools import partial
    >>> halving = partial(jb.sequential_halving, budget=40)
    >>> found = compare({"halving": halving}, jb.instances.canonical(4, gap=1.0), replications=20)
    >>> found.table["pulls_mean"].tolist()
    [40.0]
    """

    dataset: "xarray.Dataset"
    table: "pandas.DataFrame"

    @functools.cached_property
    def runs(self) -> "dict[str, Drawable]":
        """What `jb.plot` needs of each algorithm, by name."""
        cells = complete(self.dataset).isel(instance=0)
        return {
            str(name): AlgorithmRuns(cells.sel(algorithm=name)) for name in cells.algorithm.values
        }

    def to_dataframe(
        self, *, per: Literal["replication", "round", "arm"] = "replication"
    ) -> "pandas.DataFrame":
        """Every replication as a `pandas.DataFrame`, by default a row for each.

        Args:
          per: as in `Runs.to_dataframe`, whose columns these are. The first level of the index is
            the algorithm, then axes, where there are any, and the replication. An `info_...` that
            an algorithm does not count is NaN.
        Raises:
          ValueError: another `per`, or "round" of runs without a horizon, or "arm" where a large
            comparison keeps no pulls of arms.

        >>> import jaxbandits as jb
        >>> from functools import partial
        >>> halving = partial(jb.sequential_halving, budget=40)
        >>> instance = jb.instances.canonical(4, gap=1.0)
        >>> found = compare({"halving": halving}, instance, replications=20, bounds=False)
        >>> found.to_dataframe().groupby("algorithm").pulls.mean()["halving"].item()
        40.0
        """
        cells = self.dataset.isel(instance=0, drop=True)
        if "answers" in cells:
            cells = cells.rename(answers="answer")
        return frame_of(cells, per, ["algorithm", *axes_of(cells)])

    def plot(self, *, title: str | None = None) -> "Figure":
        """The figure of the comparison, as `jb.plot.sweep` draws it.

        Pulls and error rates; right answers where all pulls are equal; with a horizon the regret.

        Args:
          title: above the panels; by default the instance and the number of replications.
        """
        dataset = complete(self.dataset)
        if title is None:
            part = stated(dataset.attrs, "options")[f"[instances.{INSTANCE}]"]
            title = f"{part_text(part)}\n{replications_text(dataset)} replications"
        found = figure(dataset, title=title)
        for ax in found.axes:  # the title says which instance
            if ax.get_title() == INSTANCE:
                ax.set_title("")
            if [label.get_text() for label in ax.get_xticklabels()] == [INSTANCE]:
                ax.set_xticks([])
        return found

    def __repr__(self) -> str:
        """The table in few columns, with 95% intervals."""
        from .narrow import text_of

        return text_of(self.table)

    def _repr_html_(self) -> str:
        """The comparison in HTML, which notebooks show."""
        from .narrow import html_of

        return html_of(self.table)


class AlgorithmRuns:
    """What `jb.plot` needs of the replications of one algorithm, as in `Runs`."""

    def __init__(self, cell: "xarray.Dataset") -> None:
        # A mask of replications leaves NaN in place of the others.
        self._cell = cell = cell.isel(replication=cell.pulls.notnull().values)
        self.pulls: np.ndarray = cell.pulls.values.astype(int)
        self.stopped: np.ndarray = cell.stopped.values.astype(bool)
        self.rounds: np.ndarray | None = cell["round"].values if "regret" in cell else None
        self.regret: np.ndarray | None = cell.regret.values if "regret" in cell else None
        self.regret_errors: np.ndarray | None = regret_errors(cell)

    @property
    def arm_pulls(self) -> np.ndarray:
        """Pulls of each arm `[R, K]`; of a large comparison their means alone, `[1, K]`."""
        if "arm_pulls" in self._cell:
            return self._cell.arm_pulls.values
        return self._cell.arm_pulls_mean.values[None]

    def summary(self) -> dict[str, Any]:
        """Counts and the error rate with its interval, see `Runs.summary`."""
        return {name: self._cell[name].item() for name in COUNTED}


@hinting_at_partial
def compare(
    algorithms: Mapping[str, Any],
    instance: Any,
    *,
    replications: int,
    seed: int = 0,
    horizon: int | None = None,
    max_pulls: int = MAX_PULLS,
    bounds: bool = True,
    progress: bool = False,
    batch: int | None = None,
    devices: Any = None,
    engine: str = "auto",
) -> Comparison:
    """Play several algorithms on an instance, with the same noise in the same replications.

    A thin layer over `sweep`, which also has axes, stored cells and clusters.

    Args:
      algorithms: by name, constructors with their options bound; differences are to the first.
      instance: an `Instance`, or a constructor of one with its options bound.
      replications, seed, horizon, max_pulls, batch, devices, engine: as in `simulate`.
      bounds: whether to compute the lower bound of the mean pulls where it is known; that compiles
        for some seconds.
      progress: whether to show it.
    Returns:
      A `Comparison`: `.table`, `.plot()`, `.dataset`, `.to_dataframe()`.
    Raises:
      ValueError: names what was wrong; before anything is played.

    >>> from functools import partial
    >>> import jaxbandits as jb
    >>> found = compare(
    ...     {
    ...         "60 pulls": partial(jb.sequential_halving, budget=60),
    ...         "90 pulls": partial(jb.sequential_halving, budget=90),
    ...     },
    ...     jb.instances.canonical(4, gap=1.0),
    ...     replications=50,
    ...     bounds=False,
    ... )
    >>> found.table.pulls_mean.tolist()
    [60.0, 90.0]
    >>> found.table.difference["90 pulls"].item()
    30.0
    """
    named = isinstance(algorithms, Mapping) and len(algorithms) > 0
    message = f"algorithms must be a dict of constructors by name, got {brief(algorithms)}"
    require(named, message)
    for name, build in algorithms.items():
        require(callable(build), f"algorithms[{name!r}] must be a constructor", build)
    if not (is_problem(instance) or callable(instance)):
        raise ValueError(f"instance must be an Instance or a callable, got {brief(instance)}")
    check("bounds", choice(False, True), bounds)
    dataset = sweep(
        {INSTANCE: instance},
        algorithms,
        replications=replications,
        seed=seed,
        horizon=horizon,
        max_pulls=max_pulls,
        progress=progress,
        batch=batch,
        devices=devices,
        engine=engine,
        bounds=bounds and horizon is None,
    )
    return Comparison(dataset, _table(complete(dataset).isel(instance=0)))


def _table(dataset):
    import pandas

    columns = {name: dataset[name].values for name in (*COUNTED, *PULLS)}
    if "pull_lower_bound" in dataset:
        bound = dataset.pull_lower_bound.values
        columns |= {"pull_lower_bound": bound, "over_bound": columns["pulls_mean"] / bound}
    quantity = compared_by(dataset)
    if "regret" in dataset:
        last = dataset.regret.isel(round=-1).transpose("replication", ...).values
        cells = (dataset.isel(algorithm=k) for k in range(last.shape[1]))
        parts = [error_of_means(regret_errors(cell)) for cell in cells]
        mean, error = last.mean(0), with_means(standard_error(last), parts)
        width = half_width(error, len(last))
        columns |= {"regret_mean": mean, "regret_se": error}
        columns |= {"regret_low": mean - width, "regret_high": mean + width}
    differences = [difference(dataset, k, 0, quantity) for k in range(dataset.sizes["algorithm"])]
    for name, key in (("", "mean"), ("_low", "low"), ("_high", "high")):
        columns[f"difference{name}"] = [found.get(key, np.nan) for found in differences]
    index = pandas.Index(dataset.algorithm.values, name="algorithm")
    table = pandas.DataFrame(columns, index=index)
    table.attrs |= {"difference": quantity, "unsettled": unsettled_text(dataset)}
    table.attrs["engines"] = engines_text(dataset)
    return table
