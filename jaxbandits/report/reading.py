"""The results in a folder, checked before anything is written."""

import datetime
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, TypeAlias, TypedDict

from ..messages import brief, reason
from ..sweeps.dataset import loaded, opened_results
from ..sweeps.selection import complete
from ..sweeps.stated import NotOfASweep, stated
from ..system.data_files import Unreadable, parsed, read_text
from .measured import fault

if TYPE_CHECKING:
    from xarray import Dataset

FILE, CLAIMS = "results.nc", "claims.json"
DEPTHS = ("", "*/", "*/*/")  # a sub-folder may be named after an experiment, as lingape/fig1
CALCULATED = "calculated_from"  # an attribute of tables that no algorithm has played for
NOT_PLAYED = "not_played"  # in the measured numbers, what a claim is about and was not run

Options: TypeAlias = dict[str, dict[str, Any]]  # of each part of a sweep, by name of its table


class ClaimRow(TypedDict):
    """An entry of `claims.json`."""

    claim: str
    paper: NotRequired[str]  # the words that it rests on, empty for an expectation of ours
    ours: NotRequired[str]  # the number that decides, empty where many do
    measured: Any  # what the verdict rests on: a number, or lists and tables of numbers
    holds: bool | None  # None: the data leave it open


def not_played(claim: ClaimRow) -> list[str]:
    """What a claim that is open is about and was not run; empty where more of the same may tell."""
    measured = claim["measured"]
    known = claim["holds"] is None and isinstance(measured, dict)
    return measured.get(NOT_PLAYED, []) if known else []


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

    Tables that `reproduce` calculates without runs are left out.

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
    found = [_results(folder, file) for file in files]
    if not any(found):
        raise ValueError(f"{files[0]}: a table that was calculated; only runs have a report")
    return [one for one in found if one is not None]


def _results(folder: Path, file: Path) -> Results | None:
    """What the folder of a file holds; None where no algorithm has played for it."""
    try:
        with opened_results(file) as dataset:
            dataset = complete(loaded(dataset))
    except NotOfASweep as error:
        if _is_calculated(file):
            return None
        raise ValueError(f"{file}: not the results of a sweep: {reason(error)}") from None
    except ValueError as error:
        raise ValueError(f"{file}: not the results of a sweep: {reason(error)}") from None
    inside = file.parent.relative_to(folder)
    name = str(inside) if inside.parts else folder.resolve().name
    written = datetime.datetime.fromtimestamp(file.stat().st_mtime, datetime.UTC)
    axes, options = (stated(dataset.attrs, name) for name in ("axes", "options"))
    return Results(name, dataset, axes, options, _claims(file.with_name(CLAIMS)), written)


def _is_calculated(file: Path) -> bool:
    """Whether `reproduce` has written the file for a table that it calculates."""
    import xarray

    with xarray.open_dataset(file) as dataset:
        return CALCULATED in dataset.attrs


def _claims(file: Path) -> list[ClaimRow]:
    """What `reproduce` wrote, or no claims where there is no such file."""
    if not os.path.lexists(file):  # a link that leads nowhere is a fault
        return []
    try:
        claims = parsed(read_text(file))
    except Unreadable as error:
        raise ValueError(f"{file}: cannot be read as JSON: {error}") from None
    if not isinstance(claims, list) or not all(map(_is_claim, claims)):
        wanted = ", ".join(sorted(ClaimRow.__required_keys__))
        raise ValueError(f"{file}: must be a list of objects with {wanted}")
    for number, claim in enumerate(claims, 1):
        if (wrong := fault(claim["measured"]) or _fault_of_rest(claim)) is not None:
            raise ValueError(f"{file}: claim {number} has {wrong}")
    return claims


def _fault_of_rest(claim: ClaimRow) -> str | None:
    """What is wrong with the texts of a claim; None where nothing is."""
    listed = not_played(claim)
    if not (isinstance(listed, list) and all(isinstance(one, str) for one in listed)):
        return f"{NOT_PLAYED!r} that is no list of texts, {brief(listed)}"
    texts = {name: claim.get(name, "") for name in ("paper", "ours")}
    return next(
        (f"{x!r} that is no text" for x, y in texts.items() if not isinstance(y, str)), None
    )


def _is_claim(row: Any) -> bool:
    match row:
        case {"claim": str(), "measured": _, "holds": True | False | None}:
            return True
    return False
