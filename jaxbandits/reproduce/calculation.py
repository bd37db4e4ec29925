"""Figures and tables of papers that no algorithm plays for: their rows are calculated."""

import dataclasses
import functools
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import replaced
from ..engine.checks import size_or_none
from ..report.reading import CALCULATED
from ..sweeps.dataset import write
from ..sweeps.store import CELLS
from ..system.files import replacing
from ..system.machine import provenance
from ..system.named import text_of
from ..system.own_code import hash_of_value
from ..system.progress import Progress
from ..version import VERSION
from .experiment import Result, write_claims

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

    from ..report.reading import ClaimRow

# Of a row, by name: numbers, and lists of them that are equally long in all rows.
Numbers: TypeAlias = Mapping[str, float | list[float]]
# Functions of this package with their options bound. Where the calculation has `replications`,
# that is one option more.
Rows: TypeAlias = Mapping[str, functools.partial[Numbers]]

ROW, SAMPLE = "row", "sample"  # dimensions of the dataset
RECORDED, MADE_UP = "recorded data", "no recorded data"  # the attribute `CALCULATED`
ROWS = 10  # that fit one below the other into a panel of usual height
DIGITS = 32  # of the hash in the name of a stored row


@dataclasses.dataclass(frozen=True)
class Calculation:
    """A figure or table of a paper that is calculated, row by row.

    Attributes:
      title: what it shows; the title of the figure.
      rows: by name, what calculates a row.
      claims: `dataset -> rows`, as `claims.checked` makes it. The dataset has a variable for each
        number, along "row", and for each list, along "row" and "sample".
      draw: puts the dataset into axes of matplotlib; what has a label is in the legend below.
      replications: how many random instances a row is calculated from; None where nothing is drawn.
      quick: what the small version has instead: `replications`, and names of those `rows` that it
        calculates.
      from_folder: `folder of local data -> rows`, for a paper whose data are not ours to
        distribute; `rows` are then what stands in.
      stand_in: says what that is; title and claims repeat it.
      revision: to be raised when stored rows are no longer what is calculated.
    """

    title: str
    rows: Rows
    claims: "Callable[[Dataset], list[ClaimRow]]"
    draw: "Callable[[Dataset, Axes], None]"
    replications: int | None = None
    quick: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    from_folder: Callable[[Path], Rows] | None = None
    stand_in: str = ""
    revision: int = 0

    def chosen(
        self, replications: int | None = None, quick: bool = False, data: Path | str | None = None
    ) -> Rows:
        """The rows to calculate; `data` that it does not need are ignored."""
        number = self.number(replications, quick)
        rows = self.rows
        if data is not None and self.from_folder is not None:
            rows = self.from_folder(Path(data))
        wanted = self.quick.get("rows", rows) if quick else rows
        size = {} if number is None else {"replications": number}
        return {name: functools.partial(rows[name], **size) for name in rows if name in wanted}

    def number(self, replications: int | None = None, quick: bool = False) -> int | None:
        """How many random instances a row is calculated from."""
        if self.replications is None:
            return None
        size_or_none("replications", replications)
        usual = self.quick.get("replications", self.replications) if quick else self.replications
        return usual if replications is None else replications

    def note(self, data: Path | str | None) -> str:
        """What title and claims add where a stand-in is used."""
        stands_in = self.from_folder is not None and data is None
        return f" ({self.stand_in})" if stands_in else ""


def is_recorded(dataset: "Dataset") -> bool:
    """Whether a dataset was calculated from the paper's own data."""
    return dataset.attrs[CALCULATED] == RECORDED


