"""Results of simulations, for import: `Runs`, files of them, and paired comparisons."""

from pathlib import Path
from typing import IO, TYPE_CHECKING

from .engine.results import Runs, first_of, joined, paired_difference
from .engine.results import load as load_runs
from .signatures import publish
from .system.data_files import Unreadable, check_path
from .system.extras import needed_by

if TYPE_CHECKING:
    import xarray

__all__: list[str] = ["Runs", "first_of", "joined", "load", "paired_difference"]

publish(globals())

DATASET = ".nc"  # ending of a file that holds a sweep
RUNS = (".npz", "")  # endings that `Runs.save` gives


def load(path: Path | str | IO[bytes]) -> "Runs | xarray.Dataset":
    """Read saved `Runs`, or the dataset of a sweep.

    Args:
      path: a file of `Runs.save` (or an open binary stream of one), or a file that ends in .nc:
        `results.nc`, which `jaxbandits run` writes, or what `Dataset.to_netcdf` has written of it.
    Returns:
      `Runs`; of a file that ends in .nc the `xarray.Dataset`, in memory.
    Raises:
      ValueError: names the file and says what is wrong: it is missing, damaged, of a later format
        or holds something else.

    >>> import io
    >>> import jaxbandits as jb
    >>> from functools import partial
    >>> halving = partial(jb.sequential_halving, budget=40)
    >>> runs = jb.simulate(jb.instances.canonical(4, gap=1.0), halving, replications=20)
    >>> file = io.BytesIO()
    >>> runs.write(file)
    >>> _ = file.seek(0)
    >>> bool((load(file).pulls == runs.pulls).all())
    True
    """
    if not hasattr(path, "read"):
        check_path("path", path)
    ending = "" if hasattr(path, "read") else Path(str(path)).suffix
    if ending == DATASET:
        return _dataset(Path(str(path)))
    try:
        return load_runs(path)
    except ValueError as error:
        if ending in RUNS:
            raise
        raise ValueError(f"{error}; files that can be read end in .npz or .nc") from None


def _dataset(path: Path) -> "xarray.Dataset":
    from .sweeps.dataset import loaded, opened_results

    with needed_by("a file of a sweep"):
        import xarray  # noqa: F401
    try:
        with opened_results(path) as dataset:
            return loaded(dataset)
    except Unreadable as error:
        raise ValueError(f"path: {path} does not hold the results of a sweep ({error})") from None
