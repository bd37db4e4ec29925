"""GSE: fixed-budget best-arm identification in linear and generalised linear bandits."""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp

from ...conditions import budget_covers, total_draws
from ...core import Algorithm
from ...kernels.allocate import halving, stage_shares
from ...kernels.estimate import stage_fit
from ...parameters import Count, Family, Flag, Positive, Size, choice, constructor, size
from ...types import Arms
from ..loops.elimination import EliminationRules, by_schedule, elimination


class Memory(NamedTuple):
    """What GSE remembers besides who is alive."""

    info: dict  # int [] each: stages of which something has to be said
    counts: jax.Array | None  # int [K] and
    sums: jax.Array | None  # float [K] of all stages; for `reuse`


def _enough(values):
    stages = halving.schedule(values["arms"].shape[0], values["eta"]).stages
    budget_covers(values, stages)


@constructor(scale_free=lambda values: values["family"] == "gaussian", requires=_enough)
def gse(
    arms: Arms,
    *,
    budget: Count | None = None,
    per_arm: Count | None = None,
    design: Annotated[str, choice(*stage_shares.DESIGNS)] = "uniform",
    rounding: Annotated[str, choice(*stage_shares.ROUNDINGS)] = "efficient",
    eta: Annotated[int, size(2)] = 2,
    leftover: Annotated[str, choice(*halving.LEFTOVERS)] = "last",
    family: Family = "gaussian",
    subspace: Annotated[str, choice(*stage_fit.SUBSPACES)] = "projection",
    reuse: Flag = False,
    forced: Annotated[int, size(0)] = 0,
    clusters: Size | None = None,
    tol: Positive = 0.01,
    ridge: Positive = 1e-6,
) -> Algorithm:
    """Generalised successive elimination (Azizi, Kveton, Ghavamzadeh, 2022).

    `s = ceil(log_eta K)` stages of `floor(B/s)` draws. In a stage: project the arms alive on their
    span, share the draws by the design, fit theta to this stage's rewards alone (least squares, or
    maximum likelihood of the family), keep the `ceil(K_t / eta)` arms of largest `x^T theta`.

    Args:
      arms: `[K, d]` features. The units of a column change nothing but the ridge of a family other
        than "gaussian".
      budget: total draws, at least the number of stages; spent exactly.
      per_arm: instead of it, the draws per arm: a budget of `per_arm K`.
      design: "uniform"; for G-optimality "d_opt" (vertex exchange), "d_opt_fw" (Frank-Wolfe with
        away steps), "fedorov", "wynn", or "fwg", the paper's, which stalls; "greedy" (Soare et
        al., 2014), whole draws one by one; "kmeans", the same for each cluster of arms.
      rounding: "efficient"; "regret" (Allen-Zhu et al., 2017, for the draws that whole shares
        leave), slower, and better only in stages of less than some 2 d draws; "largest_remainder",
        "multinomial", or "ceil", which spends more than the budget.
      eta: elimination factor, 2 or more (static); with K a single stage.
      leftover: `B mod s` draws go to the "last" stages, or "discard".
      family: "gaussian" is GSE-Lin, "logistic" GSE-Log; also "poisson", "probit".
      subspace: "projection" or "pseudo_inverse", which differ in rounding alone.
      reuse: whether a fit takes the rewards of all stages, for which nothing is proved.
      forced: draws of each arm of a basis of those alive before the design's (static).
      clusters: number of them for "kmeans" (static); the rank of the arms alive by default.
      tol: `max_k ||x_k||^2 <= (1 + tol) d` of the design.
      ridge: of the maximum likelihood fit: separable samples are common in small stages, and a
        tiny ridge keeps their ranking meaningful. Unused by "gaussian".
    Returns:
      An `Algorithm` that asks for an allocation each stage and answers the index of an arm.
      `info`: stages whose draws did not span the arms alive (`invalid`; the least-norm estimate
      is used), whose fit missed its tolerance (`unconverged`), or whose design did (`unsolved`).
    Raises:
      ValueError: a bad option, or a budget below the number of stages.
    Deviations:
      The remainder of the budget goes to the last stages, which the paper leaves open. Survivors
      are rounded up, as printed; the published program rounds down. Draws are rounded to the
      exact budget; that program takes "ceil". Its FWG backtracks, with a ridge; "fwg" is as
      printed, with exact line search, 100 iterations. Arms are ranked by the linear predictor.
      Ties within "greedy" and "regret" are broken in an order that all replications share.
    Reference:
      M. J. Azizi, B. Kveton, M. Ghavamzadeh, "Fixed-budget best-arm identification in structured
      bandits", IJCAI 2022, Algorithm 1. https://arxiv.org/abs/2106.04763
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.gse, budget=320, design="d_opt")
      >>> runs = jb.simulate(jb.instances.canonical(8, gap=2.0), algorithm, replications=10)
      >>> runs.summary()["errors"]
      0
    """
    num_arms, _ = arms.shape
    budget, plan = total_draws(arms, budget, per_arm), halving.schedule(num_arms, eta)
    share = stage_shares.allocation(
        arms, design, rounding, tol=tol, num_clusters=clusters, forced=forced
    )

    def begin():
        info = {name: jnp.zeros((), int) for name in ("invalid", "unconverged", "unsolved")}
        if not reuse:
            return Memory(info, None, None)
        return Memory(info, jnp.zeros(num_arms, int), jnp.zeros(num_arms, arms.dtype))

    def allocate(key, state):
        return share(key, state.order, state.alive, plan.draws(budget, state.stage, leftover))

    def learn(state, counts, sums, solved):
        memory = state.memory
        if reuse:
            counts, sums = memory.counts + counts, memory.sums + sums
        fit = stage_fit.fit(
            arms, counts, sums, state.alive, family=family, ridge=ridge, subspace=subspace
        )
        flags = {"invalid": ~fit.valid, "unconverged": ~fit.converged, "unsolved": ~solved}
        info = {name: memory.info[name] + flag for name, flag in flags.items()}
        return fit.predictors, Memory(info, *((counts, sums) if reuse else (None, None)))

    rules = EliminationRules(
        allocate, learn, begin=begin, report=lambda m: m.info, **by_schedule(plan)
    )
    return elimination(num_arms, rules)
