"""Sequential halving: fixed-budget best-arm identification without structure."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...core import Algorithm, Move
from ...kernels import halving, pick
from ...options import budget_covers, constructor, count, total_draws


class State(NamedTuple):
    """What sequential halving remembers between stages."""

    alive: jax.Array  # bool [K]
    stage: jax.Array  # int [] from 0
    answer: jax.Array  # int []
    order: jax.Array  # int [K] priorities that break ties


def _enough(values):
    stages = halving.schedule(values["arms"].shape[0]).stages
    budget_covers(values, stages)


@constructor(requires=_enough, budget=count(), per_arm=count())
def sequential_halving(arms, *, budget=None, per_arm=None):
    """Sequential halving (Karnin, Koren, Somekh, 2013).

    `ceil(log2 K)` stages share the budget; in each, the arms alive are drawn equally often and
    the better half by this stage's own means, `ceil(K_t / 2)` of them, goes on.

    Args:
      arms: `[K, d]`; only K matters.
      budget: total draws, at least the number of stages; spent exactly.
      per_arm: instead of it, the draws per arm: a budget of `per_arm K`.
    Returns:
      An `Algorithm` that asks for an allocation each stage and answers the index of an arm.
    Raises:
      ValueError: a budget below the number of stages.
    Deviations:
      The remainder of the budget goes to the last stages and, within a stage, to arms drawn at
      random; the paper rounds both down. An arm without draws has estimate 0.
    Reference:
      Z. Karnin, T. Koren, O. Somekh, "Almost optimal exploration in multi-armed bandits",
      ICML 2013, Algorithm 3.
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.sequential_halving, budget=400)
      >>> runs = jb.simulate(jb.instances.canonical(4, gap=2.0), algorithm, replications=20)
      >>> runs.pulls.min(), runs.pulls.max()
      (np.int64(400), np.int64(400))
    """
    num_arms = arms.shape[0]
    budget = total_draws(arms, budget, per_arm)
    plan = halving.schedule(num_arms)
    sizes = jnp.asarray(plan.sizes)

    def init(key):
        zero = jnp.zeros((), int)
        order = pick.tie_order(key, num_arms)
        return State(jnp.ones(num_arms, bool), zero, jnp.argmax(order), order)

    def ask(key, state):
        draws = plan.draws(budget, state.stage) if plan.stages else jnp.zeros((), int)
        count = pick.spread(state.alive, draws, key)
        done = state.stage >= plan.stages
        return Move(jnp.arange(num_arms), count.astype(int), done, state.answer)

    def tell(state, move, total):
        estimates = total / jnp.maximum(move.count, 1)
        ranked = jnp.where(state.alive, estimates, -jnp.inf)
        alive = pick.top(ranked, state.order, sizes[state.stage + 1])
        return State(alive, state.stage + 1, pick.argmax(ranked, state.order), state.order)

    return Algorithm(init, ask, tell)
