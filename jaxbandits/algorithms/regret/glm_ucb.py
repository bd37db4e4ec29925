"""GLM-UCB: optimism in generalised linear bandits, by a width of the mean."""

from typing import Annotated

from ...core import Algorithm
from ...kernels.confidence import glm_radius
from ...kernels.estimate.links import LINKS
from ...parameters import Count, Family, Positive, Probability, Variance, constructor, number_or
from ...types import Arms, Scalar
from ..loops import glm

INFORMAL: float = 0.5


@constructor(requires=glm.theory_known("alpha"), revisions=glm.REVISIONS)
def glm_ucb(
    arms: Arms,
    *,
    alpha: Annotated[Scalar | str, number_or(*glm.NAMED, "theory_horizon")] = INFORMAL,
    family: Family = "logistic",
    noise_var: Variance | None = None,
    begin: glm.Begin = "basis",
    kappa: Positive | None = None,
    lipschitz: Positive | None = None,
    max_sqnorm: Positive | None = None,
    eigenvalue: Positive = 1.0,
    delta: Probability | None = None,
    horizon: Count | None = None,
    ridge: Positive = 1e-3,
) -> Algorithm:
    """GLM-UCB (Filippi, Cappe, Garivier, Szepesvari, 2010).

    After the first draws: fit theta by regularised maximum likelihood and draw `argmax_k mu(x_k^T
    theta) + alpha ||x_k||_{V^-1}`, `V = ridge I + sum of x x^T`.

    Args:
      arms: `[K, d]` features. Their units matter, because of the ridge.
      alpha: the width of a mean, for "gaussian" in units of sigma. "informal": 0.5, the largest
        standard deviation of a Bernoulli reward, without a theorem. "theory": `(2 lipschitz rho /
        kappa) sqrt(2 d log(t) log(2 d n / delta))` in round t, `rho^2 = 3 + 2 log(1 + 2 max_sqnorm
        / eigenvalue)`, for rewards in [0, 1]; "theory_horizon": the same with n in place of t.
      family: "logistic", "poisson", "probit" or "gaussian".
      noise_var: variance of a reward, sigma^2; "gaussian", which alone needs it, takes rewards and
        theta in units of sigma. By default 1.
      begin: the arms drawn once at first: "basis", the first d independent ones; "pivot",
        independent ones that lie far apart; "every" arm.
      kappa, lipschitz: least and largest slope of the mean function near theta, by default the
        slope at 0; for the theory.
      max_sqnorm: largest `||x||^2`, by default that of the arms; for the theory.
      eigenvalue: least eigenvalue of `sum of x x^T` after the first draws; for the theory.
      delta: chance that an interval is wrong, by default 1/n; for the theory.
      horizon: n; `simulate` passes that of a regret run, `at_budget` the budget.
      ridge: weight of `||theta||^2 / 2` in the fit, and in V.
    Returns:
      An `Algorithm` that is never done, for cumulative regret or for `at_budget`, and answers the
      arm drawn most; of arms drawn equally often, the one with the larger estimate. `info`: rounds
      whose fit missed its tolerance (`unconverged`, the sum of `capped`, `stalled` and
      `nonfinite`), and the largest Newton decrement among those (`worst_decrement`).
    Raises:
      ValueError: a bad option, or a theory without a horizon.
    Deviations:
      The ridge, without which there is no fit to separable rewards. The paper projects an estimate
      that leaves the set of admissible theta; here there is no such set. `eigenvalue` is not
      measured: 1 is what a ridge of 1 guarantees. Of arms that do not span, a basis of their span
      is drawn. After a fit that did not converge the next one starts from 0. For "gaussian" rewards
      are divided by sigma, as the paper's are bounded.
    Setting:
      cumulative regret, or at a budget, generalised linear.
    Assumptions:
      generalised linear by `family`, rewards in [0, 1] for the theory. Arms without features: as
      unit vectors.
    Guarantee:
      none for the default width; the paper bounds the regret, of order d sqrt(n) up to logarithms,
      for alpha = "theory", with a projection and without the ridge.
    Cost:
      a step of a fit K d + d^2, a Newton step where one is needed K d^2 + d^3; some steps a round.
    Reference:
      S. Filippi, O. Cappe, A. Garivier, C. Szepesvari, "Parametric bandits: the generalized linear
      case", NeurIPS 2010, Algorithm 1 and Theorem 2.
      https://papers.nips.cc/paper/4166-parametric-bandits-the-generalized-linear-case
    Example:
      >>> from functools import partial
      >>> import jax
      >>> import jaxbandits as jb
      >>> instance = jb.instances.logistic_cube(jax.random.key(0), 10, 3, half_width=1.0)
      >>> algorithm = partial(jb.glm_ucb, alpha=0.5)
      >>> runs = jb.simulate(instance, algorithm, horizon=100, replications=10)
      >>> runs.regret.shape[0], int(runs.rounds[-1])
      (10, 100)
    """
    dim, mean = arms.shape[1], LINKS[family].mean
    least, largest = glm_radius.slopes(family, kappa, lipschitz)

    def width(t):
        if not isinstance(alpha, str):
            return alpha
        if alpha == "informal":
            return INFORMAL
        assert horizon is not None  # a condition asked for it
        return glm_radius.glm_ucb(
            t if alpha == "theory" else horizon,
            1.0 / horizon if delta is None else delta,
            horizon,
            dim,
            max_sqnorm=(arms**2).sum(1).max() if max_sqnorm is None else max_sqnorm,
            eigenvalue=eigenvalue,
            kappa=least,
            lipschitz=largest,
        )

    def index(predictors, widths, draws):
        return mean(predictors) + width(draws + 1) * widths

    rules = glm.optimistic(arms, ridge, index)
    return glm.glm_regret(arms, rules, family=family, ridge=ridge, noise_var=noise_var, begin=begin)
