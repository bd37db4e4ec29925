"""Figures 6 and 7, GSE and OD-LinBAI."""

from ..claims import accuracy, change, change_of_lead, compare
from .names import (
    D_ROUND,
    FWG,
    FWG_25_ROUND,
    FWG_ROUND,
    LIN,
    OD,
    OD_25,
    PAPER,
    d_optimal_is_as_good,
    figure,
    rounding_changes_little,
)

BUDGET_100, BUDGET_500 = {"budget": 100}, {"budget": 500}
ONE_STAGE = "GSE-Lin-D (one stage)"
MORE_AND_MORE = (
    'Appendix E.3: "for small budgets increasing K our algorithm outperforms OD-LinBAI more and '
    'more"'
)
ONCE = 'Appendix E.3: "a G-optimal design most effective in only 1 stage"'

WITH_100_PULLS = (
    compare(
        "GSE is ahead of OD-LinBAI for budget = 100 and many arms (num_arms = 32, 64).",
        accuracy({**BUDGET_100, "num_arms": [32, 64]}),
        FWG_ROUND,
        OD,
        least=0.0,
        paper=MORE_AND_MORE,
    ),
    compare(
        "For budget = 100 the lead of GSE over OD-LinBAI is larger with 64 arms than with 8.",
        change_of_lead("num_arms", where=BUDGET_100),
        FWG_ROUND,
        OD,
        least=0.0,
        paper=MORE_AND_MORE,
    ),
    compare(
        "With 100 pulls of 64 arms the paper's ROUND is ahead of efficient rounding.",
        accuracy({**BUDGET_100, "num_arms": 64}),
        FWG_ROUND,
        FWG,
        least=0.0,
    ),
)
SPHERE_OD = figure(
    f"GSE and OD-LinBAI on a sphere, {PAPER} 6",
    ["fig6"],
    *WITH_100_PULLS,
    compare(
        "OD-LinBAI is ahead of GSE for budget = 500.",
        accuracy(BUDGET_500),
        OD,
        FWG_ROUND,
        least=0.0,
        paper='Appendix E.3: "extremely large like 500 we can see OD-LinBAI outperform GSE"',
    ),
    quick={
        "algorithms": (LIN, FWG_ROUND, OD),
        "axes": {"num_arms": (8, 64), "budget": (100, 500)},
        "replications": 200,
    },
)
SPHERE_OD_100 = figure(
    f"GSE and OD-LinBAI on a sphere with 100 pulls, many replications, {PAPER} 6",
    ["fig6_100"],
    *WITH_100_PULLS,
    quick={"axes": {"num_arms": (64,), "budget": (100,)}, "replications": 200},
)
SPHERE_OD_PER_ARM = figure(
    f"GSE and OD-LinBAI on a sphere, budgets per arm, {PAPER} 6",
    ["fig6_per_arm"],
    compare(
        "With so many pulls both are alike, within 2%.",
        accuracy(),
        (FWG_ROUND, OD),
        least=-0.02,
        most=0.02,
    ),
    rounding_changes_little(),
    quick={
        "algorithms": (LIN, OD),
        "axes": {"num_arms": (8, 16), "per_arm": (100,)},
        "replications": 200,
    },
)

CORNER = figure(
    f"Two dimensions and 25 pulls, {PAPER} 7",
    ["fig7"],
    compare(
        "OD-LinBAI is ahead of GSE.",
        accuracy(),
        OD,
        (LIN, FWG_ROUND),
        least=0.0,
        paper='Appendix E.3: "OD-LinBAI outperforms our algorithm"',
    ),
    compare(
        "GSE in a single stage, with the D-optimal design, does as well as OD-LinBAI, within 3%.",
        accuracy(),
        ONE_STAGE,
        OD,
        least=-0.03,
        most=0.03,
        paper=ONCE,
    ),
    compare(
        "With the D-optimal design GSE is better in a single stage than in several.",
        accuracy(),
        ONE_STAGE,
        D_ROUND,
        least=0.0,
        paper=ONCE,
    ),
    d_optimal_is_as_good(D_ROUND, FWG_ROUND),
    compare(
        "With 25 pulls an arm OD-LinBAI is still ahead.",
        accuracy(),
        OD_25,
        FWG_25_ROUND,
        least=0.0,
    ),
    compare("GSE gets worse with more arms.", change("num_arms"), (LIN, FWG_ROUND), most=-0.2),
    rounding_changes_little(),
    quick={
        "algorithms": (LIN, FWG_ROUND, OD),
        "axes": {"num_arms": (3, 12)},
        "replications": 200,
    },
)
