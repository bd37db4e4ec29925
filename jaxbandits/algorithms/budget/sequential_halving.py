"""Sequential halving: fixed-budget best-arm identification without structure."""

import jax.numpy as jnp
from jaxtyping import Array

from ...conditions import budget_covers, total_draws
from ...core import Algorithm
from ...kernels import selection
from ...kernels.allocate import halving
from ...parameters import Count, Values, constructor
from ...types import Arms, Key
from ..loops.elimination import EliminationRules, State, by_schedule, elimination


def _budget_covers_stages(values: Values) -> None:
    stages = halving.schedule(values["arms"].shape[0]).stages
    budget_covers(values, stages)


@constructor(features=False, requires=_budget_covers_stages)
def sequential_halving(
    arms: Arms,
    *,
    budget: Count | None = None,
    per_arm: Count | None = None,
) -> Algorithm:
    """Sequential halving (Karnin, Koren, Somekh, 2013).

    `ceil(log2 K)` stages share the budget. In each stage the arms alive are drawn equally often,
    and the better half, `ceil(K_t / 2)` arms by their means in this stage alone, goes on.

    Args:
      arms: `[K, d]`; only K matters.
      budget: total draws, at least the number of stages; spent exactly.
      per_arm: instead of a budget, the draws per arm: a budget of `per_arm K`.
    Returns:
      An `Algorithm` that asks for an allocation each stage and answers the index of an arm.
    Raises:
      ValueError: a budget below the number of stages.
    Deviations:
      The remainder of the budget goes to the last stages and, within a stage, to arms drawn at
      random; the paper rounds both down. An arm without draws has estimate 0.
    Setting:
      best arm, fixed budget, no structure.
    Assumptions:
      any means. Arms without features: features are not used.
    Guarantee:
      exponential in the budget: `jaxbandits.theory.sequential_halving_error_bound`, for rewards in
      [0, 1].
    Cost:
      a stage: K arms sorted, up to 64 of them by K^2 comparisons.
    Reference:
      Z. Karnin, T. Koren, O. Somekh, "Almost optimal exploration in multi-armed bandits",
      ICML 2013, Algorithm 3.
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.sequential_halving, budget=400)
      >>> runs = jb.simulate(jb.instances.canonical(8, gap=2.0), algorithm, replications=10)
      >>> runs.pulls.min(), runs.pulls.max()
      (np.int64(400), np.int64(400))
    """
    num_arms = arms.shape[0]
    budget = jnp.asarray(total_draws(arms, budget, per_arm))
    schedule = halving.schedule(num_arms)

    def allocate(key: Key, state: State) -> tuple[Array, tuple[()]]:
        return selection.shared_equally(state.alive, schedule.draws(budget, state.stage), key), ()

    def learn(state: State, counts: Array, sums: Array, note: tuple[()]) -> tuple[Array, tuple[()]]:
        return sums / jnp.maximum(counts, 1), ()

    return elimination(num_arms, EliminationRules(allocate, learn, **by_schedule(schedule)))
