"""Top-m: Reda, Kaufmann and Delahaye-Duriez, "Top-m identification for linear bandits" (2021).

As in the paper's section 5, the noise has standard deviation 1/2, delta is 0.05, and the ridge is
sigma / 20. Thresholds are those that its records show: in Figures 1a and 1b that of LUCB1 for
averages and the self-normalised one for least squares, with the heuristic one for LinGame; in
Figure 1c the heuristic one for all. "Stale" is the test of the published program, which asks
whether the pair drawn last is settled: its errors are those of the paper's Table 3. Runs that do
not end are cut short and reported: where several of the best means are equal, LUCB and UGapE may
have to separate them.
"""

import math
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from .. import algorithms, instances
from .claims import DELTA, Claim, checked, compare, error_rate, few_errors, pulls
from .experiment import Builders, Experiment

PAPER = "Réda et al. (2021), Figure"
REPLICATIONS, MAX_PULLS = 500, 10**8
LV = "largest_variance"

LUCB, LUCB_LV, UGAPE, LIN_GAME = "LUCB", "LUCB (one)", "UGapE", "LinGame"
GREEDY, OPTIMIZED = "m-LinGapE (greedy)", "m-LinGapE (optimized)"
GIFA, GIFA_LV = "LinGIFA (greedy)", "LinGIFA (variance)"
GIFA_LUCB, GIFA_LV_LUCB = "LinGIFA (greedy, τ LUCB)", "LinGIFA (variance, τ LUCB)"
ALONE, EQUAL = "LinGIFA (individual)", "m-LinGapE (greedy, heuristic)"
STALE = {name: f"{name}, stale" for name in (LUCB, GREEDY, OPTIMIZED, GIFA_LUCB, GIFA_LV_LUCB)}


def _algorithms(m: int, threshold: str, averages: str) -> dict[str, partial[Any]]:
    """By name, with the threshold of least squares and that of averages."""
    linear = {"m": m, "delta": DELTA, "threshold": threshold}
    plain = {"m": m, "delta": DELTA, "threshold": averages}
    found = {
        LUCB: partial(algorithms.lucb, **plain),
        LUCB_LV: partial(algorithms.lucb, selection=LV, **plain),
        UGAPE: partial(algorithms.ugape, **plain),
        GREEDY: partial(algorithms.m_lingape, **linear),
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
    m: int,
    threshold: str,
    averages: str,
    **rest: Any,
) -> Experiment:
    known = _algorithms(m, threshold, averages)
    return Experiment(
        title=title,
        instances=problem,
        algorithms={name: known[name] for name in names},
        replications=REPLICATIONS,
        claims=checked(*claims, few_errors(but=tuple(STALE.values()))),
        quantities=("pulls", "errors"),
        max_pulls=MAX_PULLS,
        **rest,
    )


PAIRED = (GREEDY, OPTIMIZED, GIFA_LV, GIFA)
CLASSIC = _experiment(
    f"Four arms of which two, {PAPER} 1a",
    {"K = 4, m = 2": partial(instances.classic_top_m, 4, 2, angle=math.pi / 6)},
    (LUCB_LV, UGAPE, *PAIRED, GIFA_LV_LUCB, GIFA_LUCB, ALONE, STALE[GREEDY], STALE[GIFA_LUCB]),
    (
        compare(
            "m-LinGapE and LinGIFA take less than a third of the pulls of LUCB and UGapE.",
            pulls(),
            PAIRED,
            (LUCB_LV, UGAPE),
            most=1 / 3,
        ),
        compare(
            "Greedy and optimized selection are alike, within 10%.",
            pulls(),
            GREEDY,
            OPTIMIZED,
            least=1 / 1.1,
            most=1.1,
        ),
        compare(
            "The greedy selection takes at least 15% fewer pulls than the largest variance.",
            pulls(),
            GIFA,
            GIFA_LV,
            most=0.85,
        ),
        compare(
            "The two stopping rules are alike, within 2%: greedy.",
            pulls(),
            GIFA,
            GIFA_LUCB,
            least=1 / 1.02,
            most=1.02,
        ),
        compare(
            "The two stopping rules are alike, within 2%: variance.",
            pulls(),
            GIFA_LV,
            GIFA_LV_LUCB,
            least=1 / 1.02,
            most=1.02,
        ),
        compare(
            "LUCB and UGapE are alike, within 5%.",
            pulls(),
            LUCB_LV,
            UGAPE,
            least=1 / 1.05,
            most=1.05,
        ),
        compare(
            "Paired indices take fewer pulls than individual ones.",
            pulls(),
            GIFA_LV,
            ALONE,
            most=1.0,
        ),
    ),
    m=2,
    threshold="self_normalised",
    averages="lucb1",
    quick={"algorithms": (UGAPE, GREEDY, GIFA, GIFA_LV, STALE[GREEDY]), "replications": 100},
)

