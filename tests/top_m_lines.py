"""Lines of Table 1 of Reda et al. (2021) by names, also those that no constructor offers."""

from typing import NamedTuple

from jaxbandits.algorithms.loops import comparisons
from jaxbandits.algorithms.loops.gap_index import gap_index
from jaxbandits.algorithms.loops.pair_selection import SELECTIONS


class Rules(NamedTuple):
    """The columns of the table."""

    indices: str = "paired"  # or "individual"
    guess: str = "means"  # J: the m largest estimates, or "indices": the m least D_j
    weakest: str = "pair"  # b: of the pair that is hardest to tell, or "index": of the largest D_j
    selection: str = "greedy"
    stopping: str = "lucb"  # B[c, b] <= epsilon, or "ugape": D_j <= epsilon on J
    all_first: bool = True  # each arm is drawn once before any test
    stale_pair: bool = False  # test what was drawn last, not what would be drawn next


MEMBERS = {"means": comparisons.largest_means, "indices": comparisons.least_worst}
WEAKEST = {"pair": comparisons.hardest_pair, "index": comparisons.largest_worst}


def algorithm(arms, evidence, rules, width, *, m):
    """The algorithm of these rules."""
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
