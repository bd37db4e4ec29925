"""GSE: fixed-budget best-arm identification in linear and generalised linear bandits."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ...core import Algorithm, Move
from ...kernels import design as designs
from ...kernels import halving, irls, ledger, pick, rounding, span, spd
from ...kernels.links import FAMILIES
from ...kernels.once import once_for_equal
from ...options import budget_covers, choice, constructor, count, positive, size, total_draws


class State(NamedTuple):
    """What GSE remembers between stages."""

    alive: jax.Array  # bool [K]
    stage: jax.Array  # int [] from 0
    answer: jax.Array  # int []
    order: jax.Array  # int [K] priorities that break ties
    invalid: jax.Array  # int [] stages whose draws did not span the arms alive
    unconverged: jax.Array  # int [] stages whose fit missed its tolerance


def _enough(values):
    stages = halving.schedule(values["arms"].shape[0], values["eta"]).stages
    budget_covers(values, stages)


@constructor(
    requires=_enough,
    budget=count(),
    per_arm=count(),
    design=choice("uniform", "d_opt"),
    eta=size(2),
    family=choice(*FAMILIES),
    tol=positive,
    ridge=positive,
)
def gse(
    arms,
    *,
    budget=None,
    per_arm=None,
    design="uniform",
    eta=2,
    family="gaussian",
    tol=0.01,
    ridge=1e-6,
):
    """Generalised successive elimination (Azizi, Kveton, Ghavamzadeh, 2022).

    `s` stages of `floor(B/s)` draws. In a stage: project the arms alive on their span, share
    the draws by the design, fit theta to this stage's rewards alone (least squares, or maximum
    likelihood of the family), keep the `ceil(K_t / eta)` arms with the largest `x^T theta`.

    Args:
      arms: `[K, d]` features.
      budget: total draws, at least the number of stages; spent exactly.
      per_arm: instead of it, the draws per arm: a budget of `per_arm K`.
      design: "uniform", or "d_opt" (D-optimal by vertex exchange, efficient rounding).
      eta: elimination factor, a whole number of 2 or more (static).
      family: "gaussian" is GSE-Lin, "logistic" GSE-Log; also "poisson", "probit".
      tol: `max_k ||x_k||^2 <= (1 + tol) d` of the D-optimal design.
      ridge: of the maximum likelihood fit: separable samples are common in small stages, and a
        tiny ridge keeps their ranking meaningful. Unused by "gaussian".
    Returns:
      An `Algorithm` that asks for an allocation each stage and answers the index of an arm.
      `info`: stages whose draws did not span the arms alive (`invalid`; the least-norm estimate
      is used) and stages whose fit missed its tolerance (`unconverged`).
    Raises:
      ValueError: a bad option, or a budget below the number of stages.
    Deviations:
      The remainder of the budget goes to the last stages, which the paper leaves open. Survivors
      are rounded up, as printed; the published program rounds down. The D-optimal design solves
      the same problem as the paper's Frank-Wolfe on the G-objective, which stalls. Draws are
      rounded to the exact budget, where the published program overspends. Arms are ranked by
      the linear predictor, the same order as the mean without saturation.
    Reference:
      M. J. Azizi, B. Kveton, M. Ghavamzadeh, "Fixed-budget best-arm identification in structured
      bandits", IJCAI 2022, Algorithm 1. https://arxiv.org/abs/2106.04763
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.gse, budget=320, design="d_opt")
      >>> runs = jb.simulate(jb.instances.canonical(8, gap=2.0), algorithm, replications=50)
      >>> runs.summary()["errors"]
      0
    """
    num_arms, _ = arms.shape
    budget = total_draws(arms, budget, per_arm)
    plan = halving.schedule(num_arms, eta)
    sizes = jnp.asarray(plan.sizes)

    @once_for_equal
    def weights_for(alive):
        return _trimmed(designs.d_optimal(arms, alive, tol=tol).weights)

    def init(key):
        zero = jnp.zeros((), int)
        order = pick.tie_order(key, num_arms)
        return State(jnp.ones(num_arms, bool), zero, jnp.argmax(order), order, zero, zero)

    def ask(key, state):
        draws = plan.draws(budget, state.stage) if plan.stages else jnp.zeros((), int)
        if design == "uniform":
            counts = pick.spread(state.alive, draws, key)
        else:
            counts = rounding.efficient(weights_for(state.alive), draws)
        return Move(
            arm=jnp.arange(num_arms),
            count=counts.astype(int),
            done=state.stage >= plan.stages,
            answer=state.answer,
            info={"invalid": state.invalid, "unconverged": state.unconverged},
        )

    def estimate(counts, sums, alive):
        """Linear predictors `[K]`, whether the draws span the arms alive, and convergence."""
        matrix = ledger.gram(arms, counts)
        drawn = spd.partial_inverse(matrix, span.negligible(arms))
        theta = drawn.matrix @ (arms.T @ sums)

        def some_missed():
            space = span.of_gram(matrix, drawn)
            return span.project(space, theta), (span.within(space, arms) | ~alive).all()

        missed = (alive & (counts == 0)).any()
        theta, valid = lax.cond(missed, some_missed, lambda: (theta, jnp.array(True)))
        if family == "gaussian":
            return arms @ theta, valid, jnp.array(True)
        zeros = jnp.zeros(arms.shape[1], arms.dtype)
        weights = counts.astype(arms.dtype)
        found = irls.fit(arms, weights, sums, family=family, ridge=ridge, init=zeros)
        return arms @ found.theta, valid, found.converged

    def tell(state, move, total):
        predictors, valid, converged = estimate(move.count, total, state.alive)
        ranked = jnp.where(state.alive, predictors, -jnp.inf)
        return State(
            alive=pick.top(ranked, state.order, sizes[state.stage + 1]),
            stage=state.stage + 1,
            answer=pick.argmax(ranked, state.order),
            order=state.order,
            invalid=state.invalid + ~valid,
            unconverged=state.unconverged + ~converged,
        )

    return Algorithm(init, ask, tell)


def _trimmed(weights):
    """Weights below 1e-6 are too little for a draw that every supported arm gets."""
    kept = jnp.where(weights < 1e-6, 0.0, weights)
    return kept / kept.sum()
