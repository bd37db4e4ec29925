"""Figures and tables of the papers as data: what to run, and what it must show."""

from pathlib import Path
from typing import Any

from ..signatures import unknown
from . import glm, gse, lingape, rage, topm
from .experiment import Experiment, Result, run

__all__ = ["EXPERIMENTS", "Experiment", "Result", "reproduce"]

EXPERIMENTS: dict[str, Experiment] = {
    **glm.EXPERIMENTS,
    **gse.EXPERIMENTS,
    **lingape.EXPERIMENTS,
    **rage.EXPERIMENTS,
    **topm.EXPERIMENTS,
}


def reproduce(
    name: str,
    out: Path | str,
    *,
    replications: int | None = None,
    quick: bool = False,
    data: Path | str | None = None,
    force: bool = False,
    **how: Any,
) -> Result:
    """Run the experiment `name` into the folder `out`.

    Args:
      name: a name in `EXPERIMENTS`.
      out: gets `results.nc`, `figure.png`, `claims.json` and the stored cells.
      replications: instead of the experiment's own number.
      quick: a small version.
      data: folder of local data sets.
      force: replace results of another sweep that `out` holds, which are refused otherwise.
      how: `progress, cluster, devices, engine`, as in `sweep`.
    Returns:
      A `Result`.
    Raises:
      ValueError: no such experiment, or a bad option.
    """
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    return run(
        EXPERIMENTS[name],
        out,
        replications=replications,
        quick=quick,
        data=data,
        force=force,
        **how,
    )
