"""UGapE: the m best arms without features, by a bound for each arm on its gap to them."""

from functools import partial

from ...conditions import fewer_than_arms
from ...core import Algorithm
from ...parameters import Flag, Nonnegative, Probability, Size, Variance, constructor
from ...types import Arms
from ..loops.comparisons import UGAPE, best_with_rest, by_averages, individual, least_worst
from ..loops.top_m import AverageSelection, AverageThreshold, top_m


@constructor(features=False, requires=fewer_than_arms)
def ugape(
    arms: Arms,
    *,
    m: Size,
    delta: Probability = 0.05,
    epsilon: Nonnegative = 0.0,
    noise_var: Variance = 1.0,
    selection: AverageSelection = "largest_variance",
    threshold: AverageThreshold = "lucb1",
    stale_pair: Flag = False,
) -> Algorithm:
    """UGapE (Gabillon, Ghavamzadeh, Lazaric, 2012).

    `U_i, L_i = mu_i +- C sigma / sqrt(N_i)` from average rewards alone. `D_j` is the m-th largest
    U_i over the i other than j, minus L_j. J holds the m arms of least D_j;
    `b = argmin_{j in J} L_j`, `c = argmax_{i not in J} U_i`. Stop when `D_j <= epsilon` for all j
    in J, else draw the one of b and c with fewer draws. Each arm is drawn once first.

    Args:
      arms: `[K, d]`; only K counts.
      m: number of arms to return, below K (static); 1 for the best arm.
      delta: error probability, in (0, 1).
      epsilon: members within epsilon of the m-th best are good enough; in units of a reward.
      noise_var: sub-Gaussian variance of a reward.
      selection: "largest_variance" as above, or "both", b and then c.
      threshold: the radius C, "lucb1" or "heuristic".
      stale_pair: test as a published program does, see `Deviations`.
    Returns:
      An `Algorithm` that draws one arm a round and answers a mask `bool [K]` with m true entries.
    Raises:
      ValueError: a bad option.
    Deviations:
      As Reda et al. (2021) state it, with their threshold; the paper has rewards in [0, b].
      `stale_pair` tests the D_j from before the last draw, as their program does. Ties are broken
      by a random order drawn once a replication. The option "both" is this package's.
    Setting:
      m best arms, fixed confidence, no structure.
    Assumptions:
      any means, sub-Gaussian noise of known variance. Arms without features: features are not used.
    Guarantee:
      a wrong set with probability at most delta, with the threshold "lucb1" (default).
    Cost:
      a round: the m best of K by sorting, up to 64 arms by K^2 comparisons.
    Reference:
      V. Gabillon, M. Ghavamzadeh, A. Lazaric, "Best arm identification: a unified approach to
      fixed budget and fixed confidence", NeurIPS 2012.
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> instance = jb.instances.classic_top_m(4, 2, angle=1.0)
      >>> algorithm = partial(jb.ugape, m=2, delta=0.05)
      >>> runs = jb.simulate(instance, algorithm, replications=10)
      >>> runs.summary()["errors"]
      0
    """
    compare = partial(best_with_rest, m=m, indices=individual, members=least_worst, stopping=UGAPE)
    return top_m(
        arms,
        by_averages(arms.shape[0]),
        compare,
        selection=selection,
        delta=delta,
        epsilon=epsilon,
        noise_var=noise_var,
        threshold=threshold,
        retest=UGAPE.retest if stale_pair else None,
    )
