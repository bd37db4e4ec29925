"""Top-m: Reda, Kaufmann and Delahaye-Duriez, "Top-m identification for linear bandits" (2021).

As in the paper's section 5, the noise has standard deviation 1/2, delta is 0.05, and the ridge is
sigma / 20. Thresholds are those that its records show: in Figures 1a and 1b that of LUCB1 for
averages and the self-normalised one for least squares, with the heuristic one for LinGame; in
Figure 1c the heuristic one for all. "Stale" is the test of the published program, which asks
whether the pair drawn last is settled: its errors are those of the paper's Table 3. Runs that do
not end are cut short and reported: where several of the best means are equal, LUCB and UGapE may
have to separate them. Tables 2, 4 and 5 are in `constants`, Figure 5 in `drugs`.
"""

import math
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import algorithms, instances
from ..calculation import Calculation
from ..claims import (
    DELTA,
    Claim,
    Finding,
    below_bound,
    checked,
    claim_on_cells,
    compare,
    error_rate,
    few_errors,
    growth,
    pulls,
)
from ..experiment import Builders, Experiment
from ..measures import all_hold, mean_of
from . import constants, drugs

if TYPE_CHECKING:
    from xarray import Dataset

PAPER = "Réda et al. (2021), Figure"
REPLICATIONS, MAX_PULLS = 500, 10**8
LV = "largest_variance"
BELOW_DELTA = 'Section 5: "In all the experiments, the empirical error is always below 5%"'

LUCB, LUCB_LV, UGAPE, LIN_GAME = "LUCB", "LUCB (one)", "UGapE", "LinGame"
GREEDY, OPTIMIZED = "m-LinGapE (greedy)", "m-LinGapE (optimized)"
WIDEST = "m-LinGapE (variance)"
GIFA, GIFA_LV = "LinGIFA (greedy)", "LinGIFA (variance)"
GIFA_LUCB, GIFA_LV_LUCB = "LinGIFA (greedy, τ LUCB)", "LinGIFA (variance, τ LUCB)"
ALONE, EQUAL = "LinGIFA (individual)", "m-LinGapE (greedy, heuristic)"
STALE = {name: f"{name}, stale" for name in (LUCB, GREEDY, OPTIMIZED, GIFA_LUCB, GIFA_LV_LUCB)}


def _algorithms(m: int | None, threshold: str, averages: str) -> dict[str, partial[Any]]:
    """By name, with the threshold of least squares and that of averages; None: m is an axis."""
    known: dict[str, Any] = {"delta": DELTA} | ({} if m is None else {"m": m})
    linear, plain = known | {"threshold": threshold}, known | {"threshold": averages}
    found = {
        LUCB: partial(algorithms.lucb, **plain),
        LUCB_LV: partial(algorithms.lucb, selection=LV, **plain),
        UGAPE: partial(algorithms.ugape, **plain),
        GREEDY: partial(algorithms.m_lingape, **linear),
        WIDEST: partial(algorithms.m_lingape, selection=LV, **linear),
        OPTIMIZED: partial(algorithms.m_lingape, selection="ratio", **linear),
        GIFA_LV: partial(algorithms.lin_gifa, selection=LV, **linear),
        GIFA: partial(algorithms.lin_gifa, **linear),
        GIFA_LV_LUCB: partial(algorithms.lin_gifa, selection=LV, stopping="lucb", **linear),
        GIFA_LUCB: partial(algorithms.lin_gifa, stopping="lucb", **linear),
        ALONE: partial(algorithms.lin_gifa, indices="individual", selection=LV, **linear),
        EQUAL: partial(algorithms.m_lingape, **linear | {"threshold": "heuristic"}),
        LIN_GAME: partial(algorithms.lin_game, delta=DELTA, threshold="heuristic"),
    }
    return found | {STALE[name]: _stale(found[name], threshold) for name in STALE}


def _stale(build: partial[Any], threshold: str) -> partial[Any]:
    """The algorithm with the stopping test of the published program."""
    if build.func is algorithms.lucb:
        return partial(build, stale_pair=True)
    proved = threshold == "self_normalised"
    theirs = "self_normalised_code" if proved else threshold
    return partial(build, stale_pair=True, v0="code", threshold=theirs)


