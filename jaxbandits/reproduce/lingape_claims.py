"""What the LinGapE paper says of its figures and its table, decided by standard errors."""

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..intervals import half_width, standard_error
from ..report.measured import REPLICATIONS
from ..sweeps.stated import stated
from .claims import Finding, claim_on_cells
from .measures import (
    CLEAR,
    Estimate,
    all_hold,
    difference_of,
    error_of,
    mean_of,
    not_run,
    values_not_run,
)

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

ANGLE = 0.01
HANDFUL = 100
DIGITS = 5e-5  # half a unit of the last digit of the paper's 0.0050
ORACLE_PULLS = {"0.01": 2_742_457, "0.1": 21_495}  # by angle, in five dimensions; Table 1
ORACLE_ARMS = (13_646, 2_728_606, 68, 68, 68, 1)
STATIC_SHARES = (0.5, 1.0, 1.0, 1.0, 1.0, 0.5)  # of the pulls of the third arm


def _oracle_pulls(cells: "Dataset") -> int | None:
    """What the paper prints for the angle that was run."""
    options = stated(cells.attrs, "options")["[instances.soare]"]
    return ORACLE_PULLS.get(str(options["angle"]))


@claim_on_cells(
    lambda dataset: f"XY-oracle takes {_oracle_pulls(dataset)} pulls in five dimensions, each time."
)
def exact(cells: "Dataset") -> Finding:
    """The pulls of XY-oracle do not depend on the rewards."""
    expected = _oracle_pulls(cells)
    missing = [*not_run(cells, ["XY-oracle"]), *values_not_run(cells, {"dim": 5})]
    if expected is None or missing:
        return Finding({"pulls": None}, None, missing)
    pulls = np.unique(_ended(cells).sel(algorithm="XY-oracle", dim=5).pulls.dropna("replication"))
    holds = bool((pulls == expected).all()) if pulls.size else None
    return Finding({"pulls": pulls.tolist()}, holds)


def _ended(cells: "Dataset") -> "Dataset":
    """The cells with NaN for replications that were cut short, which leave claims open."""
    return cells.assign(pulls=cells.pulls.where(cells.stopped.astype(bool)))


def _arm_pulls(cells: "Dataset", name: str) -> Float[np.ndarray, "R 6"]:
    """NaN where the algorithm was not run, or its table was too large to be kept."""
    if name not in cells.algorithm:
        return np.full((1, 6), np.nan)
    cell = cells.sel(algorithm=name)
    kept = cell.get("arm_pulls", np.full((1, 6), np.nan))
    ended = np.asarray(cell.stopped)[..., None]
    return np.where(ended, np.asarray(kept), np.nan)[:, : int(cell.num_arms)]


@claim_on_cells("More than 99% of the pulls of LinGapE are of the second arm, e_2.")
def second_arm(cells: "Dataset") -> Finding:
    """The arm that LinGapE pulls most."""
    pulls = _arm_pulls(cells, "LinGapE")
    share = mean_of(pulls[:, 1] / pulls.sum(1))
    measured = {"share": share.value, **error_of(share)}
    return Finding(measured, share.above(0.99), not_run(cells, ["LinGapE"]))


@claim_on_cells("T_1 / T_2 of LinGapE is tan(angle / 2), 0.0050 to the digits printed.")
def ratio(cells: "Dataset") -> Finding:
    """How LinGapE divides its pulls between the two arms that are informative."""
    pulls = _arm_pulls(cells, "LinGapE")
    found, expected = mean_of(pulls[:, 0] / pulls[:, 1]), math.tan(ANGLE / 2)
    measured = {"ratio": found.value, **error_of(found), "expected": expected}
    width = half_width(found.error, found.number, CLEAR)
    enough = width < 2 * DIGITS  # also False for the NaN of a single replication
    close = abs(found.value - expected) < DIGITS + width
    return Finding(measured, close if enough else None, not_run(cells, ["LinGapE"]))


@claim_on_cells(f"LinGapE pulls every other arm a handful of times, fewer than {HANDFUL}.")
def rest(cells: "Dataset") -> Finding:
    """The pulls of the other arms."""
    others = _arm_pulls(cells, "LinGapE")[:, 2:]
    means, errors, number = others.mean(0), standard_error(others), len(others)
    measured = {"mean_pulls": means.tolist(), "standard_errors": errors.tolist()}
    measured[REPLICATIONS] = number
    worst = int(np.argmax(means))
    found = Estimate(float(means[worst]), float(errors[worst]), number)
    return Finding(measured, found.below(HANDFUL), not_run(cells, ["LinGapE"]))


