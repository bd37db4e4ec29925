"""What the LinGapE paper says of its figures and its table, decided by standard errors."""

import itertools
import json
import math

import numpy as np

from ..results import standard_error
from .base import all_of, below, between, claim, errs_at_most, ratio_of

DELTA, ANGLE = 0.05, 0.01
HANDFUL = 100
DIGITS = 5e-5  # half a unit of the last digit of the paper's 0.0050
ORACLE_PULLS = {"0.01": 2_742_457, "0.1": 21_495}  # by angle, in five dimensions; Table 1
ORACLE_ARMS = (13_646, 2_728_606, 68, 68, 68, 1)
STATIC_SHARES = (0.5, 1.0, 1.0, 1.0, 1.0, 0.5)  # of the pulls of the third arm


def figure_1_claims(dataset):
    """Of stopping times by dimension."""
    cells = dataset.squeeze("instance", drop=True)
    least = [
        _everywhere(cells, "dim", "LinGapE", "XY-oracle", 1.0),
        _everywhere(cells, "dim", "XY-oracle", "XY-static", 1.0),
        _everywhere(cells, "dim", "XY-static", "XY-adaptive", 1.0),
        _everywhere(cells, "dim", "XY-static", "XY-adaptive", 0.2, "five times"),
    ]
    slow, steady = _growth(cells, "LinGapE"), _linear(cells)
    return [*least, slow, steady, *_errors(cells), _exact(cells)]


def _everywhere(cells, axis, one, other, limit, factor=""):
    """`one` takes less than `limit` times the pulls of `other` at every point of an axis."""
    points = [cells.sel({axis: value}) for value in cells[axis].values]
    pairs = [ratio_of(*(p.sel(algorithm=name) for name in (one, other))) for p in points]
    decided = [
        None if int(p.sel(algorithm=one).cut_short) else below(*pair, limit)
        for p, pair in zip(points, pairs, strict=True)
    ]
    values = map(str, cells[axis].values.tolist())
    ratios = dict(zip(values, [ratio for ratio, _ in pairs], strict=True))
    measured = {"ratio": ratios, "standard_errors": [error for _, error in pairs]}
    many = f"at least {factor} as many pulls as" if factor else "more pulls than"
    text = f"{other} takes {many} {one}, whatever {_name(axis)}."
    return claim(text, measured, all_of(decided))


def _name(axis):
    return {"dim": "the dimension", "gap": "the gap", "num_arms": "the number of arms"}[axis]


def _growth(cells, name):
    cells = cells.sel(algorithm=name)
    small, large = cells.isel(dim=0), cells.isel(dim=-1)
    (ratio, error), limit = ratio_of(large, small), float(large.dim / small.dim)
    means = {str(int(d)): float(cells.sel(dim=d).pulls_mean) for d in cells.dim}
    measured = {"ratio": ratio, "standard_error": error, "limit": limit, "mean_pulls": means}
    text = f"The mean stopping time of {name} grows slower than the dimension."
    # A mean with runs cut short is a lower bound, which cannot show slow growth.
    holds = None if int(cells.cut_short.sum()) else below(ratio, error, limit)
    return claim(text, measured, holds)


def _linear(cells):
    cells = cells.sel(algorithm="XY-static")
    small, large = cells.isel(dim=0), cells.isel(dim=-1)
    ratio, error = ratio_of(large, small)
    expected = float(large.dim / small.dim)
    measured = {"ratio": ratio, "standard_error": error, "expected": expected}
    text = "XY-static takes pulls in proportion to the dimension, to a factor of 1.5."
    return claim(text, measured, between(ratio, error, expected / 1.5, 1.5 * expected))


def _errors(cells):
    """Of all but the oracle, which cannot err."""
    names = [name for name in cells.algorithm.values.tolist() if name != "XY-oracle"]
    return [errs_at_most(cells.sel(algorithm=name), DELTA, f" of {name}") for name in names]


def _exact(cells):
    options = json.loads(cells.attrs["options"])["[instances.soare]"]
    expected = ORACLE_PULLS.get(options["angle"])
    text = f"XY-oracle takes {expected} pulls in five dimensions, each time."
    if expected is None or 5 not in cells.dim:
        return claim(text, {"pulls": None}, None)
    pulls = np.unique(cells.sel(algorithm="XY-oracle", dim=5).pulls.dropna("replication"))
    return claim(text, {"pulls": pulls.tolist()}, bool((pulls == expected).all()))


def table_1_claims(dataset):
    """Of the pulls of each arm in five dimensions."""
    cells = dataset.squeeze("instance", drop=True)
    found = [_second_arm(cells), _ratio(cells), _rest(cells)]
    names = cells.algorithm.values.tolist()
    if "LinGapE, by ratios" in names:
        found.append(_selections(cells))
    if "XY-static" in names:
        found.append(_shares(cells))
    return [*found, _oracle_arms(cells), *_errors(cells)]


def _pulls(cells, name):
    """`[R, 6]`; NaN where they would fill the memory and are not kept."""
    cell = cells.sel(algorithm=name)
    kept = cell.get("arm_pulls", np.full((1, 6), np.nan))
    return np.asarray(kept)[:, : int(cell.num_arms)]


def _second_arm(cells):
    pulls = _pulls(cells, "LinGapE")
    share = pulls[:, 1] / pulls.sum(1)
    mean, error = float(share.mean()), standard_error(share)
    measured = {"share": mean, "standard_error": error}
    text = "More than 99% of the pulls of LinGapE are of the second arm, e_2."
    return claim(text, measured, below(0.99, error, mean))


