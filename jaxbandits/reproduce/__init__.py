"""Figures and tables of the papers as data: what to run, and what it must show."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..engine.checks import size_or_none
from ..parameters import require
from ..signatures import publish, unknown
from ..sweeps.grid import check_how, require_shard
from ..system.data_files import check_path
from ..system.plugins import Catalogue, PluginFile
from . import glm, gse, lingape, rage, topm
from .calculation import Calculation, calculate
from .experiment import Experiment, Result, run

__all__ = [
    "EXPERIMENTS",
    "Calculation",
    "Experiment",
    "Result",
    "experiments",
    "reproduce",
    "reproduce_all",
]

publish(globals())

# Options of `reproduce` that say how to run.
HOW = ("cluster", "batch", "devices", "cores", "engine")
EXPERIMENTS: dict[str, Experiment | Calculation] = {
    **glm.EXPERIMENTS,
    **gse.EXPERIMENTS,
    **lingape.EXPERIMENTS,
    **rage.EXPERIMENTS,
    **topm.EXPERIMENTS,
}


def experiments(plugins: Sequence[PluginFile] = ()) -> Catalogue[Experiment | Calculation]:
    """Experiments by name: those of this package, of installed plugins, and of plugin files."""

    def fits(thing: Any) -> bool:
        return isinstance(thing, Experiment)

    allowed = "a jaxbandits.reproduce.Experiment"
    return Catalogue("experiment", EXPERIMENTS, plugins, allowed=allowed, fits=fits)


def reproduce_all(
    out: Path | str, *, plugins: Sequence[PluginFile] = (), **options: Any
) -> Iterator[tuple[str, Path, Result | Exception | None]]:
    """Run every experiment into a folder of its own, `out`/NAME, one after the other.

    Args:
      out: a folder; what it holds is continued.
      plugins, options: as in `reproduce`.
    Yields:
      For each experiment its name, its folder, and what `reproduce` gave or raised: a failure does
      not stop the others.
    """
    _check_options(out, **options)
    for name in experiments(plugins):
        folder = Path(out, *name.split("/"))
        try:
            _check_folder(name)
            found = reproduce(name, folder, plugins=plugins, **options)
        except Exception as error:
            yield name, folder, error
        else:
            yield name, folder, found


def _check_options(out: Path | str, **options: Any) -> None:
    """Raise for what would make every experiment fail."""
    how = {name: value for name, value in options.items() if name in HOW}
    require_shard(options.get("shard", (1, 1)), out)
    check_how(how.pop("cluster", None), **how)
    size_or_none("replications", options.get("replications"))
    _check_data(options.get("data"))


def _check_data(data: Path | str | None) -> None:
    """Raise for a folder of data that is not there: a stand-in would be played in its place."""
    if data is not None:
        check_path("data", data)
        require(Path(data).exists(), f"data: there is no folder {data}")


def _check_folder(name: str) -> None:
    """Raise where the name of a plugin's experiment would lead out of the folder of results."""
    parts = name.split("/")
    if "\\" in name or not all(part.strip(".") for part in parts):
        raise ValueError(f"{name!r} cannot be the name of a folder")


def reproduce(
    name: str,
    out: Path | str,
    *,
    replications: int | None = None,
    quick: bool = False,
    data: Path | str | None = None,
    force: bool = False,
    plugins: Sequence[PluginFile] = (),
    **how: Any,
) -> Result | None:
    """Run the experiment `name` into the folder `out`.

    Args:
      name: one of `experiments()`.
      out: gets `results.nc`, `figure.png`, `claims.json` and the stored cells.
      replications: instead of the experiment's own number.
      quick: a small version.
      data: folder of local data sets.
      force: replace results of another sweep that `out` holds, which are refused otherwise.
      plugins: files whose experiments may be named too, see `system.plugins.read_files`.
      how: `progress, cluster, devices, cores, engine`, as in `sweep`; `shard=(i, n)` runs every
        n-th cell alone, from the i-th on.
    Returns:
      A `Result`; None as long as `out` lacks cells of other shards.
    Raises:
      ValueError: no such experiment, or a bad option.
    """
    known = experiments(plugins)
    if name not in known:
        raise unknown("experiment", name, known)
    _check_data(data)
    size: dict[str, Any] = {
        "replications": replications,
        "quick": quick,
        "data": data,
        "force": force,
    }
    found = known[name]
    if isinstance(found, Calculation):
        return calculate(found, out, **size, **how)
    return run(found, out, source=known.source(name), **size, **how)
