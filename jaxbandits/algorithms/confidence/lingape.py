"""LinGapE: fully adaptive best-arm identification in linear bandits."""

from typing import Annotated

from ...conditions import ratios_fit, ridge_in_range, theta_norm_known
from ...core import Algorithm
from ...kernels.allocate import pair_shares
from ...kernels.confidence import radius
from ...kernels.estimate import least_squares
from ...parameters import (
    Nonnegative,
    Positive,
    Probability,
    Ratios,
    Values,
    Variance,
    choice,
    constructor,
)
from ...types import Arms
from ..loops.comparisons import by_features, one_with_rest
from ..loops.gap_index import gap_index
from ..loops.pair_selection import SELECTIONS


def _consistent(values: Values) -> None:
    theta_norm_known(values, radius.NEED_THETA_NORM)
    ratios_fit(values, pair_shares.num_bases(values["arms"]), pair_shares.MOST_BASES)
    ridge_in_range(values)


@constructor(requires=_consistent, completes=pair_shares.completed)
def lingape(
    arms: Arms,
    *,
    delta: Probability = 0.05,
    epsilon: Nonnegative = 0.0,
    noise_var: Variance = 1.0,
    theta_norm: Nonnegative | None = None,
    v0: Positive = 1.0,
    selection: Annotated[str, choice("greedy", "ratio")] = "greedy",
    ratios: Ratios | None = None,
    threshold: Annotated[str, choice(*radius.USUAL)] = "pairwise",
) -> Algorithm:
    """LinGapE (Xu, Honda, Sugiyama, 2018).

    Leader `i = argmax mu` and its most ambiguous rival j, for which
    `B = max_j mu_j - mu_i + C sigma ||x_j - x_i||_{V^-1}` is attained. Stop when `B <= epsilon`,
    else draw the arm that shrinks `||x_i - x_j||_{V^-1}` most (eq. 9):
    `argmax_a (G_ia - G_ja)^2 / (1 + G_aa)` with `G = X V^-1 X^T`; or draw the arm that is furthest
    behind its share in the design that is best for this pair in the long run (eq. 12):
    `argmin_a T_a / p_a(i, j)` with `p` from the w of least `||w||_1` with `X^T w = x_i - x_j`.
    The first K draws take each arm once, and their rewards are used.

    Args:
      arms: `[K, d]` features. Their units matter: the effect of the ridge depends on them.
      delta: error probability, in (0, 1).
      epsilon: an answer within epsilon of the best is good enough; in units of a reward.
      noise_var: sub-Gaussian variance of a reward.
      theta_norm: a bound on the norm of theta; the proved thresholds need it.
      v0: ridge, the paper's lambda.
      selection: "greedy" (eq. 9) or "ratio" (eq. 12, the one the paper analyses).
      ratios: `[K, K, K]` the table of p, by default `design.ratios(arms)`; for arms that each
        replication draws anew it is found among all sets of d arms, at most 100,000.
      threshold: the radius C: "pairwise" (the paper's, eq. 8), "self_normalised_det",
        "self_normalised", "lucb1" or "heuristic"; the last two have no proof here. See the page
        "Thresholds and what delta promises".
    Returns:
      An `Algorithm` that draws one arm a round and answers the index of the believed best arm.
    Raises:
      ValueError: a bad option, or an unknown `theta_norm` where the threshold needs it.
    Deviations:
      The stopping test comes before the draw, with the pair recomputed. Ties of the arm to draw
      are broken by a random order of the arms drawn once a replication, not anew each round; those
      of the leader and of its rival go to the lowest index. Where a pair has several best designs,
      one with at most d arms is used.
    Setting:
      best arm, fixed confidence.
    Assumptions:
      linear means, sub-Gaussian noise of known variance. Arms without features: as unit vectors.
    Guarantee:
      wrong with probability at most delta, for the thresholds "pairwise" (default) and the
      self-normalised ones; the paper bounds the draws for "ratio". Needs a bound
      on the norm of theta.
    Cost:
      a round K d + d^2, or K^2 where K is at most 2 d; with selection = "ratio" once a design for
      each pair of arms.
    Reference:
      L. Xu, J. Honda, M. Sugiyama, "A fully adaptive algorithm for pure exploration in linear
      bandits", AISTATS 2018, Algorithm 1. https://arxiv.org/abs/1710.05552
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.lingape, delta=0.05)
      >>> runs = jb.simulate(jb.instances.soare(3, angle=0.5), algorithm, replications=10)
      >>> runs.summary()["errors"]
      0
    """
    facts = radius.facts(arms, delta=delta, noise_var=noise_var, v0=v0, theta_norm=theta_norm)
    evidence = by_features(arms, v0, arm_space=least_squares.prefers_arm_space(arms))
    return gap_index(
        arms,
        evidence,
        compare=one_with_rest(evidence, first_leads=True),  # its pair b, c is i, j
        select=SELECTIONS[selection](arms, ratios),  # eq. 9 or 12
        width=radius.width(threshold, facts),
        epsilon=epsilon,
        answer=lambda view: view.weakest,  # i, where the default is J, the mask of i
    )
