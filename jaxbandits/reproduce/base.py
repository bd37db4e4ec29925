"""What an experiment is, and how one is run."""

import dataclasses
import functools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..engine.episode import MAX_PULLS
from ..parameters import require
from ..sweeps.spec import read
from ..system.files import replacing


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper as data: what is played, and what it must show.

    Attributes:
      title: what it shows; the title of the figure.
      instances, algorithms: by name, constructors with the paper's options bound.
      replications: the usual number.
      claims: `dataset -> [claim]`, as `claim` below makes them.
      quantities: rows of panels, as in `plot.figure`.
      axes: by name, values of an option.
      only: by name, values of an axis at which alone an algorithm or instance is played.
      horizon: rounds of a regret run.
      max_pulls: of a replication; enough for all to end by themselves.
      quick: what the small version has instead: `axes`, `replications`, `horizon`, `instances`, and
        names of those `algorithms` that it plays; its axes are points of the large ones.
      from_folder: `folder of local data -> instances`, for a paper whose data are not ours to
        ship; `instances` are then what stands in.
      stand_in: says what that is; title and claims repeat it. Text, or `folder (None: none given)
        -> text`.
      extended: `(dataset, plan) -> dataset` with what is drawn besides.
    """

    title: str
    instances: dict
    algorithms: dict
    replications: int
    claims: Callable
    quantities: tuple
    axes: dict = dataclasses.field(default_factory=dict)
    only: dict = dataclasses.field(default_factory=dict)
    horizon: int | None = None
    max_pulls: int = MAX_PULLS
    quick: dict = dataclasses.field(default_factory=dict)
    from_folder: Callable | None = None
    stand_in: str | Callable = ""
    extended: Callable | None = None

    def sweep(self, replications=None, quick=False, data=None):
        """The `Sweep` to run; data that it does not need are left alone."""
        from ..sweeps import planned

        chosen = {
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
        played = {name: self.algorithms[name] for name in chosen.pop("algorithms")}
        chosen["only"] = _left(chosen["only"], {**played, **chosen["instances"]}, chosen["axes"])
        return planned(algorithms=played, **chosen)

    def note(self, data):
        """What title and claims add where a stand-in is played."""
        if callable(self.stand_in):
            text = self.stand_in(None if data is None else Path(data))
        else:
            text = self.stand_in if self.from_folder is not None and data is None else ""
        return f" ({text})" if text else ""


def _left(only, parts, axes):
    """What `only` says of these parts at these points."""
    return {
        name: {axis: [v for v in values if v in axes[axis]] for axis, values in limits.items()}
        for name, limits in only.items()
        if name in parts
    }


def from_files(*files):
    """What an `Experiment` has of sweep files that are alike but for instances."""
    plans = [read(Path(__file__).parent / file) for file in files]
    first, parts = plans[0], [part for plan in plans for part in plan.instances]
    alike = all(dataclasses.replace(plan, instances=first.instances) == first for plan in plans)
    require(alike, f"{files}: the sweeps must be alike but for instances")
    bound = lambda part: functools.partial(part.build, **part.options)  # noqa: E731
    return {
        "instances": {part.label: bound(part) for part in parts},
        "algorithms": {part.label: bound(part) for part in first.algorithms},
        "axes": first.axes,
        "replications": first.replications,
        "horizon": first.horizon,
        "only": {part.label: part.only for part in (*parts, *first.algorithms) if part.only},
    }


@dataclasses.dataclass(frozen=True)
class Result:
    """What a run of an experiment gave."""

    dataset: Any
    claims: list


def claim(text, measured, holds):
    """A claim of a paper, the numbers that bear on it, and whether it holds (None: unknown)."""
    holds = None if holds is None else bool(holds)
    return {"claim": text, "measured": _plain(measured), "holds": holds}


def _plain(value):
    """JSON has no NaN (the standard error of one replication): null instead."""
    if isinstance(value, dict):
        return {name: _plain(v) for name, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return None if value != value else value


def play(experiment, out, *, replications=None, quick=False, data=None, force=False, **how):
    """Run an `Experiment` into the folder `out`; cells that it holds are not run again.

    Args:
      how: see `sweeps.run`.
    """
    from .. import sweeps
    from ..report import plot
    from ..sweeps.dataset import write
    from ..sweeps.folder import for_results

    out, note = Path(out), experiment.note(data)
    plan = experiment.sweep(replications, quick, data)
    cells = sweeps.check(plan, progress=how.get("progress", False))
    name = experiment.title + note
    team = {"devices": how.get("devices")}
    with for_results(out, plan, cells, force=force, experiment=name, **team) as folder:
        dataset = sweeps.run(plan, cells=cells, out=folder, bounds=True, **how)
        if experiment.extended is not None:
            dataset = experiment.extended(dataset, plan)
        dataset.attrs["experiment"] = name
        claims = [one | {"claim": one["claim"] + note} for one in experiment.claims(dataset)]
        write(dataset, out / "results.nc")
        title = f"{name}\n{plan.replications} replications"
        plot.save(dataset, out / "figure.png", title=title, quantities=experiment.quantities)
        _write_text(out / "claims.json", json.dumps(claims, indent=2, allow_nan=False) + "\n")
    return Result(dataset, claims)


def _write_text(path, text):
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8")


def below(value, error, limit, *, standard_errors=2.0):
    """True or False where `value` is clearly below or above `limit`, None in between.

    None too where they are equal and nothing is left to chance: two curves that are the same run by
    run are no evidence that one of them is behind.
    """
    if math.isnan(value) or math.isnan(error):
        return None
    if value == limit or abs(value - limit) <= standard_errors * error:
        return None
    return value < limit
