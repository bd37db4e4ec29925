"""The page: sections of each folder's results, in one file that needs no other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...system.files import replacing
from .. import reading
from ..pairs import pairs
from ..reading import Results
from .claims import Claims, claims_of
from .facts import Fact, description, provenance, what_was_run
from .figures import Figure, figures
from .pairs import PairTable, pair_table
from .rendering import render
from .tables import Table, table

PAGE, TEMPLATE = "report.html", "page.html"


class InstanceSection(NamedTuple):
    """What was measured on one instance."""

    id: str
    name: str
    description: str
    figures: list[Figure]
    table: Table
    pairs: PairTable | None
    several: bool  # whether there are algorithms to compare


class Run(NamedTuple):
    """The results of one folder."""

    id: str
    title: str
    claims: Claims | None
    instances: list[InstanceSection]
    what_was_run: list[Fact]
    provenance: list[Fact]


def write(folder: Path | str) -> Path:
    """Write `folder/report.html` in one step.

    Args:
      folder: holds `results.nc`, or sub-folders that do (two levels down); `claims.json` beside
        one is shown too.
    Returns:
      The path of the page.
    Raises:
      ValueError: a file is missing, damaged or not of a sweep; nothing is written then.
    """
    text = build(reading.find(folder), Path(folder).resolve().name)
    path = Path(folder) / PAGE
    with replacing(path) as new:
        new.write_bytes(text.encode())
    return path


def build(found: Sequence[Results], name: str) -> str:
    """The text of the page.

    Args:
      found: `reading.Results` of each folder.
      name: of the folder above them.
    """
    many = len(found) > 1
    runs = [_run(f"run-{i}", results, many) for i, results in enumerate(found)]
    title = f"Results in {name}" if many else runs[0].title
    return render(TEMPLATE, title=title, runs=runs, many=many)


def _run(id: str, results: Results, many: bool) -> Run:
    attrs = results.dataset.attrs
    asked = attrs.get("experiment") or attrs.get("title")
    if many:
        title = f"{results.name}: {asked or 'a sweep'}"
    else:
        title = asked or f"Results of {results.name}"
    labels = results.dataset.instance.values.tolist()
    return Run(
        id,
        title,
        claims_of(results.claims, int(results.dataset.replications.max())),
        [_instance(f"{id}-instance-{i}", results, i, label) for i, label in enumerate(labels)],
        what_was_run(results),
        provenance(results),
    )


def _instance(id: str, results: Results, number: int, label: Any) -> InstanceSection:
    one = results.dataset.isel(instance=[number])
    return InstanceSection(
        id,
        str(label),
        description(results, "instance", label),
        figures(one, id, f"Cells of {label}"),
        table(results, label),
        pair_table(pairs(one), label),
        several=one.sizes["algorithm"] > 1,
    )
