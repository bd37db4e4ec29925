"""GSE: fixed-budget best-arm identification in linear and generalised linear bandits."""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...conditions import budget_covers, total_draws
from ...core import Algorithm
from ...kernels.allocate import halving, stage_shares
from ...kernels.design.vertex_directions import STARTS
from ...kernels.estimate import stage_fit
from ...parameters import (
    Count,
    Family,
    Flag,
    Positive,
    Size,
    Values,
    choice,
    constructor,
    require,
    size,
)
from ...types import Arms, Key
from ..loops.elimination import EliminationRules, State, by_schedule, elimination


class Memory(NamedTuple):
    """What GSE remembers besides the arms alive."""

    info: dict[str, Int[Array, ""]]  # numbers of stages, see `Returns`
    counts: Int[Array, " K"] | None  # of all stages, with `reuse`
    sums: Float[Array, " K"] | None  # the same


def _check(values: Values) -> None:
    known = values["start"] == "uniform" or values["design"] in stage_shares.BY_STEPS
    names = ", ".join(map(repr, stage_shares.BY_STEPS))
    require(known, f"start={values['start']!r} is for one of the designs {names}")
    stages = halving.schedule(values["arms"].shape[0], values["eta"]).stages
    budget_covers(values, stages)


@constructor(scale_free=lambda values: values["family"] == "gaussian", requires=_check)
def gse(
    arms: Arms,
    *,
    budget: Count | None = None,
    per_arm: Count | None = None,
    design: Annotated[str, choice(*stage_shares.DESIGNS)] = "uniform",
    rounding: Annotated[str, choice(*stage_shares.ROUNDINGS)] = "efficient",
    start: Annotated[str, choice(*STARTS)] = "uniform",
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

    There are `s = ceil(log_eta K)` stages of `floor(B/s)` draws. A stage projects the arms alive
    onto their span, allocates its draws by the design, fits theta to its own rewards alone (least
    squares, or maximum likelihood of the family), and keeps the `ceil(K_t / eta)` arms of largest
    `x^T theta`.

    Args:
      arms: `[K, d]` features. The units of a column change nothing but the ridge of a family other
        than "gaussian".
      budget: total draws, at least the number of stages; spent exactly.
      per_arm: instead of a budget, the draws per arm: a budget of `per_arm K`.
      design: "uniform"; for G-optimality "d_opt" (vertex exchange), "d_opt_fw" (Frank-Wolfe with
        away steps), "fedorov", "wynn", or "fwg", the paper's, which stalls; "greedy" (Soare et
        al., 2014), which allocates draw by draw; "kmeans", the same for each cluster of arms.
      rounding: "efficient"; "regret" (Allen-Zhu et al., 2017, for the draws that remain after the
        integer parts of the shares), which is slower, and better only in stages of less than about
        2 d draws; "largest_remainder", "multinomial", or "ceil", which spends more than the budget.
      start: of the designs by steps, "fwg", "d_opt_fw", "wynn" and "fedorov": "uniform", or
        "kumar_yildirim", from which their number does not grow with K (Corollary 2); see
        `design.fedorov`.
      eta: elimination factor, a whole number of 2 or more (static); there is a single stage if it
        is K.
      leftover: the remaining `B mod s` draws go to the "last" stages, or "discard" leaves them out.
      family: "gaussian" is GSE-Lin, "logistic" GSE-Log; also "poisson", "probit".
      subspace: "projection" or "pseudo_inverse", which differ in rounding alone.
      reuse: whether a fit uses the rewards of all stages, for which nothing is proved.
      forced: draws of each arm of a basis of the arms alive, before those of the design (static).
      clusters: number of clusters for "kmeans" (static); the rank of the arms alive by default.
      tol: `max_k ||x_k||^2 <= (1 + tol) d` of the design.
      ridge: of the maximum likelihood fit: separable samples are common in small stages, and a
        tiny ridge keeps their ranking meaningful. Unused by "gaussian".
    Returns:
      An `Algorithm` that asks for an allocation each stage and answers the index of an arm.
      `info`: the number of stages whose draws did not span the arms alive (`invalid`; the
      least-norm estimate is used), whose fit missed its tolerance (`unconverged`), and whose
      design missed its own (`unsolved`).
    Raises:
      ValueError: a bad option, a start of a design that has none, or a budget below the number of
        stages.
    Deviations:
      The paper's eta may be any number above 1, with the logarithm of this base; here it is a whole
      number. ROUND of Algorithm 2 is rounding = "regret"; the default is "efficient". The remainder
      of the budget goes to the last stages, which the paper leaves open. The number of survivors is
      rounded up, as printed; the published program rounds down. Draws are rounded to the exact
      budget; that program takes "ceil". Its FWG has a backtracking line search and a ridge; "fwg"
      is as printed, with exact line search, 100 iterations. Arms are ranked by the linear
      predictor. Ties within "greedy" and "regret" are broken in an order that all replications
      share.
    Setting:
      best arm, fixed budget, linear and generalised linear.
    Assumptions:
      linear means, or a generalised linear model by `family`. Arms without features: as unit
      vectors.
    Guarantee:
      exponential in the budget: `jaxbandits.theory.gse_error_bound`, for G-optimal designs and no
      `reuse`.
    Cost:
      a stage K d^2 + d^3; a design besides, of which an exchange takes K d, where design is
      "d_opt".
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
    budget = jnp.asarray(total_draws(arms, budget, per_arm))
    schedule = halving.schedule(num_arms, eta)
    share = stage_shares.allocation(
        arms, design, rounding, tol=tol, start=start, num_clusters=clusters, forced=forced
    )

    def begin() -> Memory:
        info = {name: jnp.zeros((), int) for name in ("invalid", "unconverged", "unsolved")}
        if not reuse:
            return Memory(info, None, None)
        return Memory(info, jnp.zeros(num_arms, int), jnp.zeros(num_arms, arms.dtype))

    def allocate(key: Key, state: State) -> tuple[Array, Array]:
        draws = schedule.draws(budget, state.stage, leftover)
        return share(key, state.order, state.alive, draws)

    def learn(state: State, counts: Array, sums: Array, solved: Array) -> tuple[Array, Memory]:
        memory: Memory = state.memory
        if memory.counts is not None and memory.sums is not None:
            counts, sums = memory.counts + counts, memory.sums + sums
        fit = stage_fit.fit(
            arms, counts, sums, state.alive, family=family, ridge=ridge, subspace=subspace
        )
        flags = {"invalid": ~fit.valid, "unconverged": ~fit.converged, "unsolved": ~solved}
        info = {name: memory.info[name] + flag for name, flag in flags.items()}
        return fit.predictors, Memory(info, counts, sums) if reuse else Memory(info, None, None)

    rules = EliminationRules(
        allocate, learn, begin=begin, report=lambda m: m.info, **by_schedule(schedule)
    )
    return elimination(num_arms, rules)