def _experiment(
    title: str,
    problem: Builders,
    names: Iterable[str],
    claims: Iterable[Claim],
    *,
    m: int | None,
    threshold: str,
    averages: str,
    **rest: Any,
) -> Experiment:
    known = _algorithms(m, threshold, averages)
    stale = tuple(STALE.values())
    return Experiment(
        title=title,
        instances=problem,
        algorithms={name: known[name] for name in names},
        replications=REPLICATIONS,
        claims=checked(*claims, few_errors(but=stale, paper=BELOW_DELTA)),
        quantities=("pulls", "errors"),
        max_pulls=MAX_PULLS,
        **rest,
    )


PAIRED = (GREEDY, OPTIMIZED, GIFA_LV, GIFA)
ALIKE = "m-LinGapE and LinGIFA are alike"


def _no_errors(names: Iterable[str]) -> Claim:
    """Table 3 has 0.0 for these."""
    return compare(
        "No algorithm that Table 3 has with 0.0 errs in more than 1% of the runs.",
        error_rate,
        tuple(names),
        most=0.01,
        paper="Table 3: 0.0 in 500 runs",
    )


# Figure 1a, and what else is shown of its arms.

ANGLE, WIDE = math.pi / 6, math.pi / 3
CLASSIC_NAMES = (LUCB_LV, UGAPE, *PAIRED, GIFA_LV_LUCB, GIFA_LUCB, ALONE)
FOUR_ARMS: Builders = {"K = 4, m = 2": partial(instances.classic_top_m, 4, 2, angle=ANGLE)}
OUTPERFORM = 'Section 5: "linear bandit algorithms largely outperform their classical counterparts"'
RULES = 'Section 5: "almost no difference in the use of either stopping rules"'
PROVED = {"m": 2, "threshold": "self_normalised", "averages": "lucb1"}

WITHOUT_FEATURES_ALIKE = compare(
    "LUCB and UGapE are alike, within 5%.",
    pulls(),
    LUCB_LV,
    UGAPE,
    least=1 / 1.05,
    most=1.05,
)
CLASSIC = _experiment(
    f"Four arms of which two, {PAPER} 1a",
    FOUR_ARMS,
    (*CLASSIC_NAMES, STALE[GREEDY], STALE[GIFA_LUCB]),
    (
        compare(
            "m-LinGapE and LinGIFA take less than a third of the pulls of LUCB and UGapE.",
            pulls(),
            (*PAIRED, GIFA_LV_LUCB, GIFA_LUCB),
            (LUCB_LV, UGAPE),
            most=1 / 3,
            paper=OUTPERFORM,
        ),
        compare(
            "With individual indices too, LinGIFA takes less than two thirds of the pulls of LUCB "
            "and UGapE.",
            pulls(),
            ALONE,
            (LUCB_LV, UGAPE),
            most=2 / 3,
            paper=OUTPERFORM,
        ),
        compare(
            "Greedy and optimized selection are alike, within 10%.",
            pulls(),
            GREEDY,
            OPTIMIZED,
            least=1 / 1.1,
            most=1.1,
            paper='Section 5: "have similar performance"',
        ),
        compare(
            "The greedy and optimized selection take fewer pulls than the largest variance, and at "
            "least half as many.",
            pulls(),
            (GREEDY, OPTIMIZED, GIFA),
            GIFA_LV,
            least=0.5,
            most=1.0,
            paper='Section 5: "slightly better performance compared to the largest variance rule"',
        ),
        compare(
            "m-LinGapE with the optimized selection takes no more pulls than LinGIFA with the "
            "largest variance.",
            pulls(),
            OPTIMIZED,
            GIFA_LV,
            most=1.0,
            paper='Section 4.4: "can be as efficient, and often better than LinGIFA using the '
            'largest variance selection rule"',
        ),
        compare(
            "The two stopping rules are alike, within 2%: greedy.",
            pulls(),
            GIFA,
            GIFA_LUCB,
            least=1 / 1.02,
            most=1.02,
            paper=RULES,
        ),
        compare(
            "The two stopping rules are alike, within 2%: variance.",
            pulls(),
            GIFA_LV,
            GIFA_LV_LUCB,
            least=1 / 1.02,
            most=1.02,
            paper=RULES,
        ),
        compare(
            "Paired indices take less than 80% of the pulls of individual ones.",
            pulls(),
            GIFA_LV,
            ALONE,
            most=0.8,
            paper='Section 5: "noticeably better sample complexity than individual ones"',
        ),
        WITHOUT_FEATURES_ALIKE,
        _no_errors(CLASSIC_NAMES),
    ),
    quick={"algorithms": (UGAPE, GREEDY, GIFA, GIFA_LV, STALE[GREEDY]), "replications": 100},
    **PROVED,
)

