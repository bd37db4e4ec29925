"""UCB-GLM: optimism in generalised linear bandits."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...core import Algorithm, Move
from ...kernels import irls, ledger, pick, radius
from ...kernels.links import FAMILIES, LINKS
from ...options import choice, constructor, number_or, positive, probability, require

TOL = 1e-6  # Newton decrement of a fit


class State(NamedTuple):
    """What UCB-GLM remembers."""

    stats: ledger.Ledger  # of which the variances alone are used
    fit: irls.Estimate  # to the rewards so far; its theta is the next warm start
    counts: jax.Array  # int [K]
    sums: jax.Array  # float [K]
    order: jax.Array  # int [K] priorities that break ties
    unconverged: jax.Array  # int [] rounds whose fit missed its tolerance


def _consistent(values):
    known = values["horizon"] is not None or not isinstance(values["alpha"], str)
    require(known, "horizon must be given for alpha 'theory', got None (unknown)")


@constructor(
    requires=_consistent,
    alpha=number_or("theory"),
    family=choice(*FAMILIES),
    begin=choice("basis", "every"),
    bonus=choice("norm", "squared_norm"),
    noise_var=positive,
    kappa=positive,
    delta=probability,
    ridge=positive,
)
def ucb_glm(
    arms,
    *,
    alpha=0.5,
    family="logistic",
    begin="basis",
    bonus="norm",
    noise_var=0.25,
    kappa=None,
    delta=None,
    horizon=None,
    ridge=1e-3,
):
    """UCB-GLM (Li, Lu, Zhou, 2017).

    After the first draws: fit theta by regularised maximum likelihood and draw `argmax_k
    x_k^T theta + alpha ||x_k||_{V^-1}`, `V = ridge I + sum of x x^T`.

    Args:
      arms: `[K, d]` features.
      alpha: the width of a linear predictor; "theory": `(sigma / kappa) sqrt(d log(1 + 2 n / d) / 2
        + log(1 / delta))` for n rounds. 0.5 is customary, without a theorem.
      family: "logistic", "poisson", "probit" or "gaussian".
      begin: what is drawn once at first: "basis", d linearly independent arms, or "every" arm.
      bonus: "norm", or "squared_norm" for `alpha ||x_k||^2_{V^-1}`, as GSE's program has it.
      noise_var: sub-Gaussian variance of a reward, sigma^2; for "theory".
      kappa: least slope of the mean function near theta, by default the slope at 0; for "theory".
      delta: chance of a wrong interval, by default 1/n; for "theory".
      horizon: n; `simulate` passes that of a regret run, `at_budget` the budget.
      ridge: weight of `||theta||^2 / 2` in the fit, and in V.
    Returns:
      An `Algorithm` that is never done, for cumulative regret or for `at_budget`, and answers the
      arm drawn most: of equal ones that of the larger estimate. `info`: rounds whose fit missed
      its tolerance (`unconverged`).
    Raises:
      ValueError: a bad option, or "theory" without a horizon.
    Deviations:
      The ridge, without which there is no fit to separable rewards. The paper begins with arms at
      random, until `sum of x x^T` is large. Of arms that do not span, a basis of their span is
      drawn. After a fit that did not converge the next one starts from 0.
    Reference:
      L. Li, Y. Lu, D. Zhou, "Provably optimal algorithms for generalized linear contextual
      bandits", ICML 2017, Algorithm 1. https://arxiv.org/abs/1703.00048
    Example:
      >>> import jax
      >>> import jaxbandits as jb
      >>> instance = jb.instances.logistic_cube(jax.random.key(0), 10, 3, half_width=1.0)
      >>> runs = jb.simulate(instance, jb.at_budget(jb.ucb_glm, 100), replications=10)
      >>> set(runs.pulls.tolist())
      {100}
    """
    num_arms, dim = arms.shape
    sequence = jnp.arange(num_arms) if begin == "every" else pick.first_basis(arms)
    # A basis of a smaller space ends in repetitions of its last arm.
    first = num_arms if begin == "every" else 1 + (sequence[1:] != sequence[:-1]).sum()
    form = {"arm_space": ledger.prefers_arm_space(arms)}
    if isinstance(alpha, str):
        alpha = _theory(dim, family, noise_var, kappa, delta, horizon)

    def init(key):
        stats, zero = ledger.ridge(arms, ridge, **form), jnp.zeros((), int)
        counts, sums = jnp.zeros(num_arms, int), jnp.zeros(num_arms, arms.dtype)
        nothing = irls.estimate_without_data(dim, ridge, arms.dtype)
        return State(stats, nothing, counts, sums, pick.tie_order(key, num_arms), zero)

    def ask(key, state):
        draws, predictors = state.counts.sum(), arms @ state.fit.theta
        squares = jnp.maximum(state.stats.variances, 0.0)
        bonuses = alpha * (squares if bonus == "squared_norm" else jnp.sqrt(squares))
        begun = pick.at(sequence, jnp.minimum(draws, sequence.size - 1))
        return Move(
            arm=jnp.where(draws < first, begun, pick.argmax(predictors + bonuses, state.order)),
            count=None,
            done=jnp.array(False),
            answer=pick.most_drawn(state.counts, predictors, state.order),
            info={"unconverged": state.unconverged},
        )

    def tell(state, move, total):
        here = jnp.arange(num_arms) == move.arm
        counts, sums = state.counts + here, state.sums + jnp.where(here, total, 0.0)
        found = irls.estimate(
            arms,
            counts.astype(arms.dtype),
            sums,
            family=family,
            ridge=ridge,
            init=jnp.where(state.fit.converged, state.fit.theta, 0.0),
            inverse=irls.after_draw(state.fit, family, pick.at(arms, move.arm)),
            # Nobody asks for an estimate before the first arms are drawn: one step will do.
            tol=jnp.where(counts.sum() < first, jnp.inf, TOL),
        )
        stats = ledger.observe(state.stats, arms, move.arm, 0.0, **form)
        unconverged = state.unconverged + ~found.converged
        return State(stats, found, counts, sums, state.order, unconverged)

    return Algorithm(init, ask, tell)


def _theory(dim, family, noise_var, kappa, delta, horizon):
    """`sigma C / kappa`."""
    slope = LINKS[family].variance(jnp.zeros(())) if kappa is None else kappa
    level = 1.0 / horizon if delta is None else delta
    return jnp.sqrt(noise_var) / slope * radius.ucb_glm(level, horizon, dim)
