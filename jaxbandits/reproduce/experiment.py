"""What an experiment is, and how one is run."""

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..engine.episode import MAX_PULLS
from ..parameters import require
from ..signatures import function_of
from ..sweeps.spec import Part, Sweep, read
from ..sweeps.stated import WHOLE_AXES
from ..system.files import replacing
from ..system.plugins import is_ours
from .claims import on_other_instances

if TYPE_CHECKING:
    from xarray import Dataset

    from ..report.reading import ClaimRow
    from ..show.canvas import Scale

Builders: TypeAlias = Mapping[str, Any]  # by name, a constructor with its options bound
Axes: TypeAlias = Mapping[str, Sequence[Any]]


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper as data: what is run, and what it must show.

    Attributes:
      title: what it shows; the title of the figure.
      instances, algorithms: by name, constructors with the paper's options bound.
      replications: the usual number.
      claims: `dataset -> rows`, as `claims.checked` makes it.
      quantities: rows of panels, as in `plot.figure`.
      axes: by name, values of an option.
      only: by name of an algorithm or instance, the values of an axis at which alone it is run.
      horizon: rounds of a regret run.
      max_pulls: of a replication; enough for all to end by themselves.
      quick: what the small version has instead: `axes`, `replications`, `horizon`, `instances`, and
        names of those `algorithms` that it runs; its axes are points of the large ones.
      from_folder: `folder of local data -> instances`, for a paper whose data are not ours to
        distribute; `instances` are then what stands in.
      stand_in: says what that is; title and claims repeat it. Text, or `folder (None: none given)
        -> text`.
      extended: `(dataset, sweep) -> dataset` with what is drawn, or judged, besides.
      scale: of the figure, "linear" or "log", where the paper says it; as in `plot.figure`.
      undrawn: algorithms that the paper runs and its figure leaves out, as this one then does.
    """

    title: str
    instances: Builders
    algorithms: Builders
    replications: int
    claims: "Callable[[Dataset], list[ClaimRow]]"
    quantities: Sequence[str]
    axes: Axes = dataclasses.field(default_factory=dict)
    only: Mapping[str, Axes] = dataclasses.field(default_factory=dict)
    horizon: int | None = None
    max_pulls: int = MAX_PULLS
    quick: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    from_folder: Callable[[Path], Builders] | None = None
    stand_in: str | Callable[[Path | None], str] = ""
    extended: "Callable[[Dataset, Sweep], Dataset] | None" = None
    scale: "Scale" = None
    undrawn: Sequence[str] = ()

    def sweep(
        self, replications: int | None = None, quick: bool = False, data: Path | str | None = None
    ) -> Sweep:
        """The `Sweep` to run; `data` that it does not need are ignored."""
        from ..sweeps import planned

        chosen: dict[str, Any] = {
            "instances": self.instances,
            "algorithms": tuple(self.algorithms),
            "axes": self.axes,
            "only": self.only,
            "replications": self.replications,
            "horizon": self.horizon,
            "max_pulls": self.max_pulls,
        }
        chosen |= self.quick if quick else {}
        chosen |= {} if replications is None else {"replications": replications}
        if data is not None and self.from_folder is not None:
            chosen["instances"] = self.from_folder(Path(data))
        algorithms = {name: self.algorithms[name] for name in chosen.pop("algorithms")}
        parts = {**algorithms, **chosen["instances"]}
        chosen["only"] = _restricted(chosen["only"], parts, chosen["axes"])
        return planned(algorithms=algorithms, **chosen)

    def changed(self, sweep: Sweep) -> list[str]:
        """Options of its instances that a small version sets otherwise, as `angle = 0.01`."""
        return [
            f"{option} = {value}"
            for part in sweep.instances
            for option, value in getattr(self.instances.get(part.label), "keywords", {}).items()
            if {**getattr(part.build, "keywords", {}), **part.options}.get(option) != value
        ]

    def note(self, data: Path | str | None) -> str:
        """What title and claims add where a stand-in is run."""
        if callable(self.stand_in):
            text = self.stand_in(None if data is None else Path(data))
        else:
            text = self.stand_in if self.from_folder is not None and data is None else ""
        return f" ({text})" if text else ""


def _restricted(only: Mapping[str, Axes], parts: Builders, axes: Axes) -> dict[str, dict]:
    """What `only` says of these parts at these points."""
    return {
        name: {axis: [v for v in values if v in axes[axis]] for axis, values in limits.items()}
        for name, limits in only.items()
        if name in parts
    }


def from_files(*files: str) -> dict[str, Any]:
    """What an `Experiment` takes from sweep files that differ in their instances alone."""
    sweeps = [read(Path(__file__).parent / file) for file in files]
    first, parts = sweeps[0], [part for sweep in sweeps for part in sweep.instances]
    alike = all(dataclasses.replace(one, instances=first.instances) == first for one in sweeps)
    require(alike, f"{files}: the sweeps must be alike but for instances")
    return {
        "instances": {part.label: _bound(part) for part in parts},
        "algorithms": {part.label: _bound(part) for part in first.algorithms},
        "axes": first.axes,
        "replications": first.replications,
        "horizon": first.horizon,
        "only": {part.label: part.only for part in (*parts, *first.algorithms) if part.only},
    }


def _bound(part: Part) -> functools.partial[Any]:
    return functools.partial(part.build, **part.options)


@dataclasses.dataclass(frozen=True)
class Result:
    """What a run of an experiment gave."""

    dataset: "Dataset"
    claims: "list[ClaimRow]"


def run(
    experiment: Experiment,
    out: Path | str,
    *,
    replications: int | None = None,
    quick: bool = False,
    data: Path | str | None = None,
    force: bool = False,
    source: str = "",
    **how: Any,
) -> Result | None:
    """Run an `Experiment` into the folder `out`; cells that it holds are not run again.

    Args:
      source: the plugin that the experiment comes from, and the hash of its code; "" for none.
      how: see `sweeps.run`.
    Returns:
      A `Result`; None as long as `out` lacks cells of other shards.
    """
    from .. import sweeps
    from ..report import frame, plot
    from ..sweeps.dataset import write
    from ..sweeps.folder import for_results

    out, note = Path(out), experiment.note(data)
    sweep = _of_plugin(experiment.sweep(replications, quick, data), source)
    cells = sweeps.check(sweep, progress=how.get("progress", False))
    name, devices, shard = experiment.title + note, how.get("devices"), how.get("shard", (1, 1))
    with for_results(
        out, sweep, cells, force=force, experiment=name, shard=shard, devices=devices
    ) as folder:
        dataset = sweeps.run(sweep, cells=cells, out=folder, bounds=True, **how)
        if dataset is None:
            return None
        if experiment.extended is not None:
            dataset = experiment.extended(dataset, sweep)
        dataset.attrs["experiment"] = name
        whole = json.dumps({axis: list(values) for axis, values in experiment.axes.items()})
        rows = experiment.claims(dataset.assign_attrs({WHOLE_AXES: whole}))
        changed = experiment.changed(sweep) if data is None else []
        claims: list[ClaimRow] = [
            on_other_instances({**row, "claim": row["claim"] + note}, changed) for row in rows
        ]
        write(dataset, out / "results.nc")
        drawn = [one for one in dataset.algorithm.values if one not in experiment.undrawn]
        shown = dataset.sel(algorithm=drawn)
        options: Any = {"quantities": experiment.quantities, "scale": experiment.scale}
        plot.save(shown, out / "figure.png", **options)
        frame.write_csv(dataset, out / "table.csv")
        write_claims(claims, out)
    return Result(dataset, claims)


def _of_plugin(sweep: Sweep, source: str) -> Sweep:
    """The sweep with the plugin's code in the identity of what it defines itself."""

    def marked(parts: Sequence[Part]) -> tuple[Part, ...]:
        return tuple(
            part if _is_ours(part.build) else dataclasses.replace(part, source=source)
            for part in parts
        )

    if not source:
        return sweep
    parts = marked(sweep.instances), marked(sweep.algorithms)
    return dataclasses.replace(sweep, instances=parts[0], algorithms=parts[1])


def _is_ours(build: Any) -> bool:
    """Whether a constructor, and the one that it is around, are of this package."""
    function = function_of(build)
    inner = getattr(function, "inner", None)
    if inner is not None:
        return _is_ours(inner)
    return is_ours(getattr(function, "__module__", None) or "")


def write_claims(claims: "Sequence[ClaimRow]", out: Path) -> None:
    """Write `claims.json` into a folder, in one step."""
    text = json.dumps(claims, indent=2, allow_nan=False) + "\n"
    with replacing(out / "claims.json") as new:
        new.write_text(text, encoding="utf-8")
