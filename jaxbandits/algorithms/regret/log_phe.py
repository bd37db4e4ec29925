"""LogPHE: exploration by pseudo-rewards that are added to the history, in logistic bandits."""

from typing import Annotated

import jax
import jax.numpy as jnp

from ...core import Algorithm
from ...parameters import Positive, choice, constructor
from ...types import Arms
from ..loops import glm


@constructor()
def log_phe(
    arms: Arms,
    *,
    family: Annotated[str, choice("logistic")] = "logistic",
    a: Positive = 2.0,
    ridge: Positive = 1.0,
    begin: glm.Begin = "basis",
) -> Algorithm:
    """LogPHE (Kveton, Szepesvari, Ghavamzadeh, Boutilier, 2019).

    After one draw of each of d linearly independent arms: add to the N rewards of each arm
    `ceil(a N)` pseudo-rewards, anew in each round, each 0 or 1 with equal chance; fit theta to all
    of them by regularised maximum likelihood; draw the arm with the largest `x^T theta`.

    Args:
      arms: `[K, d]` features. Their units matter, because of the ridge.
      family: "logistic", for rewards in [0, 1]; the algorithm has no other.
      a: pseudo-rewards for each true one; 2 in public programs. With fewer it explores less.
      ridge: weight of `||theta||^2 / 2` in the fits; 1 in those programs.
      begin: the arms drawn once at first: "basis", the first d independent ones; "pivot",
        independent ones that lie far apart; "every" arm.
    Returns:
      An `Algorithm` for cumulative regret (never done) that answers the arm with the largest
      estimate from true rewards. `info`: fits of either kind that missed their tolerance
      (`unconverged`, the sum of `capped`, `stalled` and `nonfinite`), and the largest Newton
      decrement among those (`worst_decrement`).
    Raises:
      ValueError: a bad option.
    Deviations:
      The number of pseudo-rewards is rounded up, and the sum of those of an arm is drawn as one
      binomial number, as in public programs under this paper's names. Where the arms do not span, a
      basis of their span is drawn first. The scale of the paper's analysis, of linear models, is
      not offered.
    Setting:
      cumulative regret, logistic.
    Assumptions:
      logistic, rewards in [0, 1]. Arms without features: as unit vectors.
    Guarantee:
      none; the analysis of the paper is for linear models.
    Cost:
      a step of a fit K d + d^2, a Newton step where one is needed K d^2 + d^3; some steps a round,
      for two fits.
    Reference:
      B. Kveton, C. Szepesvari, M. Ghavamzadeh, C. Boutilier, "Perturbed-history exploration in
      stochastic linear bandits", UAI 2019. https://arxiv.org/abs/1903.09132
    Example:
      >>> from functools import partial
      >>> import jax
      >>> import jaxbandits as jb
      >>> instance = jb.instances.logistic_cube(jax.random.key(0), 10, 3, half_width=1.0)
      >>> algorithm = partial(jb.log_phe, a=0.5)
      >>> runs = jb.simulate(instance, algorithm, horizon=100, replications=10)
      >>> int(runs.info["unconverged"].sum())
      0
    """

    def choose(key, state):
        counts = state.counts.astype(arms.dtype)
        pseudo = jnp.ceil(a * counts)
        pseudo_sums = jax.random.binomial(key, pseudo, 0.5, dtype=arms.dtype)
        true, share = state.fit, 1.0 / (1.0 + a)
        near = true._replace(theta=share * true.theta, inverse=share * true.inverse)
        counts, sums = counts + pseudo, state.sums + pseudo_sums
        perturbed = glm.refitted(arms, counts, sums, near, family=family, ridge=ridge)
        return glm.Choice(jnp.argmax(arms @ perturbed.theta), perturbed)

    rules = glm.RegretRules(choose, answer=glm.most_likely(arms))
    return glm.glm_regret(arms, rules, family=family, ridge=ridge, begin=begin)
