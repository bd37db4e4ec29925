"""Epsilon-greedy in generalised linear bandits: the best estimate, or an arm at random."""

from typing import Annotated

import jax
import jax.numpy as jnp

from ...core import Algorithm
from ...parameters import Count, Family, Positive, Variance, constructor, nonnegative_or
from ...types import Arms, Scalar
from ..loops import glm

FADING: float = 0.025


@constructor(requires=glm.theory_known("rate"), revisions=glm.REVISIONS)
def epsilon_greedy(
    arms: Arms,
    *,
    family: Family = "logistic",
    rate: Annotated[Scalar | str, nonnegative_or("fading")] = "fading",
    horizon: Count | None = None,
    noise_var: Variance | None = None,
    ridge: Positive = 1e-3,
    begin: glm.Begin = "basis",
) -> Algorithm:
    """Epsilon-greedy on maximum likelihood estimates.

    After the first draws: with probability `rate` draw an arm at random, else the one with the
    largest estimate.

    Args:
      arms: `[K, d]` features. Their units matter, because of the ridge.
      family: "logistic", "poisson", "probit" or "gaussian".
      rate: epsilon, 0 for greedy; above 1 counts as 1. "fading": `0.025 sqrt(n / t)` in round t.
      horizon: n; `simulate` passes that of a regret run, `at_budget` the budget.
      noise_var: as in `glm_ucb`.
      ridge: weight of `||theta||^2 / 2` in the fit.
      begin: the arms drawn once at first: "basis", the first d independent ones; "pivot",
        independent ones that lie far apart; "every" arm.
    Returns:
      An `Algorithm` that is never done and answers the arm with the largest estimate. `info`: as in
      `glm_tsl`.
    Raises:
      ValueError: a bad option, or "fading" without a horizon.
    Deviations:
      The paper draws at random with probability `c K / (g^2 t)`, g a lower bound on the gaps, and
      takes the mean of each arm's own rewards. "fading" is the rate of public programs that also
      have GLM-TSL.
    Setting:
      cumulative regret, or at a budget.
    Assumptions:
      generalised linear by `family`. Arms without features: as unit vectors.
    Guarantee:
      none.
    Cost:
      a step of a fit K d + d^2, a Newton step where one is needed K d^2 + d^3; some steps a round.
    Reference:
      P. Auer, N. Cesa-Bianchi, P. Fischer, "Finite-time analysis of the multiarmed bandit problem",
      Machine Learning 47, 2002, Figure 3.
    Example:
      >>> from functools import partial
      >>> import jax
      >>> import jaxbandits as jb
      >>> instance = jb.instances.logistic_cube(jax.random.key(0), 10, 3, half_width=1.0)
      >>> algorithm = partial(jb.epsilon_greedy, rate=0.5)
      >>> runs = jb.simulate(instance, algorithm, horizon=100, replications=10)
      >>> int(runs.info["unconverged"].sum())
      0
    """
    num_arms, most_likely = arms.shape[0], glm.most_likely(arms)

    def chance(draws):
        return FADING * jnp.sqrt(horizon / (draws + 1.0)) if isinstance(rate, str) else rate

    def choose(key, state):
        coin, uniform = jax.random.uniform(key, (2,), arms.dtype)
        # The floor gives all arms equal chances, up to 2^-52 K.
        at_random = jnp.minimum((uniform * num_arms).astype(int), num_arms - 1)
        best = most_likely(state)
        return glm.Choice(jnp.where(coin < chance(state.counts.sum()), at_random, best))

    rules = glm.RegretRules(choose, answer=most_likely)
    return glm.glm_regret(arms, rules, family=family, ridge=ridge, noise_var=noise_var, begin=begin)
