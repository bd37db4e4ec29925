"""BayesGap: fixed-budget best-arm identification with a Gaussian process."""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ...conditions import LEAST_GROWTH, budget_covers, total_draws
from ...core import Algorithm, Move
from ...feature_tables import is_concrete, require
from ...kernels import selection
from ...kernels.confidence import gaps as indices
from ...kernels.confidence import radius
from ...kernels.estimate import least_squares
from ...kernels.estimate.gp_kernels import COVARIANCES
from ...kernels.estimate.links import LINKS
from ...parameters import (
    Count,
    Family,
    Nonnegative,
    Positive,
    Values,
    Variance,
    array,
    choice,
    constructor,
)
from ...types import Arms, Key

MOST_GROWTH: float = 2.0**36  # of a prior variance, in units of the variance of a reward
USUAL_PRIOR: float = 50.0  # the scale of the prior, in units of the deviation of a reward


class State(NamedTuple):
    """What BayesGap remembers."""

    stats: least_squares.Ledger  # in arm space: the posterior covariance in units of noise_var
    draws: Int[Array, ""]
    found: selection.Best  # the J of the round with the least B_J so far, and -B_J
    order: Int[Array, " K"]  # priorities that break ties


def _in_reach(values: Values) -> None:
    """Raise where rounding would hide what draws tell, see `conditions.ridge_in_range`."""
    arms, scale, noise_var = (values[name] for name in ("arms", "prior_scale", "noise_var"))
    if not all(map(is_concrete, (arms, scale, noise_var))):
        return
    linear = values["kernel"] == "linear"
    square = float((np.asarray(arms, float) ** 2).sum(1).max()) if linear else 1.0
    with np.errstate(over="ignore"):
        in_units = USUAL_PRIOR**2 if scale is None else np.float64(scale) ** 2 / noise_var
        ratio = float(in_units * square)
    what = "prior_scale^2 x . x" if linear else "prior_scale^2"
    require(
        square == 0.0 or LEAST_GROWTH <= ratio <= MOST_GROWTH,
        f"arms must have prior variances, at most {what}, of {LEAST_GROWTH:.2g} to "
        f"{MOST_GROWTH:.2g} times noise_var, beyond which rounding hides what draws tell, got "
        f"{ratio:.6g} times: give another prior_scale, or features in another unit",
    )


def _consistent(values: Values) -> None:
    _in_reach(values)
    budget_covers(values, values["arms"].shape[0], "arms, each of which is drawn once")
    theta, gaps, oracle = values["theta"], values["gaps"], values["hardness"] == "oracle"
    unknown = theta is None or (is_concrete(theta) and not np.any(theta))
    known = not oracle or gaps is not None or not unknown
    require(known, "gaps must be given for hardness 'oracle' where theta is unknown, got None")
    fits = gaps is None or (oracle and np.shape(gaps) == values["arms"].shape[:1])
    require(fits, f"gaps must be [K], for hardness 'oracle' alone, got shape {np.shape(gaps)}")


