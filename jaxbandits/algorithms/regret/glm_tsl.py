"""GLM-TSL: Thompson sampling with a Laplace approximation in generalised linear bandits."""

from typing import Annotated

import jax
import jax.numpy as jnp

from ...core import Algorithm
from ...kernels.confidence import glm_radius
from ...parameters import Count, Family, Positive, Variance, constructor, nonnegative_or
from ...types import Arms, Scalar
from ..loops import glm

INFORMAL: float = 1.0


@constructor(
    spans=True,
    requires=glm.theory_known("a", "exploration"),
    deviation=glm_radius.tsl_deviation,
    revisions=glm.REVISIONS,
)
def glm_tsl(
    arms: Arms,
    *,
    family: Family = "logistic",
    a: Annotated[Scalar | str, nonnegative_or(*glm.NAMED)] = INFORMAL,
    noise_var: Variance | None = None,
    kappa: Positive | None = None,
    lipschitz: Positive | None = None,
    horizon: Count | None = None,
    ridge: Positive = 1e-3,
    begin: glm.Begin = "basis",
    exploration: glm.Exploration | None = None,
) -> Algorithm:
    """GLM-TSL (Kveton, Zaheer, Szepesvari, Li, Ghavamzadeh, Boutilier, 2020).

    After draws of d linearly independent arms in turn, for `exploration` rounds: fit theta by
    regularised maximum likelihood, with Hessian H; sample `theta' ~ N(theta, a^2 H^-1)`; draw
    the arm with the largest `x^T theta'`.

    Args:
      arms: `[K, d]` features; they must span. Their units matter, because of the ridge.
      family: "logistic", "poisson", "probit" or "gaussian".
      a: scale of the perturbation. "informal": 1, exact Laplace sampling (the paper's practical
        choice). "theory": `(sigma / kappa) sqrt(lipschitz (d log(n / d) + 2 log n))` for n rounds.
      noise_var: sub-Gaussian variance of a reward, sigma^2; by default 1 for "gaussian", else 1/4.
        "gaussian" takes rewards and theta in units of sigma, which is then 1 in all formulas; other
        families need it for "theory" alone.
      kappa, lipschitz: least and largest slope of the mean function near theta, by default the
        slope at 0; for "theory".
      horizon: n; `simulate` passes that of a regret run.
      ridge: weight of `||theta||^2 / 2` in the fit, which adds `ridge I` to H; 1 is a standard
        normal prior. Without it there is no fit in the first rounds: rewards of d independent arms
        drawn once are always separable.
      begin: the arms drawn at first: "basis", the first d independent ones; "pivot", independent
        ones that lie far apart; "every" arm.
      exploration: rounds in which they are drawn in turn, each once at least, and once by
        default. "theory": until the least eigenvalue of `sum of x x^T` is what the theorem
        asks, see `jaxbandits.theory.glm_tsl_regret_bound`.
    Returns:
      An `Algorithm` for cumulative regret (never done) that answers the arm with the largest
      estimate. `info`: rounds whose fit missed its tolerance (`unconverged`, the sum of `capped`,
      `stalled` and `nonfinite`), and the largest Newton decrement among those (`worst_decrement`).
    Raises:
      ValueError: a bad option, arms that do not span, or "theory" without a horizon.
    Deviations:
      The ridge. The paper begins with any basis, drawn until the design is large
      (`exploration="theory"`); its experiments draw d arms once, as is done by default. After a fit
      that did not converge the next one starts from 0. For "gaussian" rewards are divided by sigma,
      as the paper's model has variance 1.
    Setting:
      cumulative regret, generalised linear.
    Assumptions:
      generalised linear by `family`. Arms without features: as unit vectors.
    Guarantee:
      none by default, nor in the paper's experiments; with a = "theory" and exploration = "theory"
      regret at most `jaxbandits.theory.glm_tsl_regret_bound`, under the conditions named there and
      without the ridge.
    Cost:
      a round K d^2 + d^3 for each Newton step, of which most rounds need one or none.
    Reference:
      B. Kveton et al., "Randomized exploration in generalized linear bandits", AISTATS 2020,
      Algorithm 1. https://arxiv.org/abs/1906.08947
    Example:
      >>> from functools import partial
      >>> import jax
      >>> import jaxbandits as jb
      >>> instance = jb.instances.logistic_cube(jax.random.key(0), 10, 3, half_width=1.0)
      >>> algorithm = partial(jb.glm_tsl, a=0.5)
      >>> runs = jb.simulate(instance, algorithm, horizon=100, replications=10)
      >>> runs.regret.shape[0], int(runs.rounds[-1])
      (10, 100)
    """
    dim = arms.shape[1]
    theory = glm.Theory(horizon, dim, family, noise_var, kappa, lipschitz)
    a = theory.scale(a, INFORMAL, glm_radius.glm_tsl)
    exploration = theory.rounds(exploration, arms, begin, glm_radius.tsl_exploration)

    def choose(key, state):
        fit = state.fit
        normal = jax.random.normal(key, (dim,), arms.dtype)
        # With H = L L^T, H^-1 L z is the solution of L^T x = z: a draw from N(0, H^-1).
        sampled = fit.theta + a * (fit.inverse @ (fit.factor @ normal))
        return glm.Choice(jnp.argmax(arms @ sampled), theta=sampled)

    rules = glm.RegretRules(choose, answer=glm.most_likely(arms), factored=True)
    return glm.glm_regret(
        arms,
        rules,
        family=family,
        ridge=ridge,
        noise_var=noise_var,
        begin=begin,
        exploration=exploration,
    )
