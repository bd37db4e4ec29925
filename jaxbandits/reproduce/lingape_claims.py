"""What the LinGapE paper says of its figures and its table, decided by standard errors."""

import itertools
import json
import math

import numpy as np

from ..engine.results import standard_error
from .base import below, claim
from .rules import between, together

ANGLE = 0.01
HANDFUL = 100
DIGITS = 5e-5  # half a unit of the last digit of the paper's 0.0050
ORACLE_PULLS = {"0.01": 2_742_457, "0.1": 21_495}  # by angle, in five dimensions; Table 1
ORACLE_ARMS = (13_646, 2_728_606, 68, 68, 68, 1)
STATIC_SHARES = (0.5, 1.0, 1.0, 1.0, 1.0, 0.5)  # of the pulls of the third arm


def exact(cells):
    """What XY-oracle takes is no matter of chance."""
    options = json.loads(cells.attrs["options"])["[instances.soare]"]
    expected = ORACLE_PULLS.get(str(options["angle"]))
    text = f"XY-oracle takes {expected} pulls in five dimensions, each time."
    if expected is None or 5 not in cells.dim:
        return claim(text, {"pulls": None}, None)
    pulls = np.unique(_ended(cells).sel(algorithm="XY-oracle", dim=5).pulls.dropna("replication"))
    holds = bool((pulls == expected).all()) if pulls.size else None
    return claim(text, {"pulls": pulls.tolist()}, holds)


def _ended(cells):
    """The cells with NaN for replications that were cut short, which leave claims open."""
    return cells.assign(pulls=cells.pulls.where(cells.stopped.astype(bool)))


def _pulls(cells, name):
    """`[R, 6]`; NaN where they are not played, or would fill the memory and are not kept."""
    if name not in cells.algorithm:
        return np.full((1, 6), np.nan)
    cell = cells.sel(algorithm=name)
    kept = cell.get("arm_pulls", np.full((1, 6), np.nan))
    ended = np.asarray(cell.stopped)[..., None]
    return np.where(ended, np.asarray(kept), np.nan)[:, : int(cell.num_arms)]


def second_arm(cells):
    """Where LinGapE looks."""
    pulls = _pulls(cells, "LinGapE")
    share = pulls[:, 1] / pulls.sum(1)
    mean, error = float(share.mean()), standard_error(share)
    measured = {"share": mean, "standard_error": error}
    text = "More than 99% of the pulls of LinGapE are of the second arm, e_2."
    return claim(text, measured, below(0.99, error, mean))


def ratio(cells):
    """How it shares its pulls between the two arms that tell."""
    pulls = _pulls(cells, "LinGapE")
    ratios = pulls[:, 0] / pulls[:, 1]
    mean, error, expected = float(ratios.mean()), standard_error(ratios), math.tan(ANGLE / 2)
    measured = {"ratio": mean, "standard_error": error, "expected": expected}
    text = "T_1 / T_2 of LinGapE is tan(angle / 2), 0.0050 to the digits printed."
    enough = error < DIGITS  # also False for the NaN of a single replication
    return claim(text, measured, abs(mean - expected) < DIGITS + 2 * error if enough else None)


def rest(cells):
    """What is left for the other arms."""
    others = _pulls(cells, "LinGapE")[:, 2:]
    means = others.mean(0)
    errors = [standard_error(column) for column in others.T]
    worst = int(np.argmax(means))
    measured = {"mean_pulls": means.tolist(), "standard_errors": errors}
    text = f"LinGapE pulls every other arm a handful of times, fewer than {HANDFUL}."
    return claim(text, measured, below(float(means[worst]), errors[worst], HANDFUL))


def shares(cells):
    """Where XY-static looks."""
    pulls = _pulls(cells, "XY-static")
    shares = pulls / pulls[:, 2:3]
    means = shares.mean(0)
    measured = {"shares": means.tolist(), "printed": list(STATIC_SHARES)}
    text = "XY-static pulls the arms 1/2 : 1 : 1 : 1 : 1 : 1/2, to a twentieth."
    close = bool((np.abs(means - STATIC_SHARES) < 0.05).all())
    return claim(text, measured, None if np.isnan(means).any() else close)