def _ratio(cells):
    pulls = _pulls(cells, "LinGapE")
    ratios = pulls[:, 0] / pulls[:, 1]
    mean, error, expected = float(ratios.mean()), standard_error(ratios), math.tan(ANGLE / 2)
    measured = {"ratio": mean, "standard_error": error, "expected": expected}
    text = "T_1 / T_2 of LinGapE is tan(angle / 2), 0.0050 to the digits printed."
    enough = error < DIGITS  # also False for the NaN of a single replication
    return claim(text, measured, abs(mean - expected) < DIGITS + 2 * error if enough else None)


def _rest(cells):
    others = _pulls(cells, "LinGapE")[:, 2:]
    means = others.mean(0)
    errors = [standard_error(column) for column in others.T]
    worst = int(np.argmax(means))
    measured = {"mean_pulls": means.tolist(), "standard_errors": errors}
    text = f"LinGapE pulls every other arm a handful of times, fewer than {HANDFUL}."
    return claim(text, measured, below(float(means[worst]), errors[worst], HANDFUL))


def _selections(cells):
    ratio, error = ratio_of(*(cells.sel(algorithm=n) for n in ("LinGapE, by ratios", "LinGapE")))
    measured = {"ratio": ratio, "standard_error": error}
    text = "Arms chosen greedily or by ratios: the mean stopping times differ by less than 25%."
    return claim(text, measured, between(ratio, error, 0.75, 1.25))


def _shares(cells):
    pulls = _pulls(cells, "XY-static")
    shares = pulls / pulls[:, 2:3]
    means = shares.mean(0)
    measured = {"shares": means.tolist(), "printed": list(STATIC_SHARES)}
    text = "XY-static pulls the arms 1/2 : 1 : 1 : 1 : 1 : 1/2, to a twentieth."
    close = bool((np.abs(means - STATIC_SHARES) < 0.05).all())
    return claim(text, measured, None if np.isnan(means).any() else close)


def _oracle_arms(cells):
    pulls = _pulls(cells, "XY-oracle")
    means = pulls.mean(0)
    measured = {"mean_pulls": means.tolist(), "printed": list(ORACLE_ARMS)}
    text = "XY-oracle pulls each arm as often as printed, to a thousandth and a few pulls."
    close = bool(np.allclose(means, ORACLE_ARMS, rtol=1e-3, atol=2))
    return claim(text, measured, None if np.isnan(means).any() else close)


def figure_2_claims(dataset):
    """Of stopping times by gap where all arms matter alike."""
    cells = dataset.squeeze("instance", drop=True)
    fewer = _everywhere(cells, "gap", "LinGapE", "XY-static", 1.0)
    return [fewer, _difference(cells), _quarter(cells), *_errors(cells)]


def _difference(cells):
    """Between neighbours along the axis, whose gaps fall."""
    gaps = sorted(cells.gap.values.tolist(), reverse=True)
    rows = []
    for gap in gaps:
        one, other = (cells.sel(gap=gap, algorithm=name) for name in ("LinGapE", "XY-static"))
        apart = float(other.pulls_mean - one.pulls_mean)
        rows.append((apart, math.hypot(float(one.pulls_se), float(other.pulls_se))))
    decided = [
        below(low, math.hypot(low_error, high_error), high)
        for (low, low_error), (high, high_error) in itertools.pairwise(rows)
    ]
    measured = {
        "difference": dict(zip(map(str, gaps), [apart for apart, _ in rows], strict=True)),
        "standard_errors": [error for _, error in rows],
    }
    text = "The smaller the gap, the more pulls LinGapE saves against XY-static."
    return claim(text, measured, all_of(decided))


def _quarter(cells):
    kept = cells.sel(algorithm="LinGapE").get("arm_pulls")
    text = "LinGapE gives the best arm a quarter of the pulls, to a twentieth."
    if kept is None:
        return claim(text, {"share": None}, None)
    share = kept.isel(arm=0) / kept.sum("arm")
    mean = float(share.mean())
    error = standard_error(share.mean("gap").dropna("replication").values)
    measured = {"share": mean, "standard_error": error}
    return claim(text, measured, between(mean, error, 0.2, 0.3))


def figure_3_claims(dataset):
    """Of stopping times by number of arms on the log."""
    cells = dataset.squeeze("instance", drop=True)
    fewer = _everywhere(cells, "num_arms", "LinGapE", "XY-static", 1.0)
    return [fewer, _five_times(cells), _saved(cells), _widening(cells), *_errors(cells)]


def _paired(cells):
    """Pulls of XY-static over those of LinGapE, replication by replication `[num_arms, R]`."""
    one, other = (cells.pulls.sel(algorithm=name) for name in ("LinGapE", "XY-static"))
    return (other / one).transpose("num_arms", "replication").values


def _five_times(cells):
    ratios = _paired(cells).mean(0)
    mean, error = float(ratios.mean()), standard_error(ratios)
    measured = {"ratio": mean, "standard_error": error}
    text = "LinGapE takes roughly a fifth of the pulls of XY-static, between a third and an eighth."
    return claim(text, measured, between(mean, error, 3.0, 8.0))


def _saved(cells):
    one, other = (cells.pulls.sel(algorithm=name) for name in ("LinGapE", "XY-static"))
    saved = (other - one).transpose("num_arms", "replication").values
    change = saved[-1] - saved[0]
    mean, error = float(change.mean()), standard_error(change)
    measured = {"saved": saved.mean(1).tolist(), "change": mean, "standard_error": error}
    text = "The more arms, the more pulls LinGapE saves."
    return claim(text, measured, below(0.0, error, mean))


def _widening(cells):
    ratios = _paired(cells)
    change = ratios[-1] - ratios[0]
    mean, error = float(change.mean()), standard_error(change)
    measured = {"ratios": ratios.mean(1).tolist(), "change": mean, "standard_error": error}
    text = "The more arms, the larger the ratio of the two."
    return claim(text, measured, below(0.0, error, mean))
