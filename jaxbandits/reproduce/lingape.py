"""LinGapE: Xu, Honda and Sugiyama, "A fully adaptive algorithm for pure exploration ..." (2018)."""

import math
from functools import partial

import numpy as np

from .. import algorithms, instances
from ..results import standard_error
from .base import Experiment, below, claim, errs_at_most, ratio_of

DELTA, ANGLE, SCALE = 0.05, 0.01, 2.0
HANDFUL = 100
DIGITS = 5e-5  # half a unit of the last digit of the paper's 0.0050


def figure_1_claims(dataset):
    """What the paper says of LinGapE alone in this figure and in Table 1."""
    cells = dataset.squeeze(("instance", "algorithm"), drop=True)
    five = cells.sel(dim=5)
    # The pulls of each replication are not kept where they would fill the memory.
    kept = five.get("arm_pulls", np.full((1, five.sizes["arm"]), np.nan))
    pulls = np.asarray(kept)[:, : int(five.num_arms)]
    return [errs_at_most(cells, DELTA), _growth(cells), _second_arm(pulls), _ratio(pulls), _rest(pulls)]


def _growth(cells):
    small, large = cells.isel(dim=0), cells.isel(dim=-1)
    (ratio, error), limit = ratio_of(large, small), float(large.dim / small.dim)
    means = {str(int(d)): float(cells.sel(dim=d).pulls_mean) for d in cells.dim}
    measured = {"ratio": ratio, "standard_error": error, "limit": limit, "mean_pulls": means}
    text = "The mean stopping time grows slower than d from d = 2 to d = 10."
    # A mean with runs cut short is a lower bound, which cannot show slow growth.
    holds = None if int(cells.cut_short.sum()) else below(ratio, error, limit)
    return claim(text, measured, holds)


def _second_arm(pulls):
    share = pulls[:, 1] / pulls.sum(1)
    mean, error = float(share.mean()), standard_error(share)
    measured = {"share": mean, "standard_error": error}
    text = "More than 99% of the pulls are of the second arm, e_2 (d = 5)."
    return claim(text, measured, below(0.99, error, mean))


def _ratio(pulls):
    ratios = pulls[:, 0] / pulls[:, 1]
    mean, error, expected = float(ratios.mean()), standard_error(ratios), math.tan(ANGLE / 2)
    measured = {"ratio": mean, "standard_error": error, "expected": expected}
    text = "T_1 / T_2 is tan(angle / 2), 0.0050 to the digits printed (d = 5)."
    enough = error < DIGITS  # also False for the NaN of a single replication
    return claim(text, measured, abs(mean - expected) < DIGITS + 2 * error if enough else None)


def _rest(pulls):
    others = pulls[:, 2:]
    means = others.mean(0)
    errors = [standard_error(column) for column in others.T]
    worst = int(np.argmax(means))
    measured = {"mean_pulls": means.tolist(), "standard_errors": errors}
    text = f"Every other arm receives a handful of pulls, fewer than {HANDFUL} (d = 5)."
    return claim(text, measured, below(float(means[worst]), errors[worst], HANDFUL))


EXPERIMENTS = {
    "lingape/fig1": Experiment(
        title="LinGapE only: stopping time by dimension, Xu et al. (2018), Figure 1",
        instances={"soare": partial(instances.soare, angle=ANGLE, scale=SCALE)},
        algorithms={"LinGapE": partial(algorithms.lingape, delta=DELTA, v0=1.0)},
        axes={"dim": range(2, 11)},
        replications=100,  # the paper has 10
        quick={"axes": {"dim": (2, 5, 10)}, "replications": 10},
        claims=figure_1_claims,
        quantities=("pulls",),
    )
}