ANGLES = _experiment(
    f"Four arms at two angles, {PAPER} 2",
    {"K = 4, m = 2": partial(instances.classic_top_m, 4, 2)},
    CLASSIC_NAMES,
    (
        compare(
            "The pulls of every algorithm grow as the angle falls from pi/3 to pi/6.",
            growth(),
            CLASSIC_NAMES,
            most=0.0,
            paper='Appendix A.1: "for all algorithms, the empirical average sample complexity '
            'increases as omega decreases"',
        ),
    ),
    axes={"angle": (ANGLE, WIDE)},
    quick={"algorithms": (UGAPE, GREEDY, GIFA, GIFA_LV), "replications": 20},
    **PROVED,
)

BOUNDED = _experiment(
    "Bounds on the pulls on four arms of which two, Réda et al. (2021), Table 2",
    FOUR_ARMS,
    (LUCB_LV, UGAPE, WIDEST, OPTIMIZED),
    (
        below_bound(LUCB_LV, "Table 2: LUCB"),
        below_bound(UGAPE, "Table 2: UGapE"),
        below_bound(WIDEST, "Theorem 2 (i)"),
        below_bound(OPTIMIZED, "Theorem 2 (ii)"),
        constants.ordered(LUCB_LV, WIDEST, UGAPE),
        constants.features_help(OPTIMIZED, UGAPE),
        constants.nine_eighths,
    ),
    extended=constants.with_bounds,
    quick={"replications": 100},
    **PROVED,
)

# Figure 1b.

STRUCTURED = _experiment(
    f"An arm that only informs, {PAPER} 1b",
    {"K = 3, m = 1": partial(instances.classic_top_m, 3, 1, angle=0.1)},
    (LUCB, GREEDY, GIFA, LIN_GAME, EQUAL, STALE[GREEDY], STALE[GIFA_LUCB]),
    (
        compare(
            "m-LinGapE and LinGIFA take fewer pulls than LinGame.",
            pulls(),
            (GREEDY, GIFA),
            LIN_GAME,
            most=1.0,
            paper='Section 5: "have a better performance than LinGame"',
        ),
        compare(
            "m-LinGapE errs in 4.4% of the runs (here between 2% and 8%).",
            error_rate,
            GREEDY,
            least=0.02,
            most=0.08,
            paper="Table 3: 0.044",
        ),
        compare(
            "With the stale test m-LinGapE errs in 4.4% of the runs (between 2% and 8%).",
            error_rate,
            STALE[GREEDY],
            least=0.02,
            most=0.08,
            paper="Table 3: 0.044",
        ),
        _no_errors((GIFA, LIN_GAME)),
        compare(
            "m-LinGapE and LinGIFA take less than a fiftieth of the pulls of LUCB.",
            pulls(),
            (GREEDY, GIFA),
            LUCB,
            most=1 / 50,
        ),
        compare(f"{ALIKE}, within 10%.", pulls(), GREEDY, GIFA, least=1 / 1.1, most=1.1),
        compare(
            "With the same threshold m-LinGapE takes fewer pulls than LinGame.",
            pulls(),
            EQUAL,
            LIN_GAME,
            most=1.0,
        ),
        compare(
            "With the same threshold neither takes twice the pulls of the other.",
            pulls(),
            EQUAL,
            LIN_GAME,
            least=1 / 2.0,
            most=2.0,
        ),
    ),
    m=1,
    threshold="self_normalised",
    averages="lucb1",
    quick={"algorithms": (GREEDY, GIFA, LIN_GAME, EQUAL, STALE[GREEDY]), "replications": 200},
)

# Figures 1c and 6.

HALF = 'Section 5: "approximately by a factor 1/2"'
PATIENTS = 10 * 18  # all drugs on all patients
SEVERAL = 10.0


def _drugs_from(folder: Path) -> Builders:
    inner = folder / drugs.FOLDER
    path = str(inner if inner.is_dir() else folder)
    return {"ten drugs": partial(instances.drug_repurposing, path=path)}


