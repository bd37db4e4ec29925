"""EVILL: exploration by a random linear term of the loss, in generalised linear bandits."""

import jax
import jax.numpy as jnp

from ...core import Algorithm
from ...kernels.estimate.links import LINKS
from ...parameters import Family, Nonnegative, Positive, Variance, constructor
from ...types import Arms
from ..loops import glm


@constructor(revisions=glm.REVISIONS)
def evill(
    arms: Arms,
    *,
    family: Family = "logistic",
    a: Nonnegative = 1.0,
    noise_var: Variance | None = None,
    ridge: Positive = 1.0,
    begin: glm.Begin = "basis",
) -> Algorithm:
    """EVILL (Janz, Liu, Ayoub, Szepesvari, 2024).

    Fit `theta_t` by regularised maximum likelihood, with Hessian H; sample `w ~ N(0, a^2 H)`;
    minimise the same loss plus `w^T theta`; draw the arm with the largest `x^T theta` there.

    Args:
      arms: `[K, d]` features. Their units matter, because of the ridge.
      family: "logistic", "poisson", "probit" or "gaussian".
      a: scale of the perturbation; with 1 the second minimum varies around the first about as much
        as the first varies around the true theta.
      noise_var: as in `glm_ucb`.
      ridge: lambda, the weight of `||theta||^2 / 2` in the loss; 1 in the authors' program.
      begin: the arms drawn once at first: "basis", the first d independent ones; "pivot",
        independent ones that lie far apart; "every" arm.
    Returns:
      An `Algorithm` for cumulative regret (never done) that answers the arm with the largest
      estimate from the loss itself. `info`: fits of either kind that missed their tolerance
      (`unconverged`, the sum of `capped`, `stalled` and `nonfinite`), and the largest Newton
      decrement among those (`worst_decrement`).
    Raises:
      ValueError: a bad option.
    Deviations:
      The scale and the ridge of the analysis are not offered. The analysis begins with draws of an
      optimal design until every width is small; the authors' program has no first phase; here d
      arms are drawn once. The sum of an arm's perturbations is drawn as one number, as in that
      program. For "gaussian" rewards are divided by sigma, as the paper's model has variance 1.
    Setting:
      cumulative regret, generalised linear.
    Assumptions:
      generalised linear by `family`. Arms without features: as unit vectors.
    Guarantee:
      none for the scale and the ridge offered here; the paper bounds the regret for its own.
    Cost:
      a step of a fit K d + d^2, a Newton step where one is needed K d^2 + d^3; some steps a round,
      for two fits.
    Reference:
      D. Janz, S. Liu, A. Ayoub, C. Szepesvari, "Exploration via linearly perturbed loss
      minimisation", AISTATS 2024, Algorithm 1. https://arxiv.org/abs/2311.07565
    Example:
      >>> from functools import partial
      >>> import jax
      >>> import jaxbandits as jb
      >>> instance = jb.instances.logistic_cube(jax.random.key(0), 10, 3, half_width=1.0)
      >>> algorithm = partial(jb.evill, a=0.5)
      >>> runs = jb.simulate(instance, algorithm, horizon=100, replications=10)
      >>> int(runs.info["unconverged"].sum())
      0
    """
    num_arms, dim = arms.shape
    # Unit vectors as arms without draws: their sums are the ridge's part of w.
    rows = jnp.concatenate([arms, jnp.eye(dim, dtype=arms.dtype)])
    nothing = jnp.zeros(dim, arms.dtype)

    def choose(key, state):
        counts, theta = state.counts.astype(arms.dtype), state.fit.theta
        normal = jax.random.normal(key, (num_arms + dim,), arms.dtype)
        variances = counts * LINKS[family].variance(arms @ theta)
        scales = jnp.concatenate([jnp.sqrt(variances), nothing + jnp.sqrt(ridge)])
        sums = jnp.concatenate([state.sums, nothing]) + a * scales * normal
        counts = jnp.concatenate([counts, nothing])
        perturbed = glm.refitted(rows, counts, sums, state.fit, family=family, ridge=ridge)
        return glm.Choice(jnp.argmax(arms @ perturbed.theta), perturbed)

    rules = glm.RegretRules(choose, answer=glm.most_likely(arms))
    return glm.glm_regret(arms, rules, family=family, ridge=ridge, noise_var=noise_var, begin=begin)
