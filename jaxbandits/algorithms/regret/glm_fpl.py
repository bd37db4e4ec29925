"""GLM-FPL: follow the perturbed leader in generalised linear bandits."""

from typing import Annotated

import jax
import jax.numpy as jnp

from ...core import Algorithm
from ...kernels.confidence import glm_radius
from ...parameters import Count, Family, Positive, Variance, constructor, nonnegative_or
from ...types import Arms, Scalar
from ..loops import glm

INFORMAL: float = 0.5


@constructor(
    spans=True,
    requires=glm.theory_known("a", "exploration"),
    deviation=glm_radius.fpl_deviation,
    revisions=glm.REVISIONS,
)
def glm_fpl(
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
    """GLM-FPL (Kveton, Zaheer, Szepesvari, Li, Ghavamzadeh, Boutilier, 2020).

    After draws of d linearly independent arms in turn, for `exploration` rounds: add `N(0,
    a^2)` to every past reward, anew in each round; fit `theta'` to that by regularised maximum
    likelihood; draw the arm with the largest `x^T theta'`.

    Args:
      arms: `[K, d]` features; they must span. Their units matter, because of the ridge.
      family: "logistic", "poisson", "probit" or "gaussian".
      a: scale of the perturbation, for "gaussian" in units of sigma. "informal": 0.5 (the paper's
        practical choice). "theory": `(sigma / kappa) lipschitz sqrt(d log(n / d) + 2 log n)` for n
        rounds.
      noise_var: as in `glm_tsl`.
      kappa, lipschitz: least and largest slope of the mean function near theta, by default the
        slope at 0; for "theory".
      horizon: n; `simulate` passes that of a regret run.
      ridge: weight of `||theta||^2 / 2` in the fits; 1 is a standard normal prior. Without it a fit
        to perturbed rewards need not exist.
      begin: the arms drawn at first: "basis", the first d independent ones; "pivot", independent
        ones that lie far apart; "every" arm.
      exploration: rounds in which they are drawn in turn, each once at least, and once by
        default. "theory": until the least eigenvalue of `sum of x x^T` is what the theorem
        asks, see `jaxbandits.theory.glm_fpl_regret_bound`.
    Returns:
      An `Algorithm` for cumulative regret (never done) that answers the arm with the largest
      estimate from unperturbed rewards. `info`: fits of either kind that missed their tolerance
      (`unconverged`, the sum of `capped`, `stalled` and `nonfinite`), and the largest Newton
      decrement among those (`worst_decrement`).
    Raises:
      ValueError: a bad option, arms that do not span, or "theory" without a horizon.
    Deviations:
      The ridge. The paper begins with any basis, drawn until the design is large
      (`exploration="theory"`); its experiments draw d arms once, as is done by default. The sum of
      an arm's N perturbations is drawn as one number, from `N(0, a^2 N)`. A fit starts from that to
      unperturbed rewards. Probit models are fitted by the quasi-likelihood, which stays convex for
      perturbed rewards. For "gaussian" rewards are divided by sigma, as the paper's model has
      variance 1.
    Setting:
      cumulative regret, generalised linear.
    Assumptions:
      generalised linear by `family`. Arms without features: as unit vectors.
    Guarantee:
      none by default, nor in the paper's experiments; with a = "theory" and exploration = "theory"
      the paper states, and with more first draws it proves, regret at most
      `jaxbandits.theory.glm_fpl_regret_bound`, for features with one non-zero entry, under the
      conditions named there and without the ridge.
    Cost:
      a step of a fit K d + d^2, a Newton step where one is needed K d^2 + d^3; some steps a round,
      for two fits.
    Reference:
      B. Kveton et al., "Randomized exploration in generalized linear bandits", AISTATS 2020,
      Algorithm 2. https://arxiv.org/abs/1906.08947
    Example:
      >>> from functools import partial
      >>> import jax
      >>> import jaxbandits as jb
      >>> instance = jb.instances.logistic_cube(jax.random.key(0), 10, 3, half_width=1.0)
      >>> algorithm = partial(jb.glm_fpl, a=0.5)
      >>> runs = jb.simulate(instance, algorithm, horizon=100, replications=10)
      >>> int(runs.info["unconverged"].sum())
      0
    """
    num_arms, dim = arms.shape
    theory = glm.Theory(horizon, dim, family, noise_var, kappa, lipschitz)
    a = theory.scale(a, INFORMAL, glm_radius.glm_fpl)
    exploration = theory.rounds(exploration, arms, begin, glm_radius.fpl_exploration)

    def choose(key, state):
        counts = state.counts.astype(arms.dtype)
        normal = jax.random.normal(key, (num_arms,), arms.dtype)
        sums = state.sums + a * jnp.sqrt(counts) * normal
        perturbed = glm.refitted(arms, counts, sums, state.fit, family=family, ridge=ridge)
        theta = perturbed.theta
        return glm.Choice(jnp.argmax(arms @ theta), perturbed, theta)

    rules = glm.RegretRules(choose, answer=glm.most_likely(arms))
    return glm.glm_regret(
        arms,
        rules,
        family=family,
        ridge=ridge,
        noise_var=noise_var,
        begin=begin,
        exploration=exploration,
    )