@claim_on_cells(
    f"Every algorithm takes more than {SEVERAL:g} times the pulls that try each drug on each "
    f"patient, {PATIENTS}.",
    'Appendix B: "is a lot higher than 10 x 18 for all algorithms"',
)
def _many_pulls(cells: "Dataset") -> Finding:
    """The mean of each."""
    means = {
        str(name): mean_of(np.asarray(cells.pulls.sel(algorithm=name), float))
        for name in cells.algorithm.values
        if not str(name).endswith("stale")
    }
    verdict = all_hold(one.above(SEVERAL * PATIENTS) for one in means.values())
    return Finding({name: one.value for name, one in means.items()}, verdict)


DRUG_OPTIONS: dict[str, Any] = {
    "m": 5,
    "threshold": "heuristic",
    "averages": "heuristic",
    "from_folder": _drugs_from,
    "stand_in": "on made-up drugs: the recorded scores are not ours to give",
}

DRUGS = _experiment(
    f"Five of ten drugs, {PAPER} 1c",
    {"ten drugs": instances.drugs},
    (LUCB, LUCB_LV, UGAPE, *PAIRED, ALONE, STALE[GREEDY], STALE[LUCB]),
    (
        compare(
            "Algorithms with paired indices take about half of the pulls of LUCB and UGapE, 45% to "
            "55%.",
            pulls(),
            PAIRED,
            (LUCB, LUCB_LV, UGAPE),
            least=0.45,
            most=0.55,
            paper=HALF,
        ),
        _many_pulls,
        _no_errors((GREEDY, OPTIMIZED, GIFA_LV, GIFA, LUCB_LV, LUCB)),
        compare(
            "Paired indices take less than 55% of the pulls of individual ones.",
            pulls(),
            PAIRED,
            ALONE,
            most=0.55,
        ),
        WITHOUT_FEATURES_ALIKE,
    ),
    quick={"algorithms": (LUCB_LV, GREEDY, GIFA), "replications": 20},
    **DRUG_OPTIONS,
)

CLOSE_UP = _experiment(
    f"Five of ten drugs without LUCB, {PAPER} 6",
    {"ten drugs": instances.drugs},
    PAIRED,
    (
        compare(
            "m-LinGapE with the optimized selection takes no more pulls than LinGIFA with the "
            "largest variance, within 1%.",
            pulls(),
            OPTIMIZED,
            GIFA_LV,
            most=1.01,
            paper='Section 4.4: "can be as efficient"',
        ),
        compare(
            "All that have paired indices are alike, within 2%.", pulls(), PAIRED, PAIRED, most=1.02
        ),
    ),
    quick={"algorithms": (OPTIMIZED, GIFA_LV), "replications": 20},
    **DRUG_OPTIONS,
)

# Figure 3.

SIMILAR = (OPTIMIZED, GIFA_LV)


def _random_from(folder: Path) -> Builders:
    inner = folder / constants.FOLDER
    path = str(inner if inner.is_dir() else folder)
    return {"random": partial(constants.authors_instance, path=path, noise_var=constants.VARIANCE)}


RANDOM = _experiment(
    f"Three and eight of ten random arms, {PAPER} 3",
    {
        "random": partial(
            instances.linear,
            constants.MADE_UP,
            np.eye(constants.MADE_UP.shape[1])[0],
            noise_var=constants.VARIANCE,
        )
    },
    (*SIMILAR, GREEDY, GIFA),
    (
        compare(
            "m-LinGapE (optimized) and LinGIFA (variance) are alike for both m, within 25%.",
            pulls(),
            OPTIMIZED,
            GIFA_LV,
            least=1 / 1.25,
            most=1.25,
            paper='Appendix A.2: "actually similar in sample complexity in both instances"',
        ),
        compare(
            "m-LinGapE and LinGIFA are alike for both m with the greedy selection too, within 25%.",
            pulls(),
            GREEDY,
            GIFA,
            least=1 / 1.25,
            most=1.25,
        ),
    ),
    m=None,
    threshold="heuristic",
    averages="heuristic",
    axes={"m": tuple(constants.TABLE_5)},
    from_folder=_random_from,
    stand_in=constants.NEAR,
    quick={"algorithms": SIMILAR, "replications": 50},
)

EXPERIMENTS: dict[str, Experiment | Calculation] = {
    "topm/fig1a": CLASSIC,
    "topm/fig1b": STRUCTURED,
    "topm/fig1c": DRUGS,
    "topm/fig2": ANGLES,
    "topm/fig3": RANDOM,
    **drugs.EXPERIMENTS,
    "topm/fig6": CLOSE_UP,
    "topm/table2": BOUNDED,
    **constants.EXPERIMENTS,
}