STRUCTURED = _experiment(
    f"An arm that only informs, {PAPER} 1b",
    {"K = 3, m = 1": partial(instances.classic_top_m, 3, 1, angle=0.1)},
    (LUCB, GREEDY, GIFA, LIN_GAME, EQUAL, STALE[GREEDY], STALE[GIFA_LUCB]),
    (
        compare(
            "m-LinGapE and LinGIFA take less than a fiftieth of the pulls of LUCB.",
            pulls(),
            (GREEDY, GIFA),
            LUCB,
            most=1 / 50,
        ),
        compare(
            "m-LinGapE and LinGIFA are alike, within 10%.",
            pulls(),
            GREEDY,
            GIFA,
            least=1 / 1.1,
            most=1.1,
        ),
        compare(
            "m-LinGapE and LinGIFA take fewer pulls than LinGame.",
            pulls(),
            (GREEDY, GIFA),
            LIN_GAME,
            most=1.0,
        ),
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
        compare(
            "m-LinGapE errs in 4.4% of the runs (Table 3; here between 2% and 8%).",
            error_rate,
            GREEDY,
            least=0.02,
            most=0.08,
        ),
        compare(
            "With the stale test m-LinGapE errs in 4.4% of the runs (between 2% and 8%).",
            error_rate,
            STALE[GREEDY],
            least=0.02,
            most=0.08,
        ),
    ),
    m=1,
    threshold="self_normalised",
    averages="lucb1",
    quick={"algorithms": (GREEDY, GIFA, LIN_GAME, EQUAL, STALE[GREEDY]), "replications": 200},
)


def _drugs_from(folder: Path) -> Builders:
    inner = folder / "drug_repurposing"
    path = str(inner if inner.is_dir() else folder)
    return {"ten drugs": partial(instances.drug_repurposing, path=path)}


DRUGS = _experiment(
    f"Five of ten drugs, {PAPER} 1c",
    {"ten drugs": instances.drugs},
    (LUCB, LUCB_LV, UGAPE, *PAIRED, ALONE, STALE[GREEDY], STALE[LUCB]),
    (
        compare(
            "Paired indices take less than 55% of the pulls of LUCB and UGapE.",
            pulls(),
            PAIRED,
            (LUCB, LUCB_LV, UGAPE),
            most=0.55,
        ),
        compare(
            "Paired indices take less than 55% of the pulls of individual ones.",
            pulls(),
            PAIRED,
            ALONE,
            most=0.55,
        ),
        compare(
            "All that have paired indices are alike, within 2%.", pulls(), PAIRED, PAIRED, most=1.02
        ),
        compare(
            "LUCB and UGapE are alike, within 5%.",
            pulls(),
            LUCB_LV,
            UGAPE,
            least=1 / 1.05,
            most=1.05,
        ),
    ),
    m=5,
    threshold="heuristic",
    averages="heuristic",
    from_folder=_drugs_from,
    stand_in="on made-up drugs: the recorded scores are not ours to give",
    quick={"algorithms": (LUCB_LV, GREEDY, GIFA), "replications": 20},
)

EXPERIMENTS: dict[str, Experiment] = {
    "topm/fig1a": CLASSIC,
    "topm/fig1b": STRUCTURED,
    "topm/fig1c": DRUGS,
}