@claim_on_cells("XY-static pulls the arms 1/2 : 1 : 1 : 1 : 1 : 1/2, to a twentieth.")
def shares(cells: "Dataset") -> Finding:
    """How XY-static divides its pulls."""
    pulls = _arm_pulls(cells, "XY-static")
    means = (pulls / pulls[:, 2:3]).mean(0)
    measured = {"shares": means.tolist(), "printed": list(STATIC_SHARES)}
    close = bool((np.abs(means - STATIC_SHARES) < 0.05).all())
    verdict = None if np.isnan(means).any() else close
    return Finding(measured, verdict, not_run(cells, ["XY-static"]))


@claim_on_cells("XY-oracle pulls each arm as often as printed, to a thousandth and a few pulls.")
def oracle_arms(cells: "Dataset") -> Finding:
    """How XY-oracle divides its pulls."""
    means = _arm_pulls(cells, "XY-oracle").mean(0)
    measured = {"mean_pulls": means.tolist(), "printed": list(ORACLE_ARMS)}
    close = bool(np.allclose(means, ORACLE_ARMS, rtol=1e-3, atol=2))
    verdict = None if np.isnan(means).any() else close
    return Finding(measured, verdict, not_run(cells, ["XY-oracle"]))


@claim_on_cells("The smaller the gap, the more pulls LinGapE saves against XY-static.")
def difference(cells: "Dataset") -> Finding:
    """The pulls saved at each gap, compared with those at the next smaller gap."""
    gaps = sorted(cells.gap.values.tolist(), reverse=True)
    savings = []
    for gap in gaps:
        one, other = (cells.sel(gap=gap, algorithm=name) for name in ("LinGapE", "XY-static"))
        saved = difference_of(mean_of(other.pulls.values), mean_of(one.pulls.values))
        cut = one.cut_short or other.cut_short
        savings.append(saved._replace(error=math.nan) if cut else saved)
    rising = [difference_of(less, more).below(0.0) for less, more in itertools.pairwise(savings)]
    measured = {
        "difference": {str(gap): found.value for gap, found in zip(gaps, savings, strict=True)},
        "standard_errors": [found.error for found in savings],
        REPLICATIONS: min(found.number for found in savings),
    }
    return Finding(measured, all_hold(rising))


@claim_on_cells("LinGapE gives the best arm a quarter of the pulls, to a twentieth.")
def quarter(cells: "Dataset") -> Finding:
    """The share of the best arm, where all others are equal."""
    cell = cells.sel(algorithm="LinGapE")
    kept = cell.get("arm_pulls")
    if kept is None:
        return Finding({"share": None}, None)
    share = (kept.isel(arm=0) / kept.sum("arm")).where(cell.stopped.astype(bool))
    each = share.mean("gap").dropna("replication").values
    found = Estimate(float(share.mean(skipna=False)), standard_error(each), len(each))
    measured = {"share": found.value, **error_of(found)}
    return Finding(measured, found.within(0.2, 0.3))


def _pulls_of_both(cells: "Dataset") -> "tuple[DataArray, DataArray]":
    """The pulls of LinGapE and of XY-static."""
    pulls = _ended(cells).pulls.transpose("algorithm", "num_arms", "replication")
    return pulls.sel(algorithm="LinGapE"), pulls.sel(algorithm="XY-static")


def _ratios(cells: "Dataset") -> Float[np.ndarray, "num_arms R"]:
    """Pulls of XY-static over those of LinGapE, replication by replication."""
    one, other = _pulls_of_both(cells)
    return (other / one).values


@claim_on_cells(
    "LinGapE takes roughly a fifth of the pulls of XY-static, between a third and an eighth."
)
def five_times(cells: "Dataset") -> Finding:
    """How much LinGapE saves on the log."""
    found = mean_of(_ratios(cells).mean(0))
    measured = {"ratio": found.value, **error_of(found)}
    return Finding(measured, found.within(3.0, 8.0))


@claim_on_cells("The more arms, the more pulls LinGapE saves.")
def saved(cells: "Dataset") -> Finding:
    """The pulls saved, by number of arms."""
    one, other = _pulls_of_both(cells)
    return _widens("saved", (other - one).values)


@claim_on_cells("The more arms, the larger the ratio of the two.")
def widening(cells: "Dataset") -> Finding:
    """The ratio of pulls, by number of arms."""
    return _widens("ratios", _ratios(cells))


def _widens(name: str, values: Float[np.ndarray, "num_arms R"]) -> Finding:
    """Whether the values at the most arms are above those at the fewest."""
    change = mean_of(values[-1] - values[0])
    measured = {name: values.mean(1).tolist(), "change": change.value}
    return Finding(measured | error_of(change), change.above(0.0))