def calculate(
    calculation: Calculation,
    out: Path | str,
    *,
    replications: int | None = None,
    quick: bool = False,
    data: Path | str | None = None,
    force: bool = False,
    progress: bool = False,
    shard: tuple[int, int] = (1, 1),
    **_: Any,
) -> Result | None:
    """Calculate into the folder `out`; rows that it holds are not calculated again.

    Args:
      force: replace results of another experiment that `out` holds, which are refused otherwise.
      shard: `(i, n)`: every n-th row alone, from the i-th on.
    Returns:
      A `Result`; None as long as `out` lacks rows of other shards.
    """
    out, note = Path(out), calculation.note(data)
    rows, title = calculation.chosen(replications, quick, data), calculation.title + note
    number = calculation.number(replications, quick)
    if not force:
        _check_folder(out, calculation.title)
    files = {
        name: out / CELLS / f"{_key(row, calculation.revision)}.json" for name, row in rows.items()
    }
    (out / CELLS).mkdir(parents=True, exist_ok=True)
    mine = list(rows)[shard[0] - 1 :: shard[1]]
    missing = [name for name in mine if not files[name].exists()]
    with Progress(progress, items="rows", number=len(missing)) as shown:
        for name in missing:
            shown.show(name, 0, None)
            if not files[name].exists():  # another process may have been here
                _store(files[name], rows[name])
            shown.finish(name)
    if not all(file.exists() for file in files.values()):
        return None
    found = {name: json.loads(file.read_text(encoding="utf-8")) for name, file in files.items()}
    dataset = _dataset({name: row["numbers"] for name, row in found.items()})
    recorded = data is not None and calculation.from_folder is not None
    dataset.attrs |= {
        "experiment": title,
        "jaxbandits": VERSION,
        "seconds": sum(row["seconds"] for row in found.values()),
        CALCULATED: RECORDED if recorded else MADE_UP,
        **({} if number is None else {"replications": number}),
        **provenance(),
    }
    claims: list[ClaimRow] = [
        {**row, "claim": row["claim"] + note} for row in calculation.claims(dataset)
    ]
    write(dataset, out / "results.nc")
    _save(calculation, dataset, out / "figure.png")
    columns = [name for name in dataset.data_vars if dataset[name].dims == (ROW,)]
    with replacing(out / "table.csv") as new:
        dataset[columns].to_dataframe().to_csv(new)
    write_claims(claims, out)
    return Result(dataset, claims)


def _check_folder(out: Path, title: str) -> None:
    """Raise where results of something else would be overwritten."""
    import xarray

    file = out / "results.nc"
    if not file.exists():
        return
    with xarray.open_dataset(file) as dataset:
        found = str(dataset.attrs.get("experiment", "a sweep"))
    if not found.startswith(title):
        raise ValueError(
            f"{file}: it holds another experiment ({found}) and is not overwritten; --force does, "
            "or name another folder"
        )


def _key(row: functools.partial[Numbers], revision: int) -> str:
    """The hash of what calculates a row, of its revision, and of the version of this package."""
    changed = replaced.look()
    more = [hash_of_value(changed)] if changed else []
    text = json.dumps([VERSION, revision, text_of(row), *more])
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _store(file: Path, row: functools.partial[Numbers]) -> None:
    begin = time.perf_counter()
    numbers = row()
    found = {"numbers": numbers, "seconds": time.perf_counter() - begin}
    with replacing(file) as new:
        new.write_text(json.dumps(found, allow_nan=False), encoding="utf-8")


def _dataset(found: Mapping[str, Numbers]) -> "Dataset":
    """An `xarray.Dataset` of the numbers of all rows."""
    import xarray

    names = next(iter(found.values()))
    tables = {name: np.array([row[name] for row in found.values()]) for name in names}
    columns = {name: ((ROW, SAMPLE)[: table.ndim], table) for name, table in tables.items()}
    return xarray.Dataset(columns, {ROW: list(found)})


def _save(calculation: Calculation, dataset: "Dataset", path: Path) -> None:
    """Draw the figure, and write it in all formats."""
    from ..report import plot
    from ..show.canvas import handles, legend_below, new_figure, points, size_of, wrapped

    high = -(-dataset.sizes[ROW] // ROWS)
    with new_figure(size_of(high, 1, None), shown=False) as fig:
        ax = fig.subplots()
        calculation.draw(dataset, ax)
        ax.grid(alpha=0.3)
        legend_below(fig, handles([ax]), grow=True)
        size = points("figure.titlesize")
        title = wrapped(dataset.attrs["experiment"], plot.TITLE * fig.get_figwidth(), size)
        fig.suptitle(title, fontsize=size)
    plot.write(fig, path)
