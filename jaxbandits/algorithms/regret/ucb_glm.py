"""UCB-GLM: optimism in generalised linear bandits, by a width of the linear predictor."""

from typing import Annotated

import jax.numpy as jnp

from ...core import Algorithm
from ...kernels.confidence import glm_radius, radius
from ...parameters import (
    Count,
    Family,
    Positive,
    Probability,
    Variance,
    choice,
    constructor,
    number_or,
)
from ...types import Arms, Scalar
from ..loops import glm

INFORMAL: float = 0.5


@constructor(requires=glm.theory_known("alpha"), revisions=glm.REVISIONS)
def ucb_glm(
    arms: Arms,
    *,
    alpha: Annotated[Scalar | str, number_or(*glm.NAMED)] = INFORMAL,
    family: Family = "logistic",
    begin: glm.Begin = "basis",
    bonus: Annotated[str, choice("norm", "squared_norm")] = "norm",
    noise_var: Variance | None = None,
    kappa: Positive | None = None,
    delta: Probability | None = None,
    horizon: Count | None = None,
    ridge: Positive = 1e-3,
) -> Algorithm:
    """UCB-GLM (Li, Lu, Zhou, 2017).

    After the first draws: fit theta by regularised maximum likelihood and draw `argmax_k
    x_k^T theta + alpha ||x_k||_{V^-1}`, `V = ridge I + sum of x x^T`.

    Args:
      arms: `[K, d]` features. Their units matter, because of the ridge.
      alpha: the width of a linear predictor, for "gaussian" in units of sigma. "theory": `(sigma /
        kappa) sqrt(d log(1 + 2 n / d) / 2 + log(1 / delta))` for n rounds. "informal": 0.5, the
        largest standard deviation of a Bernoulli reward, without a theorem.
      family: "logistic", "poisson", "probit" or "gaussian".
      begin: the arms drawn once at first: "basis", the first d independent ones; "pivot",
        independent ones that lie far apart; "every" arm.
      bonus: "norm", or "squared_norm" for `alpha ||x_k||^2_{V^-1}`, as GSE's program has it.
      noise_var: as in `glm_tsl`.
      kappa: least slope of the mean function near theta, by default the slope at 0; for "theory".
      delta: chance that an interval is wrong, by default 1/n; for "theory".
      horizon: n; `simulate` passes that of a regret run, `at_budget` the budget.
      ridge: weight of `||theta||^2 / 2` in the fit, and in V.
    Returns:
      An `Algorithm` that is never done, for cumulative regret or for `at_budget`, and answers the
      arm drawn most; of arms drawn equally often, the one with the larger estimate. `info`: rounds
      whose fit missed its tolerance (`unconverged`, the sum of `capped`, `stalled` and
      `nonfinite`), and the largest Newton decrement among those (`worst_decrement`).
    Raises:
      ValueError: a bad option, or "theory" without a horizon.
    Deviations:
      The ridge, without which there is no fit to separable rewards. The paper begins with arms at
      random, until `sum of x x^T` is large. Of arms that do not span, a basis of their span is
      drawn. After a fit that did not converge the next one starts from 0. For "gaussian" rewards
      are divided by sigma, as the paper's model has variance 1.
    Setting:
      cumulative regret, or at a budget, generalised linear.
    Assumptions:
      generalised linear by `family`. Arms without features: as unit vectors.
    Guarantee:
      none for the default width; the paper bounds the regret, of order d sqrt(n) up to logarithms,
      for alpha = "theory" after random first draws.
    Cost:
      a step of a fit K d + d^2, a Newton step where one is needed K d^2 + d^3; some steps a round.
    Reference:
      L. Li, Y. Lu, D. Zhou, "Provably optimal algorithms for generalized linear contextual
      bandits", ICML 2017, Algorithm 1. https://arxiv.org/abs/1703.00048
    Example:
      >>> from functools import partial
      >>> import jax
      >>> import jaxbandits as jb
      >>> instance = jb.instances.logistic_cube(jax.random.key(0), 10, 3, half_width=1.0)
      >>> algorithm = partial(jb.ucb_glm, alpha=0.5)
      >>> runs = jb.simulate(instance, algorithm, horizon=100, replications=10)
      >>> set(runs.pulls.tolist())
      {100}
    """
    if isinstance(alpha, str) and alpha == "theory":
        assert horizon is not None  # a condition asked for it
        variance = glm.variance_in_unit(family, noise_var)
        alpha = _theory(arms.shape[1], family, variance, kappa, delta, horizon)
    elif isinstance(alpha, str):
        alpha = INFORMAL

    def index(predictors, widths, draws):
        return predictors + alpha * (widths**2 if bonus == "squared_norm" else widths)

    rules = glm.optimistic(arms, ridge, index)
    return glm.glm_regret(arms, rules, family=family, ridge=ridge, noise_var=noise_var, begin=begin)


def _theory(
    dim: int,
    family: str,
    variance: Scalar,
    kappa: Scalar | None,
    delta: Scalar | None,
    horizon: Scalar,
) -> Scalar:
    """`sigma C / kappa`."""
    slope, _ = glm_radius.slopes(family, kappa, None)
    level = 1.0 / horizon if delta is None else delta
    return jnp.sqrt(variance) / slope * radius.ucb_glm(level, horizon, dim)
