"""`compare`: several algorithms on one instance, replication by replication."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..engine.episode import MAX_PULLS
from ..engine.frames import frame_of
from ..engine.problems import is_problem
from ..messages import brief
from ..parameters import check, choice, require
from ..show.labels import texts_of
from ..signatures import hinting_at_partial
from ..sweeps.grid import run
from ..sweeps.selection import axes_of, complete
from ..sweeps.spec import planned
from ..sweeps.stated import stated
from ..sweeps.summaries import regret_errors
from ..system.extras import needed_by
from .frame import COUNTED, frame
from .options import part_text
from .plot import figure, said_of

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

    from ..show.canvas import Scale, Width
    from ..show.runs import Drawable

INSTANCE = "instance"  # its name in the dataset


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison:
    """What `compare` returns.

    Attributes:
      dataset: an `xarray.Dataset` as that of `sweep`, with every replication.
      table: a `pandas.DataFrame` that is computed from the dataset, a row for each algorithm, at
        each point of the axes where there are any: of regret runs the mean regret at the last round
        with its standard error and 95% interval (Student's), `regret_mean`, ...; counts and error
        rate with its exact 95% interval; the same of the mean pulls as of the regret;
        `pull_lower_bound` and `over_bound`, the ratio to it, where the bound is known. `difference`
        is the mean difference to the first algorithm there over the same replications, of regret
        where there is some, else of pulls or, where all algorithms make the same pulls, of errors;
        with its 95% interval `difference_low` to `difference_high`. It is NaN where replications
        were cut short, or too few differ in their errors. `print` of the comparison shows the same
        in few columns of text.

    >>> import jaxbandits as jb
    >>> from functools import partial
    >>> halving = partial(jb.sequential_halving, budget=40)
    >>> found = compare({"halving": halving}, jb.instances.canonical(4, gap=1.0), replications=20)
    >>> found.table["pulls_mean"].tolist()
    [40.0]
    """

    dataset: "xarray.Dataset"

    # Nothing is kept: users change datasets in place.
    @property
    def table(self) -> "pandas.DataFrame":
        """The numbers of each algorithm, see `Comparison`."""
        return frame(self.dataset).droplevel(INSTANCE)

    @property
    def runs(self) -> "dict[str, Drawable]":
        """The replications of each algorithm, by name; with axes also by point.

        Those names are as "LinGapE, angle = 0.3".
        """
        cells = complete(self.dataset, whole=True).isel(instance=0)
        axes = axes_of(cells)
        texts = [texts_of(cells[name].values.tolist()) for name in axes]
        found = {}
        for algorithm, *point in itertools.product(
            *(cells[name].values.tolist() for name in ("algorithm", *axes))
        ):
            facts = [f"{n} = {t(v)}" for n, t, v in zip(axes, texts, point, strict=True)]
            cell = cells.sel({"algorithm": algorithm, **dict(zip(axes, point, strict=True))})
            found[", ".join([str(algorithm), *facts])] = AlgorithmRuns(cell)
        return found

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
        cells = complete(self.dataset, whole=True).isel(instance=0, drop=True)
        if "answers" in cells and "answer" not in cells.coords:  # which an axis may be
            cells = cells.rename(answers="answer")
        return frame_of(cells, per, ["algorithm", *axes_of(cells)])

    def plot(
        self,
        *,
        title: str | None = None,
        ax: Any = None,
        scale: "Scale" = None,
        width: "Width" = None,
    ) -> "Figure":
        """The figure of the comparison, as `jb.plot.sweep` draws it.

        Pulls, and error rates where there was an error; right answers where all pulls are equal;
        with a horizon the regret. With axes these are lines along the longest one.

        Args:
          title: above the panels, "" for none; by default the instance and the number of
            replications, and nothing on axes that are given.
          ax, scale, width: as in `jb.plot.sweep`. On a single one of the axes of matplotlib, a
            comparison without axes of its own draws the pulls alone, or what stands for them.
        Returns:
          The figure, see `jb.plot.sweep`.
        """
        dataset = complete(self.dataset)
        if title is None and ax is None:
            parts = stated(dataset.attrs, "options") if "options" in dataset.attrs else {}
            part = parts.get(f"[instances.{INSTANCE}]")
            said = [] if part is None else [part_text(part)]
            title = "\n".join([*said, said_of(dataset)])
        how: dict[str, Any] = {"ax": ax, "scale": scale, "width": width}
        # The title says which instance.
        return figure(dataset, title=title, named=False, shown=True, **how)

    def __repr__(self) -> str:
        """The table in few columns, with 95% intervals."""
        from .narrow import text_of

        return text_of(self.table)

    def _repr_html_(self) -> str:
        """The comparison in HTML, which notebooks show."""
        from .narrow import html_of

        return html_of(self.table)


class AlgorithmRuns:
    """The replications of one algorithm, with the names and shapes of `Runs`.

    Attributes:
      replication: `[R]` numbers.
      pulls, stopped, correct: `[R]`.
      answer: `[R]` indices, or sets `[R, M]`; None where there are none.
      arm_pulls: `[R, K]`.
      rounds, regret, regret_errors: of runs with a horizon, else None.
    """

    def __init__(self, cell: "xarray.Dataset") -> None:
        # A mask of replications leaves NaN in place of the others.
        self._cell = cell = cell.isel(replication=cell.pulls.notnull().values)
        self.pulls: np.ndarray = cell.pulls.values.astype(int)
        self.stopped: np.ndarray = cell.stopped.values.astype(bool)
        self.correct: np.ndarray = cell.correct.values.astype(bool)
        self.replication: np.ndarray = cell.replication.values
        answer = cell.answers.values if "answers" in cell else None
        if answer is not None:
            answer = answer.astype(bool if answer.ndim > 1 else int)
        self.answer: np.ndarray | None = answer
        self.rounds: np.ndarray | None = cell["round"].values if "regret" in cell else None
        self.regret: np.ndarray | None = cell.regret.values if "regret" in cell else None
        self.regret_errors: np.ndarray | None = regret_errors(cell)

    @property
    def arm_pulls(self) -> np.ndarray:
        """Pulls of each arm `[R, K]`; of a large comparison their means alone, `[1, K]`."""
        if "arm_pulls" in self._cell:
            return self._cell.arm_pulls.values
        return self._cell.arm_pulls_mean.values[None]

    def __repr__(self) -> str:
        """How many there are, and what else is known of them."""
        names = ", ".join([*(name for name in vars(self) if name != "_cell"), "arm_pulls"])
        return f"<{len(self.pulls)} replications of {self._cell.algorithm.item()}: {names}>"

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
    axes: Mapping[str, Any] | None = None,
    horizon: int | None = None,
    max_pulls: int = MAX_PULLS,
    bounds: bool = True,
    progress: bool | None = None,
    batch: int | None = None,
    devices: Any = None,
    cores: int | None = None,
    engine: str = "auto",
) -> Comparison:
    """Play several algorithms on an instance, with the same noise in the same replications.

    A thin layer over `sweep`, which also has several instances, stored cells and clusters. Ctrl-C
    returns what is done, with a warning; `print` of the comparison says so too.

    Args:
      algorithms: by name, constructors with their options bound; differences are to the first.
      instance: an `Instance`, or a constructor of one with its options bound.
      replications, seed, horizon, max_pulls, batch, devices, cores, engine: as in `simulate`.
      axes: by name, values of an option of the algorithms or of the instance, as in `sweep`: the
        comparison is made at each point.
      bounds: whether to compute the lower bound of the mean pulls where it is known; that compiles
        for some seconds.
      progress: whether to show it; None: as in `simulate`.
    Returns:
      A `Comparison`: `.table`, `.plot()`, `.dataset`, `.runs`, `.to_dataframe()`.
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
    >>> found = compare(
    ...     {"halving": partial(jb.sequential_halving, budget=60)},
    ...     partial(jb.instances.canonical, 4),
    ...     axes={"gap": [0.5, 1.0]},
    ...     replications=50,
    ... )
    >>> found.table.pulls_mean.to_dict()
    {('halving', 0.5): 60.0, ('halving', 1.0): 60.0}
    """
    named = isinstance(algorithms, Mapping) and len(algorithms) > 0
    message = f"algorithms must be a dict of constructors by name, got {brief(algorithms)}"
    require(named, message)
    for name, build in algorithms.items():
        require(callable(build), f"algorithms[{name!r}] must be a constructor", build)
    if not (is_problem(instance) or callable(instance)):
        raise ValueError(f"instance must be an Instance or a callable, got {brief(instance)}")
    check("bounds", choice(False, True), bounds)
    with needed_by("compare"):  # now, as they are used when all has been played
        import pandas  # noqa: F401
        import xarray  # noqa: F401
    plan = planned(
        {INSTANCE: instance},
        algorithms,
        replications=replications,
        axes=axes,
        seed=seed,
        horizon=horizon,
        max_pulls=max_pulls,
    )
    dataset = run(
        plan,
        progress=progress,
        batch=batch,
        devices=devices,
        cores=cores,
        engine=engine,
        bounds=bounds and horizon is None,
        partial=True,
    )
    assert dataset is not None  # as it is for shards alone
    return Comparison(dataset)
