"""Names of the curves of the GSE paper's figures, and what their experiments share.

"ROUND as printed" is the rounding of Algorithm 2, by Allen-Zhu et al. (2017): claims of the paper
are judged with it. Curves without it have efficient rounding, the default of `gse`.
"""

from typing import Any

from ..claims import Claim, accuracy, checked, compare
from ..experiment import Experiment, from_files

PAPER = "Azizi et al. (2022), Figure"
LIN, FWG, GREEDY, WYNN, D = (
    "GSE-Lin",
    *(f"GSE-Lin-{design}" for design in ("FWG", "Greedy", "Wynn", "D")),
)
LOG, LOG_FWG, LOG_D = "GSE-Log", "GSE-Log-FWG", "GSE-Log-D"
FWG_25, OD_25 = "GSE-Lin-FWG, 25 K pulls", "OD-LinBAI, 25 K pulls"
AS_PRINTED = " (ROUND as printed)"
FWG_ROUND, WYNN_ROUND, D_ROUND, LOG_FWG_ROUND, LOG_D_ROUND, FWG_25_ROUND = (
    name + AS_PRINTED for name in (FWG, WYNN, D, LOG_FWG, LOG_D, FWG_25)
)
FORMS = (LIN, FWG_ROUND, GREEDY, WYNN_ROUND)  # of GSE in the paper's figures
OD, PEACE, BAYES, HALVING = "OD-LinBAI", "Peace", "BayesGap", "Sequential halving"
BAYES_LIN = "BayesGap-Lin"
GAPE, GAPE_GREEDY, UCB, UCB_GLM = "LinGapE", "LinGapE-Greedy", "LinUCB", "UCB-GLM"
NEVER_BAYES = 'Section 7: "our algorithm always outperforms BayesGap in the linear setting"'
BOTH_DESIGNS = 'Appendix C: "similar performance using both G and D optimal allocation"'


def figure(title: str, files: list[str], *claims: Claim, **rest: Any) -> Experiment:
    """An experiment of accuracies, run as sweep files of this folder say."""
    run = from_files(*(f"gse/{file}.toml" for file in files))
    return Experiment(title=title, claims=checked(*claims), quantities=("accuracy",), **run, **rest)


def d_optimal_is_as_good(one: str, other: str) -> Claim:
    """The D-optimal design and FWG have about the same accuracy."""
    text = "The D-optimal design does as well as FWG, within 3%."
    return compare(text, accuracy(), one, other, least=-0.03, most=0.03, paper=BOTH_DESIGNS)


def rounding_changes_little(one: str = FWG, printed: str = FWG_ROUND) -> Claim:
    """Both roundings have about the same accuracy."""
    text = "FWG with efficient rounding does as well as with the paper's ROUND, within 2%."
    return compare(text, accuracy(), one, printed, least=-0.02, most=0.02)
