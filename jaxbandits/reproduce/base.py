"""What an experiment is, and how one is run."""

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..files import replacing


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper.

    Attributes:
      title: what it shows; the title of the figure.
      sweep: `(replications or None, quick, data folder or None) -> Sweep`.
      claims: `dataset -> [claim]`, as `claim` below makes them.
      quantities: rows of panels, as in `plot.figure`.
    """

    title: str
    sweep: Callable
    claims: Callable
    quantities: tuple


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


def play(experiment, out, *, replications=None, quick=False, data=None, **how):
    """Run an `Experiment` into the folder `out`; cells that it holds are not run again.

    Args:
      how: see `sweeps.run`.
    """
    from .. import plot, sweeps
    from ..sweeps.dataset import check_ours, write

    out = Path(out)
    plan = experiment.sweep(replications, quick, data)
    sweeps.check(plan)
    out.mkdir(parents=True, exist_ok=True)
    check_ours(out / "results.nc")
    dataset = sweeps.run(plan, out=out, **how)
    dataset.attrs["experiment"] = experiment.title
    claims = experiment.claims(dataset)
    write(dataset, out / "results.nc")
    title = f"{experiment.title}\n{plan.replications} replications"
    plot.save(dataset, out / "figure.png", title=title, quantities=experiment.quantities)
    _write_text(out / "claims.json", json.dumps(claims, indent=2, allow_nan=False) + "\n")
    return Result(dataset, claims)


def _write_text(path, text):
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8")


def below(value, error, limit, *, standard_errors=2.0):
    """True or False where `value` is clearly below or above `limit`, None in between."""
    if math.isnan(error):
        return None
    if abs(value - limit) < standard_errors * error:
        return None
    return value < limit