def oracle_arms(cells):
    """Where XY-oracle looks."""
    pulls = _pulls(cells, "XY-oracle")
    means = pulls.mean(0)
    measured = {"mean_pulls": means.tolist(), "printed": list(ORACLE_ARMS)}
    text = "XY-oracle pulls each arm as often as printed, to a thousandth and a few pulls."
    close = bool(np.allclose(means, ORACLE_ARMS, rtol=1e-3, atol=2))
    return claim(text, measured, None if np.isnan(means).any() else close)


def difference(cells):
    """Between neighbours along the axis, whose gaps fall."""
    gaps = sorted(cells.gap.values.tolist(), reverse=True)
    rows = []
    for gap in gaps:
        one, other = (cells.sel(gap=gap, algorithm=name) for name in ("LinGapE", "XY-static"))
        apart = float(other.pulls_mean - one.pulls_mean)
        error = math.hypot(float(one.pulls_se), float(other.pulls_se))
        rows.append((apart, math.nan if one.cut_short or other.cut_short else error))
    decided = [
        below(low, math.hypot(low_error, high_error), high)
        for (low, low_error), (high, high_error) in itertools.pairwise(rows)
    ]
    measured = {
        "difference": dict(zip(map(str, gaps), [apart for apart, _ in rows], strict=True)),
        "standard_errors": [error for _, error in rows],
    }
    text = "The smaller the gap, the more pulls LinGapE saves against XY-static."
    return claim(text, measured, together(decided))


def quarter(cells):
    """What the best of equal arms gets."""
    cell = cells.sel(algorithm="LinGapE")
    kept = cell.get("arm_pulls")
    text = "LinGapE gives the best arm a quarter of the pulls, to a twentieth."
    if kept is None:
        return claim(text, {"share": None}, None)
    share = (kept.isel(arm=0) / kept.sum("arm")).where(cell.stopped.astype(bool))
    mean = float(share.mean(skipna=False))
    error = standard_error(share.mean("gap").dropna("replication").values)
    measured = {"share": mean, "standard_error": error}
    return claim(text, measured, between(mean, error, 0.2, 0.3))


def _paired(cells):
    """Pulls of XY-static over those of LinGapE, replication by replication `[num_arms, R]`."""
    one, other = (_ended(cells).pulls.sel(algorithm=name) for name in ("LinGapE", "XY-static"))
    return (other / one).transpose("num_arms", "replication").values


def five_times(cells):
    """How much LinGapE saves on the log."""
    ratios = _paired(cells).mean(0)
    mean, error = float(ratios.mean()), standard_error(ratios)
    measured = {"ratio": mean, "standard_error": error}
    text = "LinGapE takes roughly a fifth of the pulls of XY-static, between a third and an eighth."
    return claim(text, measured, between(mean, error, 3.0, 8.0))


def saved(cells):
    """In pulls, by number of arms."""
    one, other = (_ended(cells).pulls.sel(algorithm=name) for name in ("LinGapE", "XY-static"))
    saved = (other - one).transpose("num_arms", "replication").values
    change = saved[-1] - saved[0]
    mean, error = float(change.mean()), standard_error(change)
    measured = {"saved": saved.mean(1).tolist(), "change": mean, "standard_error": error}
    text = "The more arms, the more pulls LinGapE saves."
    return claim(text, measured, below(0.0, error, mean))


def widening(cells):
    """As a ratio, by number of arms."""
    ratios = _paired(cells)
    change = ratios[-1] - ratios[0]
    mean, error = float(change.mean()), standard_error(change)
    measured = {"ratios": ratios.mean(1).tolist(), "change": mean, "standard_error": error}
    text = "The more arms, the larger the ratio of the two."
    return claim(text, measured, below(0.0, error, mean))
