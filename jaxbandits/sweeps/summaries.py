"""What a sweep's dataset says of its cells, computed from the replications that it holds."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..engine.reasons import REASONS
from ..instances.estimated_regret import error_of_means, with_means
from ..intervals import CONFIDENCE, binomial_interval, half_width, standard_error

if TYPE_CHECKING:
    from xarray import DataArray, Dataset, Variable

EACH = "replication"
LEVEL = "confidence"  # attribute: that of each interval, where cells are looked at several times


def confidence_of(dataset: "Dataset") -> float:
    """The confidence of each interval of a cell; see `until.confidence`."""
    return float(dataset.attrs.get(LEVEL, CONFIDENCE))


def summarised(dataset: "Dataset") -> "Dataset":
    """The dataset with the columns of `SUMMARY`, and `reasons` where it has `reason`.

    Args:
      dataset: with `pulls`, `correct`, `stopped`, on the dimension replication and others. NaN
        stands for a replication that was not played. Where it has `judged`, that says of which
        cells an answer can be right or wrong.
    """
    level, stopped = confidence_of(dataset), _stopped(dataset)
    found = {**_rates(dataset, stopped, level), **_pulls(dataset.pulls.variable, stopped, level)}
    if "reason" in dataset:
        found["reasons"] = _reasons(dataset.reason)
    return dataset.assign(found)


# All columns of a dataset lie on one grid: their variables say the same as the arrays with
# coordinates, of which xarray would compare those of both sides in each operation.


def _rates(dataset: "Dataset", stopped: "Variable", level: float) -> "dict[str, Variable]":
    """Counts, and the error rate with its exact interval."""
    wrong = ~_true(dataset.correct)
    played, finished = dataset.pulls.variable.notnull().sum(EACH), stopped.sum(EACH)
    judged = finished * dataset.judged.variable if "judged" in dataset else finished
    errors = (stopped & wrong).sum(EACH).where(judged > 0, 0)
    low, high = binomial_interval(errors.values, judged.values, level)
    return {
        "replications": played,
        "cut_short": played - finished,
        "errors": errors,
        "error_rate": errors / judged.where(judged > 0),
        "error_low": errors.copy(data=np.asarray(low)),
        "error_high": errors.copy(data=np.asarray(high)),
    }


def _stopped(dataset: "Dataset") -> "Variable":
    return _true(dataset.stopped) & dataset.pulls.variable.notnull()


def _true(flags: "DataArray") -> "Variable":
    """Where a flag is set; NaN, which stands for no replication, is not."""
    return flags.variable.astype(float) == 1.0


def _pulls(pulls: "Variable", stopped: "Variable", level: float) -> "dict[str, Variable]":
    """The mean pulls with their interval."""
    played, mean = pulls.notnull(), pulls.mean(EACH)
    number = played.sum(EACH)
    deviations = ((pulls - mean) ** 2).sum(EACH)
    error = np.sqrt(deviations / (number - 1).where(number > 1) / number)
    width = half_width(error, number, level)
    return {
        "pulls_mean": mean,
        "pulls_se": error,
        "pulls_low": mean - width,
        "pulls_high": mean + width,
        "pulls_mean_is_lower_bound": (played & ~stopped).any(EACH),
    }


def _reasons(codes: "DataArray") -> "DataArray":
    """How many replications have each reason, along the dimension `why`."""
    import xarray

    numbers = [(codes.variable == reason.code).sum(EACH) for reason in REASONS]
    table = xarray.Variable.concat(numbers, "why").transpose(..., "why")
    grid = {name: codes[name] for name in table.dims if name in codes.coords}
    return xarray.DataArray(table, {**grid, "why": [reason.name for reason in REASONS]})


def last_regret(cell: "Dataset") -> tuple[float, float]:
    """Mean regret of a cell at its last round, and half the width of its interval.

    The interval holds the error of estimated means, see `instances.estimated_regret`.

    Both are NaN where it was not run, and the second of one replication.
    """
    last = cell.regret.isel(round=-1).dropna(EACH).values
    mean = float(last.mean()) if last.size else np.nan
    error = with_means(standard_error(last), error_of_means(regret_errors(cell)))
    return mean, half_width(error, last.size, confidence_of(cell))


def regret_errors(cell: "Dataset") -> Float[np.ndarray, " K"] | None:
    """Mean `Runs.regret_errors` of a cell; None where no cell of the sweep has any."""
    return cell.regret_errors.values if "regret_errors" in cell else None


def width_of_pulls(cell: "Dataset") -> float:
    """Half the width of the interval of the mean pulls of a cell."""
    return float(cell.pulls_high - cell.pulls_low) / 2
