"""The results in a folder, checked before anything is written."""

import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict

from ..messages import reason
from ..sweeps.selection import complete
from ..whole_numbers import INTEGERS, is_whole

if TYPE_CHECKING:
    from xarray import Dataset

FILE, CLAIMS = "results.nc", "claims.json"
DEPTHS = ("", "*/", "*/*/")  # a sub-folder may be named after an experiment, as lingape/fig1
NOT_PLAYED = "not_played"  # in the measured numbers, what a claim is about and was not run
WHOLE = ("seed", "replications", "max_pulls", "horizon")

Options: TypeAlias = dict[str, dict[str, Any]]  # of each part of a sweep, by name of its table


class ClaimRow(TypedDict):
    """An entry of `claims.json`."""

    claim: str
    measured: Any  # what the verdict rests on: a number, or lists and tables of numbers
    holds: bool | None  # None: the data leave it open


class Results(NamedTuple):
    """What one folder holds."""

    name: str  # of the folder, as a reader of the page knows it
    dataset: "Dataset"  # as a sweep returns it
    axes: list[str]  # names of the sweep's axes
    options: Options
    claims: list[ClaimRow]
    written: datetime.datetime  # date of the file, UTC


def find(folder: Path | str) -> list[Results]:
    """`Results` of the folder itself and of its sub-folders, two levels down.

    Args:
      folder: a path.
    Returns:
      A list of `Results`, at least one.
    Raises:
      ValueError: names the file that is missing, damaged or not of a sweep.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder}: there is no such folder")
    files = [file for depth in DEPTHS for file in sorted(folder.glob(depth + FILE))]
    if not files:
        raise ValueError(
            f"{folder / FILE}: there is no such file, nor one in a sub-folder; "
            "`jaxbandits run` and `jaxbandits reproduce` write it"
        )
    return [_results(folder, file) for file in files]


def _results(folder: Path, file: Path) -> Results:
    dataset = _load(file)
    try:
        options = _options(dataset)
        dataset = complete(dataset)
    except ValueError as error:
        raise ValueError(f"{file}: not the results of a sweep: {reason(error)}") from None
    inside = file.parent.relative_to(folder)
    name = str(inside) if inside.parts else folder.resolve().name
    written = datetime.datetime.fromtimestamp(file.stat().st_mtime, datetime.UTC)
    axes = json.loads(dataset.attrs["axes"])
    return Results(name, dataset, axes, options, _claims(file.with_name(CLAIMS)), written)


def _load(file: Path) -> "Dataset":
    import xarray

    try:
        with xarray.open_dataset(file) as dataset:
            return dataset.load()
    except Exception as error:
        # A damaged file fails in as many ways as its format has layers.
        reason = str(error).strip().split("\n")[0].split(". ")[0] or type(error).__name__
        raise ValueError(f"{file}: cannot be read as netCDF: {reason}") from None


def _options(dataset: "Dataset") -> Options:
    """The options of a dataset that has all the attributes that the page shows."""
    for name in ("axes", "options", *WHOLE):
        if name not in dataset.attrs:
            raise ValueError(f"it has no attribute {name!r}")
    for name in WHOLE:
        if not is_whole(dataset.attrs[name], types=INTEGERS):
            raise ValueError(f"the attribute {name!r} is not a whole number")
    options = _json("options", dataset.attrs["options"])
    if not isinstance(options, dict) or not all(isinstance(x, dict) for x in options.values()):
        raise ValueError("the attribute 'options' is not a table of tables")
    return options


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        raise ValueError(f"the attribute {name!r} is not JSON") from None


def _claims(file: Path) -> list[ClaimRow]:
    """What `reproduce` wrote, or no claims where there is no such file."""
    if not file.exists():
        return []
    try:
        claims = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file}: cannot be read as JSON: {reason(error)}") from None
    wanted = {"claim", "measured", "holds"}
    if not isinstance(claims, list) or not all(
        isinstance(one, dict) and wanted <= set(one) and one["holds"] in (True, False, None)
        for one in claims
    ):
        raise ValueError(f"{file}: must be a list of objects with {', '.join(sorted(wanted))}")
    return claims