@constructor(
    requires=_consistent,
    revisions=(
        "prior_scale is 50 standard deviations of a reward by default, where it was 50 in the unit "
        "of the rewards; both are equal at noise_var 1",
    ),
)
def bayes_gap(
    arms: Arms,
    *,
    budget: Count | None = None,
    per_arm: Count | None = None,
    kernel: Annotated[str, choice(*COVARIANCES)] = "linear",
    length_scale: Positive = 1.0,
    prior_scale: Positive | None = None,
    noise_var: Variance = 1.0,
    epsilon: Nonnegative = 0.0,
    hardness: Annotated[str, choice("estimated", "oracle")] = "estimated",
    gaps: Annotated[Float[Array, " K"], array("K")] | None = None,
    theta: Float[Array, " d"] | None = None,
    family: Family = "gaussian",
) -> Algorithm:
    """BayesGap (Hoffman, Shahriari, de Freitas, 2014).

    A Gaussian process over the arms, prior covariance `eta^2 G`, with posterior means m and
    deviations s. After one draw of each arm: `U = m + beta s`, `L = m - beta s`,
    `B_k = max_{i != k} U_i - L_k`, `J = argmin B`, `j = argmax_{k != J} U_k`; draw the one of J and
    j with the larger s. Answer the J of the round with the least B_J. `beta` is
    `kernels.confidence.radius.bayes_gap`, which depends on the hardness H of the gaps; these are
    estimated by `D_k = max_{i != k} (m_i + 3 s_i) - (m_k - 3 s_k)`.

    Args:
      arms: `[K, d]` features. Their units matter: the prior depends on them.
      budget: total draws B, at least K; spent exactly.
      per_arm: instead of a budget, the draws per arm: a budget of `per_arm K`.
      kernel: G, "linear" (`x . y`), "exponential" (`exp(-r / l)`), "squared_exponential"
        (`exp(-r^2 / l)`), "matern32" or "matern52"; r is the distance of two arms.
      length_scale: l, unused by "linear".
      prior_scale: eta, in units of a reward; 50 sigma by default.
      noise_var: variance of a reward, sigma^2.
      epsilon: an answer within epsilon of the best is good enough; in units of a reward.
      hardness: "estimated", or "oracle": H of the true gaps.
      gaps: `[K]` true gaps, `|max_{i != k} mu_i - mu_k|`; by default those of the means
        `mu(x^T theta)`.
      theta, family: the parameter and the model of mu, which `simulate` passes; for "oracle" only.
    Returns:
      An `Algorithm` that draws one arm a round and answers the index of an arm.
    Raises:
      ValueError: a bad option, a budget below K, "oracle" without gaps or theta, a prior beyond
        double precision.
    Deviations:
      epsilon = 0 and eta = 50 sigma are those of GSE's program at sigma = 1; elsewhere its eta is
      50 too, and results change with the unit of rewards. The paper has epsilon > 0. With 0, H is
      infinite and beta 0 as soon as an arm leads all others by more than their deviations.
      Ties, which are values equal to six digits, are broken by a random order drawn once a
      replication.
    Setting:
      best arm, fixed budget, Gaussian process.
    Assumptions:
      linear means, or a Gaussian process by `kernel`; normal noise. Arms without features: as unit
      vectors.
    Guarantee:
      `jaxbandits.theory.bayes_gap_error_bound` with hardness = "oracle"; none for the default,
      which estimates the hardness.
    Cost:
      a round K^2, and the covariances of the arms K^2 d once.
    Reference:
      M. W. Hoffman, B. Shahriari, N. de Freitas, "On correlation and budget constraints in model-
      based bandit optimization", AISTATS 2014, https://proceedings.mlr.press/v33/hoffman14.html
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> instance = jb.instances.soare(3, angle=0.5, noise_var=0.1)
      >>> algorithm = partial(jb.bayes_gap, budget=80)
      >>> runs = jb.simulate(instance, algorithm, replications=10)
      >>> set(runs.pulls.tolist()), runs.summary()["errors"]
      ({80}, 0)
    """
    num_arms, _ = arms.shape
    budget = total_draws(arms, budget, per_arm)
    scale = USUAL_PRIOR * jnp.sqrt(noise_var) if prior_scale is None else prior_scale
    prior = COVARIANCES[kernel](arms, length_scale) * scale**2
    if hardness == "oracle" and gaps is None:
        assert theta is not None  # `_consistent` has checked it
        means = LINKS[family].mean(arms @ theta)
        gaps = jnp.abs(indices.highest_of_others(means) - means)

    def init(key: Key) -> State:
        return State(
            stats=least_squares.gaussian_process(prior, noise_var),
            draws=jnp.zeros((), int),
            found=selection.Best(jnp.zeros((), int), jnp.array(-jnp.inf, arms.dtype)),
            order=selection.tie_order(key, num_arms),
        )

    def ask(key: Key, state: State) -> Move:
        means, draws, order = state.stats.means, state.draws, state.order
        variances = jnp.maximum(state.stats.variances, 0.0) * noise_var
        sizes = indices.individual(means, variances, 3.0).nth(1) if gaps is None else gaps
        beta = radius.bayes_gap(budget - num_arms, noise_var, jnp.diagonal(prior), sizes, epsilon)
        bounds = indices.individual(means, variances, beta)
        worst = bounds.nth(1)
        leader = selection.argmax(-selection.coarse(worst), order)
        others = jnp.where(jnp.arange(num_arms) == leader, -jnp.inf, bounds.upper)
        rival = selection.argmax(selection.coarse(others), order)
        ranked = selection.coarse(variances)  # often equal, but for rounding
        wider = selection.at(ranked, leader) < selection.at(ranked, rival)
        chosen = jnp.where(wider, rival, leader)
        return Move(
            arm=jnp.where(draws < num_arms, jnp.minimum(draws, num_arms - 1), chosen),
            count=None,
            done=draws >= budget,
            answer=jnp.where(state.found.value == -jnp.inf, leader, state.found.arm),
            info=selection.Best(leader, -selection.at(worst, leader)),
        )

    def tell(state: State, move: Move, total: Array) -> State:
        stats = least_squares.observe(state.stats, arms, move.arm, total, arm_space=True)
        better = (state.draws >= num_arms) & (move.info.value > state.found.value)
        found = jax.tree.map(lambda new, old: jnp.where(better, new, old), move.info, state.found)
        return State(stats, state.draws + 1, found, state.order)

    return Algorithm(init, ask, tell)
