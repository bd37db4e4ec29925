"""What the LinGapE paper says of its figures, its table and its problem complexity H.

Equation (15) calls rho "the optimal value" of the linear program (11). Lemma 1 needs its square,
`||w*||_1^2`. With that H_0 is some 9 times H_oracle on the arms of Figure 1, and with the norm
itself 895 times, above the 72 K of Theorem 3. So H is `theory.m_lingape_complexity` with
`rho_power=2` here.
"""

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from .. import design, theory
from ..intervals import half_width, standard_error
from ..report.measured import REPLICATIONS
from ..sweeps.stated import stated
from .claims import DELTA, Finding, claim_on_cells
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

    from ..sweeps import Sweep
    from .claims import Claim

ANGLE = 0.01
HANDFUL = 100
DIGITS = 5e-5  # half a unit of the last digit of the paper's 0.0050
ORACLE_PULLS = {"0.01": 2_742_457, "0.1": 21_495}  # by angle, in five dimensions; Table 1
ORACLE_ARMS = (13_646, 2_728_606, 68, 68, 68, 1)
BY_RATIOS = "LinGapE, by ratios"
RIDGE, THETA_NORM = 1.0, 2.0  # what LinGapE is given
THEOREM_3 = 72  # H_0 is at most this factor times K times H_oracle
EXACT = 1e-3  # relative width of the certificate of H_oracle
UGAPE_RANGE = 2.0  # b, the length of the interval [-1, 1], in which the noise of Section 6.2 lies
STATIC_SHARES = (0.5, 1.0, 1.0, 1.0, 1.0, 0.5)  # of the pulls of the third arm


def _oracle_pulls(cells: "Dataset") -> int | None:
    """What the paper prints for the angle that was run."""
    options = stated(cells.attrs, "options")["[instances.soare]"]
    return ORACLE_PULLS.get(str(options["angle"]))


