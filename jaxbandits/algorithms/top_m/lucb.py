"""LUCB: the m best arms without features, by the pair that is hardest to tell apart."""

from functools import partial

from ...conditions import fewer_than_arms
from ...core import Algorithm
from ...parameters import Flag, Nonnegative, Probability, Size, Variance, constructor
from ...types import Arms
from ..loops.comparisons import LUCB, best_with_rest, by_averages, individual
from ..loops.top_m import AverageSelection, AverageThreshold, top_m


@constructor(features=False, requires=fewer_than_arms)
def lucb(
    arms: Arms,
    *,
    m: Size,
    delta: Probability = 0.05,
    epsilon: Nonnegative = 0.0,
    noise_var: Variance = 1.0,
    selection: AverageSelection = "both",
    threshold: AverageThreshold = "lucb1",
    stale_pair: Flag = False,
) -> Algorithm:
    """LUCB (Kalyanakrishnan, Tewari, Auer, Stone, 2012).

    `U_i, L_i = mu_i +- C sigma / sqrt(N_i)` from average rewards alone. J holds the m arms of the
    largest averages; `b = argmin_{j in J} L_j`, `c = argmax_{i not in J} U_i`. Stop when
    `U_c - L_b <= epsilon`, else draw b and c. Each arm is drawn once first.

    Args:
      arms: `[K, d]`; only K counts.
      m: number of arms to return, below K (static); 1 for the best arm.
      delta: error probability, in (0, 1).
      epsilon: members within epsilon of the m-th best are good enough; in units of a reward.
      noise_var: sub-Gaussian variance of a reward.
      selection: "both" draws b and then c, "largest_variance" the one with fewer draws.
      threshold: the radius C, "lucb1" or "heuristic".
      stale_pair: test as a published program does, see `Deviations`.
    Returns:
      An `Algorithm` that draws one arm a round and answers a mask `bool [K]` with m true entries.
    Raises:
      ValueError: a bad option.
    Deviations:
      The published radius is for rewards in [0, 1], sigma = 1/2; it is scaled by sigma here.
      `stale_pair` tests the pair that was drawn last, as the program of Reda et al. (2021) does;
      "largest_variance" is theirs too. Ties are broken by a random order drawn once a replication.
    Setting:
      m best arms, fixed confidence, no structure.
    Assumptions:
      any means, sub-Gaussian noise of known variance. Arms without features: features are not used.
    Guarantee:
      a wrong set with probability at most delta, with the threshold "lucb1" (default).
    Cost:
      a round: the m best of K by sorting, up to 64 arms by K^2 comparisons.
    Reference:
      S. Kalyanakrishnan, A. Tewari, P. Auer, P. Stone, "PAC subset selection in stochastic
      multi-armed bandits", ICML 2012.
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> instance = jb.instances.classic_top_m(4, 2, angle=1.0)
      >>> algorithm = partial(jb.lucb, m=2, delta=0.05)
      >>> runs = jb.simulate(instance, algorithm, replications=10)
      >>> runs.summary()["errors"]
      0
    """
    return top_m(
        arms,
        by_averages(arms.shape[0]),
        partial(best_with_rest, m=m, indices=individual),
        selection=selection,
        delta=delta,
        epsilon=epsilon,
        noise_var=noise_var,
        threshold=threshold,
        retest=LUCB.retest if stale_pair else None,
    )
