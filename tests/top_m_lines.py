"""Gap-index algorithms by the columns of Table 1 of Reda et al. (2021).

Also combinations that no constructor offers.
"""

from typing import NamedTuple

from jaxbandits.algorithms.loops import comparisons
from jaxbandits.algorithms.loops.gap_index import gap_index
from jaxbandits.algorithms.loops.pair_selection import SELECTIONS


class GapIndexRules(NamedTuple):
    """The rules of a gap-index algorithm: the columns of the table."""

    indices: str = "paired"  # or "individual"
    guess: str = "means"  # J: the m largest means, or "indices": the m smallest D_j
    weakest: str = "pair"  # b: from the most uncertain pair, or "index": the largest D_j
    selection: str = "greedy"
    stopping: str = "lucb"  # B[c, b] <= epsilon, or "ugape": D_j <= epsilon on J
    all_first: bool = True  # each arm is drawn once before the first test
    stale_pair: bool = False  # test the pair drawn last, not the pair to be drawn next


MEMBERS = {"means": comparisons.largest_means, "indices": comparisons.least_worst}
WEAKEST = {"pair": comparisons.hardest_pair, "index": comparisons.largest_worst}


def algorithm(arms, evidence, rules, width, *, m):
    """The algorithm with these rules."""
    stopping = comparisons.STOPPING[rules.stopping]
    compare = comparisons.best_with_rest(
        evidence,
        m,
        indices=comparisons.INDICES[rules.indices],
        members=MEMBERS[rules.guess],
        weakest=WEAKEST[rules.weakest],
        stopping=stopping,
    )
    return gap_index(
        arms,
        evidence,
        compare,
        SELECTIONS[rules.selection](arms, None),
        width,
        all_first=rules.all_first,
        retest=stopping.retest if rules.stale_pair else None,
    )