@claim_on_cells(
    lambda dataset: (
        f"XY-oracle takes {_oracle_pulls(dataset)} pulls in five dimensions, each time."
    ),
    paper="Table 1: 2,742,457 in one run",
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


def with_complexities(dataset: "Dataset", sweep: "Sweep") -> "Dataset":
    """The dataset with H of LinGapE, of UGapE and of the oracle at each point of the axis.

    UGapE's is that of its paper (Gabillon, Ghavamzadeh and Lazaric, 2012) for epsilon = 0,
    `b^2 sum over the arms of (gap / 2)^-2`. That of the oracle is the proved lower end.
    """
    (part,), ((axis, values),) = sweep.instances, sweep.axes.items()
    made = [part.build(**part.options | {axis: value}) for value in values]
    columns = {
        "lingape_complexity": [
            theory.m_lingape_complexity(one, 1, selection="ratio", rho_power=2) for one in made
        ],
        # That of the Top-m paper has 2 in place of b^2.
        "ugape_complexity": [UGAPE_RANGE**2 / 2 * theory.ugape_complexity(one, 1) for one in made],
        "oracle_complexity": [float(design.oracle(one, tol=EXACT).bound) for one in made],
        "num_complexity_arms": [len(one.arms) for one in made],
    }
    return dataset.assign({name: (axis, np.array(column)) for name, column in columns.items()})


def with_pull_bounds(dataset: "Dataset", sweep: "Sweep") -> "Dataset":
    """The dataset of `with_complexities` with Theorem 2's bound on the pulls of `BY_RATIOS`.

    The bound is the first u above `1 + H C_u^2 + K`, as in `theory.top_m_pull_bound`, with C_u of
    (8) where the determinant is bounded as in (4). That is the self-normalised one of level
    `delta / K^2`.
    """
    (part,), ((axis, values),) = sweep.instances, sweep.axes.items()
    dataset = with_complexities(dataset, sweep)
    made = [part.build(**part.options | {axis: value}) for value in values]
    h = dataset.lingape_complexity.values
    level = [DELTA / len(one.arms) ** 2 for one in made]
    bounds = [
        theory.top_m_pull_bound(one, *numbers, v0=RIDGE, theta_norm=THETA_NORM)
        for one, *numbers in zip(made, h, level, strict=True)
    ]
    known = dataset.algorithm == BY_RATIOS  # nothing is proved of the greedy choice
    columns = {"complexity": h, "pull_bound": np.array(bounds)}
    tables = {name: np.where(known.values[:, None], v, np.nan) for name, v in columns.items()}
    return dataset.assign({name: (("algorithm", axis), table) for name, table in tables.items()})


def _complexity_ratio(cells: "Dataset", other: str) -> dict[str, float] | None:
    """H of LinGapE over another one, by point of the axis; None where they were not computed."""
    if other not in cells:
        return None
    found = cells.lingape_complexity / cells[other]
    (axis,) = found.dims
    return {f"{axis} {x}": float(v) for x, v in zip(found[axis].values, found.values, strict=True)}


@claim_on_cells(
    "On the standard basis H of LinGapE is 9/8 of that of UGapE, at every gap.",
    paper='Section 6.2: with the canonical basis, 9/8 of "the problem complexity of UGapE"',
)
def nine_eighths(cells: "Dataset") -> Finding:
    """The two constants as their papers have them, no run."""
    found = _complexity_ratio(cells, "ugape_complexity")
    if found is None:
        return Finding({"ratio": None}, None)
    return Finding({"ratio": found}, bool(np.allclose(list(found.values()), 9 / 8, rtol=1e-9)))


def _below_oracle(text: str, paper: str, times_arms: bool) -> "Claim":
    """H of LinGapE is at most 72 times that of the oracle, or 72 K times."""

    @claim_on_cells(text, paper)
    def find(cells: "Dataset") -> Finding:
        found = _complexity_ratio(cells, "oracle_complexity")
        if found is None:
            return Finding({"ratio": None}, None)
        arms = cells.num_complexity_arms.values if times_arms else np.ones(len(found))
        limits = THEOREM_3 * arms
        ratios = np.array(list(found.values()))
        ours = f"{ratios.min():.3g} to {ratios.max():.3g}, at most {limits.min():.3g} proved"
        return Finding({"ratio": found}, bool((ratios <= limits).all()), ours=ours)

    return find


theorem_3: "Claim" = _below_oracle(
    "H of LinGapE over that of XY-oracle is at most 72 times the number of arms.",
    "Theorem 3: H_0 <= 72 C H_oracle, C <= K",
    times_arms=True,
)
one_near_optimal_arm: "Claim" = _below_oracle(
    "With one near-optimal arm H of LinGapE is at most 72 times that of XY-oracle, at every dim.",
    'Section 6.2: with "only one near-optimal arm" it "achieves the lower bound up to a constant '
    'factor"',
    times_arms=False,
)


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


@claim_on_cells(
    "XY-adaptive gets arms again that it had dropped: it draws e_3, e_4 and so on at least half as "
    "often as e_2, in three dimensions and more.",
    paper="Section 7.1.1: it \"'forgets' the discarded arms\"",
)
def forgets(cells: "Dataset") -> Finding:
    """Without these arms the last, longest phase draws e_1 and e_2 alone: a share of 0.002."""
    missing = not_run(cells, ["XY-adaptive"])
    dims = [dim for dim in cells.dim.values.tolist() if dim > 2]
    if missing or not dims or "arm_pulls" not in cells:
        return Finding({"share": None}, None, missing)
    cells = cells.sel(algorithm="XY-adaptive")
    pulls = cells.arm_pulls.where(cells.stopped.astype(bool))
    shares = {}
    for dim in dims:
        own = pulls.sel(dim=dim).transpose("replication", "arm").values
        shares[f"dim {dim}"] = mean_of(own[:, 2:dim].mean(1) / own[:, 1])
    measured = {dim: {"share": found.value, **error_of(found)} for dim, found in shares.items()}
    least = min(shares, key=lambda dim: shares[dim].value)
    ours = f"{shares[least].value:.3g}, {least}"
    return Finding(measured, all_hold(found.above(0.5) for found in shares.values()), ours=ours)


@claim_on_cells(
    "More than 99% of the pulls of LinGapE are of the second arm, e_2.",
    paper="Table 1: 428,889 of 431,119, which is 99.5%",
)
def second_arm(cells: "Dataset") -> Finding:
    """The arm that LinGapE pulls most."""
    pulls = _arm_pulls(cells, "LinGapE")
    share = mean_of(pulls[:, 1] / pulls.sum(1))
    measured = {"share": share.value, **error_of(share)}
    return Finding(measured, share.above(0.99), not_run(cells, ["LinGapE"]))


@claim_on_cells(
    "T_1 / T_2 of LinGapE is tan(angle / 2), 0.0050 to the digits printed.",
    paper="Table 1: 2,133 / 428,889 = 0.0050",
)
def ratio(cells: "Dataset") -> Finding:
    """How LinGapE divides its pulls between the two arms that are informative."""
    pulls = _arm_pulls(cells, "LinGapE")
    found, expected = mean_of(pulls[:, 0] / pulls[:, 1]), math.tan(ANGLE / 2)
    measured = {"ratio": found.value, **error_of(found), "expected": expected}
    width = half_width(found.error, found.number, CLEAR)
    enough = width < 2 * DIGITS  # also False for the NaN of a single replication
    close = abs(found.value - expected) < DIGITS + width
    return Finding(measured, close if enough else None, not_run(cells, ["LinGapE"]))


@claim_on_cells(
    f"LinGapE pulls every other arm a handful of times, fewer than {HANDFUL}.",
    paper="Table 1: 19, 34, 33 and 11",
)
def rest(cells: "Dataset") -> Finding:
    """The pulls of the other arms."""
    others = _arm_pulls(cells, "LinGapE")[:, 2:]
    means, errors, number = others.mean(0), standard_error(others), len(others)
    measured = {"mean_pulls": means.tolist(), "standard_errors": errors.tolist()}
    measured[REPLICATIONS] = number
    worst = int(np.argmax(means))
    found = Estimate(float(means[worst]), float(errors[worst]), number)
    return Finding(measured, found.below(HANDFUL), not_run(cells, ["LinGapE"]))


@claim_on_cells(
    "XY-static pulls the arms 1/2 : 1 : 1 : 1 : 1 : 1/2, to a twentieth.",
    paper="Table 1: 0.51 : 1 : 1 : 1 : 1 : 0.50",
)
def shares(cells: "Dataset") -> Finding:
    """How XY-static divides its pulls."""
    pulls = _arm_pulls(cells, "XY-static")
    means = (pulls / pulls[:, 2:3]).mean(0)
    measured = {"shares": means.tolist(), "printed": list(STATIC_SHARES)}
    close = bool((np.abs(means - STATIC_SHARES) < 0.05).all())
    verdict = None if np.isnan(means).any() else close
    return Finding(measured, verdict, not_run(cells, ["XY-static"]))


@claim_on_cells(
    "XY-oracle pulls each arm as often as printed, to a thousandth and a few pulls.",
    paper="Table 1: 13,646, 2,728,606, 68, 68, 68 and 1",
)
def oracle_arms(cells: "Dataset") -> Finding:
    """How XY-oracle divides its pulls."""
    means = _arm_pulls(cells, "XY-oracle").mean(0)
    measured = {"mean_pulls": means.tolist(), "printed": list(ORACLE_ARMS)}
    close = bool(np.allclose(means, ORACLE_ARMS, rtol=1e-3, atol=2))
    verdict = None if np.isnan(means).any() else close
    return Finding(measured, verdict, not_run(cells, ["XY-oracle"]))


@claim_on_cells(
    "The smaller the gap, the more pulls LinGapE saves against XY-static.",
    paper='Section 7.1.2: "the gap of the performance increases" as the gap falls',
)
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


@claim_on_cells(
    "XY-static pulls all arms equally often, to a twentieth.",
    paper='Section 7.1.2: it "always pulls arms uniformly"',
)
def uniform(cells: "Dataset") -> Finding:
    """The pulls of each arm over their mean, the most different one of all gaps."""
    if "arm_pulls" not in cells:
        return Finding({"shares": None}, None)
    cell = cells.sel(algorithm="XY-static")
    pulls = cell.arm_pulls.where(cell.stopped.astype(bool))
    shares = (pulls / pulls.mean("arm")).mean("replication", skipna=False)
    each = shares.transpose("gap", "arm").values
    measured = {"shares": dict(zip(map(str, cells.gap.values), each.tolist(), strict=True))}
    if np.isnan(each).any():
        return Finding(measured, None)
    most = float(np.abs(each - 1.0).max())
    return Finding(measured, most < 0.05, ours=f"within {100 * most:.2g}% of their mean")


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
    "LinGapE takes roughly a fifth of the pulls of XY-static, between a third and an eighth.",
    paper='Section 7.2: "roughly five times better"',
)
def five_times(cells: "Dataset") -> Finding:
    """How much LinGapE saves on the log."""
    found = mean_of(_ratios(cells).mean(0))
    measured = {"ratio": found.value, **error_of(found)}
    return Finding(measured, found.within(3.0, 8.0))


@claim_on_cells(
    "The more arms, the more pulls LinGapE saves.",
    paper='Section 7.2: "the gap of performances increases as we consider more arms"',
)
def saved(cells: "Dataset") -> Finding:
    """The pulls saved, by number of arms."""
    one, other = _pulls_of_both(cells)
    return _widens("saved", (other - one).values)


@claim_on_cells(
    "The more arms, the larger the ratio of the two.",
    paper='Section 7.2: "the gap of performances increases as we consider more arms"',
)
def widening(cells: "Dataset") -> Finding:
    """The ratio of pulls, by number of arms."""
    return _widens("ratios", _ratios(cells))


def _widens(name: str, values: Float[np.ndarray, "num_arms R"]) -> Finding:
    """Whether the values at the most arms are above those at the fewest."""
    change = mean_of(values[-1] - values[0])
    measured = {name: values.mean(1).tolist(), "change": change.value}
    return Finding(measured | error_of(change), change.above(0.0))
