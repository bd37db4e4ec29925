"""LinGIFA: the m best arms of a linear bandit, by a bound for each arm on its gap to them."""

from functools import partial
from typing import Annotated

from ...core import Algorithm
from ...kernels.allocate import pair_shares
from ...kernels.estimate import least_squares
from ...parameters import (
    Flag,
    Nonnegative,
    Probability,
    Ratios,
    Size,
    Variance,
    choice,
    constructor,
)
from ...types import Arms
from ..loops.comparisons import (
    INDICES,
    STOPPING,
    best_with_rest,
    by_features,
    largest_worst,
    least_worst,
)
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
    requires=partial(consistent, code=lambda noise_var: noise_var / 400.0),
    completes=pair_shares.completed,
    revisions=REVISIONS,
)
def lin_gifa(
    arms: Arms,
    *,
    m: Size,
    delta: Probability = 0.05,
    epsilon: Nonnegative = 0.0,
    noise_var: Variance = 1.0,
    theta_norm: Nonnegative | None = None,
    v0: Ridge = USUAL_RIDGE,
    indices: Annotated[str, choice("paired", "individual")] = "paired",
    selection: PairSelection = "greedy",
    ratios: Ratios | None = None,
    stopping: Annotated[str, choice("ugape", "lucb")] = "ugape",
    threshold: Threshold = "self_normalised_det",
    stale_pair: Flag = False,
) -> Algorithm:
    """LinGIFA (Reda, Kaufmann, Delahaye-Duriez, 2021).

    `B[i, j] = mu_i - mu_j + C sigma ||x_i - x_j||_{V^-1}`; `D_j`, the m-th largest B[i, j] over
    the i other than j, bounds how far arm j is from the m best. J holds the m arms of least D_j;
    `b = argmax_{j in J} D_j`, `c = argmax_{i not in J} B[i, b]`. Stop when `D_j <= epsilon` for
    all j in J, else draw an arm for b and c as `m_lingape` does. There are no draws before the
    first test.

    Args:
      arms: `[K, d]` features. Their units matter: the effect of the ridge depends on them.
      m: number of arms to return, below K (static); 1 for the best arm.
      delta: error probability, in (0, 1).
      epsilon: members within epsilon of the m-th best are good enough; in units of a reward.
      noise_var: sub-Gaussian variance of a reward.
      theta_norm: a bound on the norm of theta; the proved thresholds need it.
      v0: ridge, by default 1/40. "paper" is its lambda, sigma / 20, "code" the square of it; both
        depend on the unit of the rewards, see `m_lingape`.
      indices: "paired", or "individual" with `||x_i|| + ||x_j||` instead of `||x_i - x_j||`.
      selection: "greedy", "largest_variance", "ratio" or "both", see `m_lingape`.
      ratios: `[K, K, K]` for "ratio", see `m_lingape`.
      stopping: "ugape" as above, or "lucb", `B[c, b] <= epsilon`.
      threshold: the radius C: "self_normalised_det", "self_normalised", "pairwise", "lucb1",
        "heuristic", "self_normalised_printed" or "self_normalised_code"; the last four have no
        proof here. See the page "Thresholds and what delta promises".
      stale_pair: test as the published program does, see `Deviations`.
    Returns:
      An `Algorithm` that draws one arm a round and answers a mask `bool [K]` with m true entries.
    Raises:
      ValueError: a bad option, or an unknown `theta_norm` where the threshold needs it.
    Deviations:
      Thresholds count one draw more than were made, so that they are defined before the first.
      The paper's theorem does not cover "lucb", since B[c, b] need not be the largest over all
      pairs for this b. `stale_pair` tests the pair for which the last arm was drawn ("lucb"), or
      the D_j from before the last draw ("ugape"), as the published program does. See `m_lingape`
      for thresholds and ties. Table 1 has neither "ratio" nor "both" for this algorithm.
    Setting:
      m best arms, fixed confidence.
    Assumptions:
      linear means, sub-Gaussian noise of known variance. Arms without features: as unit vectors.
    Guarantee:
      a wrong set with probability at most delta, for the default and the other self-normalised
      thresholds except the published ones. Needs a bound on the norm of theta.
    Cost:
      a round K^2; with individual indices as `lingape`.
    Reference:
      C. Reda, E. Kaufmann, A. Delahaye-Duriez, "Top-m identification for linear bandits",
      AISTATS 2021, Algorithm 1 and Table 1. https://arxiv.org/abs/2103.10070
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> instance = jb.instances.classic_top_m(4, 2, angle=1.0)
      >>> algorithm = partial(jb.lin_gifa, m=2, delta=0.05)
      >>> runs = jb.simulate(instance, algorithm, replications=10)
      >>> runs.answer.shape, int(runs.answer.sum(1).max())
      ((10, 4), 2)
    """
    rule = STOPPING[stopping]
    compare = partial(
        best_with_rest,
        m=m,
        indices=INDICES[indices],
        members=least_worst,
        weakest=largest_worst,
        stopping=rule,
    )
    v0 = ridge(v0, noise_var, code=noise_var / 400.0)
    arm_space = indices == "paired" or least_squares.prefers_arm_space(arms)
    return top_m(
        arms,
        by_features(arms, v0, arm_space=arm_space),
        compare,
        selection=selection,
        delta=delta,
        epsilon=epsilon,
        noise_var=noise_var,
        theta_norm=theta_norm,
        v0=v0,
        ratios=ratios,
        threshold=threshold,
        all_first=False,
        retest=rule.retest if stale_pair else None,
    )
