"""Figure 4, logistic rewards."""

from ..claims import accuracy, change, compare
from .names import (
    BAYES,
    FWG_ROUND,
    LIN,
    LOG,
    LOG_D_ROUND,
    LOG_FWG,
    LOG_FWG_ROUND,
    PAPER,
    UCB_GLM,
    d_optimal_is_as_good,
    figure,
    rounding_changes_little,
)

FORMS = (LOG, LOG_FWG_ROUND, LIN, FWG_ROUND)
BETTER = 'Section 8.4: "GSE with logistic models outperforms linear models"'
GROWS = 'Section 8.4: "the performance of GSE keeps improving as B increases"'

LOGISTIC = figure(
    f"Logistic rewards, {PAPER} 4",
    ["fig4"],
    compare("GSE-Log is ahead of GSE-Lin.", accuracy(), LOG, LIN, least=0.0, paper=BETTER),
    compare(
        "GSE-Log-FWG is ahead of GSE-Lin-FWG.",
        accuracy(),
        LOG_FWG_ROUND,
        FWG_ROUND,
        least=0.0,
        paper=BETTER,
    ),
    compare(
        "FWG is ahead of equal shares in the logistic model.",
        accuracy(),
        LOG_FWG_ROUND,
        LOG,
        least=0.0,
        paper='Section 8.4: "FWG improves on uniform exploration in the GLM case"',
    ),
    compare(
        "The linear model is behind the logistic one by 5% at most.",
        accuracy(),
        (LOG, LOG_FWG_ROUND),
        (LIN, FWG_ROUND),
        most=0.05,
        paper='Section 8.4: "the linear model only slightly underperforms the logistic model"',
    ),
    compare(
        "UCB-GLM is poor: behind all others.",
        accuracy(),
        (*FORMS, BAYES),
        UCB_GLM,
        least=0.0,
        paper='Section 8.4: "UCB-GLM results confirm that CR algorithms could fail in BAI"',
    ),
    compare(
        "BayesGap is behind GSE with 50 pulls an arm.",
        accuracy({"per_arm": 50}),
        (LOG, LOG_FWG_ROUND),
        BAYES,
        least=0.0,
        paper='Section 8.4: "BayesGap-M falls short for B/K ≥ 50"',
    ),
    compare(
        "GSE gains from 20 pulls an arm instead of 10.",
        change("per_arm", 10, 20),
        FORMS,
        least=0.0,
        paper=GROWS,
    ),
    compare(
        "GSE gains from 50 pulls an arm instead of 20.",
        change("per_arm", 20, 50),
        FORMS,
        least=0.0,
        paper=GROWS,
    ),
    d_optimal_is_as_good(LOG_D_ROUND, LOG_FWG_ROUND),
    compare(
        "GSE-Log is ahead of GSE-Lin where arms depend on each other (dim = 5, 7).",
        accuracy({"dim": [5, 7]}),
        LOG,
        LIN,
        least=0.0,
    ),
    compare(
        "GSE-Log is GSE-Lin where arms are independent (dim = 10, 12).",
        accuracy({"dim": [10, 12]}),
        (LOG, LIN),
        least=-0.01,
        most=0.01,
    ),
    compare(
        "FWG is ahead of equal shares in the linear model.", accuracy(), FWG_ROUND, LIN, least=0.0
    ),
    rounding_changes_little(LOG_FWG, LOG_FWG_ROUND),
    quick={
        "algorithms": (LOG, LIN, UCB_GLM),
        "axes": {"dim": (5, 12), "per_arm": (10, 50)},
        "replications": 200,
    },
)
