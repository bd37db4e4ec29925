"""m-LinGapE: the m best arms of a linear bandit."""

from functools import partial

from ...core import Algorithm
from ...kernels.allocate import pair_shares
from ...parameters import Flag, Nonnegative, Probability, Ratios, Size, Variance, constructor
from ...types import Arms
from ..loops.comparisons import LUCB, best_with_rest, by_features, one_with_rest
from ..loops.top_m import (
    REVISIONS,
    USUAL_RIDGE,
    PairSelection,
    Ridge,
    Threshold,
    consistent,
    ridge,
    top_m,
)


@constructor(
    requires=partial(consistent, code=lambda noise_var: 1.0),
    completes=pair_shares.completed,
    revisions=REVISIONS,
)
def m_lingape(
    arms: Arms,
    *,
    m: Size,
    delta: Probability = 0.05,
    epsilon: Nonnegative = 0.0,
    noise_var: Variance = 1.0,
    theta_norm: Nonnegative | None = None,
    v0: Ridge = USUAL_RIDGE,
    selection: PairSelection = "greedy",
    ratios: Ratios | None = None,
    threshold: Threshold = "self_normalised_det",
    stale_pair: Flag = False,
) -> Algorithm:
    """m-LinGapE (Reda, Kaufmann, Delahaye-Duriez, 2021).

    `B[i, j] = mu_i - mu_j + C sigma ||x_i - x_j||_{V^-1}`. J holds the m arms of the largest
    estimates; `b = argmax_{j in J} max_{i not in J} B[i, j]`, `c = argmax_{i not in J} B[i, b]`.
    Stop when `B[c, b] <= epsilon`, else draw an arm by `selection`: "greedy" takes
    `argmax_a (G_ba - G_ca)^2 / (1 + G_aa)` with `G = X V^-1 X^T`; "largest_variance" the one of b
    and c with the larger G_aa; "ratio" (the paper's "optimized") `argmin_a N_a / |w_a|` for the w
    of least `||w||_1` with `X^T w = x_b - x_c`; "both" first b and then c. Each arm is drawn once
    first.

    Args:
      arms: `[K, d]` features. Their units matter: the effect of the ridge depends on them.
      m: number of arms to return, below K (static); 1 for the best arm.
      delta: error probability, in (0, 1).
      epsilon: members within epsilon of the m-th best are good enough; in units of a reward.
      noise_var: sub-Gaussian variance of a reward.
      theta_norm: a bound on the norm of theta; the proved thresholds need it.
      v0: ridge, by default 1/40. "paper" is its lambda, sigma / 20, which is 1/40 at the paper's
        variance 1/4 and otherwise depends on the unit of the rewards; "code" that of the published
        program, 1.
      selection: "greedy", "largest_variance", "ratio" or "both".
      ratios: `[K, K, K]` for "ratio", by default `design.ratios(arms)`; for arms that each
        replication draws anew it is found among all sets of d arms, at most 100,000.
      threshold: the radius C: "self_normalised_det", "self_normalised", "pairwise", "lucb1",
        "heuristic", "self_normalised_printed" or "self_normalised_code"; the last four have no
        proof here. See the page "Thresholds and what delta promises".
      stale_pair: test as the published program does, see `Deviations`.
    Returns:
      An `Algorithm` that draws one arm a round and answers a mask `bool [K]` with m true entries.
    Raises:
      ValueError: a bad option, or an unknown `theta_norm` where the threshold needs it.
    Deviations:
      The stopping test comes before the draw, with the pair recomputed, as the paper states it. The
      published program tests the pair for which it has just drawn, and stops although other pairs
      are still ambiguous; `stale_pair` does the same, to reproduce its figures. Eq. (1) is printed
      with argmax over w_a > 0; the proofs need argmin over `|w_a| > 0`. The self-normalised
      threshold is written for V = v0 I + .. alone; the paper mixes two conventions. Its ridge,
      sigma / 20, has the unit of the rewards; the default is what it is at the paper's variance.
      Ties are broken by a random order drawn once a replication; those of "ratio" go to the lowest
      index.
    Setting:
      m best arms, fixed confidence.
    Assumptions:
      linear means, sub-Gaussian noise of known variance. Arms without features: as unit vectors.
    Guarantee:
      a wrong set with probability at most delta, for the default and the other self-normalised
      thresholds except the published ones; the paper bounds the draws for "largest_variance" and
      "ratio" (`jaxbandits.theory.top_m_pull_bound`). Needs a bound on the norm of theta.
    Cost:
      a round K^2.
    Reference:
      C. Reda, E. Kaufmann, A. Delahaye-Duriez, "Top-m identification for linear bandits",
      AISTATS 2021, Algorithm 1 and Table 1. https://arxiv.org/abs/2103.10070
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> instance = jb.instances.classic_top_m(4, 2, angle=1.0)
      >>> algorithm = partial(jb.m_lingape, m=2, delta=0.05)
      >>> runs = jb.simulate(instance, algorithm, replications=10)
      >>> runs.answer.shape, int(runs.answer.sum(1).max())
      ((10, 4), 2)
    """
    v0 = ridge(v0, noise_var, code=1.0)
    return top_m(
        arms,
        by_features(arms, v0, arm_space=True),
        one_with_rest if m == 1 else partial(best_with_rest, m=m),
        selection=selection,
        delta=delta,
        epsilon=epsilon,
        noise_var=noise_var,
        theta_norm=theta_norm,
        v0=v0,
        ratios=ratios,
        threshold=threshold,
        retest=LUCB.retest if stale_pair else None,
    )
